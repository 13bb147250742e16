"""A folder with a repository that existed before is removed as a whole, and nothing is planted on the way."""

import asyncio
import os

import pytest
from bwrap import needs_bwrap
from sandboxed_session import SYSTEM_PATH, sandboxed_session

from bradawl.core.workspace import Command
from bradawl.sandbox.backend import Program
from bradawl.sandbox.removed_folders import removed_folders
from bradawl.tools.shell.sandbox_hints import notes_on

SETUP = (
    "git init -q -b main .; git config user.name A; git config user.email a@b.c; echo 1 > a; git add a;"
    " git commit -qm 1; mkdir -p build/_deps; git clone -q . build/_deps/dep;"
    " git -C build/_deps/dep config core.editor vim; echo x > build/x"
)


@needs_bwrap
@pytest.mark.parametrize(
    "line",
    [
        "rm -rf build",
        "rm -r -f ./build/_deps build/x",
        "rm -rf build && mkdir -p build/new; ls",
        "rm -rf build\nls -la",
    ],
)
def test_a_folder_with_a_repository_is_removed_as_a_whole(made, line):
    made.bare(SETUP)
    made.run("true")
    result = made.run(line)
    assert (result.exit_code, result.restored) == (0, ()), result.stderr
    assert not (made.root / "build/_deps").exists() and not (made.root / "build/x").exists()
    assert made.run("git status --short").stdout == b""


@needs_bwrap
def test_a_repository_that_was_removed_can_be_cloned_again(made):
    made.bare(SETUP)
    made.run("true")
    assert made.run("rm -rf build").restored == ()
    assert made.run("mkdir -p build/_deps && git clone -q . build/_deps/dep").restored == ()
    assert made.run("git -C build/_deps/dep config rerere.enabled true").restored == ()
    assert b"rerere" in (made.root / "build/_deps/dep/.git/config").read_bytes()


ARM = "printf '[core]\\n\\tfsmonitor = touch ran\\n' >> build/_deps/dep/.git/config"


@needs_bwrap
@pytest.mark.parametrize(
    "arm",
    [
        ARM,
        "printf '#!/bin/sh\\ntouch ran\\n' > build/_deps/dep/.git/hooks/post-index-change",
        "echo ../x > build/_deps/dep/.git/commondir",
        "mv build/_deps/dep/.git build/_deps/dep/data; echo 'gitdir: data' > build/_deps/dep/.git",
        "cp -r build/_deps/dep/.git g; printf '[core]\\n\\tfsmonitor = touch ran\\n' >> g/config;"
        " /bin/rm -rf build/_deps/dep/.git; mv g build/_deps/dep/.git",
    ],
)
def test_another_program_named_rm_can_arm_no_repository(tmp_path, arm):
    with sandboxed_session(tmp_path, {"PATH": f"{os.path.realpath(tmp_path)}/ws/bin:{SYSTEM_PATH}"}) as made:
        made.bare(SETUP)
        made.write("bin/rm", f"#!/bin/bash\n{arm}\n", 0o755)
        before = (made.root / "build/_deps/dep/.git/config").read_bytes()
        made.run("true")
        result = made.run("rm -rf build")
        assert result.restored
        after = (made.root / "build/_deps/dep/.git/config").read_bytes()
        assert after.removesuffix(b"[core]\n") == before
        assert not (made.root / "build/_deps/dep/.git/commondir").exists()
        made.bare("cd build/_deps/dep; touch a; git status")
        assert not list(made.root.rglob("ran"))


@needs_bwrap
async def test_while_a_job_runs_the_repository_stays_covered(made):
    await asyncio.to_thread(made.bare, SETUP)
    job = await made.processes.start(Command(("sleep 2",), made.cwd, is_shell=True), made.grant)
    result = await made.arun("rm -rf build")
    await job.wait(10)
    assert result.exit_code != 0
    note = notes_on(result, made.grant, user_is_there=True)[-1]
    assert "build/_deps/dep" in note and "only a part of" in note


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("rm -rf build", ("/ws/build",)),
        ("rm -fr a/b ../c /d", ("/ws/a/b", "/c", "/d")),
        ("rm --recursive a && ls; rm -R b", ("/ws/a", "/ws/b")),
        ("rm build", ()),
        ("rm -f build", ()),
        ("rm -rf build; make", ()),
        ("rm -rf build | sh", ()),
        ("rm -rf $X", ()),
        ("rm -rf *", ()),
        ("rm -rf 'a b'", ()),
        ("rm -rf a & ls", ()),
        ("echo rm -rf a", ()),
        ("rmdir -r a", ()),
        ("rm -rf `x`", ()),
        ("", ()),
    ],
)
def test_folders_that_a_line_removes(line, found):
    assert removed_folders(Program(("/bin/bash", "-c", line), "/ws", {}), "/ws") == found
    assert removed_folders(Program(("/bin/rm", "-rf", "a"), "/ws", {}), "/ws") == ()


@pytest.mark.parametrize("gap", ["\n\n\n", "\n \n\t\n", "\n" * 20_000])
def test_blank_lines_between_commands_cost_no_time(gap):
    """A backtracking pattern would need years for the first line, hours for the last."""
    line = gap.join(f"ls src/{number}" for number in range(60 if len(gap) < 10 else 3))
    for end, found in (("", ()), (gap + "rm -rf build" + gap, ("/ws/build",)), (gap + "make 'all'", ())):
        program = Program(("/bin/bash", "-c", line + end), "/ws", {})
        assert removed_folders(program, "/ws") == found
