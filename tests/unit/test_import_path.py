"""bradawl never imports a module of the project, however it is started there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bradawl.safety.import_path import leave_out_the_project

# Modules imported at start-up, except those that the interpreter itself imports before it runs a program.
NAMES = """
    asyncio argparse msgspec json typing gc shlex tomllib selectors ssl hashlib subprocess tempfile unicodedata
    concurrent logging email html h11 httpx2 truststore brotli zstandard socksio
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    ws = tmp_path / "ws"
    (ws / "sub").mkdir(parents=True)
    for name in NAMES.split():
        (ws / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r} + ' ')\n")
    return ws


@pytest.mark.parametrize(
    ("arguments", "python_path"),
    [
        (("-m", "bradawl"), None),
        (("-m", "bradawl"), "."),
        (("-c", "from bradawl.app.cli import main; main()"), None),
    ],
)
@pytest.mark.parametrize(
    "command", [("--version",), ("-p", "hi"), ("doctor", "--json"), ("permissions", "check", "ls")]
)
def test_no_module_of_the_working_directory_is_imported(hostile, tmp_path, arguments, python_path, command):
    if arguments[0] == "-c":
        # As a program in `bin` starts it: its folder comes first, and an empty entry of PYTHONPATH second.
        arguments = ("-c", f"import sys; sys.path[:1] = ['/usr/bin']; sys.path.insert(99, ''); {arguments[1]}")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BRADAWL"))}
    environment |= {"HOME": str(tmp_path)} | ({} if python_path is None else {"PYTHONPATH": python_path})
    done = subprocess.run(
        [sys.executable, *arguments, *command],
        cwd=hostile,
        env=environment,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()
    assert "Traceback" not in done.stderr, done.stderr


def test_relative_entries_and_those_of_the_project_are_removed_from_the_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    library = str(Path(os.__file__).parent)
    own = str(Path(sys.modules["bradawl"].__file__ or "").parents[1])
    path = ["", ".", "src", "/ws", "/ws/src", "/else", own, library, "/ws/.venv/lib/python3/site-packages", "tail"]
    leave_out_the_project(path, "/ws")
    assert path == ["/else", own, library, "/ws/.venv/lib/python3/site-packages"]
    path = [own, library]
    leave_out_the_project(path, own)
    assert path == [own, library]
