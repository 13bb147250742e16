"""A working directory whose name is not UTF-8 is refused; no call runs in another folder instead."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tool_calls import workspace

from bradawl.app.build.agent import build_agent
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.settings import Settings
from bradawl.core.errors import SettingsError
from bradawl.tools.bash import Bash

NAMES = [b"bad\xff", b"\xed\xa0\x80surrogate", b"ok\xc3(", b"caf\xe9", b"\xff\xfe"]


def make_folder(parent: Path, name: bytes) -> str:
    path = os.fsdecode(os.fsencode(parent) + b"/" + name)
    Path(path).mkdir()
    return path


def run_program(cwd: str, *argv: str, calls: list[str], home: Path) -> subprocess.CompletedProcess[bytes]:
    script = home / "script.json"
    turns = [{"tool_calls": [{"name": "bash", "arguments": {"command": each}}]} for each in calls]
    script.write_text(json.dumps([*turns, {"text": "done"}]))
    return subprocess.run(
        [sys.executable, "-m", "bradawl", *argv],
        env={"HOME": str(home), "PATH": os.environ["PATH"], "BRADAWL_MODEL": f"scripted/{script}"},
        cwd=cwd,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )


def entries(parent: Path) -> list[bytes]:
    return sorted(os.listdir(os.fsencode(parent)))  # noqa: PTH208 - names that are not UTF-8, as bytes


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_a_run_in_a_folder_that_is_not_utf8_stops_before_its_first_call(tmp_path, name, sandbox):
    home, parent = tmp_path / "home", tmp_path / "parent"
    home.mkdir()
    parent.mkdir()
    folder = make_folder(parent, name)
    argv = ("-p", "work", "--allowed-tools", "Bash", "--sandbox", sandbox)
    ended = run_program(folder, *argv, calls=["pwd", "touch made", "touch made_again"], home=home)
    assert ended.returncode == 2, ended.stderr
    message = ended.stderr.decode()
    assert "is not UTF-8" in message and "Rename it" in message and "internal error" not in message
    assert name.decode("utf-8", "backslashreplace") in message
    assert entries(parent) == [name] and not entries(Path(folder))


def one_line(ended: "subprocess.CompletedProcess[bytes]") -> bytes:
    """What a program printed. It breaks lines wherever the length of a path requires it."""
    return b" ".join((ended.stdout + ended.stderr).split())


@pytest.mark.parametrize("argv", [("doctor",), ("trust",), ("permissions", "check", "ls"), ("models",)])
def test_subcommands_report_a_folder_that_is_not_utf8(tmp_path, argv):
    ended = run_program(make_folder(tmp_path, b"bad\xff"), *argv, calls=[], home=tmp_path)
    assert ended.returncode in (1, 2), ended.stderr
    assert b"not UTF-8" in one_line(ended)
    assert b"internal error" not in ended.stderr + ended.stdout and b"Traceback" not in ended.stderr


@pytest.mark.parametrize("option", ["-C", "--cd", "--add-dir"])
@pytest.mark.parametrize("twin", ["bad\ufffd", "bad?", "bad"])
def test_an_option_with_such_a_folder_does_not_select_a_folder_of_similar_name(tmp_path, option, twin):
    make_folder(tmp_path, b"bad\xff")
    (tmp_path / twin).mkdir()
    ended = run_program(str(tmp_path), "-p", "x", option, "bad\udcff", calls=["touch made"], home=tmp_path)
    assert ended.returncode == 2 and b"not UTF-8" in ended.stderr and rb"bad\xff" in ended.stderr, ended.stderr
    assert not (tmp_path / twin / "made").exists()


@pytest.mark.parametrize("option", ["-C", "--add-dir"])
def test_a_link_to_a_folder_that_is_not_utf8_is_refused(tmp_path, option):
    (tmp_path / "link").symlink_to(make_folder(tmp_path, b"bad\xff"))
    ended = run_program(str(tmp_path), "-p", "x", option, "link", calls=["touch made"], home=tmp_path)
    assert ended.returncode == 2 and b"not UTF-8" in ended.stderr, ended.stderr


def test_a_prompt_may_contain_any_bytes(tmp_path):
    ended = run_program(str(tmp_path), "-p", "what is \udcff?", calls=[], home=tmp_path)
    assert ended.returncode == 0 and ended.stdout == b"done\n", ended.stderr


def test_an_agent_built_by_the_library_refuses_the_folder_too(tmp_path):
    settings = Settings(
        model=ModelSettings(provider="scripted", name="x"),
        cwd=make_folder(tmp_path, b"bad\xff"),
        home=str(tmp_path / "home"),
    )
    with pytest.raises(SettingsError, match="not UTF-8"):
        build_agent(settings)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", ["cd */ && pwd", "cd */; touch made", "pushd */ >/dev/null"])
async def test_a_line_that_ends_in_such_a_folder_does_not_change_the_working_directory(tmp_path, name, command):
    make_folder(tmp_path, name)
    with workspace(tmp_path) as place:
        text = await place.text(Bash(), command=command)
        assert f"is not UTF-8, so it is not kept: the working directory is still {tmp_path}]" in text
        assert "is now" not in text
        assert await place.text(Bash(), command="pwd") == f"{tmp_path}\n[exit code 0]"
        text.encode()


@pytest.mark.parametrize("variable", ["BRADAWL_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "HOME"])
@pytest.mark.parametrize("argv", [("doctor",), ("-p", "x")])
def test_a_folder_of_bradawls_own_that_is_not_utf8_is_a_problem_that_is_named(tmp_path, variable, argv):
    folder, script = make_folder(tmp_path, b"bad\xff"), tmp_path / "script.json"
    script.write_text('[{"text": "done"}]')
    variables = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "BRADAWL_MODEL": f"scripted/{script}"}
    ended = subprocess.run(
        [sys.executable, "-m", "bradawl", *argv],
        env={**variables, variable: folder},
        cwd=tmp_path,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    said = one_line(ended)
    assert ended.returncode != 0 and b"not UTF-8" in said and rb"bad\xff" in said and b"BRADAWL_HOME" in said, said
    assert b"Traceback" not in said and b"internal error" not in said
    assert entries(Path(folder)) == []
