"""Loads tools that users wrote, from folders of theirs and from installed packages.

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
from bradawl.safety.trusted_programs import site_folders as site_folders

_GROUP: Final = "bradawl.tools"
_PACKAGE: Final = r"(?i)(bradawl_[\w.]+)-[^-]+\.dist-info"
_MODULES: Final = "bradawl_user_tools_"
"""Begins the names of the modules made of users' files."""


class UserTools(msgspec.Struct, frozen=True):
    """The tools of a user, and warnings about files that can't be used."""

    tools: tuple[Tool[Any], ...]
    warnings: tuple[str, ...]
    """One sentence for the user about each file or package that can't be used."""


def user_tools(folders: Iterable[Path], sites: Iterable[str], taken: Collection[str]) -> UserTools:
    """The tools in the Python files of the folders, and in installed packages named `bradawl-...`.

    `sites` are the folders where such packages may be, `taken` the names of the other tools. A broken file or package
    gives a warning; the rest is loaded. Executes the files, and blocks meanwhile.
    """
    known = dict.fromkeys(taken, "a tool of bradawl's own")
    tools: list[Tool[Any]] = []
    warnings: list[str] = []
    files = (source for folder in folders for source in _files(folder))
    # The first tool of a name is kept: those of files come before those of packages.
    for place, load in (*files, *_packages(sites)):
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
    names = [name for name in _names(folder) if name.endswith(".py") and not name.startswith((".", "_"))]
    if not names:
        return
    package = _package_of(folder)
    for name in names:
        yield str(folder / name), partial(_from_file, folder / name, package)


def _package_of(folder: Path) -> str:
    """The name of the package that a folder's files are modules of, so that `from . import _other` works in them.

    It is named after the whole path: two agents in one process may have folders with files of the same name. Modules
    of an earlier load are forgotten, because the files may have changed.
    """
    name = _MODULES + re.sub(r"\W", "_", str(folder))
    for known in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
        del sys.modules[known]
    package = sys.modules[name] = ModuleType(name)
    package.__path__ = [str(folder)]
    return name


def _from_file(path: Path, package: str) -> tuple[Tool[Any], ...]:
    from importlib.util import module_from_spec, spec_from_file_location

    name = f"{package}." + re.sub(r"\W", "_", path.stem)
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SettingsError("it is not a Python file.")
    module = sys.modules[name] = module_from_spec(spec)  # where dataclasses resolve the names in annotations
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        del sys.modules[name]
        if error.name and (path.parent / f"{error.name}.py").is_file():
            hint = f"; a file of this folder is imported with `from . import {error.name}`"
            raise SettingsError(f"{error}{hint}{_line_of(error)}.") from error
        raise
    except BaseException:
        del sys.modules[name]
        raise
    tools = _offered(vars(module), name)
    if not tools:
        hint = "put `@tool` above a function, or begin the file's name with `_` if other files import it"
        raise SettingsError(f"there is none in it; {hint}.")
    return tools


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
    line = _line_number(error)
    return f" (line {line})" if line else ""


def _line_number(error: BaseException) -> int | None:
    line = getattr(error, "lineno", None)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").startswith(_MODULES):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _offered(values: Mapping[str, object], module: str) -> tuple[Tool[Any], ...]:
    """The tools in a module: objects, and instances of its classes."""
    public = [(name, value) for name, value in values.items() if not name.startswith("_")]
    objects = [(name, value) for name, value in public if not isinstance(value, type) and _is_tool(value)]
    made = {type(each) for _, each in objects}
    for name, value in public:
        if isinstance(value, type) and value.__module__ == module and value not in made and _is_tool(value):
            with _naming_definition(name, module):
                objects.append((name, value()))
    distinct: dict[int, tuple[str, object]] = {}
    for name, each in objects:
        distinct.setdefault(id(each), (name, each))
    return tuple(_checked(name, each, module) for name, each in distinct.values())


def _checked(name: str, value: object, module: str) -> Tool[Any]:
    from bradawl.extensions.tool_check import check_tool

    made = cast(Tool[Any], value)
    with _naming_definition(name, module):
        check_tool(made)
    return made


@contextmanager
def _naming_definition(name: str, module: str) -> Iterator[None]:
    """Adds to an error the name that a tool has in its file, and its line."""
    try:
        yield
    except (Exception, SystemExit) as error:
        reason = str(error) if isinstance(error, SettingsError) else f"{type(error).__name__}: {error}"
        line = _line_number(error) or _line_of_definition(name, module)
        where = f"{name}, line {line}" if line else name
        raise SettingsError(f"{reason.removesuffix('.')} ({where}).") from error


def _line_of_definition(name: str, module: str) -> int | None:
    """The line of a module's file where a top-level name is defined."""
    import ast
    import linecache

    source = "".join(linecache.getlines(getattr(sys.modules.get(module), "__file__", None) or ""))
    for node in ast.parse(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names = [each.id for each in targets if isinstance(each, ast.Name)]
        if name in (getattr(node, "name", None), *names):
            return node.lineno
    return None


def _is_tool(value: object) -> bool:
    # Methods are looked up in the class: a proxy object may raise when its attributes are read.
    kind = value if isinstance(value, type) else type(value)
    has_methods = all(callable(getattr(kind, method, None)) for method in ("effects", "run"))
    return has_methods and all(hasattr(value, attribute) for attribute in ("spec", "params"))
