"""Compares `grep` and `glob` with ripgrep: `python benchmarks/search.py [files] [folder]`.

Creates a tree of files (by default 100,000, from a seed, so that it is the same on every machine), and times each
search in turn: ripgrep as a person would start it, the tool with ripgrep, the tool without. Prints the best times,
their ratios and the memory used. With a folder the tree is kept there for the next run.
"""

import asyncio
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bradawl.agent.calls.seen_files import SeenFiles
from bradawl.app.program_paths import find_ripgrep
from bradawl.core.permissions import Grant
from bradawl.core.ports import CallContext
from bradawl.tools.glob import Glob
from bradawl.tools.grep import Grep
from bradawl.workspace.files import LocalFiles
from bradawl.workspace.folder_walk import own_ignore_file
from bradawl.workspace.processes import LocalProcesses

FILES = 100_000
ROUNDS = 5
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ENDINGS = ("py",) * 30 + ("ts", "js") * 15 + ("md", "json", "txt") * 10 + ("c", "h", "go", "rs", "toml") * 2


class Case(NamedTuple):
    """One search, as a command line and as the tool's arguments."""

    tool: str
    rg: tuple[str, ...]
    arguments: dict[str, str]


CASES = (
    Case("grep", ("needle",), {"pattern": "needle"}),
    Case("grep", ("nowhere to be found",), {"pattern": "nowhere to be found"}),
    Case("grep", ("common",), {"pattern": "common"}),
    Case("grep", ("-c", "common"), {"pattern": "common", "output_mode": "count"}),
    Case("grep", ("-l", "common"), {"pattern": "common", "output_mode": "files"}),
    Case("grep", ("-tpy", r"\w+ing\b"), {"pattern": r"\w+ing\b", "type": "py"}),
    Case("glob", ("--files", "-g", "**/*.toml"), {"pattern": "**/*.toml"}),
    Case("glob", ("--files", "-g", "**/*.py"), {"pattern": "**/*.py"}),
    Case("glob", ("--files", "--sortr=modified", "-g", "**/*.py"), {"pattern": "**/*.py"}),
)


def make_tree(root: Path, files: int) -> None:
    """Write the files. Their content depends only on their number."""
    draw = random.Random(1)  # noqa: S311 - a tree, not a secret
    words = ["".join(draw.choices(_LETTERS, k=draw.randint(3, 9))) for _ in range(2_000)]
    folders = [root]
    made = 0
    while made < files:
        folder = draw.choice(folders[-400:]) / f"{draw.choice(words)}{len(folders)}"
        if len(folder.parts) - len(root.parts) > 8:
            folder = root / folder.name
        folder.mkdir(parents=True)
        folders.append(folder)
        for number in range(min(draw.randint(5, 25), files - made)):
            name = f"{draw.choice(words)}{number}.{draw.choice(_ENDINGS)}"
            (folder / name).write_text(_text(draw, words))
            made += 1
    (root / ".gitignore").write_text("node_modules/\n*.log\n")
    (root / ".git").mkdir()


def _text(draw: random.Random, words: list[str]) -> str:
    lines = [" ".join(draw.choices(words, k=8)) for _ in range(draw.randint(5, 60))]
    if draw.random() < 0.001:
        lines.append("needle here")
    if draw.random() < 0.5:
        lines.append("import common")
    return "\n".join(lines) + "\n"


class Bench:
    """Runs the tools on one tree."""

    def __init__(self, root: Path, rg: str) -> None:
        self.root = os.path.realpath(root)
        self.rg = rg
        self.processes = LocalProcesses(os.environ)
        self.tools = {
            "grep": Grep(rg, ignore_file=own_ignore_file),
            "glob": Glob(rg, own_ignore_file),
        }

    def context(self) -> CallContext:
        """Context of a call with real files and processes."""
        return CallContext(
            call_id="call",
            cwd=self.root,
            files=LocalFiles(),
            processes=self.processes,
            seen=SeenFiles({}, lambda _: None),
            grant=Grant(),
            progress=lambda _: None,
            change=lambda _: None,
        )

    def ripgrep(self, case: Case) -> None:
        """Run ripgrep as a person would start it."""
        argv = (self.rg, "--no-config", *case.rg, *([] if case.tool == "glob" else ["."]))
        subprocess.run(argv, cwd=self.root, stdout=subprocess.PIPE, check=False)

    def tool(self, case: Case) -> None:
        """Call the tool as a model would."""
        tool = self.tools[case.tool]
        asyncio.run(tool.run(tool.params(**case.arguments), self.context()))


def seconds(work: Callable[[], None]) -> float:
    """Duration of the action in seconds."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def compare(bench: Bench, case: Case) -> None:
    """Time both in turn and print a line."""
    times: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        times.append((seconds(lambda: bench.ripgrep(case)), seconds(lambda: bench.tool(case))))
    rg, ours = (min(column) for column in zip(*times, strict=True))
    name = f"{case.tool}: rg {' '.join(case.rg)}"
    print(f"{name:46} {rg * 1e3:6.0f} ms   ours {ours * 1e3:6.0f} ms = {ours / rg:4.2f} x")


def main(arguments: list[str]) -> int:
    """Create the tree if it is missing, and compare. Returns the exit code."""
    files = int(arguments[0]) if arguments else FILES
    rg = find_ripgrep()
    if rg is None:
        print("there is no ripgrep to compare with")
        return 1
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(arguments[1] if len(arguments) > 1 else temporary, f"tree-{files}")
        if not root.exists():
            make_tree(root, files)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        bench = Bench(root, rg)
        try:
            for case in CASES:
                compare(bench, case)
        finally:
            bench.processes.close()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        print(f"memory: {before / 1e3:.0f} MB before, {peak / 1e3:.0f} MB at most, largest child {child / 1e3:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
