"""How the tests of a project are run, as far as its configuration files tell. Repeats no text of them, runs nothing."""

import os
import re
from collections.abc import Callable, Iterator

import msgspec

from bradawl.app.ignored_names import beginning_of
from bradawl.app.project_survey import Survey

_MOST_ABOVE = 8
_MOST_COMMANDS = 3
_MOST_SUB_PROJECTS = 4
_ENVIRONMENTS = (".venv", "venv", "env")
_LOCKED = {"uv.lock": "uv", "poetry.lock": "poetry", "pdm.lock": "pdm", "Pipfile.lock": "pipenv"}
_NODE_LOCKED = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
# Files that may configure pytest, and the text that does; empty where the name is enough.
_PYTEST_CONFIGS = (
    ("pytest.ini", ""),
    ("conftest.py", ""),
    ("tests/conftest.py", ""),
    ("test/conftest.py", ""),
    ("pyproject.toml", "pytest"),
    ("setup.cfg", "pytest"),
    ("tox.ini", "pytest"),
    ("requirements.txt", "pytest"),
    ("requirements-dev.txt", "pytest"),
)
_MAKE_TARGET = re.compile(r"^(test|check)\s*:(?!=)", re.MULTILINE)
_JUST_TARGET = re.compile(r"^@?test\b[^\n:=]*:(?!=)", re.MULTILINE)
_BY_FILE = (
    ("go.mod", "go test ./..."),
    ("gradlew", "./gradlew test"),
    ("mvnw", "./mvnw test"),
    ("pom.xml", "mvn test"),
    ("mix.exs", "mix test"),
    (".rspec", "bundle exec rspec"),
    ("phpunit.xml", "vendor/bin/phpunit"),
    ("phpunit.xml.dist", "vendor/bin/phpunit"),
    ("deno.json", "deno test"),
    ("Package.swift", "swift test"),
    ("build.zig", "zig build test"),
)
_ENVIRONMENT_NAMED = re.compile(r"/bin/python|\b(?:uv|poetry|pdm|pipenv) run ")
_PYTHON_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")


class _Place(msgspec.Struct, frozen=True):
    """A folder that may be a project."""

    path: str
    """Absolute."""
    above: tuple[str, ...]
    """The folders above it, the nearest first, up to the top of the repository."""
    programs: Callable[[str], bool]
    """Whether a program is on PATH."""

    def has(self, name: str) -> bool:
        return os.path.lexists(f"{self.path}/{name}")

    def text(self, name: str) -> str:
        return beginning_of(f"{self.path}/{name}")

    def first_above(self, names: dict[str, str]) -> str | None:
        """What the first of these files stands for, here or above."""
        folders = (self.path, *self.above)
        return next((tool for at in folders for name, tool in names.items() if os.path.lexists(f"{at}/{name}")), None)


def command_lines(survey: Survey, search_path: str) -> list[str]:
    """How tests are run, and the Python to use: a line or none. `search_path` is PATH of the model's commands."""

    def is_on_path(name: str) -> bool:
        return any(at and os.access(f"{at}/{name}", os.X_OK) for at in search_path.split(":"))

    root = survey.root.rstrip("/") or "/"
    here = _Place(root, _above(root), is_on_path)
    found = [*_commands(here)] or [*_commands_above(here)]
    known = {_kind(command) for command in found}
    said = [", or ".join(found[:_MOST_COMMANDS])] if found else []
    for path in _sub_projects(survey):
        place = _Place(f"{root}/{path}", (root, *here.above), is_on_path)
        commands = [command for command in _commands(place) if _kind(command) not in known]
        if commands and len(said) <= _MOST_SUB_PROJECTS:
            said.append(f"in {path}/: {commands[0]}")
    python = [] if _ENVIRONMENT_NAMED.search(" ".join(said)) else _python_line(here)
    return [f"tests: {'; '.join(said)}", *python] if said else python


def _above(path: str) -> tuple[str, ...]:
    """The folders above, up to the top of the repository; none outside of a repository."""
    above: list[str] = []
    while len(above) < _MOST_ABOVE and not os.path.lexists(f"{path}/.git") and path != "/":
        path = path.rpartition("/")[0] or "/"
        above.append(path)
    return tuple(above) if os.path.lexists(f"{path}/.git") else ()


def _sub_projects(survey: Survey) -> Iterator[str]:
    """Folders one or two levels down that have a configuration file."""
    marks = {"package.json", "Cargo.toml", "Makefile", *_PYTHON_PROJECT, *(name for name, _ in _BY_FILE)}
    for path, folder in sorted(survey.folders.items()):
        if path and path.count("/") < 2 and not marks.isdisjoint(folder.files):
            yield path


def _kind(command: str) -> str:
    return "python" if "python" in command or "pytest" in command else command


def _commands(place: _Place) -> Iterator[str]:
    yield from _python(place)
    yield from _node(place)
    if place.has("Cargo.toml"):
        yield "cargo test --workspace" if "[workspace]" in place.text("Cargo.toml") else "cargo test"
    for name, command in _BY_FILE:
        if place.has(name):
            yield command
            break
    yield from _make(place, "")


def _commands_above(place: _Place) -> Iterator[str]:
    """Commands that work here because of a configuration file above."""
    for folder in place.above:
        upper = _Place(folder, (), place.programs)
        up = os.path.relpath(folder, place.path)
        if _uses_pytest(upper):
            yield f"{_runner(place)} pytest"
        yield from _node(_Place(folder, place.above, place.programs))
        if upper.has("Cargo.toml"):
            yield "cargo test"
        if upper.has("go.mod"):
            yield "go test ./..."
        yield from _make(upper, f" -C {up}")


# ------------------------------------------------------------------ Python


def _python(place: _Place) -> Iterator[str]:
    if place.has("manage.py"):
        yield f"{_interpreter(place)} manage.py test"
    if _uses_pytest(place):
        yield f"{_runner(place)} pytest"
    elif place.has("noxfile.py"):
        yield "nox"
    elif place.has("tox.ini"):
        yield "tox"


def _uses_pytest(place: _Place) -> bool:
    if any(place.has(name) and (not said or said in place.text(name)) for name, said in _PYTEST_CONFIGS):
        return True
    return any(map(place.has, _PYTHON_PROJECT)) and any(place.has(f"{name}/bin/pytest") for name in _ENVIRONMENTS)


def _runner(place: _Place) -> str:
    interpreter = _interpreter(place)
    return interpreter if interpreter.endswith(" run") else f"{interpreter} -m"


def _interpreter(place: _Place) -> str:
    """A virtual environment's Python as a path from the place, `uv run`, or the name of the system's Python."""
    for folder in (place.path, *place.above):
        for name in _ENVIRONMENTS:
            if os.access(program := f"{folder}/{name}/bin/python", os.X_OK):
                return os.path.relpath(program, place.path)
    if (tool := place.first_above(_LOCKED)) and place.programs(tool):
        return f"{tool} run"
    return "python" if place.programs("python") or not place.programs("python3") else "python3"


def _python_line(place: _Place) -> list[str]:
    if not any(map(place.has, _PYTHON_PROJECT)) or (interpreter := _interpreter(place)) == "python":
        return []
    return [f"python: {interpreter}"]


# ------------------------------------------------------------------ others


class _PackageJson(msgspec.Struct):
    scripts: dict[str, object] = {}


def _node(place: _Place) -> Iterator[str]:
    if not place.has("package.json"):
        return
    try:
        test = msgspec.json.decode(place.text("package.json"), type=_PackageJson).scripts.get("test")
    except msgspec.MsgspecError:
        return
    if isinstance(test, str) and "no test specified" not in test and _can_start(test, place):
        tool = place.first_above(_NODE_LOCKED) or "npm"
        yield "bun run test" if tool == "bun" else f"{tool} test"


def _can_start(script: str, place: _Place) -> bool:
    """Whether the file that a script of package.json starts is there: a published package may come without its tests.

    What packages bring is there after `npm install`.
    """
    words = [word for word in script.split("&&")[0].split() if "=" not in word]
    if not words:
        return False
    named = [word for word in words[1:] if "/" in word and not word.startswith("-")]
    if words[0] not in ("node", "tsx", "ts-node", "mocha", "jasmine", "ava", "tape") or not named:
        return True
    return any(place.has(f"{named[0]}{ending}") for ending in ("", ".js", ".ts", "/index.js")) or "*" in named[0]


def _make(place: _Place, options: str) -> Iterator[str]:
    for name in ("Makefile", "makefile", "GNUmakefile"):
        if place.has(name):
            if target := _MAKE_TARGET.search(place.text(name)):
                yield f"make{options} {target[1]}"
            break
    if not options and place.has("justfile") and _JUST_TARGET.search(place.text("justfile")):
        yield "just test"
