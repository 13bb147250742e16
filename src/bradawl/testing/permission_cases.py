"""Cases of a list of attacks (shell lines, paths, files of a project), judged one by one without touching anything.

`bradawl permissions check --stdin` answers such a list. docs/attacks.md describes the format.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Set
from hashlib import sha256
from pathlib import Path
from typing import Final, NoReturn, TextIO, TypeVar

import msgspec

from bradawl.agent.calls.seen_files import SeenFiles
from bradawl.core.arguments import decode
from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.core.events import State
from bradawl.core.permissions import Mode, Policy
from bradawl.core.ports import CallContext, Tool
from bradawl.core.rules import Rule, path_rules
from bradawl.core.workspace import Command
from bradawl.safety.git.config import GitConfig
from bradawl.safety.permissions.dry_run import REASON_LIMIT, Verdict, dry_run, error_as_verdict
from bradawl.safety.trust.findings import ProjectSettings
from bradawl.testing.project_file_cases import verdict_on_file
from bradawl.testing.virtual_tree import Overlay, VirtualTree, links_in
from bradawl.tools.bash import Bash, BashParams
from bradawl.tools.edit_file import EditFile, EditFileParams
from bradawl.tools.glob import Glob, GlobParams
from bradawl.tools.grep import Grep, GrepParams
from bradawl.tools.read_file import ReadFile, ReadFileParams
from bradawl.tools.write_file import WriteFile, WriteFileParams

_LINE_LIMIT: Final = 16_000_000
"""Characters of one line, and of what its repetitions expand to."""
_SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
P = TypeVar("P", bound=msgspec.Struct)
_AGENT_FOLDER: Final = re.compile(r"(?<![\w.-])\.(agent)(?![\w.-])", re.IGNORECASE)


class CaseWorkspace(msgspec.Struct, frozen=True):
    """The workspace of cases. One that does not exist is treated as a clean git repository."""

    workspace: str
    """Absolute, without links. It holds `link_to_outside`, a link to `/outside`."""
    home: str
    policy: Callable[[Mode], Policy]
    """The policy in force in a mode."""
    project_settings: ProjectSettings
    switches: Set[str]
    """Flags of the command line that take no value."""
    read_git_file: Callable[[str, int], bytes | None]
    """Reads a file of git's configuration by its path; None if it is missing or has more bytes than the number."""
    mode: Mode | None = None
    """None: `default` for shell lines, `accept-edits` for paths."""


def answers(lines: TextIO, workspace: CaseWorkspace) -> Iterator[str]:
    """The answer to each line, before the next line is read."""
    judge = CaseJudge(workspace)
    for line in _bounded(lines):
        yield answer_line(judge, line)


def _bounded(lines: TextIO) -> Iterator[str | None]:
    """The lines, None for one that is too long."""
    while line := lines.readline(_LINE_LIMIT):
        is_whole = len(line) < _LINE_LIMIT or line.endswith("\n")
        while line and not line.endswith("\n") and len(line) == _LINE_LIMIT:
            line = lines.readline(_LINE_LIMIT)
            is_whole = False
        yield line if is_whole else None


def answer_line(judge: "CaseJudge", line: str | None) -> str:
    """The answer to one line: a JSON object on a line, in ASCII. Never raises."""
    if line is None:
        return _answer(None, Verdict("error", f"the line has more than {_LINE_LIMIT:,} characters"))
    try:
        case = decode(line)
    except (ValueError, RecursionError) as error:
        return _answer(None, Verdict("error", f"the line is not JSON: {error}"))
    if not isinstance(case, dict):
        return _answer(None, Verdict("error", 'the line is not an object with "id", "kind" and "input"'))
    try:
        wanted = _Expansion().of(case.get("input"))
    except (ValueError, RecursionError) as error:
        return _answer(case.get("id"), Verdict("error", str(error)))
    return _answer(case.get("id"), judge.case(case.get("kind"), wanted))


def _answer(case_id: object, verdict: Verdict) -> str:
    name = case_id if isinstance(case_id, str | int | float | None) else None
    answer = {"id": name, "decision": verdict.decision, "reason": verdict.reason[:REASON_LIMIT]}
    return json.dumps(answer) + "\n"


class _Expansion:
    """Expands `{"$repeat": [text, times]}`, and replaces the folder `.agent` of the lists by `.bradawl`."""

    def __init__(self) -> None:
        self._left = _LINE_LIMIT

    def of(self, value: object) -> object:
        """The expanded value. Raises `ValueError` if it is too large."""
        match value:
            case {"$repeat": [str(text), int(times)], **others} if not others:
                self._left -= len(text) * max(times, 0)
                if self._left < 0:
                    raise ValueError(f"it has more than {_LINE_LIMIT:,} characters, which no call can have")
                return _with_own_folder(text * times)
            case str():
                return _with_own_folder(value)
            case list():
                return [self.of(each) for each in value]
            case dict():
                return {key: self.of(each) for key, each in value.items()}
            case _:
                return value


def _with_own_folder(text: str) -> str:
    return _AGENT_FOLDER.sub(lambda found: ".BRADAWL" if found[1].isupper() else ".bradawl", text)


# ------------------------------------------------------------------ judging


class CaseJudge:
    """Judges cases. Its methods do not raise."""

    def __init__(self, workspace: CaseWorkspace) -> None:
        self._in = workspace
        self._assumed = "" if Path(workspace.workspace).is_dir() else workspace.workspace
        self._git = GitConfig(workspace.read_git_file, {}, workspace.home)

    def case(self, kind: object, case: object) -> Verdict:
        """The verdict on a case of a kind: `shell`, `path` or `config`."""
        return error_as_verdict(lambda: self._case(kind, case))

    def _case(self, kind: object, case: object) -> Verdict:
        match kind, case:
            case "shell", str():
                return self._shell(case)
            case "path", {"op": str(operation), "path": str(path), **rest}:
                return self._path(operation, path, rest.get("setup", ""))
            case "config", {"file": str(file), "content": content}:
                verdict, reason = verdict_on_file(file, content, self._in.project_settings, self._in.switches)
                # Hidden characters are shown spelled out, and the file takes effect.
                return Verdict("allow" if verdict == "sanitize" else verdict, reason)
            case (("shell" | "path" | "config"), _):
                return Verdict("error", f"this is not a case of the kind {kind}")
            case _:
                return Verdict("error", "the kinds that can be judged here are shell, path and config")

    def _shell(self, command: str) -> Verdict:
        place, tree = self._in, self._tree({})
        bash = Bash(
            home=place.home,
            search_path=_SYSTEM_PATH,
            workspace=(place.workspace,),
            git_is_safe=self._git_is_safe,
            git_reads=self._git_reads,
            entries=tree.entries,
            sandbox=lambda: place.policy("auto").sandbox,
        )
        return self._call(bash, BashParams(command), tree, place.mode or "default")

    def _git_is_safe(self, folder: str) -> bool:
        """Whether git is safe in a folder. The configuration of a repository that does not exist counts as harmless."""
        return self._is_assumed(folder) or self._git.is_safe(folder)

    def _git_reads(self, folder: str, **how: bool) -> tuple[str, ...] | None:
        return () if self._is_assumed(folder) else self._git.reads(folder, **how)

    def _is_assumed(self, folder: str) -> bool:
        return bool(self._assumed) and is_within(folder, self._assumed)

    def _path(self, operation: str, path: str, setup: object) -> Verdict:
        links = links_in(setup, self._in.workspace, self._in.home) if isinstance(setup, str) and setup else {}
        if links is None or not isinstance(setup, str):
            return Verdict("error", f"this can't be set up without doing it: {setup}")
        tree = self._tree(links)
        verdict = self._done_to(path, operation, tree, self._in.mode or "accept-edits")
        problem = _problem(verdict, tree, operation)
        return Verdict("error", problem, verdict.effects) if problem else verdict

    def _done_to(self, path: str, operation: str, tree: VirtualTree, mode: Mode) -> Verdict:
        match operation:
            case "read":
                return self._call(ReadFile(), ReadFileParams(path), tree, mode)
            case "write":
                return self._call(WriteFile(), WriteFileParams(path, "new\n"), tree, mode)
            case "edit":
                return self._call(EditFile(), EditFileParams(path, "old", "new"), tree, mode)
            case "glob":
                return self._call(Glob(), GlobParams(path), tree, mode)
            case "grep":
                return self._call(Grep(None), GrepParams("text", path), tree, mode)
            case _:
                return Verdict("error", f"{operation} is not done to paths; read, write, edit, glob and grep are")

    def _tree(self, links: Mapping[str, str]) -> VirtualTree:
        outward = {f"{self._in.workspace}/link_to_outside": "/outside"}
        return VirtualTree(self._in.home, Overlay(self._assumed, {**outward, **links}))

    def _call(self, tool: Tool[P], params: P, tree: VirtualTree, mode: Mode) -> Verdict:
        policy = self._in.policy(mode)
        return dry_run(tool, params, self._context(tree, path_rules(policy.rules)), policy)

    def _context(self, tree: VirtualTree, rules: tuple[Rule, ...]) -> CallContext:
        return CallContext(
            call_id="check",
            cwd=self._in.workspace,
            files=tree,
            processes=_NoProcesses(),
            seen=SeenFiles({}, _ignore),
            grant=None,
            progress=_ignore,
            change=_ignore,
            rules=rules,
        )


def _ignore(_: State | str) -> None:
    """A call that is not made reports nothing."""


class _NoProcesses:
    """`Processes` that start nothing."""

    def seal(self, command: Command) -> str:
        return sha256(repr((command.argv, command.cwd)).encode("utf-8", "surrogatepass")).hexdigest()

    async def run(self, command: Command, grant: object, progress: object = None, permit: object = None) -> NoReturn:
        raise ToolError(f"{command.argv[:1]} is not started: {grant}, {progress}")

    async def start(self, command: Command, grant: object, progress: object = None, permit: object = None) -> NoReturn:
        raise ToolError(f"{command.argv[:1]} is not started: {grant}, {progress}")


def _problem(verdict: Verdict, tree: VirtualTree, operation: str) -> str:
    """Why an allowed call would fail. For a device this wins over a question."""
    effects = verdict.effects
    if effects is None or verdict.decision not in ("allow", "ask"):
        return ""
    for place in (*effects.reads, *effects.writes):
        kind = tree.kind(place)
        if kind == "device":
            return f"{place} is not a regular file (a device, pipe or socket)"
        if verdict.decision == "ask":
            continue
        if kind == "folder" and operation in ("read", "write", "edit"):
            return f"{place} is a folder, not a file"
        if kind == "missing" and operation != "write":
            return f"{place} does not exist"
    return ""
