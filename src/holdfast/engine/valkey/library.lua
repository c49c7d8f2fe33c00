#!lua name=holdfast_@VERSION@

--[[ A space of a Holdfast store in Valkey. It lives below one hash tag, so in one slot of a cluster:

  :keys     sorted set   the keys, all with the score 0: in the order of their bytes
  :values   hash         key -> value
  :state    hash         version: how many commits there were;  id: the name of the last one;
                         said: the last version that left notices;  format: of all this
                         base: the oldest version that the log reaches back to;  mark, at, new,
                         held: where the log is cut next, see `forget`;  claim, claim_ends, next,
                         next_ends: the session that has the space to itself, and the one that has
                         it next, each until a time (ms), see `claim`
  :log      stream       <version>-0 -> was: the id before;  id;  keys: those that were changed;
                         old: their values before;  gone: ranges, in place of too many keys;
                         notices
  :views    sorted set   version of a view that lasts -> the time (ms) until which it is waited for
  :done:<session>        "<number> <version>": the last commit of a session, which is so known when
                         it is sent again; "<number> never": one that was refused
  :turn:<digest>, :token:<digest>   the session that has its turn at a key, "" while it is passed on,
                         and the token for the next one, see `turn`: not on the disk

Lists of strings in one string (of keys, values, ranges) have 4 bytes of length before each of them.
A client that has read at some version learns from the log what was changed since, and what was there
before. So a view sees one moment, and a commit knows whether what it has read is still true.
]]

local WINDOW_MS = 60000             -- the log reaches back this far, up to twice as far
local LOG_BYTES = 16 * 1024 * 1024  -- or less far, if this much was changed meanwhile
local HELD_BYTES = 8 * LOG_BYTES    -- what views that last may hold
local OLD_BYTES = 8 * 1024 * 1024   -- of old values in one commit; more are not kept
local SESSION_SECONDS = 86400
local CHANGED_BYTES = 64 * 1024     -- of names of what others have changed, in one reply
local CHUNK = 1000                  -- arguments of one call; Lua's stack has room for 8,000

-- `redis` is the name that servers of both families know. While the library is loaded, none of its
-- functions is there, nor those of Lua: they are named where they are called.
local function call(...) return redis.call(...) end

-- --- lists in a string -----------------------------------------------------------------------------

local function pack(list)
  local parts = {}
  for i = 1, #list do
    parts[2 * i - 1] = struct.pack(">I4", #list[i])
    parts[2 * i] = list[i]
  end
  return table.concat(parts)
end

local function unpack_list(packed)
  local list, count, at = {}, 0, 1
  while at <= #packed do
    local length = struct.unpack(">I4", packed, at)
    count = count + 1
    list[count] = string.sub(packed, at + 4, at + 3 + length)
    at = at + 4 + length
  end
  return list
end

-- --- order -----------------------------------------------------------------------------------------

-- Whether a < b by bytes. Lua's own < follows the locale of the server.
local function below(a, b)
  if a == b then return false end
  local length = math.min(#a, #b)
  local at = 1
  while at + 63 <= length and string.sub(a, at, at + 63) == string.sub(b, at, at + 63) do at = at + 64 end
  for i = at, length do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

-- --- counters --------------------------------------------------------------------------------------

-- The sum of two numbers of 64 bits (big-endian, two's complement), or nil if it has more. In
-- halves: a number of Lua is exact to 53 bits.
local function sum(a, b)
  local high_a, low_a = struct.unpack(">i4I4", a)
  local high_b, low_b = struct.unpack(">i4I4", b)
  local low, high = low_a + low_b, high_a + high_b
  if low >= 4294967296 then low, high = low - 4294967296, high + 1 end
  if high < -2147483648 or high > 2147483647 then return nil end
  return struct.pack(">i4I4", high, low)
end

-- --- history ---------------------------------------------------------------------------------------

local function load_state(key)
  local got =
    call("HMGET", key, "version", "id", "base", "mark", "at", "new", "held", "said", "claim", "claim_ends")
  return {
    version = tonumber(got[1] or 0), id = got[2] or "", base = tonumber(got[3] or 0),
    mark = tonumber(got[4] or 0), at = tonumber(got[5] or 0), new = tonumber(got[6] or 0),
    held = tonumber(got[7] or 0), said = tonumber(got[8] or 0),
    claim = got[9], claim_ends = tonumber(got[10] or 0),
  }
end

local function number(value) return string.format("%.0f", value) end

local function now_ms()
  local time = call("TIME")
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- What was committed after `seen`, a table of fields each, or nil if that is not known any more, or
-- if `seen` belongs to commits that were lost in a failover.
local function since(state, log, seen, seen_id)
  if seen == state.version then
    return seen_id == state.id and {} or nil
  end
  if seen > state.version or seen < state.base then return nil end
  local commits = {}
  for place, entry in ipairs(call("XRANGE", log, "(" .. number(seen) .. "-0", "+")) do
    local fields, found = {}, entry[2]
    for i = 1, #found, 2 do fields[found[i]] = found[i + 1] end
    commits[place] = fields
  end
  if #commits ~= state.version - seen or commits[1].was ~= seen_id then return nil end
  return commits
end

-- The keys and the ranges that others have changed, as lists; false if that is not known, or too much.
local function changed_by(commits)
  if not commits then return false, false end
  if #commits == 0 then return "", "" end
  local names, gone, size = {}, {}, 0
  for i, commit in ipairs(commits) do
    names[i], gone[i] = commit.keys or "", commit.gone or ""
    size = size + #names[i] + #gone[i]
    if size > CHANGED_BYTES then return false, false end
  end
  return table.concat(names), table.concat(gone)
end

-- Cuts the log, at most once in a window, where no one needs it any more. Returns whether it did.
local function forget(state, keys, now, size)
  state.new = state.new + size
  if now - state.at < WINDOW_MS and state.new < LOG_BYTES then return false end
  local base = state.mark
  local held = 0
  if call("EXISTS", keys[5]) == 1 then
    call("ZREMRANGEBYSCORE", keys[5], "-inf", number(now))
    if state.held + state.new < HELD_BYTES then
      for _, version in ipairs(call("ZRANGE", keys[5], 0, -1)) do
        base = math.min(base, tonumber(version))
      end
      if base < state.mark then held = state.held end
    end
  end
  if base > state.base then
    call("XTRIM", keys[4], "MINID", number(base + 1) .. "-0")
    state.base = base
  end
  state.held, state.new, state.at, state.mark = held + state.new, 0, now, state.version
  return true
end

-- --- reading ---------------------------------------------------------------------------------------

-- Up to `count` pairs of a range, or fewer if they are large, and whether there are no more.
local function page(keys, begin, finish, count, reverse, budget)
  local found
  if reverse then
    found = call("ZREVRANGEBYLEX", keys[2], "(" .. finish, "[" .. begin, "LIMIT", 0, count)
  else
    found = call("ZRANGEBYLEX", keys[2], "[" .. begin, "(" .. finish, "LIMIT", 0, count)
  end
  local pairs, size, at, step = {}, 0, 1, 4
  while at <= #found and size < budget do
    local last = math.min(#found, at + step - 1)
    local values = call("HMGET", keys[3], unpack(found, at, last))
    for i = at, last do
      local value = values[i - at + 1]
      pairs[2 * i - 1] = found[i]
      pairs[2 * i] = value
      size = size + #found[i] + #(value or "")
    end
    at = last + 1
    step = math.max(1, math.min(CHUNK, math.floor((budget - size) * (at - 1) / (size + 1))))
  end
  return { (at > #found and #found < count) and 1 or 0, pairs }
end

-- The pairs whose keys are `prefix` and then a value of the first `count` pairs of a range.
local function named(keys, begin, finish, count, prefix)
  local found = call("ZRANGEBYLEX", keys[2], "[" .. begin, "(" .. finish, "LIMIT", 0, count)
  local pairs = {}
  for first = 1, #found, CHUNK do
    local last = math.min(#found, first + CHUNK - 1)
    local names = call("HMGET", keys[3], unpack(found, first, last))
    for i = 1, #names do names[i] = prefix .. (names[i] or "") end
    for i, value in ipairs(call("HMGET", keys[3], unpack(names))) do
      if value then
        pairs[#pairs + 1] = names[i]
        pairs[#pairs + 1] = value
      end
    end
  end
  return { 1, pairs }
end

-- The values and pages that end a list of arguments, beginning with the bytes of a page.
local function read_part(keys, args, budget_at)
  local budget, count = tonumber(args[budget_at]), tonumber(args[budget_at + 1])
  local first_key = budget_at + 2
  local values = {}
  for first = first_key, first_key + count - 1, CHUNK do
    local last = math.min(first_key + count - 1, first + CHUNK - 1)
    for _, value in ipairs(call("HMGET", keys[3], unpack(args, first, last))) do
      values[#values + 1] = value
    end
  end
  local pages = {}
  for i = first_key + count, #args, 4 do
    local begin, finish, limit, how = args[i], args[i + 1], tonumber(args[i + 2]), args[i + 3]
    if string.sub(how, 1, 1) == "@" then
      pages[#pages + 1] = named(keys, begin, finish, limit, string.sub(how, 2))
    else
      pages[#pages + 1] = page(keys, begin, finish, limit, how == "1", budget)
    end
  end
  return values, pages
end

-- keys: state, keys, values, log
-- args: the version seen before, or ""; its id; "1" if what was changed since is wanted with the values
--       before, or "0" if only its names are, and may be missing; the bytes of a page; the number of
--       keys, the keys; then for each range: begin, end, count, and "0", or "1" for reverse, or "@"
--       and a prefix: for what follows its values, see `named`
-- reply: version, id, what was changed since (keys, gone, old of each commit; false: not known, and
--        that is all; or of names only: keys and gone, which are false if they are not known, or
--        too many), the values, the pages
local function read(keys, args)
  local state = load_state(keys[1])
  local changes = {}
  if args[1] ~= "" then
    local commits = since(state, keys[4], tonumber(args[1]), args[2])
    if args[3] == "0" then
      changes = { changed_by(commits) }
    elseif not commits then
      return { number(state.version), state.id, false }
    else
      for i, commit in ipairs(commits) do
        changes[i] = { commit.keys or "", commit.gone or "", commit.old or false }
      end
    end
  end
  local values, pages = read_part(keys, args, 4)
  return { number(state.version), state.id, changes, values, pages }
end

-- --- committing ------------------------------------------------------------------------------------

-- Whether one of the commits has changed something that was read.
local function is_changed(commits, read_keys, read_ranges)
  local known = {}
  local names = unpack_list(read_keys)
  for _, key in ipairs(names) do known[key] = true end
  local ranges = unpack_list(read_ranges)
  for _, commit in ipairs(commits) do
    for _, key in ipairs(unpack_list(commit.keys or "")) do
      if known[key] then return true end
      for i = 1, #ranges, 2 do
        if below(key, ranges[i + 1]) and not below(key, ranges[i]) then return true end
      end
    end
    local gone = unpack_list(commit.gone or "")
    for i = 1, #gone, 2 do
      for _, key in ipairs(names) do
        if below(key, gone[i + 1]) and not below(key, gone[i]) then return true end
      end
      for j = 1, #ranges, 2 do
        if below(ranges[j], gone[i + 1]) and below(gone[i], ranges[j + 1]) then return true end
      end
    end
  end
  return false
end

-- Whether guesses are right: each key with "0" in `marks` does not exist, and each range holds as
-- many keys as `sizes` says. That those which were there before are unchanged, the log tells.
local function is_guessed_right(keys, read_keys, marks, read_ranges, sizes)
  local absent = {}
  for i, key in ipairs(string.find(marks, "0", 1, true) and unpack_list(read_keys) or absent) do
    if string.sub(marks, i, i) == "0" then absent[#absent + 1] = key end
  end
  for first = 1, #absent, CHUNK do
    local last = math.min(#absent, first + CHUNK - 1)
    for _, value in ipairs(call("HMGET", keys[3], unpack(absent, first, last))) do
      if value then return false end
    end
  end
  local ranges, counts = unpack_list(read_ranges), unpack_list(sizes)
  for i = 1, #ranges, 2 do
    local count = call("ZLEXCOUNT", keys[2], "[" .. ranges[i], "(" .. ranges[i + 1])
    if count ~= tonumber(counts[(i + 1) / 2]) then return false end
  end
  return true
end

-- What a commit changes: written down before it is done.
local function new_changes()
  return { keys = {}, old = {}, gone = {}, bytes = 0, whole = true }
end

local function note(changes, key, old)
  changes.keys[#changes.keys + 1] = key
  changes.bytes = changes.bytes + #key + #(old or "") + 9
  if changes.bytes > OLD_BYTES then changes.whole, changes.old = false, {} end
  if changes.whole then changes.old[#changes.keys] = old and "+" .. old or "" end
end

local function clear(keys, begin, finish, changes)
  local range = { "[" .. begin, "(" .. finish }
  local noted = #changes.keys
  while true do
    local found = call("ZRANGEBYLEX", keys[2], range[1], range[2], "LIMIT", 0, CHUNK)
    if #found == 0 then break end
    if changes.whole then
      local values = call("HMGET", keys[3], unpack(found))
      for i, key in ipairs(found) do note(changes, key, values[i]) end
    end
    call("ZREM", keys[2], unpack(found))
    call("HDEL", keys[3], unpack(found))
  end
  if not changes.whole then
    for i = #changes.keys, noted + 1, -1 do changes.keys[i] = nil end
    changes.gone[#changes.gone + 1] = begin
    changes.gone[#changes.gone + 1] = finish
  end
end

local function delete(keys, args, first, last, changes)
  for begin = first, last, CHUNK do
    local stop = math.min(last, begin + CHUNK - 1)
    local old = call("HMGET", keys[3], unpack(args, begin, stop))
    local there = {}
    for i = begin, stop do
      if old[i - begin + 1] then
        there[#there + 1] = args[i]
        note(changes, args[i], old[i - begin + 1])
      end
    end
    if #there > 0 then
      call("ZREM", keys[2], unpack(there))
      call("HDEL", keys[3], unpack(there))
    end
  end
end

-- Stores pairs, a list of keys and values in turn.
local function put(keys, pairs, changes)
  for begin = 1, #pairs, CHUNK do
    local stop = math.min(#pairs, begin + CHUNK - 1)
    local names = {}
    for i = begin, stop, 2 do names[#names + 1] = pairs[i] end
    local old = call("HMGET", keys[3], unpack(names))
    local changed, added = {}, {}
    for i, key in ipairs(names) do
      local value = pairs[begin + 2 * i - 1]
      if old[i] ~= value then
        changed[#changed + 1] = key
        changed[#changed + 1] = value
        note(changes, key, old[i])
        if not old[i] then
          added[#added + 1] = 0
          added[#added + 1] = key
        end
      end
    end
    if #changed > 0 then call("HSET", keys[3], unpack(changed)) end
    if #added > 0 then call("ZADD", keys[2], unpack(added)) end
  end
end

local function write_log(state, keys, id, changes, notices)
  local was = state.id
  state.version, state.id = state.version + 1, id
  local fields = { "was", was, "id", id, "keys", pack(changes.keys) }
  if #changes.gone > 0 then
    fields[#fields + 1] = "gone"
    fields[#fields + 1] = pack(changes.gone)
  end
  if changes.whole then
    fields[#fields + 1] = "old"
    fields[#fields + 1] = pack(changes.old)
  end
  if notices ~= "" then
    fields[#fields + 1] = "notices"
    fields[#fields + 1] = notices
  end
  local size = 64
  for i = 1, #fields do size = size + #fields[i] end
  call("XADD", keys[4], number(state.version) .. "-0", unpack(fields))
  return size
end

-- Uses up the number of a commit that is not made: the same message may come again, by a link that
-- was given up, when it would succeed.
local function refuse(keys, args, reply)
  call("SET", keys[6], args[2] .. " never", "EX", SESSION_SECONDS)
  return reply
end

-- Gives a session the space to itself for some time: commits of others are answered with "claimed"
-- until it has committed or its time is over. One other session can be promised to be the next, so
-- that none has it again and again while others wait. Nothing depends on it but who waits: a commit
-- checks what it has read all the same.
-- keys: state; args: the session, the milliseconds of a claim, and those for which a promise holds
-- reply: 0 if the session has the space, else for how many milliseconds it has not, at most
local function claim(keys, args)
  local got = call("HMGET", keys[1], "claim", "claim_ends", "next", "next_ends")
  local now = now_ms()
  local claimed = got[1] and got[1] ~= args[1] and tonumber(got[2]) - now or 0
  local promised = got[3] and got[3] ~= args[1] and tonumber(got[4]) - now or 0
  if claimed <= 0 and promised <= 0 then
    call("HSET", keys[1], "claim", args[1], "claim_ends", number(now + tonumber(args[2])))
    call("HDEL", keys[1], "next", "next_ends")
    return 0
  end
  -- A promise that still holds for half of its time is not written again.
  local kept = got[3] == args[1] and tonumber(got[4]) - now > tonumber(args[3]) / 2
  if promised <= 0 and not kept then
    call("HSET", keys[1], "next", args[1], "next_ends", number(now + tonumber(args[3])))
  end
  return math.max(claimed, promised)
end

-- Ends the claim of a session that commits nothing. keys: state; args: the session
local function release(keys, args)
  if call("HGET", keys[1], "claim") == args[1] then call("HDEL", keys[1], "claim", "claim_ends") end
  return "OK"
end

-- A session takes its turn at what others change too: a lease that ends by itself, and a list that holds a
-- token while the turn passes from one session to the next. Those that wait are blocked on that list
-- (BLPOP), and the server hands them the token in their order. Nothing depends on it but who waits, as with
-- a claim, so none of it goes to the disk or to replicas.

local function offer_turn(lease, token, ms)
  call("SET", lease, "", "PX", ms)
  call("DEL", token)
  call("RPUSH", token, "1")
  call("PEXPIRE", token, ms)
end

-- Offers a turn that nobody has, before a session waits for it. keys: the lease, the token;
-- args: the milliseconds for which it is kept for whoever gets the token
local function offer(keys, args)
  redis.set_repl(redis.REPL_NONE)
  if not call("GET", keys[1]) then offer_turn(keys[1], keys[2], args[1]) end
  return "OK"
end

-- Takes turns, after the token of one of them was waited for. keys: of each the lease and the token;
-- args: the session, the milliseconds of a lease
-- reply: 0, or the number of the first turn that another session has; those before it are taken
local function turn(keys, args)
  redis.set_repl(redis.REPL_NONE)
  for i = 1, #keys, 2 do
    local holder = call("GET", keys[i])
    if holder and holder ~= "" and holder ~= args[1] then return (i + 1) / 2 end
    call("SET", keys[i], args[1], "PX", args[2])
    if holder == "" then call("DEL", keys[i + 1]) end
  end
  return 0
end

-- Passes the turns of a session on. keys: as for `turn`; args: the session, the milliseconds as for `offer`
local function pass(keys, args)
  redis.set_repl(redis.REPL_NONE)
  for i = 1, #keys, 2 do
    if call("GET", keys[i]) == args[1] then offer_turn(keys[i], keys[i + 1], args[2]) end
  end
  return "OK"
end

-- keys: state, keys, values, log, views, done:<session>
-- args: 1 the session, 2 the number of the commit in it; 3 the version that was read at, or "" if
--       nothing was read; 4 its id; 5 the keys and 6 the ranges that were read, as lists;
--       7 the notices, or ""; 8 their channel; the number of 9 ranges to clear, 10 keys to delete,
--       11 pairs to put, 12 numbers to add; and then these: begin and end, key, key and value, key
--       and number. A range is cleared before anything is put into it. No key is put, deleted and
--       added to in one commit, and none is added to that lies in a cleared range. If what was read
--       are guesses, more follows: of each key "0" if it is absent, else "1"; how many keys are in
--       each range, as a list; and then what to read if a guess was wrong, as for `read`.
-- reply: "ok", version, id, the keys and the ranges that others have changed since the version that was
--        read at (false: not known); "conflict", or for guesses "conflict", version, id, the values,
--        the pages, and what was changed as above; "counter", the key, its value; "late" if a later
--        commit of the session has come before; "claimed" and for how many milliseconds, if another
--        session has the space to itself: the same message may be sent again
-- All is checked before anything is changed, as nothing can be undone here.
local function commit(keys, args)
  local id = args[1] .. ":" .. args[2]
  local done = call("GET", keys[6])
  if done then
    local last, version = string.match(done, "^(%d+) (%S+)$")
    if last == args[2] and version == "never" then return { "conflict" } end
    if last == args[2] then
      -- A write, so that a WAIT behind it waits for the commit too, which came over another link.
      call("EXPIRE", keys[6], SESSION_SECONDS)
      return { "ok", version, id, false, false }
    end
    if tonumber(last) > tonumber(args[2]) then return { "late" } end
  end
  local state = load_state(keys[1])
  if state.claim then
    local left = state.claim_ends - now_ms()
    if state.claim ~= args[1] and left > 0 then return { "claimed", left } end
    call("HDEL", keys[1], "claim", "claim_ends")
  end
  local cleared = 13
  local deleted = cleared + 2 * tonumber(args[9])
  local stored = deleted + tonumber(args[10])
  local added = stored + 2 * tonumber(args[11])
  local finish = added + 2 * tonumber(args[12])
  local is_right, commits = true, nil
  if args[3] ~= "" then
    commits = since(state, keys[4], tonumber(args[3]), args[4])
    is_right = commits and not (#commits > 0 and is_changed(commits, args[5], args[6]))
  end
  local guessed = #args >= finish
  if is_right and guessed then
    is_right = is_guessed_right(keys, args[5], args[finish], args[6], args[finish + 1])
  end
  if not is_right then
    local reply = { "conflict" }
    if guessed then
      local values, pages = read_part(keys, args, finish + 2)
      reply = { "conflict", number(state.version), state.id, values, pages, changed_by(commits) }
    end
    return refuse(keys, args, reply)
  end
  local pairs = {}
  for i = added, finish - 1, 2 do
    local old = call("HGET", keys[3], args[i])
    local new = args[i + 1]
    if old then new = #old == 8 and sum(old, new) end
    if not new then return refuse(keys, args, { "counter", args[i], old }) end
    pairs[#pairs + 1] = args[i]
    pairs[#pairs + 1] = new
  end
  for i = stored, added - 1 do pairs[#pairs + 1] = args[i] end

  local changes = new_changes()
  for i = cleared, deleted - 1, 2 do clear(keys, args[i], args[i + 1], changes) end
  delete(keys, args, deleted, stored - 1, changes)
  put(keys, pairs, changes)
  local version = number(state.version)
  if #changes.keys > 0 or #changes.gone > 0 or args[7] ~= "" then
    local size = write_log(state, keys, id, changes, args[7])
    local is_cut = forget(state, keys, now_ms(), size)
    version = number(state.version)
    if args[7] ~= "" then
      call("PUBLISH", args[8], version .. " " .. number(state.said) .. " " .. args[7])
      state.said = state.version
    end
    -- What has changed: the first commit always cuts.
    local said = number(state.said)
    if is_cut then
      call("HSET", keys[1], "version", version, "id", id, "new", number(state.new), "said", said,
        "base", number(state.base), "mark", number(state.mark), "at", number(state.at),
        "held", number(state.held), "format", "1")
    else
      call("HSET", keys[1], "version", version, "id", id, "new", number(state.new), "said", said)
    end
  end
  call("SET", keys[6], args[2] .. " " .. version, "EX", SESSION_SECONDS)
  return { "ok", version, state.id, changed_by(commits) }
end

-- Whether a commit has been done. If not, it never will be: its number is used up.
-- keys: as for a commit; args: the session, the number
local function settle(keys, args)
  local last, version = string.match(call("GET", keys[6]) or "", "^(%d+) (%S+)$")
  if last and tonumber(last) > tonumber(args[2]) then return redis.error_reply("ERR settled late") end
  if last ~= args[2] then version = "never" end
  call("SET", keys[6], args[2] .. " " .. version, "EX", SESSION_SECONDS)
  return version == "never" and 0 or 1
end

-- --- care ------------------------------------------------------------------------------------------

-- Has the log kept for views that last. keys: state, views; args: milliseconds, versions
local function keep(keys, args)
  local until_ms = now_ms() + tonumber(args[1])
  for i = 2, #args do call("ZADD", keys[2], number(until_ms), args[i]) end
  return "OK"
end

-- The notices since a version. keys: state, log; args: the version
-- reply: the last version that left notices; how many commits, that may have left some, are not
--        known any more; the notices of each commit that left any
local function heard(keys, args)
  local state = load_state(keys[1])
  local from = tonumber(args[1])
  if from >= state.said then
    return { number(state.said), from > state.said and 1 or 0, {} }
  end
  local found = {}
  for _, entry in ipairs(call("XRANGE", keys[2], "(" .. number(from) .. "-0", "+")) do
    for i = 1, #entry[2], 2 do
      if entry[2][i] == "notices" then found[#found + 1] = entry[2][i + 1] end
    end
  end
  return { number(state.said), math.max(0, state.base - from), found }
end

-- Looks for contradictions. keys: state, keys, values, log; args: the key to begin at
-- reply: the next key to begin at, or ""; sentences
local function check(keys, args)
  local wrong = {}
  if args[1] == "" then
    local ordered, stored = call("ZCARD", keys[2]), call("HLEN", keys[3])
    if ordered ~= stored then
      wrong[1] = string.format("%d keys are in order, and %d have a value", ordered, stored)
    end
    if call("ZCOUNT", keys[2], 0, 0) ~= ordered then
      wrong[#wrong + 1] = "some keys have a score other than 0, so their order is not theirs"
    end
    local state = load_state(keys[1])
    local last = call("XREVRANGE", keys[4], "+", "-", "COUNT", 1)[1]
    if (last and last[1] or "0-0") ~= number(state.version) .. "-0" then
      wrong[#wrong + 1] = "the log does not end with the version of the space"
    end
  end
  local found = call("ZRANGEBYLEX", keys[2], "[" .. args[1], "+", "LIMIT", 0, CHUNK)
  for _, key in ipairs(found) do
    if call("HEXISTS", keys[3], key) == 0 then
      wrong[#wrong + 1] = "a key has no value: " .. string.sub(key, 1, 64)
    end
  end
  return { #found == CHUNK and found[#found] .. "\0" or "", wrong }
end

local function register(name, callback, flags)
  redis.register_function({
    function_name = "holdfast_@VERSION@_" .. name, callback = callback, flags = flags,
  })
end

register("read", read, { "no-writes" })
register("commit", commit, {})
register("commit_less", commit, { "allow-oom" })  -- for one that only removes
register("settle", settle, { "allow-oom" })
register("claim", claim, { "allow-oom" })
register("release", release, { "allow-oom" })
register("offer", offer, { "allow-oom" })
register("turn", turn, { "allow-oom" })
register("pass", pass, { "allow-oom" })
register("keep", keep, {})
register("heard", heard, { "no-writes" })
register("check", check, { "no-writes" })
