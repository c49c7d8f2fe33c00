"""Every number that bounds something, with its reason. `docs/limits.md` is made from this file."""

from typing import Final

# --- engine -----------------------------------------------------------------------------------

# longer than any sensible key; a page of keys still fits in memory
MAX_KEY_BYTES: Final = 128 * 1024
MAX_VALUE_BYTES: Final = 64 * 1024 * 1024  # a value is read and written whole
MIN_COUNTER: Final = -(2**63)  # a counter is 64 bits, signed
MAX_COUNTER: Final = 2**63 - 1  # a counter is 64 bits, signed
MAX_GROUP_TRANSACTIONS: Final = 1_000  # the first of a group waits for the last
# how long a server's group may work before it commits; until then its writes are held in memory
MAX_GROUP_SECONDS: Final = 1.0
# how long a group waits for the writers that shared the previous ones
MAX_GROUP_WAIT_SECONDS: Final = 0.0005
# how often a waiting group checks whether they have arrived
GROUP_WAIT_STEP_SECONDS: Final = 0.00005
# address space reserved for a store's file; four times the file if that is more
MAP_BYTES: Final = 2**40
MIN_MAP_BYTES: Final = 2**30  # the least address space a store accepts where the system limits it
# clocks of different machines differ by less; a larger step means the clock was set back
CLOCK_AHEAD_SECONDS: Final = 60.0
# how deep arguments are searched for iterators; no argument type nests deeper
MAX_ARGUMENT_DEPTH: Final = 8
# open views in all processes; LMDB fixes the number when it opens the file
MAX_READERS: Final = 1_022
KEPT_NOTICE_COMMITS: Final = 10_000  # commits whose notices a slow subscriber can still read
# notices kept in the store; those of the newest commit are always kept
KEPT_NOTICE_BYTES: Final = 8 * 1024 * 1024
# notices a subscriber has not read; beyond it the oldest are dropped
MAX_QUEUED_NOTICE_BYTES: Final = 32 * 1024 * 1024
# notices of commits that are not yet in LMDB; reaching it flushes them
MAX_WAITING_NOTICE_BYTES: Final = 1024 * 1024
# notices a subscriber has not read; beyond it the oldest are dropped
MAX_QUEUED_NOTICES: Final = 100_000
CHECKPOINT_SECONDS: Final = 1.0  # how much a power failure can lose in interval mode
MAX_CHECKPOINT_SECONDS: Final = 365 * 86_400.0  # a wait of 292 years overflows the system's clock
FLUSH_SECONDS: Final = 0.02  # how often waiting commits are checked, and others let in
# commits that are not yet in LMDB; opening the store reads them all
REDO_LOG_BYTES: Final = 4 * 1024 * 1024
# in commit mode, commits before a log is begun: a short-lived program would not recover its cost
COMMITS_BEFORE_LOG: Final = 32
# how long commits wait to be written to LMDB in commit mode; a tenth of it when idle
MAX_WAITING_SECONDS: Final = 1.0
# the same in interval mode, where each flush copies pages
MAX_INTERVAL_WAITING_SECONDS: Final = 0.5
# pages that flushes may copy before an early checkpoint, so that LMDB can reuse the old ones
MIN_COPIED_PAGES: Final = 1_024
# reads and writes of a commit on the server's event loop: about 4 ms
MAX_SHORT_OPERATIONS: Final = 1_500
# a slower disk is synced in a thread, because reads wait for the event loop
MAX_SYNC_ON_LOOP_SECONDS: Final = 0.001
# after a failure, the transactions of so many groups get a buffer each instead of sharing one
SEPARATE_GROUPS_AFTER_FAILURE: Final = 64
MAX_GROUP_ON_LOOP: Final = 24  # transactions committed together on the event loop
MAX_SMALL_REQUEST_BYTES: Final = 4_096  # a larger write is not tried on the event loop
# how long commits stay in a thread after one took too long on the event loop
LOOP_COMMITS_PAUSE_SECONDS: Final = 0.1
# how long groups on the event loop stay small after one of several requests took too long
SMALL_GROUPS_SECONDS: Final = 1.0
# keys and notices not yet in LMDB in commit mode; a view may have to copy them
MAX_WAITING_KEYS: Final = 2_048
MAX_DEFERRED_BYTES: Final = 1024 * 1024  # a larger transaction gains nothing by waiting for others
MAX_CLEARED_IN_OVERLAY: Final = 64  # LMDB itself clears a range of more keys
MAX_SKIPPED_DELETED_KEYS: Final = 8  # so few deleted keys are skipped again rather than remembered
MAX_OVERLAY_CACHE_PAIRS: Final = (
    4_096  # pairs read from LMDB that are remembered until the next flush
)
MAX_OVERLAY_CACHED_VALUE_BYTES: Final = 4_096  # a larger value is read again rather than remembered
# deleted keys a scan may have to skip before they are flushed to LMDB
MAX_DELETED_IN_OVERLAY: Final = 128
# how long opening waits for a folder that a stopped process holds, and a transaction until it warns
STOPPED_PROCESS_SECONDS: Final = 5.0
# how long opening waits for a running process, which may have much to write
MAX_OPENING_SECONDS: Final = 60.0
# a larger file takes too long to verify at every opening
MAX_SEALED_BYTES: Final = 32 * 1024 * 1024
# a larger file that was not closed properly is left to `holdfast check`
MAX_WALKED_BYTES: Final = 8 * 1024 * 1024
# a larger file is walked by a child process: a long walk holds the interpreter's lock
MAX_CHECKED_IN_PROCESS_BYTES: Final = 1024 * 1024
SOUND_PAGES_SECONDS: Final = (
    60.0  # how long pages that were found sound are read without another walk
)
MAX_UNWRITTEN_BYTES: Final = 2**30  # free pages at the end of a file that LMDB never wrote
# read of a file beside the data; the largest has five bytes for each MiB of data
MAX_SIDE_FILE_BYTES: Final = 64 * 1024 * 1024
# disk space kept for transactions that free space when the disk is full
RESERVE_BYTES: Final = 4 * 1024 * 1024
# how much of the reserve is released at a time, so that others can't use it up
RESERVE_STEP_BYTES: Final = 512 * 1024
MAX_ADDED_BY_DELETE_BYTES: Final = (
    4_096  # how much a transaction that deletes may add to a full store
)
# the same for a full Valkey, beyond the keys that it deletes: it has no reserve for more
MAX_ADDED_BY_REMOTE_DELETE_BYTES: Final = 64
# with less free disk space, or memory of a Valkey, a server reports that it is not ready
MIN_FREE_BYTES: Final = 1024 * 1024
# disk space allocated for waiting commits, and as much ahead of them
RESERVED_BYTES: Final = 16 * 1024 * 1024
# what a view of a remote engine remembers; beyond it, values are read again
MAX_VIEW_CACHE_BYTES: Final = 8 * 1024 * 1024
MAX_GUESSED_READS: Final = 1_000  # reads of one run that are predicted before they are fetched
# runs of the work, one round trip each; after them it reads step by step
MAX_GUESSING_RUNS: Final = 4
# attempts at a transaction that others keep disturbing; then `Conflict`
MAX_CONFLICT_RUNS: Final = 200
# that a key counts as contended after a conflict, unless two turns find it unchanged before
CONTENDED_SECONDS: Final = 60.0
# how long a transaction on Valkey can have contended keys, or its space, to itself; if its process
# dies, others wait as long
CLAIM_SECONDS: Final = 0.25
MAX_CLAIM_WAIT_SECONDS: Final = 5.0  # how long a transaction waits for them; then it reads anyway
# the longest pause between two attempts; each is chosen at random
MAX_CONFLICT_PAUSE_SECONDS: Final = 0.25
RECONNECT_SECONDS: Final = 30.0  # how long a server may be away before callers get an error
STOPPING_RECONNECT_SECONDS: Final = 5.0  # the same while the process stops
POSTGRES_SILENT_SECONDS: Final = 5.0  # before a new connection shows whether PostgreSQL answers
POSTGRES_PROBE_SECONDS: Final = 5  # for that connection
VALKEY_ANSWER_SECONDS: Final = 5.0  # that it may be silent before the client looks for another one
VALKEY_CONNECT_SECONDS: Final = 2.0  # for a connection to it
MAX_REMEMBERED_KEYS: Final = 10_000  # keys of a space that a process remembers to predict reads
MAX_REMEMBERED_VALUE_BYTES: Final = 16 * 1024  # a larger value is read each time
MAX_REMEMBERED_BYTES: Final = 16 * 1024 * 1024  # everything that a process remembers
# rows, such as schemas, from which reads went on to others; remembered by the same rule
MAX_PREFETCH_HINTS: Final = 1_000
# a larger commit reads first: it would be sent in vain if a prediction were wrong
MAX_GUESSED_COMMIT_BYTES: Final = 256 * 1024
MAX_REMOTE_COMMIT_BYTES: Final = 512 * 1024 * 1024  # servers accept a message of twice the size
# how often a remote engine checks for notices that nobody announced
REMOTE_POLL_SECONDS: Final = 1.0
MAX_POSTGRES_CONNECTIONS: Final = 32  # of one process; a server that allows 100 can serve three
CONNECTION_WAIT_SECONDS: Final = 30.0  # how long a call waits for a free connection

# --- keys -------------------------------------------------------------------------------------

MAX_TUPLE_DEPTH: Final = 32  # tuples within tuples in a key; a reader's stack must hold them all

# --- spaces -----------------------------------------------------------------------------------

MAX_SPACE_NAME_BYTES: Final = 255  # a name is typed by people and is part of URLs
CLEARED_PER_STEP: Final = 1_000  # keys of a dropped space that one transaction removes

# --- maintenance ------------------------------------------------------------------------------

CHECKED_PER_STEP: Final = 1_000  # keys that one call of `admin.check` examines
# in one such call: a damaged table can have a problem in every row
MAX_REPORTED_PROBLEMS: Final = 1_000
DEFAULT_INSPECTED_KEYS: Final = 100  # as many as people read at once
MAX_INSPECTED_KEYS: Final = 10_000  # of one page, which is held in memory
MAX_COUNTED_KEYS: Final = 1_000_000  # keys one call counts in a space: about a second of reading
MAX_SIZED_KEYS: Final = 1_000  # keys counted per space in a list of sizes: half a millisecond
MAX_BACKUP_PIECE_BYTES: Final = 4 * 1024 * 1024  # of a backup that is read over the network
MAX_LISTED_BACKUPS: Final = 1_000  # of a server's folder; older ones are found by name
ABANDONED_DOWNLOAD_SECONDS: Final = 86_400.0  # then a backup made for a download is removed
MAX_MAINTENANCE_RUNNING: Final = 2  # checks and backups at once: each reads the whole store
MAX_MAINTENANCE_KEPT: Final = 50  # checks and backups that are remembered, in memory
MAX_MAINTENANCE_PROBLEMS: Final = 100  # sentences kept of one check; more are counted
MAINTENANCE_STOP_SECONDS: Final = 10.0  # that a closing store waits for its checks and backups
MAX_SHOWN_CHARACTERS: Final = 2_000  # of a stored value, as shown to people
COPIED_KEYS_PER_STEP: Final = 1_000  # pairs that one transaction of a copy writes at most
# bytes that one transaction of a copy writes at most; they are held in memory
COPIED_BYTES_PER_STEP: Final = 8 * 1024 * 1024
MAX_KEPT_BACKUPS: Final = 1_000  # of each kind that `holdfast backup --keep` names
# after so long an incremental backup gets a new base: one file should not carry months of backups
FULL_BACKUP_SECONDS: Final = 7 * 86_400.0
# a difference of more than this share of its base: the next backup is a full one
MAX_CHANGES_SHARE: Final = 0.5

# --- answers ----------------------------------------------------------------------------------

MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024  # of a list or a batch; a single value may be larger
VALUES_PER_SIZE_CHECK: Final = 64  # values that are read before their size is checked

# --- expiry -----------------------------------------------------------------------------------

# due removals that a write makes: more than it can add, too few to notice
EXPIRED_PER_WRITE: Final = 8
EXPIRY_CHECK_SECONDS: Final = 0.01  # how often the writers of a space check for what is due
# the same on a remote engine, where each commit sends the range and its server reads it
REMOTE_EXPIRY_CHECK_SECONDS: Final = 0.1
EXPIRED_PER_STEP: Final = 500  # due removals in one transaction of a sweep
WORK_STEPS_PER_SWEEP: Final = 16  # steps of work in one transaction of a sweep: some 0.15 s
EXPIRY_RETRY_MS: Final = 10  # the pause between two steps of one removal
UNKNOWN_EXPIRY_RETRY_MS: Final = 60_000  # for a kind that another process may know how to remove
# the pause after a failed removal, so that it never blocks others
FAILED_REMOVAL_RETRY_MS: Final = 60_000
MAX_FAILURE_CHARACTERS: Final = 500  # of the exception in the notice of a failed removal

# --- errors -----------------------------------------------------------------------------------

MAX_COMPARED_NAMES: Final = 1_000  # known names that a misspelt one is compared with
MAX_SHOWN_VALUE: Final = 200  # characters of a value in an error message; the caller has the rest

# --- caches -----------------------------------------------------------------------------------

# the keys of one cache: names, records and patterns
MAX_CACHED_BYTES: Final = 4 * 1024 * 1024
# of one such key; what belongs to a larger one is computed each time
MAX_CACHED_KEY_BYTES: Final = 64 * 1024


# --- tables -----------------------------------------------------------------------------------

MAX_TABLE_NAME_BYTES: Final = 255  # of tables, indexes and attributes, whose names are part of URLs
MAX_DOMAIN_BYTES: Final = 253  # a domain is often a host name
MAX_ATTRIBUTES: Final = 1_000  # of a table; a row is decoded whole
MAX_HASH_VALUE_BYTES: Final = 65_535  # one hash attribute; a long hash key is stored as a digest
MAX_RANGE_VALUE_BYTES: Final = 4_096  # one range attribute; it is kept in exact order
MAX_ROW_KEY_BYTES: Final = 65_535  # all strings and blobs of a primary key; escaped, they fit a key
# a longer hash key is stored as a digest, because short keys are fast
MAX_INLINE_HASH_BYTES: Final = 128
MAX_ATTRIBUTE_BYTES: Final = 16 * 1024 * 1024  # one value that is not in a key
MAX_BODY_BYTES: Final = 32 * 1024 * 1024  # of a request; it is parsed whole
MAX_JSON_DEPTH: Final = 100  # levels of nesting; a parser's stack must hold them all
MAX_DECIMAL_DIGITS: Final = 1_000  # of a varint or decimal; arithmetic on it stays fast
MAX_DECIMAL_EXPONENT: Final = 6_000  # of a decimal, positive or negative
MAX_DECIMAL_ZEROS: Final = 40  # a decimal with more zeros is written with an exponent
MAX_TTL_SECONDS: Final = 630_720_000  # 20 years: a longer one means forever
DEFAULT_PAGE_ROWS: Final = 1_000  # of a query without a limit
UNQUERIED_PAGE_ROWS: Final = 10  # of a table that is read without any query
MAX_PAGE_ROWS: Final = 10_000  # a page is held in memory
MAX_PAGE_BYTES: Final = 32 * 1024 * 1024  # of its JSON; a page is held in memory
MAX_COUNTED_ROWS: Final = 1_000_000  # rows that one call counts; counting reads them
MAX_BATCH_OPERATIONS: Final = 1_000  # in one transaction, for which other writers wait
# rows and index entries that one delete or batch removes: other writers wait for it, about 2 s
MAX_DELETED_KEYS: Final = 200_000
MAX_DELETED_BYTES: Final = 256 * 1024 * 1024  # of those rows, which are in memory together
MAX_KEPT_REVISIONS: Final = 1_000  # the count of a retention policy: each put reads as many rows
# rows that the puts of a transaction remove or expire after a change of the policy; later puts do
# the rest
PRUNED_PER_TRANSACTION: Final = 1_000
# rows with an expiry that such puts read; they wait for their removal before they read further
MAX_EXPIRING_ROWS_READ: Final = 10_000
# older revisions that a record's newest row lists because they outlive it; each put reads them all
MAX_FALLBACKS: Final = 10
# expired revisions that one removal takes with it; each may be as large as a row can be
EXPIRED_REVISIONS_PER_STEP: Final = 16
MAX_TABLE_INDEXES: Final = 100  # of a table of rows or of entities: each write maintains them all
# of an index or a compound primary key of entities: each of its beginnings can answer queries
MAX_INDEX_COLUMNS: Final = 64
MAX_READ_PAGE_BYTES: Final = 256 * 1024 * 1024  # of stored rows: a page may show little of each
ROWS_PER_IMPORT_STEP: Final = 1_000  # rows of an import in one transaction
# those rows and their index entries: other writers wait for them
KEYS_PER_IMPORT_STEP: Final = 5_000
MAX_REPORTED_REFUSALS: Final = 1_000  # refused lines that an import names; all are counted
ROWS_PER_BUILD_STEP: Final = 500  # rows that one transaction adds to a new index
# rows or entities that one transaction adds to a new index; they are held in memory
BUILD_STEP_BYTES: Final = 32 * 1024 * 1024
KEYS_PER_DROP_STEP: Final = 500  # keys of a dropped table or index that one transaction removes
MIN_COMPRESSED_BYTES: Final = 256  # compressing a smaller row gains little
# bytes, in a table that names no codec; smaller rows gain little
MIN_COMPRESSED_BY_DEFAULT: Final = 512
# a longer interval without a unit may be meant in milliseconds
MAX_UNITLESS_SECONDS: Final = 365 * 86_400
MAX_DURATION_SECONDS: Final = 10**11  # in a schema: 3,000 years, as far as a version can count


# --- entities ---------------------------------------------------------------------------------

DEFAULT_PAGE_ENTITIES: Final = 100  # the default of both public Meduza clients
MAX_ID_BYTES: Final = 1_024  # an id is part of every index entry of its entity
# of a Set, List or Map of an entity, and of a set of a row: each change of one item copies all
MAX_COLLECTION_ITEMS: Final = 250_000
MAX_VALUE_DEPTH: Final = 100  # lists and maps within each other; deeper ones are mistakes
# of an indexed text are in exact order; beyond them, a digest tells texts apart
EXACT_TEXT_BYTES: Final = 256
# nested documents in a message: the values, and the documents around them
MAX_BSON_DEPTH: Final = 128
# pieces of an index that one query may join: the product of its IN lists
MAX_STRETCHES: Final = 10_000
# of one answer, and ids or IN values of one query: about a second of reading
MAX_ANSWER_ENTITIES: Final = 100_000
# of entities that a query on several ids or key columns reads only to find out whether they match
MAX_COMPARED_BYTES: Final = 256 * 1024 * 1024
# of processor time for entities or index entries that are walked to count or to skip them
MAX_WALK_SECONDS: Final = 10.0
EXPIRED_ENTITY_STEPS: Final = 16  # index entries that are counted while one expired entity is read
MAX_QUERY_PLANS: Final = 64  # remembered for a table: the orders in which queries name its columns
# of one put, update or delete: other writers wait for it, about 2 s
MAX_CHANGED_ENTITIES: Final = 100_000
# of them, and of index entries that may change with them
MAX_CHANGED_KEYS: Final = 1_000_000
# more processor time for each entity of an update with many changes: an ordinary one takes 0.02 ms
SECONDS_PER_CHANGED_ENTITY: Final = 0.0001
# of the entities that one call selects to change them, and of what it writes: both are in memory
MAX_CHANGED_BYTES: Final = 256 * 1024 * 1024
# of a table: its entities refer to these lists instead of repeating the names; each call reads them
MAX_NAME_LISTS: Final = 16
MAX_NAME_LIST_BYTES: Final = 2_048  # of all names in the lists of a table
MAX_QUERIES: Final = 10_000  # of one `execute`, or of a TX of Meduza
# entities named in one change notice; a larger change makes several
MAX_NOTICE_CHANGES: Final = 1_000
MILESTONE_ENTRIES: Final = 512  # index entries between two counted milestones, on average
WALKED_ENTRIES: Final = 512  # index entries counted one by one before milestones are used
# entities indexed, checked or cleared in one transaction, so that others do not wait long
INDEX_STEP_ENTITIES: Final = 500
REMOVED_PER_STEP: Final = 20  # expired entities removed along with one write
DUMPED_PER_PAGE: Final = 500  # entities in one page of a dump over the network
DUMPED_BYTES_PER_PAGE: Final = 16 * 1024 * 1024  # of such a page; it is held in memory
# of a dump that is loaded all or nothing: one request, held in memory
MAX_ATOMIC_LOAD_BYTES: Final = 64 * 1024 * 1024
LOAD_STEP_ENTITIES: Final = 500  # loaded from a dump in one transaction
MAX_SCHEMA_BYTES: Final = 1024 * 1024  # of the text of a schema
SAMPLED_ENTITIES: Final = 100  # measured to estimate the size of their table
MAX_ENTITY_NAME_LETTERS: Final = 255  # of a schema, table or column: they are part of keys and code
MAX_SCHEMA_DEPTH: Final = 110  # a default of 100 levels, and the levels above it
# of a schema file with its aliases expanded: about two seconds of reading
MAX_SCHEMA_NODES: Final = 200_000
# of a schema file: the YAML library searches all of them for each one
MAX_SCHEMA_ANCHORS: Final = 1_000
MAX_SCHEMA_NUMBER_LETTERS: Final = 100  # of a number or a time; Python is slow with longer ones
MAX_EXPRESSION_LETTERS: Final = 1_000  # of a regular expression in a schema
# states that it compiles to; each letter of a text may be compared with all of them
MAX_EXPRESSION_STATES: Final = 500
MAX_MATCHING_STEPS: Final = 5_000_000  # states times letters of a text: a second at worst
MAX_SCHEMA_PROBLEMS: Final = 100  # problems listed; finding the nearest name for each takes time


# --- events -----------------------------------------------------------------------------------

MAX_EVENT_NAME_SEGMENTS: Final = 32  # each segment is a look-up among the prefixes
MAX_EVENT_NAME_BYTES: Final = 512  # a name may become part of a key
MAX_EVENT_KEY_BYTES: Final = 4_096  # a key is the prefix of all its rows
MAX_EVENT_VALUE_BYTES: Final = 8_192  # a small set is read and written whole
MAX_EVENT_ID_BYTES: Final = 256  # every id is kept for the dedup window
MAX_EVENT_MS: Final = 2**42  # the year 2109: a time fits into 6 bytes of 7 bits
MAX_EVENT_WRITES: Final = 100_000  # of one event, all handlers together: other writers wait for it
MAX_EVENT_HANDLERS: Final = 100  # that an event carries itself: they are parsed with each event
MAX_BATCH_EVENTS: Final = 10_000  # in one transaction, for which other writers wait
# of processor time for a read of several keys, or of sketches of a distribution: a million members
# that are compared
MAX_MERGE_SECONDS: Final = 10.0
EVENTS_PER_STREAM_STEP: Final = 1_000  # events of a stream in one transaction
MAX_BATCH_RECORDS: Final = 10_000  # records of a batch held in memory before they are written
# records kept decoded between calls, in two generations; about 1 KiB each
MAX_DECODED_RECORDS: Final = 2_048
MAX_DECODED_SPACES: Final = 4  # spaces with decoded records: the ones written to most recently
MAX_EXPANDED_KEYS: Final = 16_384  # keys of handlers kept for the next event; some 250 bytes each
MAX_EXPANDED_TEXT: Final = 256  # characters of a text whose keys are kept
# minutes whose labels are kept, 3 KB each; most events are of the current one
MAX_LABELLED_MINUTES: Final = 256
MAX_EVENT_SCHEMA_BYTES: Final = 1024 * 1024  # of one; parsing it takes a second, and others wait
# of all schemas of a space, and of those that a process remembers; parsed, they are 13 times as
# large
MAX_EVENT_SCHEMAS_BYTES: Final = 4 * 1024 * 1024
MAX_EVENT_SCHEMAS: Final = 10_000  # of a space: a deploy reads all of them, for about 20 ms
MAX_SCHEMA_NAME_BYTES: Final = 128  # a name is part of reports
MAX_EXPRESSION_TERMS: Final = 1_000  # in one list of an expression
MAX_EXPRESSION_STEPS: Final = 16  # each step of a chain can multiply what it looks up
# a set counts its members in 32 bits, and a leaderboard tracks ten per entry
MAX_STORED_VALUES: Final = 100_000_000
MAX_EXPIRE_AFTER_SECONDS: Final = 3_153_600_000  # a hundred years: a longer one means never
DEFAULT_BOARD_ENTRIES: Final = 100  # the K of a leaderboard that does not name one
TRACKED_PER_ENTRY: Final = 10  # candidates that a leaderboard tracks per entry it shows
MIN_TRACKED_VALUES: Final = 1_000  # candidates that the smallest leaderboard tracks
EXACT_DISTINCT: Final = 256  # digests kept for a key before a sketch takes over
HEAD_MEMBERS: Final = 32  # newest members of a set that are kept in its record
HEAD_BYTES: Final = 1_024  # of those members; a small record shares its page with others
MAX_BUNDLES: Final = 9  # of a key's archive before it is compacted; a read merges them
# members that one write evicts from a set whose bound was lowered; the next ones evict the others
EVICTED_PER_WRITE: Final = 10_000
PACKED_MEMBERS: Final = 256  # members of a set in one value; a larger set has a row for each
PACKED_BYTES: Final = 8_192  # of those members
PACKED_BOARD_ENTRIES: Final = 32  # entries of a leaderboard in one value
PACKED_BOARD_BYTES: Final = 1_024  # of those entries
# candidates of a leaderboard that are read as a whole; more of them have an index by count
UNINDEXED_CANDIDATES: Final = 4_000
# candidates of a leaderboard with a half-life, and of all that one transaction scales down: it
# writes them again, in half a second
MAX_DECAYING_CANDIDATES: Final = 50_000
INDEXED_PER_COUNT: Final = 16  # candidates that a count adds to an index that is being built
MAX_PAGE_MEMBERS: Final = 10_000  # members or keys in one page
MAX_EVENT_SERIES_POINTS: Final = 10_000  # steps of one series
MAX_MERGED_KEYS: Final = 1_000  # keys whose counters or leaderboards are read as one
MAX_READS: Final = 1_000  # queries of one `read`
# members of several sets read for one page; a page may come out shorter
MAX_WALKED_MEMBERS: Final = 10_000
# members that are read to count them, where no counter has the answer
MAX_COUNTED_MEMBERS: Final = 100_000
MAX_INTERSECTED_KEYS: Final = 10  # with estimated counters: each further key doubles the unions
DEFAULT_KEPT_SECONDS: Final = 300  # how long a stored count is kept
MAX_NUMBER_BUCKETS: Final = 2_048  # of a histogram with steps of 2 %: 18 orders of magnitude
MAX_NUMBER_MAGNITUDE: Final = 1e300  # of a number that is aggregated; its square need not fit
MAX_WEIGHT: Final = 2**31  # of one count on a leaderboard, whose counts have 64 bits
# of a background fan-out in one transaction, for which other writers wait
FAN_OUT_STEP_WRITES: Final = 500
MAX_FAN_OUT_COMBINATIONS: Final = 1_000  # keys that a background fan-out writes for one member
MAX_FAN_OUT_KEYS: Final = 100_000_000  # of one background fan-out: hours of writing
FINISHED_FAN_OUT_SECONDS: Final = 86_400  # how long a finished fan-out is still reported
MAX_FAN_OUTS: Final = 1_000  # listed in one call


# --- jobs -------------------------------------------------------------------------------------

MAX_JOB_NAME_BYTES: Final = 1_024  # an id, queue, worker, tag, group or class is part of many keys
MAX_JOB_DATA_BYTES: Final = 16 * 1024 * 1024  # the data travels with every pop
# data of the jobs of one pop; with more, it returns fewer jobs: the answer to a write is encoded on
# the event loop
MAX_POPPED_BYTES: Final = MAX_JOB_DATA_BYTES
MAX_JOB_DATA_DEPTH: Final = 512  # a worker decodes it deep inside its own calls
MAX_JOB_MESSAGE_CHARS: Final = 1024 * 1024  # of a failure; a longer one is cut and marked
MAX_HISTORY_MESSAGE_CHARS: Final = 1_000  # of a retry; every pop reads the job's history
WORKER_PROGRAM_SECONDS: Final = 30.0  # of silence before a worker program counts as dead
MAX_WORKER_PROGRAMS: Final = 10_000  # listed in one call
# of a worker's record, which is rewritten every few seconds
MAX_WORKER_PROGRAM_BYTES: Final = 64 * 1024
MAX_JOB_LOG_LINES: Final = 1_000  # that a job keeps; beyond it the oldest are dropped
MAX_JOB_LOG_CHARS: Final = 64 * 1024  # of a job's log, which is rewritten with each new line
MAX_STEPS: Final = 10_000  # of a workflow; each run reads all of them
MAX_STEP_RESULT_BYTES: Final = 1024 * 1024  # larger results belong in entities or tables
MAX_WORKFLOW_BYTES: Final = 64 * 1024 * 1024  # of all its results, which a run holds in memory
# that a workflow has not received yet; more are a mistake of the sender
MAX_JOB_SIGNALS: Final = 1_000
MAX_JOB_RATE: Final = 1_000_000  # jobs in one window; the limiter counts them one by one
MAX_JOB_RATE_SECONDS: Final = 86_400 * 31  # the longest window for which a limiter keeps buckets
MAX_JOB_TAGS: Final = 1_000  # each costs four keys
MAX_JOB_DEPENDENCIES: Final = 10_000  # each costs two keys and a read of another job
# tags and dependencies of all jobs of one bulk put: other writers wait for it, about 1.5 s
MAX_JOB_PARTS_PER_CALL: Final = 100_000
MAX_JOBS_PER_CALL: Final = 10_000  # jobs that one pop, cancel or bulk put may touch
MAX_JOB_TIME: Final = 10.0**11  # in seconds, the year 5138; a larger number must be in another unit
MAX_JOB_HISTORY_ENTRIES: Final = 100_000  # even if `max-job-history` says unlimited
# longer data is stored apart, so that changing a job does not rewrite it
JOB_DATA_INLINE_CHARS: Final = 1_024
# queues and workers whose packed keys are remembered, of all spaces together; 1.6 KB each
MAX_NAMES_KEPT_PACKED: Final = 4_096
MAX_SPACES_KEPT_PACKED: Final = 256  # spaces whose packed keys are remembered; 2.4 KB each
MAX_CACHED_JOB_RECORDS: Final = 512  # records kept decoded for the next pop or completion
# of one such record; a job with a long history is decoded again
MAX_CACHED_JOB_RECORD_BYTES: Final = 4_096
# forgotten queues that a page of queues skips; there are few
MAX_FORGOTTEN_QUEUES_READ: Final = 10_000
MAX_COUNTED_NAMES: Final = 1_000  # queues, groups and other names in totals: a millisecond
MAX_QUEUES_EXPOSED: Final = 200  # queues with series in `/metrics`: each has about 40
# notes about finished jobs that are not yet counted by class; every finished job rewrites them
MAX_NOTES_BYTES: Final = 1_000
MAX_STATS_NAMES: Final = 200  # classes or workers per queue and day with their own statistics
MAX_STATS_TAGS: Final = 32  # tags in `stats-tags`: a job is counted once for each it carries
MAX_STATS_DAYS: Final = 366  # that one call adds up
MAX_IMPORTED_COUNT: Final = 2**32 - 1  # jobs of a day in imported statistics; a count has 4 bytes
IMPORTED_PER_STEP: Final = 250  # jobs that an import reads, writes and verifies at a time
MAX_QLESS_SCRIPT_BYTES: Final = 1024 * 1024  # the original scripts have some 63,000
REDIS_ANSWER_SECONDS: Final = 30.0  # how long an import or a worker waits for a Redis to answer
# in the arguments of one job: a short pickle can expand to many
MAX_IMPORTED_VALUES: Final = 1_000_000
MAX_PRIORITIES_AGED: Final = 20  # priorities of a queue that are searched for its oldest job
FAILED_GROUPS_SHOWN: Final = 20  # groups of failed jobs shown in a status
JOBS_SEARCHED_PER_PAGE: Final = 1_000  # jobs that one page of a search examines: about 10 ms
# how long the record of a finished bulk action is kept
BULK_ACTION_KEPT_SECONDS: Final = 7 * 86_400
MAX_BULK_ACTIONS: Final = 1_000  # kept at a time, so that one answer can list them
JOBS_PER_STEP: Final = 250  # jobs that one transaction of a long operation changes: about 10 ms
# scheduled jobs that are due, among which a pop looks for the most urgent: about 3 ms
MAX_DUE_COMPARED: Final = 10_000
# jobs that a completion, or all of one call, releases at once, in about 45 ms; expiry releases the
# others, `JOBS_PER_STEP` at a time
DEPENDENTS_RELEASED_AT_ONCE: Final = 1_000
MAX_DEPENDENCY_WALK: Final = 100_000  # jobs examined when looking for a cycle of dependencies
MAX_CRON_CHARS: Final = 1_024  # of a cron expression; one that lists every number has 560
MAX_CRON_YEARS: Final = 8  # how far ahead cron looks: 29 February can be 8 years away
MAX_CRON_BACKLOG: Final = 1_000  # missed runs that a pop looks for, one by one: about 50 ms
# of a recurring job. Adding a much shorter one to a time in seconds would not change it.
MIN_RECURRING_SECONDS: Final = 0.001


# --- tasks ------------------------------------------------------------------------------------

# of an exception with its traceback; a longer one loses its middle
MAX_TASK_ERROR_CHARS: Final = 64 * 1024
MAX_LOGGED_REASON_CHARS: Final = 500  # of a failed run in a worker's log: a line that people read
UNKNOWN_TASK_SECONDS: Final = 3600  # how long a job waits for a worker that has its task
# the first and the longest pause before such a job is tried again
UNKNOWN_TASK_WAIT_SECONDS: Final = (10, 300)
CHILD_REPORT_SECONDS: Final = 1.0  # how often a child process reports progress and log lines
HEARTBEATS_PER_LOCK: Final = 3  # two may be late before a lock ends
# for tasks that do not say otherwise; the same as the layer's default
WORKER_LOCK_SECONDS: Final = 60.0
# prefetched jobs should start within it: an urgent job waits behind them
PREFETCH_SECONDS: Final = 0.02
MAX_PREFETCH: Final = 200  # jobs, unless a worker says otherwise: one commit of about 20 ms
# a job that was prefetched and not started by then is handed back
MAX_PREFETCH_WAIT_SECONDS: Final = 0.5
# how long a finished run waits for others while prefetched jobs are left
SETTLEMENT_WAIT_SECONDS: Final = 0.01
SIGNAL_WAIT_SECONDS: Final = 100 * 365 * 86_400.0  # a wait without a timeout
# how long running tasks may take to finish when their worker stops
WORKER_DRAIN_SECONDS: Final = 30.0
ABANDON_RUN_SECONDS: Final = 10.0  # after its timeout, a run that still has not ended is abandoned
CRASH_LOOP_SECONDS: Final = 10.0  # a child process that exits sooner counts as a crash
# the first and the longest pause before a crashed child is replaced
CRASH_BACKOFF_SECONDS: Final = (1, 60)
WORKER_POLL_SECONDS: Final = 0.05  # how often a stopping worker checks whether it is done
# how often a worker checks changed files, memory and stuck threads
WORKER_TICK_SECONDS: Final = 1.0
MAX_UNSERVED_SHOWN: Final = 10  # queues and tasks without a worker that the start message names
MAX_WORKER_NAMES: Final = 200  # queues, tasks and slots named in the record of a worker
HEALTH_SECONDS: Final = 5.0  # how long a client of a worker's health server may take
PEEKED_JOBS: Final = 100  # per queue, that a starting worker checks for unknown tasks


# --- metrics ----------------------------------------------------------------------------------

MAX_SEQUENCES: Final = 16  # of a metric; every increment writes all of them
MIN_TIME_STEP: Final = 0.001  # seconds; two readings of a clock are rarely closer
MAX_BUCKETS: Final = 100_000  # of a sequence within its expiry, and of one range that is read
# of all queries or entities of a call: about two seconds of reading, as long as a batch may take
MAX_BUCKETS_PER_CALL: Final = 1_000_000
# of a metric: pages and scrapes contain it, and each write reads it with the spec
MAX_METRIC_HELP_CHARS: Final = 4_096
MAX_ENTITY_COMPONENTS: Final = 32  # so that people can still read the key
MAX_UNITS: Final = 2**53  # in one call: beyond it, a double can't tell adjacent integers apart
MAX_AT: Final = 253_402_300_799.0  # the last second of the year 9999
MAX_SECONDS: Final = MAX_AT  # of a step, an expiry or a window
MAX_LIMIT: Final = 2**63 - 1  # of a limiter: an integer in a reply has 64 bits
MAX_SKETCH_BINS: Final = 65_536  # of a distribution: a sketch is read and written whole
MAX_CONDITION_LETTERS: Final = 100  # of a limit in words, such as 10 per 2 minutes burst 20
MAX_BUCKET_COUNT: Final = 10_000  # of a limiter: a check may read them all
MAX_SUMMARIZED_BUCKETS: Final = 1_000  # of a limiter; each hit writes them all, 8 bytes each
MAX_LOG_LIMIT: Final = 10_000  # of the algorithm `log`: a check reads one record per hit
MAX_SERIES_POINTS: Final = 10_000  # more than a plot has pixels
MAX_TOP_ENTITIES: Final = 10_000  # of one answer
MAX_LISTED_BUCKETS: Final = 10_000  # of one page
MAX_EXPOSED_SERIES: Final = 10_000  # of a metric, so that a scrape stays readable
MAX_SCRAPE_SECONDS: Final = 5.0  # of processor time: a scraper waits for 10 seconds by default
MAX_DISCARDED_KEYS: Final = 500_000  # of a metric, at once: other writers wait about two seconds
MAX_WRITER_KEYS: Final = 10_000  # a writer that holds more flushes by itself
SWEPT_BUCKET_KEYS: Final = 1_000  # expired keys removed in one step of the sweeper
# how often an idle metric is checked, and how long expired buckets stay
SWEEP_SECONDS: Final = 60.0
ACQUIRE_SECONDS: Final = 60.0  # how long `acquire` waits by default

# --- server -----------------------------------------------------------------------------------

# the largest value as msgpack bytes, plus some overhead
MAX_REQUEST_BYTES: Final = 80 * 1024 * 1024
# JSON, and texts in msgpack and BSON: the largest data of a job, plus some overhead. It is decoded
# in one step of 20 ms, during which nobody is answered
MAX_REQUEST_TEXT_BYTES: Final = 17 * 1024 * 1024
# texts as Python holds them, with 4 bytes for each letter if one of them is an emoji: each step on
# them writes all of that memory, in some 25 ms. So 8 MiB may have emoji, and 17 MiB other letters
MAX_REQUEST_DECODED_BYTES: Final = 2 * MAX_REQUEST_TEXT_BYTES
# decoded in one step of some 20 ms, during which nobody is answered
MAX_REQUEST_VALUES: Final = 250_000
# keys of the maps of a request in msgpack whose hashes anyone can choose: each is compared with all
# others of the same hash, which takes up to 100 ms for so many
MAX_COMPOUND_KEYS: Final = 1_000
# elements of a set that share a hash with others: each is compared with all of them
MAX_EQUAL_HASHES: Final = 100
MAX_BATCH_VALUES: Final = 1_000_000  # of all steps of a batch over HTTP
# backslashes in the JSON of a request; each adds to the time of decoding it, 20 ms in all
MAX_REQUEST_ESCAPES: Final = 4_000_000
DECODED_ON_LOOP_BYTES: Final = 64 * 1024  # a larger request is decoded in a thread
JOINED_ON_LOOP_BYTES: Final = 1024 * 1024  # larger bodies are joined in a thread
MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024  # of Meduza: the size that its spec names
MAX_COMMAND_ARGUMENTS: Final = 1_000_000  # as many as Redis accepts
MAX_INLINE_BYTES: Final = 64 * 1024  # a command that a person types
# waiting commands of one connection, an object or two each; beyond it, the server stops reading
MAX_PIPELINED: Final = 1_000
MAX_PIPELINED_BYTES: Final = 1024 * 1024  # of those commands; the network holds back the rest
MAX_QUEUED_WRITES: Final = 100_000  # of all connections; beyond it, writes are refused
MAX_BATCH_COMMANDS: Final = 10_000  # between MULTI and EXEC: other writers wait while it runs
MAX_BATCH_SECONDS: Final = 2.0  # of processor time for one batch: other writers wait for it
# more for each event, job, query, write or hit of metrics of a call that has many: an ordinary one
# takes 0.1 to 0.4 ms
SECONDS_PER_ITEM: Final = 0.001
MAX_BATCH_READS_ON_LOOP: Final = 4  # a read-only batch with more reads runs in a thread
MAX_READ_ON_LOOP: Final = 20  # a read that asks for more items runs in a thread
# stored and expanded bytes of one read, a pair as 256 more: some 10 ms; a longer one is abandoned,
# and runs again in a thread
MAX_READ_ON_LOOP_BYTES: Final = 1024 * 1024
# a kind of read that takes longer on the event loop moves to a thread
LARGE_READ_SECONDS: Final = 0.02
# a kind of read with a larger answer moves to a thread, however quick it was
MAX_ANSWER_ON_LOOP_BYTES: Final = 1024 * 1024
MAX_DISK_READS_ON_LOOP: Final = 16  # pages that one read on the event loop may wait for
# like LARGE_READ_SECONDS, for `store.aio` on a program's own event loop
ASYNC_READ_SECONDS: Final = 0.002
ASYNC_READING_THREADS: Final = 4  # for such reads of an embedded store, which share the interpreter
REMEMBERED_LARGE_READ_SECONDS: Final = 60.0  # how long such a kind of read stays in a thread
LARGE_READ_THREADS: Final = 1  # for large reads, which share the interpreter with the event loop
# the longest pause between two large reads, left to the event loop
LARGE_READ_PAUSE_SECONDS: Final = 0.02
# how soon the server reads the notices of another process after its write; how often it checks
# where the system does not report writes
NOTICE_POLL_SECONDS: Final = 0.005
WATCHED_NOTICE_POLL_SECONDS: Final = 0.1  # how often it checks where the system reports them
TURN_SECONDS: Final = 0.005  # of work on the event loop before it polls all sockets again
SWITCH_SECONDS: Final = 0.001  # how long a thread keeps the interpreter while the event loop waits
# larger allocations are returned to the system as soon as they are freed
MAPPED_MEMORY_BYTES: Final = 128 * 1024
LISTEN_BACKLOG: Final = 2_048  # connections waiting to be accepted
ACCEPTED_PER_TURN: Final = 128  # connections, if so many wait: some 6 ms
CROWDED_ACCEPTS: Final = 4  # connections in a row, after each of which another one waits
CROWD_SECONDS: Final = 1.0  # for which many connections are accepted in each turn after that
CROWDED_TURN_CONNECTIONS: Final = 8  # connections in one turn: others probably wait to be accepted
CROWDED_TURN_SECONDS: Final = 0.001  # of work after such a turn, so that they wait no longer
ENDED_PER_TURN: Final = 32  # connections; cleaning up after one takes longer than noticing its end
# a larger part of an answer waits for a turn that has time left
LARGE_PIECE_BYTES: Final = 64 * 1024
TURN_SENT_BYTES: Final = 1024 * 1024  # in one turn: the kernel copies them at its end
MAX_DELAYED_REPLY_BYTES: Final = 4_096  # a larger reply is not kept for the end of its turn
MAX_UNDELAYED_BYTES: Final = 1_024  # so few are parsed immediately, even at the end of a turn
PARSED_PER_TURN_BYTES: Final = 16 * 1024  # of one connection: a few thousand short words
COMMANDS_PER_TURN: Final = 250  # of one connection before the others get their turn
# a client with more unread answers is not served until it reads
PAUSE_UNSENT_BYTES: Final = 64 * 1024
STALLED_SECONDS: Final = 60.0  # how long such a client has to resume reading before it is dropped
# messages to a slow subscriber; beyond it, it is dropped
MAX_UNSENT_BYTES: Final = 32 * 1024 * 1024
# to all clients; beyond it, the slowest readers are dropped
MAX_ALL_UNSENT_BYTES: Final = 256 * 1024 * 1024
RECENT_READ_SECONDS: Final = 1.0  # a client that read something so recently is not dropped yet
STOPPING_STALLED_SECONDS: Final = 2.0  # in place of `STALLED_SECONDS` while the server stops
# of a request that takes longer than `STALLED_SECONDS`; a slower client is dropped, because a few
# bytes now and then would hold its connection forever
MIN_REQUEST_BYTES_PER_SECOND: Final = 500
# read by a client that has been behind for `STALLED_SECONDS`; a slower one is dropped
MIN_ANSWER_BYTES_PER_SECOND: Final = 500
LOGIN_SECONDS: Final = 60.0  # for a Redis client to log in, if the server requires it
KEEPALIVE_SECONDS: Final = 60.0  # of silence before the kernel probes the peer
PROBE_SECONDS: Final = 15.0  # between two probes
KEEPALIVE_PROBES: Final = 4  # unanswered probes: a dead peer is found within two minutes
HANDSHAKE_SECONDS: Final = 10.0  # of TLS; an unfinished handshake counts as a connection
# of TLS, which may be 300 changes of the key: some 5 ms
DECRYPTED_AT_ONCE_BYTES: Final = 8 * 1024
# of TLS in a row, such as changes of the key; a client that sends more is dropped
MAX_TLS_BYTES_WITHOUT_DATA: Final = 128 * 1024
MAX_BYTES_BEFORE_LOGIN: Final = 64 * 1024  # of a command from a client that has not logged in
MAX_ECHO_BYTES: Final = 1024 * 1024  # of ECHO and PING, whose answer is made on the event loop
MAX_SUBSCRIPTIONS: Final = 10_000  # of one connection, even if one command names them all
MAX_PATTERNS: Final = 1_000  # of one connection: every notice is compared with each
MAX_PATTERN_BYTES: Final = 1_024  # for keys and channels: enough for the longest job name
MAX_CHANNEL_BYTES: Final = 4_096  # every pattern of every subscriber is compared with it
MAX_DESCRIBED_COMMANDS: Final = 1_000  # in one COMMAND DOCS or INFO: more than there are
MAX_TRACE_BYTES: Final = (
    8_192  # a trace context with its baggage; proxies allow headers of this size
)
MAX_CONFIG_PATTERNS: Final = 64  # in one CONFIG GET: there are few settings
MAX_KEYS_ON_LOOP: Final = 1_000  # a command that reads more members runs in a thread
MAX_QUEUED_LONG_OPERATIONS: Final = (
    1_000  # long operations waiting for a thread; beyond it, they are refused
)
MAX_SCRIPTS: Final = 1_000  # loaded by clients; each is a client's build of one script
MAX_SESSION_SCRIPTS: Final = 16  # of one connection once the shared ones are full
MAX_CONNECTIONS: Final = 10_000  # over RESP and HTTP together
# of all connections, those that one address may have if it is not of this machine or of a trusted
# proxy: there is room for others, and for the many clients behind one gateway
ONE_ADDRESS_SHARE: Final = 0.5
SPARE_FILES: Final = 128  # open files of a server besides its connections
MAX_SERVER_PROCESSES: Final = 64  # that serve one store on the same ports
RESTARTED_PROCESS_SECONDS: Final = 1.0  # before a server process that has ended is replaced
IDLE_SECONDS: Final = 3_600.0  # a connection that is silent for longer is closed
READING_THREADS: Final = 16  # that read at the same time from a remote engine
LONG_OPERATION_THREADS: Final = 8  # that run in threads at the same time
MAX_WAIT_SECONDS: Final = 3_600.0  # the longest wait of one call
SERVER_SWEEP_SECONDS: Final = 1.0  # between two rounds of removing what has expired
USERS_REFRESH_SECONDS: Final = 30.0  # how often the users are read again, in case a notice was lost
SWEPT_SPACES_PER_ROUND: Final = 100  # of the walk over all spaces; each is one read
SWEEP_STEPS_PER_ROUND: Final = 20  # of one space before the others get their turn
# spaces whose next removal is remembered, about 10 MB; the walk finds the others
MAX_WATCHED_SPACES: Final = 50_000
SERVER_DRAIN_SECONDS: Final = 30  # how long requests in flight may take when the server stops
MIN_GZIP_BYTES: Final = 1_024  # a smaller answer is sent as it is: it fits one packet anyway
MAX_QUEUED_STREAM_NOTICES: Final = 1_000  # a stream whose reader falls further behind is ended
MAX_QUEUED_STREAM_BYTES: Final = 8 * 1024 * 1024  # of those notices
MIN_GZIP_THREAD_BYTES: Final = 64 * 1024  # a larger answer is compressed in a thread
MAX_BODIES_BYTES: Final = 1024**3  # of all requests held at the same time
SMALL_REQUESTS_BYTES: Final = 64 * 1024  # of one Redis client, not counted among them
# of a body that is too large, still read so that the client sees the answer
MAX_DISCARDED_BYTES: Final = 256 * 1024 * 1024
MAX_HEAD_BYTES: Final = 64 * 1024  # of an HTTP request before its body
MAX_HEADERS: Final = 128  # of an HTTP request, and of its trailers
MAX_URL_BYTES: Final = 32 * 1024  # a longer query belongs in a body
MAX_QUERY_PARAMETERS: Final = 1_000  # of a URL
# waiting requests of an HTTP connection; beyond it, the server stops reading
MAX_PIPELINED_REQUESTS: Final = 16
MAX_STREAM_LINE_BYTES: Final = 1024 * 1024  # of a stream of events
MAX_REPORTED_EVENTS: Final = 1_000  # refused events of a stream that are named; all are counted
MAX_STREAMS: Final = 32  # uploads that are read in threads at the same time
# a client that neither sends nor reads for longer is dropped
STALLED_EXCHANGE_SECONDS: Final = 60.0
# for the engine's figures in `/metrics`; later, the server shows its own and `engine_up 0`
ENGINE_FIGURES_SECONDS: Final = 2.0
READY_SECONDS: Final = 5.0  # for the store to answer `/readyz`; probes wait no longer
KEEP_ALIVE_SECONDS: Final = 75  # how long an HTTP connection stays open between two requests
STREAM_KEEP_ALIVE_SECONDS: Final = (
    15.0  # between two keep-alive comments on a quiet stream of notices
)
MAX_OPEN_SPACES: Final = 10_000  # that a server keeps open; opening one again reads 1 key
MAX_KNOWN_LOGINS: Final = 1_000  # passwords that were checked and need not be checked again
MAX_KNOWN_HOSTS: Final = 256  # Host headers that were checked and need not be parsed again
MAX_USER_NAME_BYTES: Final = 255  # a name is typed by people and is part of logs
MAX_PASSWORD_BYTES: Final = 1_024  # a longer one is no safer, and takes time to hash
PASSWORD_THREADS: Final = 2  # for checking passwords; each check takes about 50 ms of a core
# checks waiting for those threads, about 2 s; beyond it, logins are refused
MAX_QUEUED_PASSWORDS: Final = 64
FREE_LOGIN_FAILURES: Final = 5  # wrong passwords for a user from one address before it has to wait
LOGIN_WAIT_SECONDS: Final = 1.0  # after them, doubled with each further wrong password
MAX_LOGIN_WAIT_SECONDS: Final = 60.0  # the longest such wait: a guesser gets 1,440 tries a day
MAX_LOGIN_RECORDS: Final = 10_000  # addresses and names with wrong passwords; about 2 MB
# a signal that comes sooner is a copy of the first: `make` forwards what its process group received
SECOND_SIGNAL_SECONDS: Final = 0.1
STREAM_PIECE_BYTES: Final = 64 * 1024  # of a dump or an export, written and sent in one piece
STREAMED_AT_ONCE_BYTES: Final = 256 * 1024  # of a stream over HTTP; a larger part is sent in pieces
STREAM_STEP_BYTES: Final = 4 * 1024 * 1024  # events of a stream that are held and sent at once

# --- dashboard ----------------------------------------------------------------------------------

SESSION_SECONDS: Final = 12 * 3600  # of a login in a browser: a working day
# sessions that were logged out and are remembered until they expire
MAX_ENDED_SESSIONS: Final = 10_000
MAX_NOTICE_CHARS: Final = 500  # of the message that an action leaves for the next page
MAX_FORM_BYTES: Final = 2 * 1024 * 1024  # of a form: the data of a job, pasted by hand
MAX_FORM_FIELDS: Final = 2_000  # of a form: a page of selected jobs and a few more
MAX_COPIED_CALLS: Final = 20  # API calls of a page that "copy as" shows
MAX_SHOWN_CHARS: Final = 20_000  # of one value on a page; its JSON has the rest
ROWS_PER_PAGE: Final = 50  # of entities, rows, keys and metrics in a list
MAX_SHOWN_COLUMNS: Final = 10  # of entities in a list; the page of one entity shows all
MAX_SHOWN_FILTERS: Final = 4  # of entities: as many as the columns of a readable index
TABLES_PER_PAGE: Final = 25  # each needs calls for its figures and indexes
SHOWN_REVISIONS: Final = 30  # of a row, to compare it with
MAX_COMPARED_WORDS: Final = 4_000  # of two texts; the cost grows with their product
EXPORTED_ROWS_PER_STEP: Final = 1_000  # of an export from the dashboard; each step is a read
MAX_CHARTED_METRICS: Final = 5  # lines in one chart, one per tone of the palette
MAX_CHART_POINTS: Final = 360  # of a line; a longer range is read in longer steps
# pages that update themselves at the same time; others stay as they are
MAX_LIVE_STREAMS: Final = 200
LIVE_SECONDS: Final = 1.0  # between two updates of a live page, however much changes
LIVE_QUIET_SECONDS: Final = 10.0  # after which a live page is updated even without a notice

QUEUES_PER_PAGE: Final = 50  # in the list of queues
MAX_RANKED_BUCKETS: Final = 3_000  # of a metric whose highest entities a page shows: about 30 ms
MAX_RECORDED_REFUSALS: Final = 200  # limits whose refusals are recorded by name; others as one
JOBS_PER_PAGE: Final = 25  # in a list of jobs
QUEUES_ON_OVERVIEW: Final = 12  # those that need attention, then the longest
GROUPS_PER_PAGE: Final = 20  # failure groups, each with some of its jobs
MAX_GROUP_SAMPLE: Final = 50  # newest jobs of a failure group, counted in its small chart
MAX_GRAPH_JOBS: Final = 8  # on each side of a job in its dependency graph
RECORD_SECONDS: Final = 15.0  # how often a server writes what it has counted
MAX_RECORDED_QUEUES: Final = 200  # whose totals one such write contains; others follow in the next
MAX_RECORDED_SPACES: Final = 10_000  # whose names the recorder knows
MAX_SLOW_CALLS: Final = 200  # kept: the slowest of the last day
MAX_SLOW_CHARS: Final = 300  # of the arguments of a slow call
SLOW_SECONDS: Final = 0.01  # a faster call is not slow

# --- client -----------------------------------------------------------------------------------

MAX_REPLY_BYTES: Final = 512 * 1024 * 1024  # of one reply: more than our server ever sends
# of a list in a reply; a batch is answered with at most 10,000
MAX_REPLY_ELEMENTS: Final = 1_000_000
MAX_REPLY_LINE_BYTES: Final = 1024 * 1024  # of a number, a header or an error
MAX_REPLY_DEPTH: Final = 8  # lists within each other in a reply
CALL_SECONDS: Final = 30.0  # the default timeout of a call, retries included
LONG_CALL_SECONDS: Final = 3_600.0  # the default timeout of a call of many steps, such as `repair`
CONNECT_SECONDS: Final = 5.0  # how long a client waits for a connection
# the longest timeout of a client: `poll` counts milliseconds in 31 bits, which is 24 days
MAX_TIMEOUT_SECONDS: Final = 1_000_000.0
CLIENT_CONNECTIONS: Final = 32  # of one client at the same time; further calls wait for one
CLIENT_RETRIES: Final = 3  # of what is safe to send again, after the first attempt
RETRY_SECONDS: Final = 0.05  # before the first retry; each further one waits twice as long
MAX_RETRY_SECONDS: Final = 1.0  # the longest pause before a retry
# the longest wait of a client in one call, so that it notices a dead server
WAIT_STEP_SECONDS: Final = 60.0
