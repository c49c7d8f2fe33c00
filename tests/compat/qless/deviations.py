"""Where Holdfast differs from the original script on purpose, each with its reason.

The differential test runs the original with these changes, so that every other difference is a
bug. The script of the published Python client is the older of the two unified ones, so the first
list brings it to the younger one, whose rules Holdfast follows; the second list is section 14 of
the jobs layer's specification.
"""

from typing import Final, NamedTuple


class Deviation(NamedTuple):
    """A part of the script, and its replacement."""

    reason: str
    original: str
    changed: str


YOUNGER_SCRIPT: Final = (
    Deviation(
        "only the holder of a job may fail it",
        """        error('Fail(): Job not currently running: ' .. state)
    end
""",
        """        error('Fail(): Job not currently running: ' .. state)
    elseif redis.call('hget', QlessJob.ns .. self.jid, 'worker') ~= worker then
        error('Fail(): Job running with another worker')
    end
""",
    ),
    Deviation(
        "only in the queue that it runs in can a job be completed",
        "    self:history(now, 'done')\n",
        """    if redis.call('hget', QlessJob.ns .. self.jid, 'queue') ~= queue then
        error('Complete(): Job running in another queue')
    end
    self:history(now, 'done')
""",
    ),
    Deviation(
        "a heartbeat is a sign of life",
        "        queue.locks.add(expires, self.jid)\n        return expires",
        """        queue.locks.add(expires, self.jid)
        redis.call('zadd', 'ql:workers', now, worker)
        return expires""",
    ),
    Deviation(
        "a job that uses up its retries counts as failed: in pop",
        "                local job = Qless.job(jid)\n                job:history(now, 'failed'",
        """                local job = Qless.job(jid)
                local day = 'ql:s:stats:' .. (now - (now % 86400)) .. ':' .. self.name
                redis.call('hincrby', day, 'failures', 1)
                redis.call('hincrby', day, 'failed', 1)
                job:history(now, 'failed'""",
    ),
    Deviation(
        "a job that uses up its retries counts as failed: in retry",
        "        self:history(now, 'failed', {['group'] = group})\n",
        """        local day = 'ql:s:stats:' .. (now - (now % 86400)) .. ':' .. queue
        redis.call('hincrby', day, 'failures', 1)
        redis.call('hincrby', day, 'failed', 1)
        self:history(now, 'failed', {['group'] = group})
""",
    ),
    Deviation(
        "a page is as long as its count: of a tag's jobs",
        "redis.call('zrange', 'ql:t:' .. tag, offset, count)",
        "redis.call('zrange', 'ql:t:' .. tag, offset, offset + count - 1)",
    ),
    Deviation(
        "a page is as long as its count: of a group's jobs",
        "redis.call('lrange', 'ql:f:' .. group, start, limit - 1)",
        "redis.call('lrange', 'ql:f:' .. group, start, start + limit - 1)",
    ),
    Deviation(
        "tags are answered as a list, not as text in text",
        """            redis.call('hset', QlessJob.ns .. jid, 'tags', tags)
            return tags
""",
        """            redis.call('hset', QlessJob.ns .. jid, 'tags', tags)
            return cjson.decode(tags)
""",
    ),
    Deviation(
        "a job may wait for others and for a time: put",
        """    if delay > 0 and #depends > 0 then
        error('Put(): "delay" and "depends" are not allowed to be used together')
    end
""",
        "",
    ),
    Deviation(
        "a job may wait for others and for a time: where it goes",
        """    if delay > 0 then
        self.scheduled.add(now + delay, jid)
    else
        if redis.call('scard', QlessJob.ns .. jid .. '-dependencies') > 0 then
            self.depends.add(now, jid)
            redis.call('hset', QlessJob.ns .. jid, 'state', 'depends')
        else
            self.work.add(now, priority, jid)
        end
    end
""",
        """    redis.call('hset', QlessJob.ns .. jid, 'scheduled', delay > 0 and now + delay or '')
    if redis.call('scard', QlessJob.ns .. jid .. '-dependencies') > 0 then
        self.depends.add(now, jid)
        redis.call('hset', QlessJob.ns .. jid, 'state', 'depends')
    else
        Qless.start(now, jid)
    end
""",
    ),
    Deviation(
        "a job may wait for others and for a time: when the others are done",
        """                    queue.depends.remove(j)
                    queue.work.add(now, p, j)
                    redis.call('hset', QlessJob.ns .. j, 'state', 'waiting')
""",
        "                    queue.depends.remove(j)\n                    Qless.start(now, j)\n",
    ),
    Deviation(
        "a job may wait for others and for a time: when all dependencies go",
        """                queue_obj.depends.remove(self.jid)
                queue_obj.work.add(now, p, self.jid)
                redis.call('hset', QlessJob.ns .. self.jid, 'state', 'waiting')
            end
        else""",
        """                queue_obj.depends.remove(self.jid)
                Qless.start(now, self.jid)
            end
        else""",
    ),
    Deviation(
        "a job may wait for others and for a time: when the last dependency goes",
        """                        queue_obj.depends.remove(self.jid)
                        queue_obj.work.add(now, p, self.jid)
                        redis.call('hset',
                            QlessJob.ns .. self.jid, 'state', 'waiting')
""",
        """                        queue_obj.depends.remove(self.jid)
                        Qless.start(now, self.jid)
""",
    ),
    Deviation(
        "a job may wait for others and for a time: its start",
        "function Qless.cancel(...)",
        """function Qless.start(now, jid)
    local queue, priority, start = unpack(redis.call(
        'hmget', QlessJob.ns .. jid, 'queue', 'priority', 'scheduled'))
    if tonumber(start) then
        Qless.queue(queue).scheduled.add(tonumber(start), jid)
        redis.call('hset', QlessJob.ns .. jid, 'state', 'scheduled')
    else
        Qless.queue(queue).work.add(now, priority, jid)
        redis.call('hset', QlessJob.ns .. jid, 'state', 'waiting')
    end
end

function Qless.cancel(...)""",
    ),
)

ON_PURPOSE: Final = (
    Deviation(
        "jobs of one priority and time leave in the order of arrival",
        "queue:prefix('work'), priority - (now / 10000000000), jid)",
        """queue:prefix('work'), priority - (now / 10000000000)
                    - redis.call('incr', 'arrivals') / 10000000000000, jid)""",
    ),
    Deviation(
        "jobs of one priority and time leave in the order of arrival: those timed out",
        "queue.work.add(now, math.huge, self.jid)",
        "queue.work.add(now, 100, self.jid)",
    ),
    Deviation(
        "jobs of one priority and time leave in the order of arrival: unfail, the oldest first",
        "        self.work.add(now, data.priority, data.jid)\n    end\n",
        """    end
    for index = #jids, 1, -1 do
        self.work.add(now, Qless.job(jids[index]):data().priority, jids[index])
    end
""",
    ),
    Deviation(
        "jobs that a completion releases start in the order of their ids",
        """        for i, j in ipairs(redis.call(
            'smembers', QlessJob.ns .. self.jid .. '-dependents')) do
            redis.call('srem', QlessJob.ns .. j .. '-dependencies', self.jid)""",
        """        local released = redis.call(
            'smembers', QlessJob.ns .. self.jid .. '-dependents')
        table.sort(released)
        for i, j in ipairs(released) do
            redis.call('srem', QlessJob.ns .. j .. '-dependencies', self.jid)""",
    ),
    Deviation(
        "complete with next and delay makes a job scheduled",
        "            queue_obj.scheduled.add(now + delay, self.jid)\n            return",
        """            queue_obj.scheduled.add(now + delay, self.jid)
            redis.call('hset', QlessJob.ns .. self.jid, 'state', 'scheduled')
            return""",
    ),
    Deviation(
        "retry takes the job from its worker, and only in the queue that it runs in",
        """        error('Retry(): Job has been given to another worker: ' .. oldworker)
    end
""",
        """        error('Retry(): Job has been given to another worker: ' .. oldworker)
    elseif oldqueue ~= queue then
        error('Retry(): Job running in another queue')
    end
    redis.call('hmset', QlessJob.ns .. self.jid, 'worker', '', 'expires', 0)
""",
    ),
    Deviation(
        "timeout takes the job from its worker, and each lock has a grace period of its own",
        "            'state', 'stalled', 'expires', 0)\n",
        """            'state', 'stalled', 'expires', 0, 'worker', '')
        redis.call('hdel', QlessJob.ns .. self.jid, 'grace')
        redis.call('zrem', 'ql:w:' .. worker .. ':jobs', self.jid)
""",
    ),
    Deviation(
        "each lock has a grace period of its own: from a pop on",
        "            worker  = worker,\n            expires = expires,\n",
        "            worker  = worker,\n            expires = expires,\n            grace   = 0,\n",
    ),
    Deviation(
        "each lock has a grace period of its own: from a heartbeat on",
        "        redis.call('zadd', 'ql:w:' .. worker .. ':jobs', expires, self.jid)\n",
        """        redis.call('zadd', 'ql:w:' .. worker .. ':jobs', expires, self.jid)
        redis.call('hdel', QlessJob.ns .. self.jid, 'grace')
""",
    ),
    Deviation(
        "a tag's number is that of its jobs: added twice",
        """                if _tags[tag] == nil then
                    _tags[tag] = true
                    table.insert(tags, tag)
                end
                redis.call('zadd', 'ql:t:' .. tag, now, jid)
                redis.call('zincrby', 'ql:tags', 1, tag)
""",
        """                if _tags[tag] == nil then
                    _tags[tag] = true
                    table.insert(tags, tag)
                    redis.call('zincrby', 'ql:tags', 1, tag)
                end
                redis.call('zadd', 'ql:t:' .. tag, now, jid)
""",
    ),
    Deviation(
        "a tag's number is that of its jobs: removed twice",
        """                _tags[tag] = nil
                redis.call('zrem', 'ql:t:' .. tag, jid)
                redis.call('zincrby', 'ql:tags', -1, tag)
""",
        """                _tags[tag] = nil
                redis.call('zincrby', 'ql:tags', -redis.call('zrem', 'ql:t:' .. tag, jid), tag)
""",
    ),
    Deviation(
        "unfail corrects the number of failed jobs and makes the queue known",
        "        local data = job:data()\n        job:history(now, 'put', {q = self.name})\n",
        """        local data = job:data()
        local when = data.failure.when
        redis.call('hincrby', 'ql:s:stats:' .. (when - (when % 86400)) .. ':' .. data.queue,
            'failed', -1)
        if redis.call('zscore', 'ql:queues', self.name) == false then
            redis.call('zadd', 'ql:queues', now, self.name)
        end
        job:history(now, 'put', {q = self.name})
""",
    ),
    Deviation(
        "a failed job that is put again is one less of the queue where it failed",
        "redis.call('hincrby', 'ql:s:stats:' .. bin .. ':' .. self.name, 'failed'  , -1)",
        "redis.call('hincrby', 'ql:s:stats:' .. bin .. ':' .. oldqueue, 'failed'  , -1)",
    ),
    Deviation(
        "to cancel a job that does not exist is no event",
        "        if state ~= 'complete' then\n",
        "        if state and state ~= 'complete' then\n",
    ),
    Deviation(
        "a job that has gone can be untracked",
        "        assert(Qless.job(jid):exists(), 'Track(): Job does not exist')\n",
        """        assert(string.lower(command) == 'untrack' or Qless.job(jid):exists(),
            'Track(): Job does not exist')
""",
    ),
    Deviation(
        "all scheduled jobs that are due become work at once",
        "    local scheduled = self.scheduled.ready(now, 0, count)\n",
        "    local scheduled = self.scheduled.ready(now, 0, count > 0 and 10000 or 0)\n",
    ),
    Deviation(
        "a recurring job never replaces a job that exists",
        "            local count = redis.call('hincrby', 'ql:r:' .. jid, 'count', 1)\n",
        """            local count = redis.call('hincrby', 'ql:r:' .. jid, 'count', 1)
            while redis.call('exists', QlessJob.ns .. jid .. '-' .. count) == 1 do
                count = redis.call('hincrby', 'ql:r:' .. jid, 'count', 1)
            end
""",
    ),
    Deviation(
        "no job may wait for itself: what follows from what",
        "function QlessJob:depends(now, command, ...)",
        """function Qless.needs(jid, other)
    if jid == other then
        return true
    end
    for _, j in ipairs(redis.call('smembers', QlessJob.ns .. jid .. '-dependencies')) do
        if Qless.needs(j, other) then
            return true
        end
    end
    return false
end

function QlessJob:depends(now, command, ...)
    if command == 'on' then
        for _, j in ipairs(arg) do
            assert(not Qless.needs(j, self.jid), 'Depends(): would depend on itself')
        end
    end""",
    ),
    Deviation(
        "no job may wait for itself: put",
        "    local job = Qless.job(jid)\n    local priority, tags,",
        """    for _, j in ipairs(cjson.decode(options['depends'] or '[]')) do
        assert(not Qless.needs(j, jid), 'Put(): would depend on itself')
    end
    local job = Qless.job(jid)
    local priority, tags,""",
    ),
)


def with_deviations(script: str) -> str:
    """Returns the original script with all changes; one that fits nowhere is an error."""
    for deviation in (*YOUNGER_SCRIPT, *ON_PURPOSE):
        if script.count(deviation.original) != 1:
            raise ValueError(f"the script has changed where {deviation.reason!r} applies")
        script = script.replace(deviation.original, deviation.changed)
    return script
