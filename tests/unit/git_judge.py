"""Permission decisions about git commands, and the output of git itself for comparison."""

import shutil
import subprocess
from pathlib import Path

import msgspec
from git_plants import Trap
from tool_calls import workspace

from bradawl.app.git_files import read_whole
from bradawl.app.git_status import GitStatus
from bradawl.core.permissions import Allow, Decision, Policy, Request, Sandbox, decide
from bradawl.core.rules import Rule, path_rules
from bradawl.safety.git.config import GitConfig
from bradawl.safety.permissions.protected_paths import built_in_rules
from bradawl.tools.bash import Bash, BashParams
from bradawl.workspace.processes import LocalProcesses

NONE, BUBBLEWRAP, LANDLOCK = Sandbox(), Sandbox("bubblewrap"), Sandbox("landlock", ("credentials",))
LINES = (
    *("git status", "git status -v", "git log -1", "git log --all", "git show", "git show HEAD:key", "git blame a.txt"),
    *("git diff", "git diff HEAD", "git branch -a", "git remote get-url other", "git reflog", "git for-each-ref"),
    *("git rev-parse other", "git stash list", "git worktree list", "git grep -n o", "git ls-files", "git describe"),
    *("git log other", "git blame link/secret", "git config --get default.token", "git count-objects -v"),
)


class Judge:
    """Decides about lines as a run does, with one cache of git's files."""

    def __init__(self, trap: Trap, sandbox: Sandbox = NONE, rules: tuple[Rule, ...] = ()) -> None:
        self._trap = trap
        self._rules = rules
        config = GitConfig(read_whole, trap.environment, str(trap.home))
        self._bash = Bash(
            home=str(trap.home),
            search_path="/usr/bin:/bin",
            workspace=(str(trap.ws),),
            sandbox=lambda: sandbox,
            git_is_safe=config.is_safe,
            git_reads=config.reads,
        )
        self._sandbox = sandbox

    def decided(self, line: str, folder: Path | None = None) -> Decision:
        return self._decided((line,), folder)[0]

    def unasked(self, folder: Path | None = None) -> list[str]:
        decisions = self._decided(LINES, folder)
        return [line for line, decision in zip(LINES, decisions, strict=True) if isinstance(decision, Allow)]

    def _decided(self, lines: tuple[str, ...], folder: Path | None) -> list[Decision]:
        roots = (str(self._trap.ws),)
        built_in = built_in_rules(roots, str(self._trap.home))
        policy = Policy("default", rules=(*built_in, *self._rules), roots=roots, sandbox=self._sandbox)
        with workspace(folder or self._trap.ws) as made:
            context = msgspec.structs.replace(made.context(), rules=path_rules(self._rules))
            effects = [self._bash.effects(BashParams(line), context) for line in lines]
        return [decide(policy, Request("bash", "digest", each)) for each in effects]


def shown_by_hand(trap: Trap, lines: tuple[str, ...] = LINES) -> str:
    """The output of git itself, with the environment of a user who owns the repository."""
    output = ""
    for line in lines:
        environment = {**trap.environment, "GIT_OPTIONAL_LOCKS": "0"}
        done = subprocess.run(line.split(), cwd=trap.ws, env=environment, capture_output=True, check=False, timeout=60)
        output += (done.stdout + done.stderr).decode(errors="replace")
    return output


async def status(trap: Trap, folder: Path | None = None) -> str | None:
    processes = LocalProcesses(trap.environment)
    try:
        config = GitConfig(read_whole, trap.environment, str(trap.home))
        ask = GitStatus(config, processes, shutil.which("git"), str(trap.home / "private-of-status"), 10)
        return await ask(str(folder or trap.ws))
    finally:
        processes.close()
