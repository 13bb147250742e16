"""Loads tools that users wrote, from a folder of theirs and from installed packages.

Projects can't bring tools: the files are executed, and a project is not trusted with that.
"""

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

import msgspec

from bradawl.core.errors import SettingsError
from bradawl.core.ports import Tool
from bradawl.core.tools import JsonParams, ToolSpec
from bradawl.safety.trusted_programs import site_folders as site_folders

_GROUP: Final = "bradawl.tools"
_PACKAGE: Final = r"(?i)(bradawl_[\w.]+)-[^-]+\.dist-info"
_NAME: Final = "[a-z0-9_]{1,64}"


class UserTools(msgspec.Struct, frozen=True):
    """The tools of a user, and warnings about files that can't be used."""

    tools: tuple[Tool[Any], ...]
    warnings: tuple[str, ...]
    """One sentence for the user about each file or package that can't be used."""


def user_tools(folder: Path, sites: Iterable[str], taken: Collection[str]) -> UserTools:
    """The tools in the Python files of a folder, and in installed packages named `bradawl-...`.

    `sites` are the folders where such packages may be, `taken` the names of the other tools. A broken file or package
    gives a warning; the rest is loaded. Executes the files, and blocks meanwhile.
    """
    known = dict.fromkeys(taken, "a tool of bradawl's own")
    tools: list[Tool[Any]] = []
    warnings: list[str] = []
    # A tool of a file takes precedence over one of a package.
    for place, load in (*_files(folder), *_packages(sites)):
        try:
            with _as_settings_error():
                loaded = load()
            for each in loaded:
                if (other := known.get(each.spec.name)) is not None:
                    warnings.append(f"The tool {each.spec.name} of {place} is left out: {other} has that name.")
                    continue
                known[each.spec.name] = f"one of {place}"
                tools.append(each)
        except SettingsError as error:
            warnings.append(f"The tools of {place} are left out: {error}")
    return UserTools(tuple(tools), tuple(warnings))


Source = tuple[str, Callable[[], tuple[Tool[Any], ...]]]
"""The name of a source in messages, and the function that loads it."""


def _names(folder: str | Path) -> list[str]:
    """The sorted names in a folder; empty if it can't be read."""
    try:
        return sorted(path.name for path in Path(folder).iterdir())
    except OSError:
        return []


def _files(folder: Path) -> Iterator[Source]:
    for name in _names(folder):
        if name.endswith(".py") and not name.startswith((".", "_")):
            path = folder / name
            yield str(path), partial(_from_file, path)


def _from_file(path: Path) -> tuple[Tool[Any], ...]:
    from importlib.util import module_from_spec, spec_from_file_location

    # The module is named after the whole path: two agents in one process may have files of the same name.
    name = "bradawl_user_tools_" + re.sub(r"\W", "_", str(path.with_suffix("")))
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SettingsError("it is not a Python file.")
    module = sys.modules[name] = module_from_spec(spec)  # where dataclasses resolve the names in annotations
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return _offered(vars(module), name)


def _packages(sites: Iterable[str]) -> Iterator[Source]:
    for site in sites:
        for name in _names(site):
            if name[:8].lower() == "bradawl_" and (found := re.fullmatch(_PACKAGE, name)):
                yield f"the package {found[1]}", partial(_from_package, Path(site, name))


def _from_package(folder: Path) -> tuple[Tool[Any], ...]:
    from importlib.metadata import PathDistribution

    tools: list[Tool[Any]] = []
    for entry in PathDistribution(folder).entry_points.select(group=_GROUP):
        value = entry.load()
        values = vars(value) if isinstance(value, ModuleType) else {entry.name: value}
        tools += _offered(values, value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", ""))
    return tuple(tools)


@contextmanager
def _as_settings_error() -> Iterator[None]:
    """Turns any exception of a user's code into a `SettingsError` with its reason and line."""
    try:
        yield
    except SettingsError:
        raise
    except (Exception, SystemExit) as error:
        raise SettingsError(f"{type(error).__name__}: {error}{_line_of(error)}.") from error


def _line_of(error: BaseException) -> str:
    """The line of the user's file where the exception was raised, if any."""
    line = getattr(error, "lineno", None)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").startswith("bradawl_user_tools_"):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" (line {line})" if line else ""


def _offered(values: Mapping[str, object], module: str) -> tuple[Tool[Any], ...]:
    """The tools in a module: objects, and instances of its classes."""
    public = [value for name, value in values.items() if not name.startswith("_")]
    objects = [value for value in public if not isinstance(value, type) and _is_tool(value)]
    made = {type(each) for each in objects}
    for value in public:
        if isinstance(value, type) and value.__module__ == module and value not in made and _is_tool(value):
            objects.append(value())
    distinct = {id(each): each for each in objects}.values()
    tools = tuple(cast(Tool[Any], each) for each in distinct)
    for each in tools:
        _check(each)
    return tools


def _is_tool(value: object) -> bool:
    # Methods are looked up in the class: a proxy object may raise when its attributes are read.
    kind = value if isinstance(value, type) else type(value)
    has_methods = all(callable(getattr(kind, method, None)) for method in ("effects", "run"))
    return has_methods and all(hasattr(value, attribute) for attribute in ("spec", "params"))


def _check(made: Tool[Any]) -> None:
    """Raises `SettingsError` for a tool that can't be offered to a model."""
    if not isinstance(made.spec, ToolSpec):
        raise SettingsError(f"the spec of {type(made).__name__} is not a ToolSpec.")
    spec, params = msgspec.convert(msgspec.to_builtins(made.spec), ToolSpec), made.params
    if not re.fullmatch(_NAME, spec.name):
        raise SettingsError(f"the name {spec.name!r} is not made of a-z, 0-9 and _, at most 64.")
    if isinstance(params, JsonParams):
        return
    if not isinstance(params, type) or not issubclass(params, msgspec.Struct):
        raise SettingsError(f"the params of {spec.name} are neither a msgspec Struct nor JsonParams.")
    msgspec.json.schema(params)
