"""The documentation names nothing that does not exist: links, files, command lines, variables, settings, examples."""

import ast
import importlib
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rules
from source_tree import PACKAGE, REPOSITORY, ROOMS

from bradawl.app.cli import UsageError, parse
from bradawl.app.commands.builtin import builtin_commands
from bradawl.app.settings.table import SETTINGS
from bradawl.app.tui.live.keys import ACTIONS, sequence_of

DOCS = REPOSITORY / "docs"
ADRS = tuple(sorted((DOCS / "adr").glob("*.md")))
PAGES = (REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md")))
IDS = [page.stem for page in PAGES]
ROOMS_OF_CODE = "|".join(ROOMS)
EXAMPLE_FILES = {"src/a.txt", "benchmarks/results/"}
"""Files in examples, and what a program makes."""
OTHER_PATHS = {"bin", "boot", "data", "dev", "etc", "mnt", "outside", "proc", "root", "run", "sys", "tmp", "usr", "ws"}
"""Folders that look like slash commands."""
EXAMPLE_COMMANDS = {"repeat", "responses"}
"""The slash command that CONTRIBUTING.md adds; and the end of an address."""
VARIABLES = {row.variable for row in SETTINGS.rows.values() if row.variable} | {"BRADAWL_HOME"}


def words_of(line: str) -> list[str]:
    """The arguments in a command line of a page: without its comment, its redirections, and brackets."""
    line = re.sub(r"\[:PORT\]|\s[<>|]\s.*$", "", line)
    line = re.sub(r"\[([\w-]+)\]", r"\1", line).replace(" ...", "")
    return ["3" if word == "STEP" else word for word in shlex.split(line, comments=True)]


def consoles(text: str) -> Iterator[str]:
    """What follows `bradawl` on each line of the consoles of a page. A text after two blanks is a comment."""
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if language in ("", "console", "sh"):
            start = r"^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:[^\n|`]* \| )?(?:\S*/)?bradawl"
            for line in re.findall(rf"{start}( .*)?$", block, re.MULTILINE):
                yield re.split(r"  +(?=[a-z])", line.strip())[0]


def named_commands(text: str) -> Iterator[str]:
    """What follows `bradawl` in code within the text of a page; it need not be a whole command line."""
    yield from re.findall(r"`bradawl( [^`\n]*)?`", text)


def understood(words: list[str]) -> bool:
    """Whether the program takes this, and not as a prompt that is a mistyped command."""
    options = parse(words)
    return not words or words[0].startswith("-") or bool(options.get("command") or options.get("demo"))


def headings(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", (*PAGES, *ADRS, REPOSITORY / "CHANGELOG.md"), ids=lambda page: page.stem)
def test_each_link_leads_to_a_file_and_a_heading_of_it(page: Path):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if not link.startswith("https://"):
            name, _, heading = link.partition("#")
            target = page.parent / name if name else page
            assert target.exists(), link
            assert not heading or heading in headings(target), link


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_each_file_of_the_repository_that_is_named_exists(page: Path):
    for code in re.findall(r"`([^`\n]+)`", page.read_text("utf-8")):
        for name in re.findall(r"(?:^|[\s=(])((?:src|tests|docs|scripts|benchmarks)/[\w./*-]+)", code):
            assert name in EXAMPLE_FILES or any(REPOSITORY.glob(name.rstrip("/"))), name
        for name in re.findall(rf"^((?:{ROOMS_OF_CODE})/[\w./*-]+)$", code):
            assert any(PACKAGE.glob(name.rstrip("/"))), name


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_each_make_target_exists(page: Path):
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    for line in re.findall(r"(?:`|^\$ |^    )make ([a-z][a-z -]*?)(?:`| +#|$)", page.read_text("utf-8"), re.MULTILINE):
        if line != "check":  # an example of a hook
            for target in line.split():
                assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_command_lines_are_found():
    texts = [page.read_text("utf-8") for page in PAGES]
    assert sum(len(list(consoles(text))) for text in texts) > 30
    assert sum(len(list(named_commands(text))) for text in texts) > 60


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_each_command_line_is_understood(page: Path):
    for line in consoles(page.read_text("utf-8")):
        assert understood(words_of(line)), line
    for line in named_commands(page.read_text("utf-8")):
        words = words_of(line)
        try:
            assert understood(words), line
        except UsageError:
            assert understood([*words, "X"]), line


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_each_variable_and_slash_command_exists(page: Path):
    text = page.read_text("utf-8")
    for variable in re.findall(r"\bBRADAWL_[A-Z_]+\b", text):
        assert variable in VARIABLES, variable
    commands = {name for one in builtin_commands().commands for name in (one.name, *one.aliases)}
    for name in re.findall(r"`/([a-z]+)(?: [^`]*)?`", text):
        assert name in commands | OTHER_PATHS | EXAMPLE_COMMANDS, f"/{name}"


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_each_settings_file_is_valid(page: Path):
    rows = [row for row in SETTINGS.rows.values() if row.is_in_file or row.is_in_managed_file]
    keys = {row.name.partition(".")[0] for row in rows} | {"permissions", "providers", "models", "profiles"}
    for block in re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        for key, value in tomllib.loads(re.sub(r"(?m)^  (?=\S)", "", block)).items():
            if isinstance(value, dict) and set(value) == {"api_key"}:  # credentials.toml
                continue
            if key in ACTIONS:  # keys.toml
                assert all(map(sequence_of, [value] if isinstance(value, str) else value)), value
                continue
            assert key in keys | {"project", "folder", "rule"}, key


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_each_python_example_imports_what_exists(page: Path):
    for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        compiled: Any = compile(block, str(page), "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for node in ast.walk(compiled):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bradawl"):
                module = importlib.import_module(str(node.module))
                assert all(hasattr(module, name.name) for name in node.names), ast.unparse(node)


def test_the_administrators_file_of_the_page_has_every_setting_that_may_be_in_it():
    page = (DOCS / "trust.md").read_text("utf-8")
    (block,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    table = tomllib.loads(block)
    permissions = {f"permissions.{name}" for name in table.pop("permissions")}
    assert {*table, *permissions} == {row.name for row in SETTINGS.rows.values() if row.is_in_managed_file}


def test_the_sizes_of_the_page_are_those_of_the_rules():
    rows = dict(re.findall(r"^\| (.*?) \| ([\d,]+) [lm]", (DOCS / "architecture.md").read_text("utf-8"), re.MULTILINE))
    sizes = {name.split(", ")[0].strip("`"): int(size.replace(",", "")) for name, size in rows.items()}
    names = ("a file", "a class", "agent/loop.py", "agent/step.py", "a middleware")
    limits = (rules.FILE_LINES, rules.CLASS_LINES, rules.LOOP_LINES, rules.STEP_LINES, rules.MIDDLEWARE_LINES)
    assert {name: sizes[name] for name in names} == dict(zip(names, limits, strict=True))


def test_each_decision_has_a_number_of_its_own() -> None:
    pages = sorted((REPOSITORY / "docs/adr").glob("*.md"))
    assert len({page.name[:4] for page in pages}) == len(pages)
    for page in pages:
        assert page.read_text().startswith(f"# {int(page.name[:4])}. "), page.name
