"""Every number that bounds something, with its reason. `docs/limits.md` is made from this file."""

from typing import Final

# --- engine -----------------------------------------------------------------------------------

MAX_KEY_BYTES: Final = 128 * 1024  # above any sensible key; a page of keys still fits in memory
MAX_VALUE_BYTES: Final = 64 * 1024 * 1024  # a value is read and written whole
MIN_COUNTER: Final = -(2**63)  # a counter is 64 bits, signed
MAX_COUNTER: Final = 2**63 - 1  # a counter is 64 bits, signed
MAX_GROUP_TRANSACTIONS: Final = 1_000  # the first of a group waits for the last
MAX_GROUP_SECONDS: Final = 1.0  # of a server's group; what it holds is in memory until it commits
MAX_GROUP_WAIT_SECONDS: Final = 0.0005  # that a group waits for those who were in the last ones
GROUP_WAIT_STEP_SECONDS: Final = 0.00005  # between two looks whether they have come
MAP_BYTES: Final = 2**40  # addresses set aside for a store's file; four times the file, if more
MIN_MAP_BYTES: Final = 2**30  # what must be had where addresses are limited
CLOCK_AHEAD_SECONDS: Final = 60.0  # clocks of machines differ by less; more is a clock set back
MAX_ARGUMENT_DEPTH: Final = 8  # how deep arguments are searched for iterators; no type goes deeper
MAX_READERS: Final = 1_022  # open views of all processes; LMDB fixes their number when it opens
KEPT_NOTICE_COMMITS: Final = 10_000  # commits whose notices a slow subscriber can still read
KEPT_NOTICE_BYTES: Final = 8 * 1024 * 1024  # of them, in the store; the newest commit's in any case
MAX_QUEUED_NOTICE_BYTES: Final = 32 * 1024 * 1024  # left unread; of more, the oldest are dropped
MAX_WAITING_NOTICE_BYTES: Final = (
    1024 * 1024
)  # of commits that LMDB has not yet got; then it gets them
MAX_QUEUED_NOTICES: Final = 100_000  # notices left unread before the oldest are dropped
CHECKPOINT_SECONDS: Final = 1.0  # what a power failure may cost in interval mode
FLUSH_SECONDS: Final = 0.02  # how long a commit waits for others before LMDB gets it
REDO_LOG_BYTES: Final = 4 * 1024 * 1024  # commits that LMDB has not yet got; read when opening
COMMITS_WITHOUT_LOG: Final = 32  # in commit mode; a short program would not win back its cost
MAX_WAITING_SECONDS: Final = 1.0  # in commit mode; a tenth of it if nothing more is committed
MAX_SHORT_OPERATIONS: Final = 1_500  # reads and writes of a commit on a server's loop: some 4 ms
MAX_SYNC_ON_LOOP_SECONDS: Final = 0.001  # of the disk, for commits there: reads wait meanwhile
MAX_GROUP_ON_LOOP: Final = 24  # transactions that it commits together
MAX_SMALL_REQUEST_BYTES: Final = 4_096  # of a write that is tried there
LOOP_COMMITS_PAUSE_SECONDS: Final = 0.1  # without such tries, after one that was too long
MAX_WAITING_KEYS: Final = 2_048  # in commit mode, where a view may have to copy them; and notices
MAX_DEFERRED_BYTES: Final = 1024 * 1024  # a larger transaction gains nothing by waiting
CLEARED_INTO_OVERLAY: Final = 64  # a clear of more keys is made by LMDB itself
FEW_DELETED: Final = 8  # deleted keys that are passed again rather than remembered
MAX_SEEN_IN_OVERLAY: Final = 4_096  # pairs that are read from LMDB once until the next flush
MAX_SEEN_BYTES: Final = 4_096  # a larger value is read again
MAX_DELETED_IN_OVERLAY: Final = 128  # deleted keys that a scan has to pass before LMDB gets them
STOPPED_PROCESS_SECONDS: Final = 5.0  # that a store is waited for which a stopped process has
MAX_OPENING_SECONDS: Final = 60.0  # that it is waited for if the process runs; it may write much
MAX_SEALED_BYTES: Final = (
    32 * 1024 * 1024
)  # a larger file takes too long to compare at each opening
MAX_WALKED_BYTES: Final = 8 * 1024 * 1024  # a larger file that was not closed is walked by `check`
MAX_CHECKED_IN_PROCESS_BYTES: Final = (
    1024 * 1024
)  # a larger file is walked by a child process: a long walk holds the interpreter's lock
EXAMINED_SECONDS: Final = 60.0  # that pages which were found sound are read without another walk
MAX_UNWRITTEN_BYTES: Final = 2**30  # of free pages at a file's end that LMDB never wrote to
RESERVE_BYTES: Final = 4 * 1024 * 1024  # on disk, for transactions that free space on a full one
RESERVE_STEP_BYTES: Final = 512 * 1024  # of it at a time, so that others can't use it up
MAX_FREEING_BYTES: Final = 4_096  # by which a transaction that deletes may grow a full store
MIN_FREE_BYTES: Final = 1024 * 1024  # of the disk; with less, a server says that it is not ready
RESERVED_BYTES: Final = 16 * 1024 * 1024  # set aside on disk for what waits, and as much ahead
MAX_SEEN_IN_VIEW_BYTES: Final = (
    8 * 1024 * 1024
)  # that a view of a remote engine keeps; then it reads them again
MAX_GUESSED_READS: Final = 1_000  # of one run, before they are fetched
MAX_GUESSING_RUNS: Final = 4  # of work, each for one round trip; then it reads as it goes
MAX_CONFLICT_RUNS: Final = 200  # of a transaction that others are in the way of; then `Conflict`
CONTENDED_SECONDS: Final = 1.0  # after a conflict, that a space is locked before it is read
MAX_CONFLICT_PAUSE_SECONDS: Final = 0.25  # between two of them; chosen at random below it
RECONNECT_SECONDS: Final = 30.0  # that a server may be away before its callers hear of it
MAX_REMEMBERED_KEYS: Final = 10_000  # small values of a space that are kept to guess with
MAX_REMOTE_COMMIT_BYTES: Final = 512 * 1024 * 1024  # a server takes a message of twice as much
REMOTE_POLL_SECONDS: Final = 1.0  # between two looks for notices that no one announced
MAX_POSTGRES_CONNECTIONS: Final = 32  # of one process; a server of 100 serves three
CONNECTION_WAIT_SECONDS: Final = 30.0  # for one that is free

# --- keys -------------------------------------------------------------------------------------

MAX_TUPLE_DEPTH: Final = 32  # tuples within tuples in a key; a reader's stack must hold them all

# --- spaces -----------------------------------------------------------------------------------

MAX_SPACE_NAME_BYTES: Final = 255  # a name is typed by people and is part of URLs
CLEARED_PER_STEP: Final = 1_000  # keys of a dropped space that one transaction removes

# --- care -------------------------------------------------------------------------------------

CHECKED_PER_STEP: Final = 1_000  # keys that one call of `admin.check` looks at
MAX_REPORTED_PROBLEMS: Final = 1_000  # of one such call: one damaged table has as many as rows
DEFAULT_INSPECTED_KEYS: Final = 100  # what people read at once
MAX_INSPECTED_KEYS: Final = 10_000  # of one page; it is held in memory
MAX_COUNTED_KEYS: Final = 1_000_000  # of one call that counts a space: about a second's reading
MAX_SHOWN_CHARACTERS: Final = 2_000  # of a stored value, shown to people
COPIED_KEYS_PER_STEP: Final = 1_000  # pairs that one transaction of a copy writes at most
COPIED_BYTES_PER_STEP: Final = 8 * 1024 * 1024  # the same in bytes: the batch is held in memory

# --- answers ----------------------------------------------------------------------------------

MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024  # of a list or a batch; a single value may be larger
COLLECTED_AT_ONCE: Final = 64  # values that are read before their size is looked at

# --- expiry -----------------------------------------------------------------------------------

EXPIRED_PER_WRITE: Final = 8  # due removals on a write: more than one adds, too few to be felt
EXPIRY_LOOK_SECONDS: Final = 0.01  # between two looks of one space's writers for what is due
EXPIRED_PER_STEP: Final = 500  # due removals in one transaction of a sweep
EXPIRY_RETRY_MS: Final = 10  # the pause between two steps of one removal
UNKNOWN_EXPIRY_RETRY_MS: Final = 60_000  # a kind that the next process to sweep may know
FAILED_REMOVAL_RETRY_MS: Final = 60_000  # a removal that failed: often enough, and never in the way
MAX_FAILURE_CHARACTERS: Final = 500  # of an exception, in the notice of a removal that failed

# --- errors -----------------------------------------------------------------------------------

NAMES_TO_COMPARE: Final = 1_000  # names that a misspelt one is compared with, for its error
MAX_SHOWN_VALUE: Final = 200  # characters of a value in an error message; the caller has the rest


# --- tables -----------------------------------------------------------------------------------

MAX_TABLE_NAME_BYTES: Final = 255  # of tables, indexes and attributes; a name is part of URLs
MAX_DOMAIN_BYTES: Final = 253  # a domain is often a host name
MAX_ATTRIBUTES: Final = 1_000  # of a table; a row is decoded whole
MAX_HASH_VALUE_BYTES: Final = 65_535  # one hash attribute; a long hash key is stored as a digest
MAX_RANGE_VALUE_BYTES: Final = 4_096  # one range attribute; it is kept in exact order
MAX_ROW_KEY_BYTES: Final = 65_535  # all strings and blobs of a primary key; fits a key, escaped
MAX_INLINE_HASH_BYTES: Final = 128  # a longer hash key is stored as a digest; short keys are fast
MAX_ATTRIBUTE_BYTES: Final = 16 * 1024 * 1024  # one value that is not in a key
MAX_BODY_BYTES: Final = 32 * 1024 * 1024  # of a request; it is parsed whole
MAX_JSON_DEPTH: Final = 100  # levels of nesting; a parser's stack must hold them all
MAX_DECIMAL_DIGITS: Final = 1_000  # of a varint or decimal; arithmetic on it stays fast
MAX_DECIMAL_EXPONENT: Final = 6_000  # of a decimal, either way
MAX_DECIMAL_ZEROS: Final = 40  # zeros that a decimal is written out with before it gets an exponent
MAX_TTL_SECONDS: Final = 630_720_000  # 20 years: more is meant to be for ever
DEFAULT_PAGE_ROWS: Final = 1_000  # of a query that names no limit
BARE_PAGE_ROWS: Final = 10  # of a table that is asked for without any query
MAX_PAGE_ROWS: Final = 10_000  # a page is held in memory
MAX_PAGE_BYTES: Final = 32 * 1024 * 1024  # of its JSON; a page is held in memory
MAX_COUNTED_ROWS: Final = 1_000_000  # rows that one call counts; they are read to be counted
MAX_BATCH_OPERATIONS: Final = 1_000  # of one transaction; others wait for it
ROWS_PER_IMPORT_STEP: Final = 1_000  # rows of an import in one transaction
MAX_REPORTED_REFUSALS: Final = 1_000  # refused lines that an import names; all are counted
ROWS_PER_BUILD_STEP: Final = 500  # rows that one transaction adds to a new index
KEYS_PER_DROP_STEP: Final = 500  # keys of a dropped table or index that one transaction removes
MIN_COMPRESSED_BYTES: Final = 256  # a smaller row is stored plain: little to gain
MIN_COMPRESSED_BY_DEFAULT: Final = 512  # bytes, where a table names no codec; less is not worth it
MAX_UNITLESS_SECONDS: Final = 365 * 86_400  # of an interval without a unit; more may be meant as ms
MAX_DURATION_SECONDS: Final = 10**11  # in a schema, 3,000 years; all that a version can count


# --- entities ---------------------------------------------------------------------------------

DEFAULT_PAGE_ENTITIES: Final = 100  # what both public Meduza clients ask for when told nothing
MAX_ID_BYTES: Final = 1_024  # an id is part of every index entry of its entity
MAX_VALUE_DEPTH: Final = 100  # lists and maps within each other; deeper ones are mistakes
EXACT_TEXT_BYTES: Final = (
    256  # of an indexed text: its order is exact so far, beyond it a digest keeps texts apart
)
MAX_BSON_DEPTH: Final = (
    128  # documents within each other in a message: the values and what is around them
)
MAX_STRETCHES: Final = (
    10_000  # pieces of an index that one query may join, the product of its IN lists
)
MAX_CHANGED_ENTITIES: Final = 100_000  # of one put, update or delete: others wait for it, some 2 s
MAX_QUERIES: Final = 10_000  # of one `execute`, and of a TX of Meduza
MAX_NOTICE_CHANGES: Final = 1_000  # entities named in one change notice; more of them share several
MILESTONE_ENTRIES: Final = 512  # index entries between two counted milestones, on average
WALKED_ENTRIES: Final = 512  # counted one by one before the milestones are asked
INDEX_STEP_ENTITIES: Final = (
    500  # indexed, checked or cleared in one transaction, so that others wait little
)
REMOVED_PER_STEP: Final = 20  # expired entities removed along with one write
DUMPED_PER_PAGE: Final = 500  # entities of a page of a dump over the network
MAX_ATOMIC_LOAD_BYTES: Final = (
    64 * 1024 * 1024
)  # of a dump that is loaded all or nothing: one request, held in memory
LOAD_STEP_ENTITIES: Final = 500  # loaded from a dump in one transaction
MAX_SCHEMA_BYTES: Final = 1024 * 1024  # of the text of a schema
SAMPLED_ENTITIES: Final = 100  # whose sizes are taken for the size of their table
MAX_SCHEMA_DEPTH: Final = 110  # a default of 100 levels, and the levels above it
MAX_SCHEMA_NODES: Final = 200_000  # of a schema file, its aliases unfolded: two seconds of reading
MAX_SCHEMA_ANCHORS: Final = 1_000  # of a schema file: the YAML library looks each up among all
MAX_SCHEMA_NUMBER_LETTERS: Final = 100  # of a number or a moment; Python is slow with longer ones
MAX_EXPRESSION_LETTERS: Final = 1_000  # of a regular expression in a schema
MAX_EXPRESSION_STATES: Final = 500  # that it compiles to: all may be compared with each letter
MAX_MATCHING_STEPS: Final = 5_000_000  # of states and letters of a text: a second at worst
MAX_SCHEMA_PROBLEMS: Final = 100  # that are listed; to look for the nearest name takes its time


# --- events -----------------------------------------------------------------------------------

MAX_EVENT_NAME_SEGMENTS: Final = 32  # each one is a look-up among the prefixes
MAX_EVENT_NAME_BYTES: Final = 512  # a name may become part of a key
MAX_EVENT_KEY_BYTES: Final = 4_096  # a key is the beginning of all its rows
MAX_EVENT_VALUE_BYTES: Final = 8_192  # a small set is read and written whole
MAX_EVENT_ID_BYTES: Final = 256  # every id is kept for the dedup window
MAX_EVENT_MS: Final = 2**42  # the year 2109: a time fits into 6 bytes of 7 bits
MAX_EVENT_WRITES: Final = 100_000  # of one event: others wait until it is written
MAX_BATCH_EVENTS: Final = 10_000  # of one transaction: others wait until it is written
EVENTS_PER_STREAM_STEP: Final = 1_000  # of a stream, in one transaction
MAX_BATCH_RECORDS: Final = 10_000  # of a batch, in memory, before they are written
MAX_DECODED_RECORDS: Final = 2_048  # that stay decoded between calls, twice; about 1 KiB each
MAX_DECODED_SPACES: Final = 4  # whose records stay decoded: those that were written to last
MAX_EVENT_SCHEMA_BYTES: Final = 4 * 1024 * 1024  # it is compiled as a whole
MAX_SCHEMA_NAME_BYTES: Final = 128  # a name is part of reports
MAX_EXPRESSION_TERMS: Final = 1_000  # in one list of an expression
MAX_EXPRESSION_STEPS: Final = 16  # each step of a chain can multiply what it looks up
MAX_STORED_VALUES: Final = 100_000_000  # a set counts its members in 32 bits, a board tenfold
MAX_EXPIRE_AFTER_SECONDS: Final = 3_153_600_000  # a hundred years: longer is never
DEFAULT_BOARD_ENTRIES: Final = 100  # K of a leaderboard that names none
TRACKED_PER_ENTRY: Final = 10  # candidates of a leaderboard for each entry that it shows
MIN_TRACKED_VALUES: Final = 1_000  # candidates of the smallest leaderboard
EXACT_DISTINCT: Final = 256  # digests of a key that are kept before a sketch takes over
HEAD_MEMBERS: Final = 32  # newest members of a set that are kept in its record
HEAD_BYTES: Final = 1_024  # the same in bytes: a small record shares its page with others
MAX_BUNDLES: Final = 9  # of a key's archive, before it is tidied: a read puts them together
PACKED_MEMBERS: Final = 256  # of a set, in one value; a larger one has a row for each
PACKED_BYTES: Final = 8_192  # the same in bytes
PACKED_BOARD_ENTRIES: Final = 32  # of a leaderboard, in one value
PACKED_BOARD_BYTES: Final = 1_024  # the same in bytes
MAX_PAGE_MEMBERS: Final = 10_000  # members or keys in one page
MAX_EVENT_SERIES_POINTS: Final = 10_000  # steps of one series
MAX_MERGED_KEYS: Final = 1_000  # keys whose counters or leaderboards are read as one
MAX_READS: Final = 1_000  # queries of one `read`
MAX_WALKED_MEMBERS: Final = 10_000  # of several sets for one page; a sparse page is short
MAX_COUNTED_MEMBERS: Final = 100_000  # that are read to count them, where no counter can say
MAX_INTERSECTED_KEYS: Final = 10  # with estimated counters: twice the unions for each further key
DEFAULT_KEPT_SECONDS: Final = 300  # for which a stored count is kept
MAX_NUMBER_BUCKETS: Final = 2_048  # of a histogram with steps of 2 %: 18 orders of magnitude
MAX_NUMBER_MAGNITUDE: Final = 1e300  # of a number that is aggregated: its square need not fit
MAX_WEIGHT: Final = 2**31  # of a count on a leaderboard, whose counts have 64 bits
FAN_OUT_STEP_WRITES: Final = 500  # of a background fan-out in one transaction: others wait for it
MAX_FAN_OUT_COMBINATIONS: Final = 1_000  # keys that a background fan-out writes for one member
MAX_FAN_OUT_KEYS: Final = 100_000_000  # of one background fan-out: hours of writing
FINISHED_FAN_OUT_SECONDS: Final = 86_400  # for which a finished fan-out is still reported
MAX_FAN_OUTS: Final = 1_000  # that one call lists


# --- jobs -------------------------------------------------------------------------------------

MAX_JOB_NAME_BYTES: Final = 1_024  # a jid, queue, worker, tag, group or klass is part of many keys
MAX_JOB_DATA_BYTES: Final = 16 * 1024 * 1024  # it travels with every pop
MAX_JOB_DATA_DEPTH: Final = 512  # a worker reads it in the midst of its own calls
MAX_JOB_MESSAGE_CHARS: Final = 1024 * 1024  # of a failure; a longer one is cut, with a mark
MAX_HISTORY_MESSAGE_CHARS: Final = 1_000  # of a retry; its job's history is read with each pop
WORKER_PROGRAM_SECONDS: Final = 30.0  # of silence, after which a worker program counts as dead
MAX_WORKER_PROGRAMS: Final = 10_000  # that are listed in one call
MAX_WORKER_PROGRAM_BYTES: Final = 64 * 1024  # of its record, rewritten every few seconds
MAX_JOB_LOG_LINES: Final = 1_000  # that a job keeps; of more, the oldest go
MAX_JOB_LOG_CHARS: Final = 64 * 1024  # of all its lines; they are rewritten with each new one
MAX_STEPS: Final = 10_000  # of a workflow; each run reads all of them
MAX_STEP_RESULT_BYTES: Final = 1024 * 1024  # larger things belong into entities or tables
MAX_WORKFLOW_BYTES: Final = 64 * 1024 * 1024  # of all results; a run holds them in memory
MAX_JOB_SIGNALS: Final = 1_000  # that a workflow has not taken; more are a mistake of the sender
MAX_JOB_RATE: Final = 1_000_000  # jobs of a rate; the limiter counts them one by one
MAX_JOB_RATE_SECONDS: Final = 86_400 * 31  # the longest window that a limiter keeps buckets of
MAX_JOB_TAGS: Final = 1_000  # each costs four keys
MAX_JOB_DEPENDENCIES: Final = 10_000  # each costs two keys and a look at another job
MAX_JOBS_PER_CALL: Final = 10_000  # jobs that one pop, cancel or bulk put may touch at once
MAX_JOB_TIME: Final = 10.0**11  # seconds: the year 5138; a clock beyond it counts something else
MAX_JOB_HISTORY_ENTRIES: Final = 100_000  # also when `max-job-history` says unlimited
JOB_DATA_INLINE_CHARS: Final = 1_024  # longer data is not rewritten with each change of its job
MAX_NAMES_KEPT_PACKED: Final = 4_096  # queues and workers of a space whose keys stay packed
MAX_JOBS_HANDED_OVER: Final = 512  # records kept decoded for the next pop or completion
MAX_HANDED_OVER_BYTES: Final = 4_096  # of one of them; jobs with a long history are decoded
MAX_FORGOTTEN_QUEUES_READ: Final = 10_000  # that a page of queues passes over; few are forgotten
MAX_QUEUES_EXPOSED: Final = 200  # queues with series for scrapers: each has some 40
MAX_NOTES_BYTES: Final = (
    1_000  # of jobs that ended, not yet counted by class; each end rewrites them
)
MAX_STATS_NAMES: Final = 200  # classes or workers of a queue and day with statistics of their own
MAX_STATS_TAGS: Final = 32  # tags in `stats-tags`: a job that carries them is counted for each
MAX_STATS_DAYS: Final = 366  # that one call sums up
IMPORTED_PER_STEP: Final = 250  # jobs that an import reads, writes and verifies at a time
IMPORT_READ_SECONDS: Final = 30.0  # that the Redis of an import may take for one answer
MAX_IMPORTED_VALUES: Final = 1_000_000  # in the arguments of one call: a short pickle can be many
MAX_PRIORITIES_AGED: Final = 20  # priorities of a queue in which its oldest job is looked for
FAILED_GROUPS_SHOWN: Final = 20  # groups of failed jobs in a status: more are a list
JOBS_SEARCHED_PER_PAGE: Final = 1_000  # jobs that one page of a search looks at: some 10 ms
BULK_ACTION_KEPT_SECONDS: Final = 7 * 86_400  # the record of one that has ended
MAX_BULK_ACTIONS: Final = 1_000  # that are kept at a time: a list of them is one answer
JOBS_PER_STEP: Final = 250  # jobs that one transaction of a long operation changes: some 10 ms
MAX_DEPENDENCY_WALK: Final = 100_000  # jobs that a search for a circle of dependencies looks at
MAX_CRON_YEARS: Final = 8  # how far ahead cron looks: 29 February may be 8 years away


# --- tasks ------------------------------------------------------------------------------------

MAX_TASK_ERROR_CHARS: Final = 64 * 1024  # of an exception with its traceback; its middle is cut
UNKNOWN_TASK_SECONDS: Final = 3600  # that a job waits for a worker that has its task
UNKNOWN_TASK_WAIT_SECONDS: Final = (10, 300)  # between two looks, at first and at most
TELL_SECONDS: Final = 1.0  # between two reports of progress and log lines of a process
HEARTBEATS_PER_LOCK: Final = 3  # two may be late before a lock ends
WORKER_LOCK_SECONDS: Final = 60.0  # of jobs whose task says nothing: as long as the layer's own
PREFETCH_SECONDS: Final = 0.02  # within which prefetched jobs begin: an urgent one waits for them
MAX_PREFETCH: Final = 200  # jobs, for a worker that is not told: one commit of some 20 ms
MAX_PREFETCH_WAIT_SECONDS: Final = 0.5  # then a prefetched job is handed back for another worker
SETTLE_SECONDS: Final = 0.01  # that the end of a run waits for others while prefetched jobs wait
SIGNAL_WAIT_SECONDS: Final = 100 * 365 * 86_400.0  # a wait without a timeout
WORKER_DRAIN_SECONDS: Final = 30.0  # that running tasks have when their worker is stopped
STUCK_SECONDS: Final = 10.0  # behind its timeout, after which a run is given up that does not end
CRASH_LOOP_SECONDS: Final = 10.0  # a child process that ends sooner, by itself, counts as a crash
CRASH_BACKOFF_SECONDS: Final = (
    1,
    60,
)  # before the next child of a crash loop, at first and at most
WORKER_POLL_SECONDS: Final = 0.05  # between two looks whether a worker that ends has ended
WORKER_TICK_SECONDS: Final = 1.0  # between two looks at changed files, memory and stuck threads
MAX_UNSERVED_SHOWN: Final = 10  # queues and tasks without a worker that a start message names
MAX_WORKER_NAMES: Final = 200  # queues, tasks and slots that the record of a worker names
HEALTH_SECONDS: Final = 5.0  # that a client of a worker's health server may take
PEEKED_JOBS: Final = 100  # of each queue, in which a starting worker looks for unknown tasks


# --- metrics ----------------------------------------------------------------------------------

MAX_SEQUENCES: Final = 16  # of a metric; every increment writes all of them
MIN_TIME_STEP: Final = 0.001  # seconds; below, two readings of a clock are hardly ever apart
MAX_BUCKETS: Final = 100_000  # of a sequence within its expiry, and of one read
MAX_ENTITY_COMPONENTS: Final = 32  # a key stays short enough to be read by people
MAX_UNITS: Final = 2**53  # in one call: above, a double no longer tells adjacent integers apart
MAX_AT: Final = 253_402_300_799.0  # the last second of the year 9999
MAX_SECONDS: Final = MAX_AT  # of a step, an expiry or a window: longer than there is time
MAX_LIMIT: Final = 2**63 - 1  # of a limiter: a reply's integer has 64 bits
MAX_SKETCH_BINS: Final = 65_536  # of a distribution: a sketch is read and written whole
MAX_CONDITION_LETTERS: Final = 100  # of a limit as people write it: 10 per 2 minutes burst 20
MAX_BUCKET_COUNT: Final = 10_000  # of a limiter: a check may read them all
MAX_SUMMARIZED_BUCKETS: Final = 1_000  # of a limiter whose hits write them all, 8 bytes each
MAX_LOG_LIMIT: Final = 10_000  # of the algorithm `log`: a check reads one record for each
MAX_SERIES_POINTS: Final = 10_000  # more than a plot has pixels
MAX_TOP_ENTITIES: Final = 10_000  # of one answer
MAX_LISTED_BUCKETS: Final = 10_000  # of one page
MAX_EXPOSED_SERIES: Final = 10_000  # of a metric, so that one scrape stays readable
MAX_WRITER_KEYS: Final = 10_000  # a writer that holds as many flushes by itself
SWEPT_BUCKET_KEYS: Final = 1_000  # expired keys that one step of the sweeper removes
SWEEP_SECONDS: Final = 60.0  # how often an idle metric is looked at, and how long all stays
ACQUIRE_SECONDS: Final = 60.0  # how long `acquire` waits if it is not told

# --- server -----------------------------------------------------------------------------------

MAX_REQUEST_BYTES: Final = 80 * 1024 * 1024  # the largest value, in base64, and some more
MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024  # of Meduza's: its spec says so, to the byte
MAX_COMMAND_ARGUMENTS: Final = 1_000_000  # as many as Redis takes
MAX_INLINE_BYTES: Final = 64 * 1024  # a command that a person types
MAX_PIPELINED: Final = 10_000  # commands of one connection that wait; then it is not read further
MAX_PIPELINED_BYTES: Final = 1024 * 1024  # of these commands; the network holds what follows
MAX_QUEUED_WRITES: Final = 100_000  # of all connections; then writes are refused
MAX_BATCH_COMMANDS: Final = 10_000  # between MULTI and EXEC: others wait while it is run
MAX_BATCH_SECONDS: Final = 2.0  # of the processor, for one batch: other writers wait for it
MANY_READS: Final = 4  # of a batch that only reads; more of them are run in a thread
MAX_READ_ON_LOOP: Final = 20  # things that a read may ask for before it is run in a thread
LARGE_READ_SECONDS: Final = 0.02  # of a read on the loop; then its kind is run in a thread
REMEMBERED_LARGE_READ_SECONDS: Final = 60.0  # that a kind of read stays there
LARGE_READ_THREADS: Final = 1  # that run large reads: they share the interpreter with the loop
LARGE_READ_PAUSE_SECONDS: Final = 0.02  # between two of them, at most: the loop has it for itself
BULLETIN_LOOK_SECONDS: Final = 0.005  # between two looks for notices of other processes
TURN_SECONDS: Final = 0.002  # of the event loop, after which it looks at all sockets again
SWITCH_SECONDS: Final = 0.001  # that a thread keeps the interpreter while the event loop waits
MAPPED_MEMORY_BYTES: Final = 128 * 1024  # pieces of memory that go back to the system at once
LISTEN_BACKLOG: Final = 2_048  # connections that wait to be accepted
ACCEPTED_PER_TURN: Final = 16  # connections: more of them wait a turn, which may be a long one
LARGE_PIECE_BYTES: Final = 64 * 1024  # of an answer, that waits for a turn with time left
TURN_SENT_BYTES: Final = 1024 * 1024  # in one turn: the kernel copies them at its end
MAX_UNDELAYED_BYTES: Final = 1_024  # that are parsed at once, however long a turn has taken
PARSED_PER_TURN_BYTES: Final = 16 * 1024  # of one connection: some thousand short words
COMMANDS_PER_TURN: Final = 250  # of one connection, before the others have theirs
PAUSE_UNSENT_BYTES: Final = 64 * 1024  # to a client that does not read; then it is not served
STALLED_SECONDS: Final = 60.0  # that a client which is not served has to go on reading
MAX_UNSENT_BYTES: Final = 32 * 1024 * 1024  # messages to a slow subscriber; then it is dropped
MAX_ALL_UNSENT_BYTES: Final = 256 * 1024 * 1024  # to all; then those that read least are dropped
SPARED_SECONDS: Final = 1.0  # after a client has read something; then it is not among those yet
STOPPING_STALLED_SECONDS: Final = 2.0  # the same as `STALLED_SECONDS` when the server stops
KEEPALIVE_SECONDS: Final = 60.0  # of silence, before the kernel asks whether the peer is there
PROBE_SECONDS: Final = 15.0  # between two such questions
KEEPALIVE_PROBES: Final = 4  # questions without an answer: a dead peer is found within two minutes
HANDSHAKE_SECONDS: Final = 10.0  # of TLS; a connection counts among all when it is made
MAX_STRANGER_BYTES: Final = 64 * 1024  # of a command from a client that has not logged in
MAX_SUBSCRIPTIONS: Final = 10_000  # of one connection: it may ask for all of them in one command
MAX_PATTERNS: Final = 1_000  # of one connection: every notice is compared with each
MAX_PATTERN_BYTES: Final = 1_024  # of keys and channels: all that a name of a job can need
MAX_CHANNEL_BYTES: Final = 4_096  # each pattern of each subscriber is compared with it
MAX_DESCRIBED_COMMANDS: Final = 1_000  # of one COMMAND DOCS or INFO: more than there are
MAX_CONFIG_PATTERNS: Final = 64  # of one CONFIG GET: there are few settings
MAX_KEYS_ON_LOOP: Final = 1_000  # members that a command reads before others; more go to a thread
MAX_QUEUED_LONG: Final = 1_000  # long operations that wait for a thread; then they are refused
MAX_SCRIPTS: Final = 1_000  # that clients have loaded; each is a client's build of one script
MAX_SESSION_SCRIPTS: Final = 16  # of one connection, when no more are remembered for all
MAX_CONNECTIONS: Final = 10_000  # over RESP and HTTP together
IDLE_SECONDS: Final = 3_600.0  # a connection that says nothing for so long is closed
READING_THREADS: Final = 16  # that read at the same time from an engine on another machine
LONG_OPERATIONS: Final = 8  # that run in threads at the same time
MAX_WAIT_SECONDS: Final = 3_600.0  # the longest that one call waits for something to happen
SERVER_SWEEP_SECONDS: Final = 1.0  # between two rounds of the server's removal of what has expired
USERS_LOOK_SECONDS: Final = 30.0  # between two looks at the users, should a notice have been lost
LOOKED_SPACES_PER_ROUND: Final = 100  # of the walk around all spaces; each is one read
SWEEP_STEPS_PER_ROUND: Final = 20  # of one space; then the others have their turn
MAX_WATCHED_SPACES: Final = 50_000  # whose next removal is known; some 10 MB. The walk finds others
SERVER_DRAIN_SECONDS: Final = 30  # that requests in flight have to end when the server stops
MIN_GZIP_BYTES: Final = 1_024  # below, an answer is sent as it is: one packet is one packet
MAX_QUEUED_STREAM_NOTICES: Final = 1_000  # of a stream whose reader is slow; then it is ended
MAX_QUEUED_STREAM_BYTES: Final = 8 * 1024 * 1024  # the same in bytes
MIN_GZIP_THREAD_BYTES: Final = 64 * 1024  # of an answer; its compression would hold up others
MAX_BODIES_BYTES: Final = 1024**3  # of all requests that are held at the same time
SMALL_REQUESTS_BYTES: Final = 64 * 1024  # of one Redis client, that are not counted among them
MAX_DISCARDED_BYTES: Final = 256 * 1024 * 1024  # of a body that is too large, read to be polite
MAX_HEAD_BYTES: Final = 64 * 1024  # of an HTTP request before its body
MAX_HEADERS: Final = 128  # of an HTTP request, and of what follows its body
MAX_URL_BYTES: Final = 32 * 1024  # a longer question has a body
MAX_QUERY_PARAMETERS: Final = 1_000  # of a URL
MAX_PIPELINED_REQUESTS: Final = 16  # of an HTTP connection that wait; then it is not read further
MAX_STREAM_LINE_BYTES: Final = 1024 * 1024  # of a stream of events
MAX_REPORTED_EVENTS: Final = 1_000  # refused events of a stream that are named; all are counted
MAX_STREAMS: Final = 32  # uploads that are read in threads at the same time
STALLED_EXCHANGE_SECONDS: Final = (
    60.0  # that a client neither sends nor takes anything; then it is dropped
)
KEEP_ALIVE_SECONDS: Final = 75  # that an HTTP connection is kept between two requests
STREAM_PULSE_SECONDS: Final = 15.0  # between two signs of life of a quiet stream of notices
MAX_OPEN_SPACES: Final = 10_000  # that a server keeps at hand; opening one again reads 1 key
MAX_KNOWN_LOGINS: Final = 1_000  # passwords that were checked and need not be checked again
MAX_KNOWN_HOSTS: Final = 256  # Host headers that were judged and need not be parsed again
MAX_USER_NAME_BYTES: Final = 255  # a name is typed by people and is part of logs
MAX_PASSWORD_BYTES: Final = 1_024  # a longer one adds no safety, and costs time to hash
PASSWORD_THREADS: Final = 2  # that check passwords; one of them takes some 50 ms of a core
MAX_QUEUED_PASSWORDS: Final = 64  # that wait for these threads: some 2 s; then they are refused
FREE_LOGIN_FAILURES: Final = 5  # wrong passwords for a user from an address before it has to wait
LOGIN_WAIT_SECONDS: Final = 1.0  # after them, doubled with each further wrong password
MAX_LOGIN_WAIT_SECONDS: Final = 60.0  # of any such wait: a guesser gets 1,440 tries a day
MAX_LOGIN_RECORDS: Final = 10_000  # of addresses and names with wrong passwords; some 2 MB
SECOND_SIGNAL_SECONDS: Final = 0.1  # closer ones are the first: `make` passes on what its group got
STREAM_PIECE_BYTES: Final = 64 * 1024  # of a dump or an export, made and sent at once
STREAM_STEP_BYTES: Final = 4 * 1024 * 1024  # of events of a stream that are held and sent at once

# --- dashboard ----------------------------------------------------------------------------------

SESSION_SECONDS: Final = 12 * 3600  # of a login in a browser: a working day, not a forgotten week
MAX_ENDED_SESSIONS: Final = 10_000  # that were logged out and are remembered until their end
MAX_NOTICE_CHARS: Final = 500  # of the sentence that an action leaves for the next page
MAX_FORM_BYTES: Final = 2 * 1024 * 1024  # of a form: the data of a job, pasted by hand
MAX_FORM_FIELDS: Final = 2_000  # of a form: a page of selected jobs, and some more
MAX_COPIED_CALLS: Final = 20  # of a page that "copy as" shows; further ones are alike
MAX_SHOWN_CHARS: Final = 20_000  # of one value on a page; the rest is in its JSON
ROWS_PER_PAGE: Final = 50  # of entities, rows, keys and metrics in a list
MAX_SHOWN_COLUMNS: Final = 10  # of entities in a list; the page of an entity shows all
MAX_SHOWN_FILTERS: Final = 4  # of entities: as many columns as an index that people read has
TABLES_PER_PAGE: Final = 25  # of rows; the figures of each one and its indexes are calls
SHOWN_REVISIONS: Final = 30  # of a row, to be compared with it
MAX_COMPARED_WORDS: Final = 4_000  # of two texts; comparing grows with their product
EXPORTED_ROWS_PER_STEP: Final = 1_000  # of an export from the dashboard; each step is a read
MAX_CHARTED_METRICS: Final = 5  # in one chart: as many lines as there are tones
MAX_CHART_POINTS: Final = 360  # of a line; more are read in longer steps
MAX_LIVE_STREAMS: Final = 200  # of pages that are live at the same time; others stay as they are
LIVE_SECONDS: Final = 1.0  # between two words of a live page, however much changes
LIVE_QUIET_SECONDS: Final = 10.0  # after which a live page is brought up to date without a notice

QUEUES_PER_PAGE: Final = 50  # of the list of queues
JOBS_PER_PAGE: Final = 25  # of a list of jobs
QUEUES_ON_OVERVIEW: Final = 12  # those that need someone, then the fullest
GROUPS_PER_PAGE: Final = 20  # of failure groups, each with some of its jobs
MAX_GROUP_SAMPLE: Final = 50  # newest jobs of a failure group that its small chart counts
MAX_GRAPH_JOBS: Final = 8  # on each side of a job in the picture of its dependencies
RECORD_SECONDS: Final = 15.0  # between two writes of what a server has counted
MAX_RECORDED_QUEUES: Final = 200  # whose totals one of these writes has; others come with the next
MAX_RECORDED_SPACES: Final = 10_000  # whose names the recorder knows
MAX_SLOW_CALLS: Final = 200  # that are kept, the slowest of the last day
MAX_SLOW_CHARS: Final = 300  # of the arguments of a slow call
SLOW_SECONDS: Final = 0.01  # faster calls are not slow

# --- client -----------------------------------------------------------------------------------

MAX_REPLY_BYTES: Final = 512 * 1024 * 1024  # of one reply: more than a server of ours sends
MAX_REPLY_ELEMENTS: Final = 1_000_000  # of a list in a reply; a batch is answered with 10,000
MAX_REPLY_LINE_BYTES: Final = 1024 * 1024  # of a number, a header or an error
MAX_REPLY_DEPTH: Final = 8  # of lists within each other in a reply
CALL_SECONDS: Final = 30.0  # that a call of a client may take in all, its retries included
LONG_CALL_SECONDS: Final = 3_600.0  # the same of a call that takes many steps, such as `repair`
CONNECT_SECONDS: Final = 5.0  # that a client waits for a connection to be made
CLIENT_CONNECTIONS: Final = 32  # of one client at the same time; others wait for one of them
CLIENT_RETRIES: Final = 3  # of what is safe to send again, after the first try
RETRY_SECONDS: Final = 0.05  # before the first retry; each further one waits twice as long
MAX_RETRY_SECONDS: Final = 1.0  # before any retry
WAIT_STEP_SECONDS: Final = 60.0  # that a client waits in one call, so that it notices a dead server
