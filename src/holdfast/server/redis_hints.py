"""Hints for users who take the server for Redis.

Holdfast speaks Redis' protocol and has its own commands; a few of Redis' names belong to Qless'
and Meduza's clients. A user who tries `SET a 1` is told what to use instead.
"""

from typing import Final

_KEYS: Final = "There are no plain keys here: objects are in ENTITIES.*, rows in TABLES.*"
_SETS: Final = "Sets and leaderboards are filled by events: EVENTS.SEND, EVENTS.MEMBERS, EVENTS.TOP"
_QUEUES: Final = "A list as a queue is JOBS.PUT, JOBS.POP and JOBS.COMPLETE"
_COUNTS: Final = "Counters are METRICS.INCR and METRICS.RATE, after METRICS.DEFINE"

_ADVICE: Final[dict[str, str]] = {
    **dict.fromkeys(("GET", "MGET", "GETEX", "STRLEN", "SUBSTR", "GETRANGE", "DUMP"), _KEYS),
    **dict.fromkeys(
        ("SET", "MSET", "SETEX", "PSETEX", "SETNX", "GETSET", "APPEND", "MSETNX"), _KEYS
    ),
    **dict.fromkeys(("DEL", "GETDEL", "UNLINK", "RENAME", "COPY", "RESTORE", "SCAN"), _KEYS),
    **dict.fromkeys(("HSET", "HGET", "HMSET", "HMGET", "HDEL", "HKEYS", "HVALS", "HSCAN"), _KEYS),
    **dict.fromkeys(("HEXISTS", "HLEN", "HSETNX", "PUT", "UPDATE", "RANDOMKEY"), _KEYS),
    **dict.fromkeys(("INCR", "DECR", "INCRBY", "DECRBY", "INCRBYFLOAT", "HINCRBY"), _COUNTS),
    **dict.fromkeys(("LPUSH", "RPUSH", "LPOP", "RPOP", "BLPOP", "BRPOP", "LLEN", "LMOVE"), _QUEUES),
    **dict.fromkeys(("RPOPLPUSH", "BRPOPLPUSH", "LREM", "LTRIM", "LINDEX", "BLMOVE"), _QUEUES),
    **dict.fromkeys(("XADD", "XREAD", "XREADGROUP", "XACK", "XGROUP", "XLEN", "XRANGE"), _QUEUES),
    **dict.fromkeys(("SADD", "SREM", "SCARD", "SISMEMBER", "SPOP", "SINTER", "SUNION"), _SETS),
    **dict.fromkeys(("ZADD", "ZREM", "ZINCRBY", "ZRANK", "ZREVRANGE", "ZRANGEBYSCORE"), _SETS),
    **dict.fromkeys(("PFADD", "PFCOUNT"), _SETS),
    **dict.fromkeys(
        ("EXPIRE", "PEXPIRE", "EXPIREAT", "TTL", "PTTL", "PERSIST"),
        "What expires says so when it is put: `ttl` of ENTITIES.PUT, `_ttl` of a row",
    ),
    **dict.fromkeys(
        ("WATCH", "UNWATCH"),
        "A batch between MULTI and EXEC is one transaction; for compare and set give `if_version` "
        "(entities) or `if_match` (tables)",
    ),
    **dict.fromkeys(
        ("SAVE", "BGSAVE", "LASTSAVE", "BGREWRITEAOF", "SYNC", "PSYNC"),
        "Commits are durable by themselves; a copy is ADMIN.BACKUP",
    ),
    "FCALL": "Functions run where the store is: use MULTI and EXEC",
    "FUNCTION": "Functions run where the store is: use MULTI and EXEC",
    "ACL": "Users and roles are set with `holdfast user` on the server",
    "MONITOR": "NOTICES tells what happens in a space",
    "SHUTDOWN": "Send the server SIGTERM",
}


def advice_for(name: str) -> str:
    """Returns what to use instead of a Redis command, as the end of an error message; "" if
    unknown."""
    found = _ADVICE.get(name.upper())
    return f"{found}; HELP lists all operations." if found else ""
