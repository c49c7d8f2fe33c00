"""The replies of `COMMAND`: each command's arguments, summary and number of words.

redis-cli completes and explains commands by it. Operations describe themselves; the few other
commands are described here, one line each: their group, their words, what they do.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from holdfast import wire
from holdfast.errors import RequestTooLarge
from holdfast.limits import MAX_DESCRIBED_COMMANDS
from holdfast.operations import OPERATIONS, OPERATIONS_BY_METHOD, Operation
from holdfast.server.commands import COMMANDS

SINCE: Final = "0.1.0"

# `[word]` may be left out, `word...` may come several times.
_PLAIN: Final[dict[str, tuple[str, str, str]]] = {
    "AUTH": ("connection", "[user] password", "Logs in."),
    "BIGINT": ("connection", "STRING|NUMBER", "Sets how JSON replies represent large integers."),
    "CL.THROTTLE": (
        "metrics",
        "key max_burst count period [quantity]",
        "Checks and counts a rate limit; replies with redis-cell's five integers.",
    ),
    "CLIENT": ("connection", "ID|INFO|LIST|GETNAME|SETNAME|SETINFO [word...]", "This client."),
    "COMMAND": ("server", "[COUNT|DOCS|INFO|LIST] [name...]", "Describes the commands."),
    "CONFIG": (
        "server",
        "GET pattern...",
        "Shows the options that clients ask for; none can be set.",
    ),
    "DBSIZE": ("qless", "", "Counts the keys of Qless."),
    "DEL": ("meduza", "bson", "Deletes entities, for Meduza's clients."),
    "DISCARD": ("transactions", "", "Discards the batch that MULTI began."),
    "ECHO": ("connection", "text", "Returns the text."),
    "EVAL": ("qless", "script numkeys [key...] [argument...]", "Runs a script of Qless."),
    "EVALSHA": (
        "qless",
        "sha numkeys [key...] [argument...]",
        "Runs a loaded script of Qless.",
    ),
    "EXACT": ("connection", "", "Makes msgpack carry every Python value, and errors objects."),
    "EXEC": ("transactions", "", "Runs the batch that MULTI began as one transaction."),
    "EXISTS": ("qless", "key...", "Counts how many of these keys of Qless exist."),
    "FLUSHALL": ("qless", "[ASYNC|SYNC]", "Erases the jobs of the selected database."),
    "FLUSHDB": ("qless", "[ASYNC|SYNC]", "Erases the jobs of the selected database."),
    "GET": ("meduza", "bson", "Selects entities, for Meduza's clients."),
    "HELLO": (
        "connection",
        "[protocol] [AUTH user password] [SETNAME name]",
        "Sets the protocol, and logs in.",
    ),
    "HELP": ("server", "[name]", "Lists operations with their arguments, or those with a prefix."),
    "HGETALL": ("qless", "key", "Shows a hash of Qless."),
    "INFO": ("server", "[section...]", "Returns information about the server."),
    "KEYS": ("qless", "pattern", "Lists keys of Qless."),
    "LRANGE": ("qless", "key start stop", "Shows a list of Qless."),
    "MULTI": ("transactions", "", "Begins a batch, which EXEC runs as one transaction."),
    "NOTICES": ("pubsub", "[topic]", "Subscribes to this space's notices by topic prefix."),
    "PING": ("connection", "[text]", "Returns PONG, or the text."),
    "PSUBSCRIBE": ("pubsub", "pattern...", "Subscribes to channels that match a pattern."),
    "PUBLISH": ("pubsub", "channel text", "Publishes a message on a channel."),
    "PUNSUBSCRIBE": ("pubsub", "[pattern...]", "Unsubscribes from patterns, or from all."),
    "PUT": ("meduza", "bson", "Puts entities, for Meduza's clients."),
    "QLESS": ("qless", "command now [argument...]", "Runs a command of Qless without a script."),
    "QLESS1": ("qless", "name numkeys [key...] [argument...]", "Runs a call of the first Qless."),
    "QUIT": ("connection", "", "Closes the connection."),
    "RESET": ("connection", "", "Returns the connection to its initial state."),
    "SCRIPT": ("qless", "LOAD|EXISTS|FLUSH [word...]", "Loads a script of Qless."),
    "SELECT": ("connection", "database", "Chooses one of 16 databases of this space."),
    "SMEMBERS": ("qless", "key", "Shows a set of Qless."),
    "SPACE": (
        "connection",
        "[name]",
        "Sets the space of the connection, or returns it.",
    ),
    "SUBSCRIBE": ("pubsub", "channel...", "Subscribes to channels."),
    "TIME": ("server", "", "Returns the server's time."),
    "TX": ("meduza", "bson", "Runs queries as one transaction, for Meduza's clients."),
    "TYPE": ("qless", "key", "Returns the type of a key of Qless."),
    "TRACE": ("connection", "name value...", "Sets the trace context of the next call."),
    "UNSUBSCRIBE": ("pubsub", "[channel...]", "Unsubscribes from channels, or from all."),
    "UPDATE": ("meduza", "bson", "Changes entities, for Meduza's clients."),
    "ZCARD": ("qless", "key", "Counts a sorted set of Qless."),
    "ZRANGE": ("qless", "key start stop [WITHSCORES]", "Shows a sorted set of Qless."),
    "ZSCORE": ("qless", "key member", "Shows a score in a sorted set of Qless."),
}


_TYPES: Final[dict[Any, str]] = {int: "integer", float: "double"}


class Word(NamedTuple):
    """An argument as it is typed."""

    name: str
    type: str = "string"
    is_optional: bool = False
    is_repeated: bool = False


class CommandDescription(NamedTuple):
    """The description of a command."""

    name: str  # in lower case, as Redis has it
    group: str
    summary: str
    complexity: str
    words: tuple[Word, ...]
    flags: tuple[str, ...]
    takes_object: bool = False  # one object instead of all the words

    @property
    def arity(self) -> int:
        """The number of words, the command included; below 0: at least so many."""
        if self.takes_object:
            return -2 if any(not word.is_optional for word in self.words) else -1
        required = 1 + sum(not word.is_optional for word in self.words)
        is_fixed = all(not (word.is_optional or word.is_repeated) for word in self.words)
        return required if is_fixed else -required


def described(name: str) -> CommandDescription | None:
    """Returns the description of a command; None if no command has that name."""
    if not name.isascii():  # other letters may have a capital of ASCII, such as a long s
        return None
    lower = name.lower()
    return _described(lower) if lower.upper().encode() in COMMANDS else None


@cache  # bounded: only names that exist get here
def _described(lower: str) -> CommandDescription:
    known = OPERATIONS.get(lower) or OPERATIONS_BY_METHOD.get(lower)
    if known is not None:
        return _of_operation(lower, known)
    plain = lower.upper().removeprefix("ENTITY.")
    group, syntax, summary = _PLAIN[plain]
    words = tuple(map(_word, syntax.split()))
    return CommandDescription(lower, group, summary, "", words, ("loading", "stale"))


def _of_operation(name: str, operation: Operation) -> CommandDescription:
    words = tuple(
        Word(
            field.encode_name,
            _TYPES.get(field.type, "string"),
            is_optional=not field.required,
            is_repeated=field.name == operation.star,
        )
        for field in msgspec.structs.fields(operation.arguments)
    )
    flags = ["readonly" if operation.only_reads else "write"]
    if operation.kind == "wait":
        flags.append("blocking")
    return CommandDescription(
        name, operation.layer, operation.summary, operation.cost, words, tuple(flags), True
    )


def _word(syntax: str) -> Word:
    is_optional = syntax.startswith("[") or syntax.endswith("]")
    bare = syntax.strip("[]")
    name = bare.removesuffix("...")
    return Word(name, "string", is_optional, is_repeated=bare != name)


def all_commands() -> list[CommandDescription]:
    """Returns the descriptions of all commands, in the order of their names."""
    found = (described(name.decode()) for name in sorted(COMMANDS))
    return [each for each in found if each is not None]


# --- as replies -----------------------------------------------------------------------------------


def info_reply(command: CommandDescription) -> bytes:
    """Returns an element of `COMMAND` and `COMMAND INFO`: no command here has keys in Redis'
    sense."""
    nothing = wire.array([])
    return wire.array(
        [
            wire.bulk(command.name.encode()),
            wire.integer(command.arity),
            wire.array(map(wire.simple, command.flags)),
            *[wire.integer(0)] * 3,
            wire.array([wire.simple(f"@{command.group}")]),
            nothing,
            nothing,
            nothing,
        ]
    )


def docs_reply(command: CommandDescription, protocol: int) -> bytes:
    """Returns the description of one command in `COMMAND DOCS`."""
    facts = {
        "summary": command.summary,
        "since": SINCE,
        "group": command.group,
        "complexity": command.complexity,
    }
    pairs = [(_text(name), _text(fact)) for name, fact in facts.items() if fact]
    if command.words:
        words = [_word_reply(word, protocol) for word in command.words]
        pairs.append((_text("arguments"), wire.array(words)))
    return wire.mapping(pairs, protocol)


def _word_reply(word: Word, protocol: int) -> bytes:
    pairs = [
        (_text("name"), _text(word.name)),
        (_text("type"), _text(word.type)),
        (_text("display_text"), _text(word.name)),
    ]
    told = {"optional": word.is_optional, "multiple": word.is_repeated}
    flags = [wire.simple(name) for name, is_so in told.items() if is_so]
    if flags:
        pairs.append((_text("flags"), wire.array(flags)))
    return wire.mapping(pairs, protocol)


def _text(text: str) -> bytes:
    return wire.bulk(text.encode())


# --- the command itself ---------------------------------------------------------------------------


def reply_to(words: wire.Command, protocol: int) -> bytes:
    """Returns the reply to `COMMAND` and its subcommands."""
    asked = words[1].upper() if len(words) > 1 else b""
    if len(words) > MAX_DESCRIBED_COMMANDS:
        raise RequestTooLarge(
            f"at most {MAX_DESCRIBED_COMMANDS} commands are described at once",
            hint="Name fewer of them, or none: then all are described.",
        )
    answer = _ANSWERS.get(asked)
    if answer is not None:
        return answer([wire.text_of(word) for word in words[2:]], protocol)
    return wire.error(
        f"ERR unknown subcommand '{words[1].decode(errors='replace')}'. "
        "Try COMMAND HELP, or HELP for a list of all operations."
    )


def _count(words: list[str], protocol: int) -> bytes:
    return wire.integer(len(COMMANDS))


def _docs(words: list[str], protocol: int) -> bytes:
    if not words:
        return _all_docs(protocol)
    return _docs_of([each for name in words if (each := described(name))], protocol)


@cache
def _all_docs(protocol: int) -> bytes:
    """Returns the docs of all commands, about 200 KB; encoding them takes milliseconds, so it is
    done once."""
    return _docs_of(all_commands(), protocol)


def _docs_of(chosen: list[CommandDescription], protocol: int) -> bytes:
    pairs = [(_text(each.name), docs_reply(each, protocol)) for each in chosen]
    return wire.mapping(pairs, protocol)


def _infos(words: list[str], protocol: int) -> bytes:
    if not words:
        return _all_infos()
    chosen = [described(name) for name in words]
    return wire.array(wire.null(protocol) if each is None else info_reply(each) for each in chosen)


@cache
def _all_infos() -> bytes:
    return wire.array(info_reply(each) for each in all_commands())


def _listed(words: list[str], protocol: int) -> bytes:
    from holdfast.server.globs import compile_glob

    names = [name.lower() for name in sorted(COMMANDS)]
    match [word.upper() for word in words[:2]]:
        case []:
            return wire.array(map(wire.bulk, names))
        case ["FILTERBY", "PATTERN"] if len(words) == 3:
            pattern = compile_glob(wire.bytes_of(words[2]).lower())
            return wire.array(wire.bulk(name) for name in names if pattern.fullmatch(name))
        case ["FILTERBY", "ACLCAT" | "MODULE"] if len(words) == 3:
            group = words[2].lower().lstrip("@")
            return wire.array(_text(each.name) for each in all_commands() if each.group == group)
    return wire.error("ERR syntax error: COMMAND LIST [FILTERBY PATTERN glob | ACLCAT group]")


def _keys_of(words: list[str], protocol: int) -> bytes:
    if not words or described(words[0]) is None:
        return wire.error("ERR Invalid command specified")
    return wire.error("ERR The command has no key arguments")


def _helped(words: list[str], protocol: int) -> bytes:
    lines = (
        "COMMAND: all commands with their arity and flags.",
        "COMMAND COUNT: how many there are.",
        "COMMAND DOCS [name...]: what they do, and their arguments.",
        "COMMAND INFO [name...]: arity and flags of these.",
        "COMMAND LIST [FILTERBY PATTERN glob | FILTERBY ACLCAT group]: their names.",
    )
    return wire.array(map(wire.simple, lines))


_ANSWERS: Final[dict[bytes, Callable[[list[str], int], bytes]]] = {
    b"": _infos,
    b"COUNT": _count,
    b"DOCS": _docs,
    b"GETKEYS": _keys_of,
    b"GETKEYSANDFLAGS": _keys_of,
    b"HELP": _helped,
    b"INFO": _infos,
    b"LIST": _listed,
}
