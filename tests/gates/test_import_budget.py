"""The modules that `bradawl -p` loads: forbidden ones, and a bound on the CPU time of its imports."""

import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from bradawl.testing.server import serve_in_thread

REFUSE_SANDBOX = Path(__file__).parents[1] / "refuse_sandbox.py"
PROGRAM = "import sys; from bradawl.app.cli import main; sys.exit(main())"
IMPORT_TIMES = ("-X", "importtime")
BARE = "import asyncio, msgspec"
IMPORTS = (
    "import bradawl.app.cli, gc; gc.set_threshold(50_000, 20, 50)\n"  # as `main` does before it imports the rest
    "import bradawl.app.launch, bradawl.app.build.agent, bradawl.app.headless, "
    "bradawl.providers.client, bradawl.providers.chat.codec, bradawl.providers.http_h11"
)

NEVER = {
    *("rich", "prompt_toolkit", "pygments", "pydantic", "tree_sitter", "unittest", "multiprocessing", "sqlite3"),
    *("difflib", "pytest", "hypothesis", "openai", "anthropic", "click", "curses", "readline", "xml", "doctest"),
}
ONLY_WITH_HTTP = {"h11", "dataclasses"}
ONLY_WITH_A_PROXY = {
    *("httpx2", "httpcore2", "anyio", "truststore", "idna", "tempfile", "email", "http", "importlib.metadata"),
    *("shutil", "sysconfig", "zlib", "bz2", "lzma"),
}

# Measured on two cores under load: 1.57 times the bare start without and 1.9 times with a model over
# HTTP, where httpx2 alone would make it 2.5; a busy machine moves the quotient of two CPU times by less than 0.3.
MOST_TIMES_BARE = 2.3


@dataclass(frozen=True)
class Place:
    """Home folder and project of one run."""

    home: Path
    project: Path

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "SYSTEMROOT", "TMPDIR"}}
        return {**kept, "HOME": str(self.home), "PYTHONDONTWRITEBYTECODE": ""}

    def run(
        self, *argv: str, options: tuple[str, ...] = (), before: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*before, sys.executable, *options, "-c", *argv],
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
        )

    def loaded(self, *argv: str) -> set[str]:
        """Modules that the code loads in addition to those of a bare start, with sub-modules and packages."""
        done = self.run(*argv, options=IMPORT_TIMES)
        assert done.returncode == 0, done.stderr[-2000:]
        return loaded_by(done)


def loaded_by(done: subprocess.CompletedProcess[str]) -> set[str]:
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    script = [
        {"text": "I look.", "tool_calls": [{"name": "read_file", "arguments": {"file_path": "script.json"}}]},
        {"text": "Done."},
    ]
    (project / "script.json").write_text(json.dumps(script), encoding="utf-8")
    return Place(home, project)


def within(modules: set[str], names: set[str]) -> list[str]:
    return sorted(
        module for module in modules if any(module == name or module.startswith(f"{name}.") for name in names)
    )


def test_a_scripted_one_shot_run_loads_no_http_library_no_terminal_and_no_validator(place: Place):
    extra = place.loaded(PROGRAM, "-p", "hello", "-m", "scripted/script.json") - place.loaded(BARE)
    assert "bradawl.agent.loop" in extra
    assert within(extra, NEVER | ONLY_WITH_HTTP | ONLY_WITH_A_PROXY) == []


def test_a_run_without_a_sandbox_loads_no_further_module(place: Place):
    """Such a run prints at its start what to install."""
    before = (sys.executable, str(REFUSE_SANDBOX), "both")
    if (tried := place.run("", before=before)).returncode:
        pytest.skip(tried.stderr.strip())
    done = place.run(PROGRAM, "-p", "hello", "-m", "scripted/script.json", options=IMPORT_TIMES, before=before)
    assert (done.returncode, "NO SANDBOX" in done.stderr) == (0, True), done.stderr[-2000:]
    assert within(loaded_by(done) - place.loaded(BARE), NEVER | ONLY_WITH_HTTP | ONLY_WITH_A_PROXY) == []


def test_a_one_shot_run_over_http_loads_h11_and_no_other_heavy_module(place: Place):
    with serve_in_thread([{"text": "Done."}]) as server:
        arguments = ("-p", "hello", "-m", "openai/gpt", "--base-url", server.base_url)
        extra = place.loaded(PROGRAM, *arguments) - place.loaded(BARE)
    assert "h11" in extra
    assert within(extra, NEVER | ONLY_WITH_A_PROXY) == []


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_version_and_help_load_neither_asyncio_nor_msgspec(place: Place, flag: str):
    assert within(place.loaded(PROGRAM, flag), {"asyncio", "msgspec", "bradawl.agent"}) == []


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="this system does not tell the CPU time of one child")
def test_the_imports_of_a_one_shot_run_cost_a_small_multiple_of_a_bare_start(place: Place):
    for code in (BARE, IMPORTS):
        cpu_seconds(place, code)  # compiles the modules and fills the file cache
    quotients: list[float] = []
    while not quotients or (quotients[-1] >= MOST_TIMES_BARE and len(quotients) < 4):  # a busy moment passes
        pairs = [(cpu_seconds(place, BARE), cpu_seconds(place, IMPORTS)) for _ in range(9)]
        quotients.append(statistics.median(imports / bare for bare, imports in pairs))
    assert quotients[-1] < MOST_TIMES_BARE, f"{quotients} times a bare start"


def cpu_seconds(place: Place, code: str) -> float:
    """User and system time of one interpreter that runs `code`."""
    process = os.posix_spawn(sys.executable, [sys.executable, "-c", code], place.environment)
    _, status, used = os.wait4(process, 0)
    assert status == 0
    return used.ru_utime + used.ru_stime
