"""The repository's files, parsed once, for the gates."""

import ast
import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "src" / "bradawl"
ROOMS = (
    *(
        "core",
        "providers",
        "tools",
        "workspace",
        "checkpoints",
        "safety",
        "sandbox",
        "session",
        "extensions",
        "folds",
        "shaping",
        "agent",
        "app",
    ),
    "testing",
)


@dataclass(frozen=True)
class Module:
    """One Python file; `place` is its path inside the package, `room` the first folder of that."""

    place: str
    text: str
    tree: ast.Module = field(compare=False, repr=False)

    @property
    def room(self) -> str:
        """The folder of the package that contains it; empty for a module directly in the package."""
        return self.place.split("/")[0] if "/" in self.place else ""

    @property
    def name(self) -> str:
        """The dotted name, without `__init__`."""
        parts = ["bradawl", *self.place.removesuffix(".py").split("/")]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def module(place: str, text: str) -> Module:
    """A module parsed from this text."""
    return Module(place, text, ast.parse(text))


@cache
def source_modules() -> tuple[Module, ...]:
    """Every module of the package."""
    return tuple(
        module(path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    )


@cache
def tracked_files() -> tuple[Path, ...]:
    """Files under version control, and new files that git does not ignore. In a copy without git: all source files."""
    command = ["git", "-C", str(REPOSITORY), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode == 0:
        names = [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]
        return tuple(path for name in names if (path := REPOSITORY / name).is_file())
    return tuple(path for path in REPOSITORY.rglob("*") if path.is_file() and not _is_made(path))


def _is_made(path: Path) -> bool:
    parts = path.relative_to(REPOSITORY).parts
    return any(part in {"__pycache__", "build", "dist"} or (part.startswith(".") and part != ".ci") for part in parts)


def text_files() -> Iterator[tuple[str, str]]:
    """(path inside the repository, text) of every tracked file that is text."""
    for path in tracked_files():
        data = path.read_bytes()
        if b"\0" not in data[:8192]:
            yield path.relative_to(REPOSITORY).as_posix(), data.decode("utf-8", "replace")


def imported_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """(dotted module, line) of every import at any level; `from x import y` gives `x.y` too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno


def local_names(tree: ast.AST) -> dict[str, str]:
    """Imported name to its full dotted name, for example `{"sp": "subprocess", "replace": "os.replace"}`."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def dotted(node: ast.expr, names: dict[str, str]) -> str:
    """The dotted name of an expression, with imports resolved; empty for other expressions."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        value = dotted(node.value, names)
        return f"{value}.{node.attr}" if value else ""
    return ""


def import_cycles(modules: Iterable[Module]) -> list[list[str]]:
    """Groups of modules that import each other, directly or indirectly; imports for type checking count too.

    Tarjan's strongly connected components, without recursion.
    """
    known = {each.name for each in modules}
    graph = {each.name: sorted(_imported_modules(each, known)) for each in modules}
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    cycles: list[list[str]] = []
    for start in graph:
        work = [] if start in number else [(start, iter(graph[start]))]
        while work:
            name, targets = work[-1]
            if name not in number:
                number[name] = lowest[name] = len(number)
                path.append(name)
            follow = next((each for each in targets if each not in number or each in path), None)
            if follow is not None and follow not in number:
                work.append((follow, iter(graph[follow])))
                continue
            if follow is not None:
                lowest[name] = min(lowest[name], number[follow])
                continue
            work.pop()
            if work:
                lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[name])
            if lowest[name] == number[name]:
                cycle, path = path[path.index(name) :], path[: path.index(name)]
                cycles += [sorted(cycle)] if len(cycle) > 1 else []
    return cycles


def _imported_modules(module: Module, known: set[str]) -> set[str]:
    """`from x import y` names the module `x.y` if there is one, else `x`."""
    found: set[str] = set()
    for name, _ in imported_names(module.tree):
        found.add(name if name in known else name.rpartition(".")[0])
    return (found & known) - {module.name}
