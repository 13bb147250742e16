"""`bradawl permissions check`: what would be decided about a call, and why. Nothing is run, read or written."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal, NoReturn, TypeVar

import msgspec

from bradawl.agent.agent import Agent
from bradawl.agent.seen import SeenFiles
from bradawl.app.console import Console
from bradawl.app.git_files import read_whole
from bradawl.app.model_settings import ModelSettings
from bradawl.app.permission_settings import mode_in
from bradawl.app.settings import Settings, read_settings
from bradawl.app.virtual_tree import Overlay, VirtualTree, links_in
from bradawl.core.arguments import decode
from bradawl.core.effects import Effects, is_within
from bradawl.core.errors import BradawlError, SettingsError, ToolError
from bradawl.core.events import State
from bradawl.core.permissions import Allow, Ask, Deny, Grant, Mode, Policy, Request, decide
from bradawl.core.ports import CallContext, Tool
from bradawl.core.rules import Rule, path_rules
from bradawl.core.workspace import Command
from bradawl.safety.git.config import GitConfig
from bradawl.safety.permissions.protected_paths import built_in_rules
from bradawl.tools.bash import Bash, BashParams
from bradawl.tools.edit_file import EditFile, EditFileParams
from bradawl.tools.glob import Glob, GlobParams
from bradawl.tools.grep import Grep, GrepParams
from bradawl.tools.read_file import ReadFile, ReadFileParams
from bradawl.tools.write_file import WriteFile, WriteFileParams

_LINE_LIMIT: Final = 16_000_000
"""Characters of one line, and of what its repetitions come to."""
_REASON_LIMIT: Final = 1_000
_SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_AS_IN_CASES: Final = ("/ws", "/home/u")
"""Workspace and home folder that cases speak of."""
_FAILURES: Final = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, OSError, RuntimeError, TypeError),
    *(ValueError, BradawlError),
)
P = TypeVar("P", bound=msgspec.Struct)
_OF_A_CASE: Final = re.compile(r"(?<![\w.-])\.(agent)(?![\w.-])", re.IGNORECASE)


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """What would be decided."""

    decision: Literal["allow", "ask", "deny", "error"]
    """`error`: the call makes no sense and would be answered with an error."""
    reason: str
    effects: Effects | None = None
    """What it would touch, as far as that can be told."""
    grant: Grant | None = None
    """What it would get if it were allowed."""


PolicyIn = Callable[[Mode], Policy]
"""The policy in force in a mode."""


class ShellContext(msgspec.Struct, frozen=True):
    """What calls are judged against."""

    workspace: str
    """Absolute, without links."""
    home: str
    policy: PolicyIn
    roots: tuple[str, ...]
    """All folders of the workspace."""
    environment: Mapping[str, str] = {}
    mode: Mode | None = None
    """None: each kind of call in the mode that is usual for it."""
    is_made_up: bool = False
    """Cases are judged: the workspace may be missing, and holds a link out of it."""


class Judge:
    """Judges calls that nobody makes. Its methods never raise."""

    def __init__(self, surroundings: ShellContext) -> None:
        self._around = surroundings
        is_missing = surroundings.is_made_up and not Path(surroundings.workspace).is_dir()
        self._project = surroundings.workspace if is_missing else ""
        self._git = GitConfig(read_whole, surroundings.environment, surroundings.home)

    def case(self, kind: object, case: object) -> Verdict:
        """A case of a list: its kind, and what is to be judged."""
        return _guarded(lambda: self._case(kind, case))

    def shell(self, command: str) -> Verdict:
        """A line of bash."""
        return _guarded(lambda: self._shell(command))

    def _case(self, kind: object, case: object) -> Verdict:
        match kind, case:
            case "shell", str():
                return self._shell(case)
            case "path", {"op": str(operation), "path": str(path), **rest}:
                return self._path(operation, path, rest.get("setup", ""))
            case "config", {"file": str(file), "content": content}:
                from bradawl.safety.trust.settings_review import judge

                verdict, reason = judge(file, content)
                # What is only to be cleaned counts all the same.
                return Verdict("allow" if verdict == "sanitize" else verdict, reason)
            case (("shell" | "path" | "config"), _):
                return Verdict("error", f"this is no case of the kind {kind}")
            case _:
                return Verdict("error", "the kinds that can be judged here are shell, path and config")

    # -------------------------------------------------------------- calls

    def _shell(self, command: str) -> Verdict:
        around, tree = self._around, self._tree({})
        bash = Bash(
            home=around.home,
            search_path=around.environment.get("PATH") or _SYSTEM_PATH,
            workspace=around.roots,
            git_is_safe=self._git_is_safe,
            git_reads=self._git_reads,
            entries=tree.entries,
            sandbox=lambda: around.policy("auto").sandbox,
        )
        return self._call(bash, BashParams(command), tree, around.mode or "default")

    def _git_is_safe(self, folder: str) -> bool:
        """A repository that is only taken to be there has nothing odd in its configuration."""
        return self._is_made_up(folder) or self._git.is_safe(folder)

    def _git_reads(self, folder: str, **how: bool) -> tuple[str, ...] | None:
        return () if self._is_made_up(folder) else self._git.reads(folder, **how)

    def _is_made_up(self, folder: str) -> bool:
        return bool(self._project) and is_within(folder, self._project)

    def _path(self, operation: str, path: str, setup: object) -> Verdict:
        links = links_in(setup, self._around.workspace, self._around.home) if isinstance(setup, str) and setup else {}
        if links is None or not isinstance(setup, str):
            return Verdict("error", f"this can't be set up without doing it: {setup}")
        tree = self._tree(links)
        verdict = self._done_to(path, operation, tree, self._around.mode or "accept-edits")
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
        outward = {f"{self._around.workspace}/link_to_outside": "/outside"} if self._around.is_made_up else {}
        return VirtualTree(self._around.home, Overlay(self._project, {**outward, **links}))

    def _call(self, tool: Tool[P], params: P, tree: VirtualTree, mode: Mode) -> Verdict:
        """As the agent judges a call: effects, then the decision."""
        policy = self._around.policy(mode)
        return _judged(tool, params, self._context(tree, path_rules(policy.rules)), policy)

    def _context(self, tree: VirtualTree, rules: tuple[Rule, ...]) -> CallContext:
        return CallContext(
            call_id="check",
            cwd=self._around.workspace,
            files=tree,
            processes=_NoProcesses(),
            seen=SeenFiles({}, _ignore),
            grant=None,
            progress=_ignore,
            change=_ignore,
            rules=rules,
        )


def _judged(tool: Tool[P], params: P, context: CallContext, policy: Policy) -> Verdict:
    """As the agent judges a call: effects, then the decision."""
    try:
        effects = tool.effects(params, context)
    except ToolError as error:
        return Verdict("error", str(error))
    digest = sha256(repr(params).encode("utf-8", "surrogatepass")).hexdigest()
    match decide(policy, Request(tool.name, digest, effects)):
        case Allow(grant, reason):
            return Verdict("allow", reason, effects, grant)
        case Ask(grant, reason):
            return Verdict("ask", reason, effects, grant)
        case Deny(reason):
            return Verdict("deny", reason, effects)


def _ignore(_: State | str) -> None:
    """Nothing happens here that anybody would have to hear of."""


class _NoProcesses:
    """`Processes` that start nothing."""

    def seal(self, command: Command) -> str:
        return sha256(repr((command.argv, command.cwd)).encode("utf-8", "surrogatepass")).hexdigest()

    async def run(self, command: Command, grant: object, progress: object = None) -> NoReturn:
        raise ToolError(f"{command.argv[:1]} is not started: {grant}, {progress}")

    async def start(self, command: Command, grant: object, progress: object = None) -> NoReturn:
        raise ToolError(f"{command.argv[:1]} is not started: {grant}, {progress}")


def _problem(verdict: Verdict, tree: VirtualTree, operation: str) -> str:
    """Why an allowed call would come to nothing; a device isn't even worth a question."""
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


def _guarded(judge: Callable[[], Verdict]) -> Verdict:
    """Whatever is to be judged, there is a verdict."""
    try:
        return judge()
    except _FAILURES as error:
        return Verdict("error", f"it can't be judged: {type(error).__name__}: {str(error)[:_REASON_LIMIT]}")


# ------------------------------------------------------------------ cases, one a line


def _lines(console: Console) -> Iterator[str | None]:
    """Lines of stdin, None for one that is too long."""
    while line := console.stdin.readline(_LINE_LIMIT):
        is_whole = len(line) < _LINE_LIMIT or line.endswith("\n")
        while line and not line.endswith("\n") and len(line) == _LINE_LIMIT:
            line = console.stdin.readline(_LINE_LIMIT)
            is_whole = False
        yield line if is_whole else None


def answer_line(judge: Judge, line: str | None) -> str:
    """The answer to one line: a JSON object on a line, in ASCII, whatever came."""
    if line is None:
        return _answer(None, Verdict("error", f"the line has more than {_LINE_LIMIT:,} characters"))
    try:
        case = decode(line)
    except (ValueError, RecursionError) as error:
        return _answer(None, Verdict("error", f"the line is not JSON: {error}"))
    if not isinstance(case, dict):
        return _answer(None, Verdict("error", 'the line is no object with "id", "kind" and "input"'))
    try:
        wanted = _Expansion().of(case.get("input"))
    except (ValueError, RecursionError) as error:
        return _answer(case.get("id"), Verdict("error", str(error)))
    return _answer(case.get("id"), judge.case(case.get("kind"), wanted))


def _answer(case_id: object, verdict: Verdict) -> str:
    name = case_id if isinstance(case_id, str | int | float | None) else None
    answer = {"id": name, "decision": verdict.decision, "reason": verdict.reason[:_REASON_LIMIT]}
    return json.dumps(answer) + "\n"


class _Expansion:
    """Puts in what a case only names: `{"$repeat": [text, times]}`, and our folder's name for that of the lists."""

    def __init__(self) -> None:
        self._left = _LINE_LIMIT

    def of(self, value: object) -> object:
        """The same with everything put in. Raises `ValueError` if it is too large."""
        match value:
            case {"$repeat": [str(text), int(times)], **others} if not others:
                self._left -= len(text) * max(times, 0)
                if self._left < 0:
                    raise ValueError(f"it comes to more than {_LINE_LIMIT:,} characters, which no call can have")
                return _ours(text * times)
            case str():
                return _ours(value)
            case list():
                return [self.of(each) for each in value]
            case dict():
                return {key: self.of(each) for key, each in value.items()}
            case _:
                return value


def _ours(text: str) -> str:
    return _OF_A_CASE.sub(lambda found: ".BRADAWL" if found[1].isupper() else ".bradawl", text)


# ------------------------------------------------------------------ the command


def run_check(
    options: Mapping[str, object],
    environ: Mapping[str, str],
    console: Console,
    cwd: str,
    build: Callable[[Settings], Agent],
) -> int:
    """Judge a command, or the cases on stdin; prints JSON and gives back the exit code. Raises `SettingsError`.

    A command is judged by the very agent that `build` makes of the settings; cases as if nothing held them.
    """
    if options.get("stdin"):
        judge = Judge(surroundings_of_cases(options, cwd))
        for line in _lines(console):
            console.answer(answer_line(judge, line))
        return 0
    verdict = _judged_here(_settings_here(options, environ, cwd), str(options["shell_line"]), build)
    console.answer(json.dumps(msgspec.to_builtins(verdict), indent=2) + "\n")
    return 0


def surroundings_of_cases(options: Mapping[str, object], cwd: str) -> ShellContext:
    """Where cases are judged: nobody's rules count, and no sandbox holds anything. Raises `SettingsError`."""
    workspace, home = _AS_IN_CASES
    workspace = _folder(options.get("workspace") or workspace, cwd)
    home = _folder(options.get("home") or home, cwd)
    rules = built_in_rules((workspace,), home)

    def policy(mode: Mode) -> Policy:
        return Policy(mode, rules=rules, roots=(workspace,))

    return ShellContext(workspace, home, policy, (workspace,), mode=_mode(options), is_made_up=True)


def _settings_here(options: Mapping[str, object], environ: Mapping[str, str], cwd: str) -> Settings:
    """Those of a run in this folder, but for its model. Raises `SettingsError`."""
    given = {"cwd": options.get("workspace"), "permission_mode": _mode(options)}
    read = read_settings(given, environ, cwd)
    permissions = read.permissions
    return Settings(
        model=ModelSettings("none", "none"),  # none is asked
        cwd=read.given.cwd,
        project=read.project,
        home=read.home.data,
        user_home=_folder(options.get("home") or read.home.user, cwd),
        permission_mode=permissions.mode,
        may_bypass=permissions.may_bypass,
        is_mode_fixed=permissions.is_mode_fixed,
        sandbox=permissions.sandbox,
        add_dirs=permissions.add_dirs,
        rules=permissions.rules,
        kept_variables=permissions.kept_variables,
        is_trusted=read.is_trusted,
        user_tools=False,
        environment=dict(environ),
        key_names=tuple(dict.fromkeys(name for one in read.given.providers.values() for name in one.key_names)),
    )


def _judged_here(settings: Settings, command: str, build: Callable[[Settings], Agent]) -> Verdict:
    agent = build(settings)
    try:
        policy = agent.policy()
        bash = next((tool for tool in agent.tools if tool.name == "bash"), None)
        if bash is None:
            return Verdict("deny", "a rule refuses the tool bash, so the model is not offered it")
        context = CallContext(
            call_id="check",
            cwd=agent.project,
            files=agent.files,
            processes=agent.processes,
            seen=SeenFiles({}, _ignore),
            grant=None,
            progress=_ignore,
            change=_ignore,
            rules=path_rules(policy.rules),
        )
        return _guarded(lambda: _judged(bash, BashParams(command), context, policy))
    finally:
        if agent.on_close is not None:
            agent.on_close()


def _mode(options: Mapping[str, object]) -> Mode | None:
    mode = options.get("mode")
    return None if mode is None else mode_in(mode, "--mode")


def _folder(named: object, cwd: str) -> str:
    try:
        return os.path.realpath(Path(cwd, str(named)))
    except (OSError, ValueError) as error:
        raise SettingsError(f"{named!r} can't be a folder: {error}.") from error
