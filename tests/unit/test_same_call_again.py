"""Consent for the session to a command lasts until something that determines its effect changes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bradawl import ModelSettings, Settings, build_agent
from bradawl.core.effects import Effects
from bradawl.core.permissions import Answer, Ask, Grant, Question, Request
from bradawl.safety.shell.executed_files import run_files
from bradawl.shaping.approval_scope import covered
from bradawl.testing.fakes import RecordingEmit


class AllowForSession:
    """An approver that allows each call for the session, and records the questions."""

    def __init__(self) -> None:
        self.questions: list[Question] = []

    async def ask(self, question: Question) -> Answer:
        self.questions.append(question)
        return Answer(True, "user", "session")

    async def choose(self, choice: object) -> None:
        return None


LOADED_FILES = {
    "pkd/__init__.py": "",
    "pkd/__main__.py": "from . import part\n",
    "pkd/part.py": "open('../ran', 'a').write('part\\n')\n",
    "x.zip": "PK",
    "loaded.py": "",
    "x.rb": "require_relative 'lib/part'\n",
    "lib/part.rb": "puts 1\n",
    "index.js": "require('./lib/part')\n",
    "lib/part.js": "1\n",
    "package.json": '{"scripts": {"build": "node build.js", "test": "sub/x", "x": "true"}}',
    "build.js": "1\n",
    "main.go": "package main\n",
    "sub/a.go": "package sub\n",
    "src/main.rs": "fn main() {}\n",
    "tests/test_a.py": "def test_a(): pass\n",
    "tests/conftest.py": "",
    "tox.ini": "[tox]\n",
    "justfile": "all:\n\t./x.sh\n",
    "tools/gen.py": "print(1)\n",
}


class ScriptWorkspace:
    """A workspace with scripts, a folder of programs beside it, and a PATH that begins there."""

    def __init__(self, root: Path) -> None:
        self.root, self.work, self.bin = root, root / "work", root / "bin"
        for folder in (self.work / "sub", self.bin, root / "home"):
            folder.mkdir(parents=True)
        self.script("build.sh", "echo one >> ../ran")
        self.script("sub/x", "echo sub >> ../../ran")
        (self.work / "x.py").write_text("import loaded\nopen('../ran', 'a').write('py\\n')\n")
        (self.work / "Makefile").write_text("all:\n\tsub/x\n\techo made >> ../ran\nsub:\n\tpython3 tools/gen.py\n")
        (self.work / "env.sh").write_text("echo sourced >> ../ran\n")

        for name, text in LOADED_FILES.items():
            (self.work / name).parent.mkdir(exist_ok=True)
            (self.work / name).write_text(text)
        self.script("x.sh", "echo x >> ../ran")
        self.script("calls.sh", "./x.sh && cd sub && ./x\nsub/x")

    def script(self, name: str, text: str, folder: Path | None = None) -> None:
        path = (folder or self.work) / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    async def questions(self, *steps: str | Callable[[], Any], then: Callable[[], Any] = lambda: None) -> list[str]:
        """The lines that were asked about; a step that is a function is called between them."""
        lines = [step for step in steps if isinstance(step, str)]
        script = [
            {"tool_calls": [{"id": f"c{n}", "name": "bash", "arguments": {"command": line}}]}
            for n, line in enumerate(lines)
        ]
        (self.root / "script.json").write_text(json.dumps([*script, {"text": "done"}]))
        approver = AllowForSession()
        path = f"{self.bin}:/usr/local/bin:/usr/bin:/bin"
        settings = Settings(
            model=ModelSettings("scripted", str(self.root / "script.json")),
            cwd=str(self.work),
            home=str(self.root / "data"),
            user_home=str(self.root / "home"),
            environment={"HOME": str(self.root / "home"), "PATH": path},
            sandbox="off",
            user_tools=False,
        )
        agent = build_agent(settings, approver)
        between = {}
        count = 0
        for step in steps:
            if isinstance(step, str):
                count += 1
            else:
                between[count] = step
        emit = RecordingEmit()

        def emit_and_act(item: Any) -> None:
            emit(item)
            done = sum(type(event).__name__ == "ToolFinished" for event in emit.events)
            if type(getattr(item, "event", None)).__name__ == "ToolFinished" and done in between:
                between.pop(done)()

        try:
            async with agent.open() as session:
                await session.run("go", emit_and_act)
        finally:
            await agent.aclose()
        return [json.loads(one.call.raw_arguments)["command"] for one in approver.questions]


LINES = [
    "./build.sh",
    "sh build.sh",
    "python3 x.py",
    "make",
    ". ./env.sh",
    "(cd sub && ./x)",
    "env ./build.sh",
    "(./build.sh)",
]
LINES += [
    "./build.sh > log",
    "if ./build.sh; then :; fi",
    "timeout 9 ./build.sh",
    "bash -c './build.sh'",
    "echo $(./build.sh)",
]


@pytest.mark.parametrize("line", LINES)
async def test_an_unchanged_call_is_not_asked_about_again(tmp_path: Path, line: str) -> None:
    place = ScriptWorkspace(tmp_path)
    assert (await place.questions(line, "true", line)).count(line) == 1


CHANGES: dict[str, Callable[[ScriptWorkspace], Any]] = {
    "./build.sh": lambda p: p.script("build.sh", "echo two >> ../ran"),
    "sh build.sh": lambda p: p.script("build.sh", "echo two >> ../ran"),
    "python3 x.py": lambda p: (p.work / "x.py").write_text("print(2)\n"),
    "make": lambda p: (p.work / "Makefile").write_text("all:\n\techo else\n"),
    "make all": lambda p: (p.work / "GNUmakefile").write_text("all:\n\techo else\n"),
    "make -f Makefile": lambda p: (p.work / "Makefile").write_text("all:\n\techo else\n"),
    ". ./env.sh": lambda p: (p.work / "env.sh").write_text("echo else\n"),
    "(cd sub && ./x)": lambda p: p.script("sub/x", "echo else"),
    "env ./build.sh": lambda p: p.script("build.sh", "echo else"),
    "./build.sh > log": lambda p: p.script("build.sh", "echo else"),
    "timeout 9 ./build.sh": lambda p: p.script("build.sh", "echo else"),
    "bash -c './build.sh'": lambda p: p.script("build.sh", "echo else"),
    "echo $(./build.sh)": lambda p: p.script("build.sh", "echo else"),
    "X=./build.sh; $X": lambda p: p.script("build.sh", "echo else"),
    "touch made": lambda p: p.script("touch", "echo else", p.bin),
    "npm test; true": lambda p: p.script("npm", "echo else", p.bin),
    "npm run x": lambda p: (p.work / "package.json").write_text('{"scripts": {"x": "else"}}'),
    "python3 pkd": lambda p: (p.work / "pkd/__main__.py").write_text("print(2)\n"),
    "python3 -B pkd": lambda p: (p.work / "pkd/part.py").write_text("print(2)\n"),
    "python3 -m pkd": lambda p: (p.work / "pkd/__main__.py").write_text("print(2)\n"),
    "python3 -Bm pkd || python3 -B -m pkd": lambda p: (p.work / "pkd/part.py").write_text("print(2)\n"),
    "python3 x.zip": lambda p: (p.work / "x.zip").write_bytes(b"PK2"),
    "python3 x.py; true": lambda p: (p.work / "loaded.py").write_text("print(2)\n"),
    "ruby x.rb": lambda p: (p.work / "x.rb").write_text("puts 2\n"),
    "ruby ./x.rb": lambda p: (p.work / "lib/part.rb").write_text("puts 2\n"),
    "node .": lambda p: (p.work / "index.js").write_text("2\n"),
    "node index.js": lambda p: (p.work / "lib/part.js").write_text("2\n"),
    "npm run build": lambda p: (p.work / "build.js").write_text("2\n"),
    "npm test": lambda p: p.script("sub/x", "echo else"),
    "make; true": lambda p: p.script("sub/x", "echo else"),
    "make sub": lambda p: (p.work / "tools/gen.py").write_text("print(2)\n"),
    "sh -c ./x.sh": lambda p: p.script("x.sh", "echo else"),
    "sh -c ./calls.sh": lambda p: p.script("x.sh", "echo else"),
    "./calls.sh": lambda p: p.script("x.sh", "echo else"),
    "bash calls.sh": lambda p: p.script("sub/x", "echo else"),
    "source env.sh": lambda p: (p.work / "env.sh").write_text("echo else\n"),
    ". env.sh": lambda p: (p.work / "env.sh").write_text("echo else\n"),
    "go run .": lambda p: (p.work / "main.go").write_text("package main // 2\n"),
    "go test ./...": lambda p: (p.work / "sub/a.go").write_text("package sub // 2\n"),
    "cargo run": lambda p: (p.work / "src/main.rs").write_text("fn main() {} // 2\n"),
    "pytest -q": lambda p: (p.work / "tests/test_a.py").write_text("def test_a(): 2\n"),
    "python3 -m pytest tests": lambda p: (p.work / "tests/conftest.py").write_text("2\n"),
    "tox -e py": lambda p: (p.work / "tox.ini").write_text("[tox]\n# 2\n"),
    "tox": lambda p: (p.work / "tests/test_a.py").write_text("def test_a(): 2\n"),
    "just all": lambda p: (p.work / "justfile").write_text("all:\n\techo 2\n"),
    "just": lambda p: p.script("x.sh", "echo else"),
    "mktemp -u x": lambda p: p.script("mktemp", "echo else", p.bin),
}


@pytest.mark.parametrize("line", CHANGES)
async def test_a_changed_script_or_program_is_asked_about_again(tmp_path: Path, line: str) -> None:
    place = ScriptWorkspace(tmp_path)
    assert (await place.questions(line, lambda: CHANGES[line](place), line)).count(line) == 2


async def test_a_link_with_a_new_target_is_asked_about_again(tmp_path: Path) -> None:
    place = ScriptWorkspace(tmp_path)
    place.script("other.sh", "echo other")
    (place.work / "run").symlink_to("build.sh")

    def swap() -> None:
        (place.work / "run").unlink()
        (place.work / "run").symlink_to("other.sh")

    assert (await place.questions("./run", swap, "./run")).count("./run") == 2


async def test_another_folder_of_the_same_name_is_asked_about_again(tmp_path: Path) -> None:
    place = ScriptWorkspace(tmp_path)

    def swap() -> None:
        (place.work / "sub").rename(place.work / "old")
        (place.work / "sub").mkdir()
        (place.work / "sub" / "x").write_bytes((place.work / "old" / "x").read_bytes())
        (place.work / "sub" / "x").chmod(0o755)

    asked = await place.questions("cd sub", "./x", swap, "./x")
    assert asked.count("./x") == 2


async def test_a_command_is_asked_about_again_after_an_export(tmp_path: Path) -> None:
    place = ScriptWorkspace(tmp_path)
    asked = await place.questions("./build.sh", "export STAGE=live", "./build.sh")
    assert asked.count("./build.sh") == 2


@pytest.mark.parametrize(
    "line",
    [
        "sh < build.sh",
        "cat build.sh | sh",
        'eval "$(cat env.sh)"',
        "for f in *.sh; do sh $f; done",
        "ls *.sh | xargs -n1 sh -c 'sh $0'",
        "python3 - < x.py",
        "PATH=.:$PATH build.sh",
        "env PATH=$PWD:$PATH build.sh",
        "CC=./build.sh make",
        "PYTHONPATH=. python3 x.py",
        "find . -name '*.sh' -exec sh {} \\;",
    ],
)
async def test_a_command_that_runs_unknown_programs_is_asked_about_each_time(tmp_path: Path, line: str) -> None:
    place = ScriptWorkspace(tmp_path)
    assert (await place.questions(line, line)).count(line) == 2


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("./b.sh",), ("/w/b.sh",)),
        (("mytool", "--config=c.toml", "-fd", "e"), ("mytool", "/w/c.toml", "/w/d", "/w/e")),
        (("cat", "a"), ("cat",)),
        (("./cat", "a"), ("/w/cat", "/w/a")),
        (("echo", "x"), ()),
        (
            ("python3", "-m", "pkg.mod"),
            ("python3", "/w/pkg.mod", "/w/pkg/mod.py", "/w/pkg/mod/__main__.py", "/w/pkg/mod/__init__.py"),
        ),
    ],
)
def test_the_files_of_a_command_are_its_program_and_its_scripts(words: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert run_files([words], "/w") == (names, True)


def test_consent_is_bound_to_the_agent_its_sandbox_and_its_folder() -> None:
    effects = Effects(unknown=True, commands=(("./x",),), seal="s")
    request, grant = Request("bash", "d", effects), Grant(command_hash="s", outside_sandbox=True)
    known = covered(request, Ask(grant, "why"), "main", "/w", {})
    assert known == covered(request, Ask(grant, "for another reason"), "main", "/w", {})
    sandboxed = msgspec.structs.replace(grant, outside_sandbox=False)
    others = [
        covered(request, Ask(grant, "why"), "agent-1", "/w", {}),
        covered(request, Ask(sandboxed, "why"), "main", "/w", {}),
        covered(request, Ask(msgspec.structs.replace(grant, network=True), "why"), "main", "/w", {}),
        covered(request, Ask(grant, "why"), "main", "/v", {}),
        covered(request, Ask(grant, "why"), "main", "/w", {"A": "b"}),
        covered(Request("bash", "e", effects), Ask(grant, "why"), "main", "/w", {}),
    ]
    assert len({known, *others}) == 7
    assert (
        covered(Request("bash", "d", msgspec.structs.replace(effects, unsealed=True)), Ask(grant, "w"), "main", "/", {})
        == ""
    )


def test_consent_to_a_tool_does_not_cover_calls_that_a_rule_asks_about() -> None:
    request = Request("edit_file", "d", Effects(writes=("/w/a",)))
    grant = Grant()
    assert covered(request, Ask(grant, "it changes something"), "main", "/w", {}) == "edit_file"
    assert covered(request, Ask(grant, "a rule", by_rule=True), "main", "/w", {}) != "edit_file"
