"""Settings: one list of all, and where their values come from.

A flag overrides the environment, which overrides the file, which overrides the default. click
implements this order; this module gives it the names, and reads the file.

    data = "/var/lib/holdfast"
    [serve]
    http = "0.0.0.0:9966"
"""

import os
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import click

from holdfast.defaults import DEFAULT_SPACE, HTTP_PORT, LOOPBACK, RESP_PORT
from holdfast.limits import DEFAULT_KEPT_SECONDS

F = TypeVar("F", bound=Callable[..., Any])

FILE: Final = "holdfast.toml"


class Setting(NamedTuple):
    """One setting: a flag, a variable of the environment, and a key of the file."""

    name: str
    help: str
    default: Any = None
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    is_flag: bool = False
    is_number: bool = False
    multiple: bool = False
    section: str = ""  # of the file
    shows_default: bool = True
    is_hidden: bool = False

    @property
    def variable(self) -> str:
        return f"HOLDFAST_{self.name.upper()}"

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    def option(self) -> click.Option:
        return click.Option(
            [self.flag if not self.multiple else "--limit", self.name],
            help=self.help,
            default=() if self.multiple else self.default,
            show_default=self.default is not None and not self.is_flag and self.shows_default,
            hidden=self.is_hidden,
            metavar=None if self.is_flag else self.metavar,
            type=click.Choice(self.choices) if self.choices else float if self.is_number else None,
            is_flag=self.is_flag,
            multiple=self.multiple,
            envvar=self.variable,
        )


_COMMON: Final = (
    Setting("data", "The store: a folder, or the URL of an engine.", "data", "DIR"),
    Setting("url", "A running server instead of --data: holdfast://HOST:PORT.", None, "URL"),
    Setting("token", "The token to log in to the server with.", None, "TOKEN"),
    Setting("space", "The space to work in.", DEFAULT_SPACE, "NAME"),
)
_SERVE: Final = (
    Setting("engine", "The URL of an engine, instead of --data.", None, "URL"),
    Setting("resp", "Address for Redis clients.", f"{LOOPBACK}:{RESP_PORT}", "HOST:PORT"),
    Setting("http", "Address for HTTP clients.", f"{LOOPBACK}:{HTTP_PORT}", "HOST:PORT"),
    Setting(
        "durability",
        "Sync to disk at every commit, or once a second.",
        "commit",
        choices=("commit", "interval"),
    ),
    Setting("processes", "Processes that serve on the same ports.", 1, "NUMBER", is_number=True),
    Setting("tls_cert", "PEM certificate for both ports.", None, "FILE"),
    Setting("tls_key", "Key of the certificate, without a passphrase.", None, "FILE"),
    Setting("insecure", "Accept everyone, even from other machines.", False, is_flag=True),
    Setting("allow_flush", "Allow FLUSHDB to erase the jobs of a database.", False, is_flag=True),
    Setting("pixel", "Serve the tracking pixel /{space}/events/pixel.gif.", False, is_flag=True),
    Setting("no_ui", "Turn off the dashboard at /ui/.", False, is_flag=True),
    Setting("no_record", "Do not record the server's own metrics in the space `system`.", False,
            is_flag=True),
    Setting("trace", "Trace calls with OpenTelemetry (extra `otel`).", False, is_flag=True),
    Setting("flux", "Address for Flux clients whose base URL has no path.", None,
            "[SPACE@]HOST:PORT"),
    Setting("flux_read_only", "Refuse events of Flux clients, as a read-only Flux does.", False,
            is_flag=True),
    Setting("flux_ttl", "How long Flux's stored counts are kept.", DEFAULT_KEPT_SECONDS,
            "SECONDS", is_number=True),
    Setting("trusted_proxies", "Proxies trusted to name the client: 10.0.0.0/8,::1.", None,
            "NETWORKS"),
    Setting("allowed_host", "Host names that HTTP accepts, besides addresses and localhost.", None,
            "NAMES"),
    Setting("backups", "Folder that clients may make backups in.", None, "DIR"),
    Setting("schemas", "Folder that /deploy?uri=file:///... may read from.", None, "DIR"),
    Setting("limits", "Override a limit on clients: idle_seconds=60.", (), "NAME=NUMBER",
            multiple=True),
)  # fmt: skip

SETTINGS: Final = {
    setting.name: setting
    for setting in (*_COMMON, *(setting._replace(section="serve") for setting in _SERVE))
}


def settings(*given: str | Setting) -> Callable[[F], F]:
    """Adds the flags of these settings to a command."""
    found = [SETTINGS[each] if isinstance(each, str) else each for each in given]

    def decorate(command: F) -> F:
        params = getattr(command, "__click_params__", None)
        if params is None:
            params = command.__click_params__ = []  # type: ignore[attr-defined]  # as click does
        params.extend(setting.option() for setting in reversed(found))
        return command

    return decorate


# --- the file ------------------------------------------------------------------------------------


class FileSettings(MutableMapping[str, Any]):
    """The values of a file as click reads them: at the root by command, then by name."""

    def __init__(self, file: str, values: dict[str, Any], path: tuple[str, ...] = ()) -> None:
        self.file = file
        self._values = values
        self._path = path

    def __getitem__(self, name: str) -> Any:
        if not self._path:  # at the root there are commands only
            return FileSettings(self.file, self._values, (name,))
        section = SETTINGS[name].section
        return (self._values.get(section, {}) if section else self._values)[name]

    def get(self, name: str, default: Any = None) -> Any:
        if self._path and name not in SETTINGS:  # a command of a group
            return FileSettings(self.file, self._values, (*self._path, name))
        try:
            return self[name]
        except KeyError:
            return default

    def __contains__(self, name: object) -> bool:
        return bool(self._path) and name in SETTINGS and self.get(str(name)) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(SETTINGS)

    def __len__(self) -> int:
        return len(SETTINGS)

    # click requires a mutable mapping, and never changes it.

    def __setitem__(self, name: str, value: Any) -> None:
        raise TypeError(f"the settings of {self.file} can't be changed here")

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"the settings of {self.file} can't be changed here")


def read_file(config: str | None) -> FileSettings | None:
    """Returns the settings of the file, checked; None if there is none."""
    path = Path(config or FILE)
    if config is None and not path.exists():
        return None
    import tomllib

    try:
        text = path.read_text()
        values = tomllib.loads(text)
    except OSError as error:
        raise click.UsageError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path} is not TOML: {error}") from None
    for problem in _problems(values):
        raise click.UsageError(f"{path}{_line(text, problem[0])}: {problem[1]}")
    return FileSettings(str(path), values)


def _problems(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields what can't be in a file: the key, and the message about it."""
    common = {setting.name for setting in _COMMON}
    served = {setting.name for setting in _SERVE}
    for key, value in values.items():
        if key == "serve" and isinstance(value, dict):
            for name, each in value.items():
                if name not in served:
                    yield name, _unknown(f"serve.{name}", name, served, common)
                else:
                    yield from _type_problems(SETTINGS[name], each)
        elif key not in common:
            yield key, _unknown(key, key, common | {"serve"}, served)
        else:
            yield from _type_problems(SETTINGS[key], value)


def _type_problems(setting: Setting, value: Any) -> Iterator[tuple[str, str]]:
    if setting.is_number:
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield setting.name, f"{setting.name} must be a number, not {value!r}"
        return
    expected: type = list if setting.multiple else bool if setting.is_flag else str
    if not isinstance(value, expected):
        words = {list: "a list of strings", bool: "true or false", str: "a string"}[expected]
        yield setting.name, f"{setting.name} is {words}, not {value!r}"


def _unknown(shown: str, name: str, known: set[str], elsewhere: set[str]) -> str:
    if name in elsewhere:
        place = "below [serve]" if SETTINGS[name].section else "above all tables"
        return f"unknown key {shown!r}: it belongs {place}"
    return f"unknown key {shown!r}{suggestion(name, known)}"


def suggestion(name: str, known: set[str]) -> str:
    """Returns `, did you mean 'data'?`, or the list of known names."""
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1)
    return f", did you mean {near[0]!r}?" if near else f"; there are {', '.join(sorted(known))}"


def _line(text: str, key: str) -> str:
    for number, line in enumerate(text.splitlines(), 1):
        if line.replace('"', "").strip().startswith(key) or f"[{key}" in line:
            return f":{number}"
    return ""


def unknown_variables() -> list[str]:
    """Lists environment variables that look like settings but are not, with a suggestion."""
    known = {setting.variable for setting in SETTINGS.values()} | {"HOLDFAST_CONFIG"}
    return [
        f"{name} is not a setting{suggestion(name, known)}"
        for name in sorted(os.environ)
        if name.startswith("HOLDFAST_")
        and name not in known
        and not name.startswith(("HOLDFAST_TEST_", "HOLDFAST_COMPLETE"))
    ]
