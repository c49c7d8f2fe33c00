"""Loading: the registries that `holdfast worker MODULE[:registry]` names, and their store.

A `WorkerSource` can be written as JSON, so that a child process loads the same tasks and opens the
same store as its parent process.
"""

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import BadTask
from holdfast.tasks.allowed_classes import AllowedClasses
from holdfast.tasks.registry import Tasks

if TYPE_CHECKING:
    from holdfast.client.client import ClientSpace
    from holdfast.store import Space

__all__ = ["WorkerSource", "load_registry"]


class WorkerSource(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of a worker and its store: a folder or engine URL, or a server."""

    targets: tuple[str, ...]
    store: str = ""  # a folder, or the URL of an engine
    durability: str = "commit"
    server: str = ""  # the URL of a server; then `store` is empty
    space: str = "default"
    path: tuple[str, ...] = ()  # folders to import from, before all others
    preload: tuple[str, ...] = ()  # modules to import before the tasks
    allow: tuple[str, ...] = ()  # prefixes of classes that jobs may name
    opener: str = ""  # `module:function` that opens stores which `holdfast.connect` does not
    opener_options: tuple[str, ...] = ()  # the function's arguments after the URL

    def tasks(self) -> Tasks:
        """Imports the modules and returns one registry of all their tasks."""
        sys.path[:0] = [each for each in self.path if each not in sys.path]
        for module in self.preload:
            _import(module)
        found = [load_registry(target) for target in self.targets]
        if len(found) == 1 and not self.allow:
            return found[0]
        together = AllowedClasses(self.allow) if self.allow else Tasks("worker")
        for each in found:
            together.include(each)
        return together

    @contextlib.contextmanager
    def open(self) -> "Iterator[Space | ClientSpace]":
        """Opens the store or connects to the server; the block gets the space."""
        if self.opener:
            module, _, function = self.opener.partition(":")
            open_other = getattr(importlib.import_module(module), function)
            with open_other(self.server, *self.opener_options) as store:
                yield store  # has the calls of a space, as far as a worker needs them
            return
        if self.server:
            from holdfast.client import connect

            with connect(self.server) as client:
                yield client.space(self.space) if self.space != client.name else client
            return
        from holdfast.store import open as open_store

        with open_store(self.store, durability=self.durability) as opened:  # type: ignore[arg-type]  # one of the two words
            yield opened if self.space == opened.name else opened.space(self.space)

    def describe(self) -> str:
        """Returns the store in words, without a password."""
        if not self.server:
            return self.store.rpartition("@")[2] if "@" in self.store else self.store
        kind = "the Redis" if self.server.startswith(("redis:", "rediss:")) else "the server"
        return f"{kind} {self.server.rpartition('@')[2] if '@' in self.server else self.server}"


def load_registry(target: str) -> Tasks:
    """Returns the registry that `module` or `module:name` names.

    Without a name, the module must have exactly one registry.
    """
    module_name, _, name = target.partition(":")
    module = _import(module_name)
    if name:
        found: Any = module
        for part in name.split("."):
            found = getattr(found, part, None)
        if not isinstance(found, Tasks):
            raise BadTask(
                f"{module_name} has no registry {name!r}",
                hint=f"It has {_names(module)}. A registry is made by `tasks = Tasks()`.",
            )
        return found
    registries = {id(each): each for each in vars(module).values() if isinstance(each, Tasks)}
    own = [each for each in registries.values() if not each.is_included]
    if len(own or registries) != 1:
        which = f"Say which one: holdfast worker {module_name}:NAME."
        raise BadTask(
            f"{module_name} has {_names(module)}",
            hint=which if registries else "A registry is made by `tasks = Tasks()`.",
        )
    return own[0] if own else next(iter(registries.values()))


def _import(name: str) -> Any:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise BadTask(
            f"there is no module {name!r}",
            hint="Name a module that Python can import from this folder, or give --path FOLDER.",
        ) from None


def _names(module: Any) -> str:
    names = [name for name, value in vars(module).items() if isinstance(value, Tasks)]
    return "the registries " + ", ".join(names) if names else "no registry"
