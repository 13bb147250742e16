"""A running program can't redirect the mounts of a later sandbox by exchanging folders with links."""

import asyncio

from bwrap import needs_bwrap

from bradawl.core.errors import ToolError
from bradawl.core.workspace import Command

pytestmark = needs_bwrap
SWAP = """
import contextlib, ctypes, itertools, os, sys
libc = ctypes.CDLL(None)
for act in (
    lambda: os.makedirs("n/x"), lambda: os.symlink(sys.argv[1], "n/xl"), lambda: os.makedirs("real/objects"),
    lambda: os.makedirs("real/refs"), lambda: open("real/HEAD", "w").write("ref: refs/heads/main"),
    lambda: os.symlink("../real", "n/.git"),
):
    act()
print("ready", flush=True)
for each in itertools.count():
    libc.renameat2(-100, b"n/x", -100, b"n/xl", 2)
    if each % 200 == 0 and not os.path.lexists("n/.git"):
        with contextlib.suppress(OSError):
            os.symlink("../real", "n/.git")
"""


async def _try_often(made, line: str, times: int) -> None:
    command = Command((f"exec python3 swap.py {made.outside}",), str(made.root), is_shell=True)
    running = await made.processes.start(command, made.grant)
    try:
        for _ in range(200):
            if (made.root / "n/.git").is_symlink():
                break
            await asyncio.sleep(0.05)
        for _ in range(times):
            try:
                await made.arun(line)
            except ToolError:
                continue
    finally:
        await running.end()


async def test_nothing_is_written_outside_while_a_folder_is_exchanged_with_a_link(made):
    made.write("swap.py", SWAP)
    await _try_often(made, "for each in 1 2 3 4; do echo x > n/x/new$each; done 2>/dev/null; true", 60)
    assert [path.name for path in made.outside.iterdir()] == ["file"]


async def test_nothing_hidden_is_read_while_a_covered_folder_is_exchanged_with_a_link(made):
    swap = SWAP.replace('b"n/x", -100, b"n/xl"', 'b"n", -100, b"nl"').replace('"n/xl"', '"nl"')
    made.write("swap.py", swap)
    made.outside = made.home / ".ssh"

    command = Command((f"exec python3 swap.py {made.outside}",), str(made.root), is_shell=True)
    running = await made.processes.start(command, made.grant)
    printed = b""
    try:
        for _ in range(60):
            printed += (await made.arun("cat n/id_ed25519 nl/id_ed25519")).stdout
    finally:
        await running.end()
    assert b"PRIVATE" not in printed


def test_files_beside_a_new_link_are_writable_while_another_program_runs_and_afterwards(made):
    made.write("a/sub/file")
    made.write("b/sub/file")
    real = made.git_init("real")
    made.cwd = str(made.root)
    (made.root / "b/.git").symlink_to(real)

    async def while_one_runs(line: str) -> list[int | None]:
        running = await made.processes.start(Command((line,), made.cwd, is_shell=True), made.grant)
        while not (made.root / "ready").exists():  # noqa: ASYNC110 - another program makes it
            await asyncio.sleep(0.02)
        (made.root / "ready").unlink()
        (made.root / "a/.git").symlink_to(real)
        try:
            return [(await made.arun(f"echo x > {name}/sub/file")).exit_code for name in ("a", "b")]
        finally:
            await running.end()

    assert asyncio.run(while_one_runs("touch ready; exec sleep 30")) == [0, 0]
    (made.root / "a/.git").unlink(missing_ok=True)
    assert asyncio.run(while_one_runs("cd a; touch ../ready; exec sleep 30")) == [1, 0], (
        "the job could replace the link"
    )
    assert made.run("echo x > a/sub/file && echo x > b/sub/file").exit_code == 0
