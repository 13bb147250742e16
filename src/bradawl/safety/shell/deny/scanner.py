"""Scans a shell text for dangers that no permission mode allows, and lists the commands that it would start.

The scan is best effort and can only refuse a call: a text without findings still needs the permission of the rules or
the user.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from posixpath import join

import msgspec

from bradawl.safety.shell.deny.command_context import CommandContext
from bradawl.safety.shell.deny.deletions import hidden_deletions, hidden_shells, with_created_links
from bradawl.safety.shell.deny.destructive import HAZARD_CHECKS, hazard
from bradawl.safety.shell.deny.exfiltration import NETWORK, PipelineStage, code_hazard, leak, prints_secret, scripts_in
from bradawl.safety.shell.deny.expansion import FIELD, UNKNOWN_BUT_SET, UNKNOWN_VALUE, Values, any_of
from bradawl.safety.shell.deny.git_findings import GitFindings
from bradawl.safety.shell.deny.interpreter import Interpreter, Output, Redirects
from bradawl.safety.shell.deny.known_output import formatted, known_output, listed_paths, prints_paths
from bradawl.safety.shell.deny.oversized_text import obvious_danger
from bradawl.safety.shell.deny.protected_targets import SECRET, ProtectedTargets
from bradawl.safety.shell.deny.shell_state import STATE_BUILTINS, ShellState
from bradawl.safety.shell.deny.syntax import Limits
from bradawl.safety.shell.deny.wrappers import (
    INTERPRETERS,
    SHELLS,
    STARTS_NOTHING,
    Argv,
    Started,
    folder_of,
    name_of,
    names,
    started_by,
)
from bradawl.safety.shell.errors import ScanBudgetExceeded
from bradawl.safety.shell.glob_expansion import expanded

_MAX_TOKENS = 1_200
_MAX_COMMANDS = 150
_MAX_WORDS = 600  # of commands that are checked for paths
_MAX_NAMES = 400
_MAX_PROGRAMS = 8  # that one pattern names
_MAX_DEPTH = 12  # scripts in scripts, wrappers in wrappers
_MAX_CODE_LENGTH = 4_000


class ScanResult(msgspec.Struct, frozen=True):
    """Findings of a scan."""

    danger: str = ""
    argvs: tuple[Argv, ...] = ()
    """Words of all commands at any depth; `$` marks an unknown part."""
    is_whole: bool = True
    """Whether the scan reached the end of the text."""
    opaque: str = ""
    """Why it is unknown what a shell or interpreter would run; empty if none gets text that is not literal."""
    leaves: bool = False
    """Whether it changes to a folder outside the workspace, or to an unknown one."""
    opened: tuple[str, ...] = ()
    """Targets of redirections, and values assigned to variables."""
    folders: tuple[str, ...] = ()
    """Known working directories of its commands."""
    links: tuple[tuple[str, str], ...] = ()
    """Links that it creates, as (link, target)."""
    outputs: tuple[str, ...] = ()
    """Targets of redirections that write to a file."""
    forced: str = ""
    """Why it is asked about even if a rule allows it: a forced push; empty if there is none."""
    discards: str = ""
    """What its git commands discard that git does not keep."""
    undoable: bool = False
    """Whether undo could bring that back."""


def scan(text: str, *, cwd: str, protected: ProtectedTargets) -> ScanResult:
    """Scan a text as bash would run it in `cwd`. Never raises; budgets bound it to a few milliseconds for any text."""
    scanner = _Scanner(protected, cwd)
    try:
        scanner.read(text)
    except _DangerFound as found:
        return scanner.result(found.why)
    except (ScanBudgetExceeded, RecursionError):
        scanner.limits.is_whole = False
    if scanner.limits.is_whole:
        return scanner.result("")
    scanner.note_oversized(text)
    return scanner.result(obvious_danger(text))


class _DangerFound(Exception):
    """Ends a scan with the reason why the text must not run."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class _Scanner(Interpreter):
    """Checks each command, and follows the commands, scripts and code that it starts."""

    def __init__(self, protected: ProtectedTargets, cwd: str) -> None:
        super().__init__(ShellState(protected, cwd), Limits(_MAX_TOKENS))
        self._argvs: dict[Argv, None] = {}
        self._opened: dict[str, None] = {}
        self._outputs: dict[str, None] = {}
        self._opaque = ""
        self._git = GitFindings(self.state)
        self._visited: set[object] = set()
        self._commands_left = {True: _MAX_COMMANDS, False: _MAX_COMMANDS}
        """By `is_repeated`."""
        self._words_left = _MAX_WORDS
        self._depth = 0

    def result(self, why: str) -> ScanResult:
        """The findings so far, with `why` as the danger."""
        return ScanResult(
            danger=why,
            argvs=tuple(tuple(map(_displayable, words)) for words in self._argvs),
            is_whole=self.limits.is_whole,
            opaque=self._opaque,
            leaves=self.state.leaves,
            opened=tuple(map(_displayable, self._opened)),
            folders=tuple(self.state.folders),
            links=self.state.protected.links,
            outputs=tuple(map(_displayable, self._outputs)),
            forced=self._git.forced,
            discards=self._git.discards,
            undoable=self._git.undoable,
        )

    def note_oversized(self, text: str) -> None:
        """Search a text that the scan did not reach the end of."""
        self._git.note_oversized(text)

    # -------------------------------------------------------------- redirections, variables, pipelines

    def redirected(self, operator: str, target: str) -> None:
        """Refuse to write to protected files."""
        self._opened[target] = None
        if ">" in operator:
            self._outputs[target] = None
            _raise_if(self.state.protected.guard(target, self.state.cwd, adds=operator == ">>"))

    def assigned(self, name: str, values: Values) -> None:
        """Set a variable; follow its value if a shell or program would run it."""
        self.state.assign(name, values)
        self._opened |= dict.fromkeys(values)
        for value in values:
            self._read_subscript(value)
            if name == "HISTFILE" and value in ("", "/dev/null"):
                raise _DangerFound("it would stop the shell from keeping its history")
            if name in _PROMPTS:
                self.read(f': "{value}"')
            elif name == "PROMPT_COMMAND" or (name in _COMMAND_VARIABLES and " " in value):
                self.read(value)

    def _read_subscript(self, word: str) -> None:
        """Follow the subscript of an array: bash runs the substitutions in it even if it is quoted."""
        if "[" in word and ("$(" in word or "`" in word):
            self.read(": " + word.partition("[")[2].replace("]", " "))

    def command_ended(self, stages: list[PipelineStage], redirects: Redirects, stdin: Output, output: Output) -> Output:
        """Record texts and secrets that the command writes to files, which later commands may run or send."""
        state = self.state
        if (output is None and stdin == SECRET) or any(prints_secret(state.protected, one) for one in stages):
            output = SECRET
        words = stages[-1].words if stages else ()
        targets = [target for operator, target in redirects if ">" in operator]
        targets += [word for word in words[1:] if word[:1] != "-"] if words[:1] == ("tee",) else []
        adds = any(operator == ">>" for operator, _ in redirects) or "-a" in words
        for target in map(self.file, targets) if output else ():
            self.written[target] = f"{self.written.get(target, '') if adds else ''}{output}"
        if words[:1] in (("cp",), ("mv",), ("ln",), ("install",)):
            is_secret = any(state.protected.is_secret(word, state.cwd) for word in words[1:-1])
            targets = list(words[-1:]) if is_secret else []
        elif output != SECRET:
            targets = []
        for target in targets:
            state.protected = state.protected.with_secret_copy(target, state.cwd)
        return output

    def pipeline_ended(self, parts: list[list[PipelineStage]], *, in_background: bool) -> None:
        """Refuse to send secrets, and to start processes without end."""
        stages = [stage for part in parts for stage in part]
        if any(one.name in _MAY_LEAK or any("/dev/" in target for _, target in one.redirects) for one in stages):
            _raise_if(leak(self.state.protected, stages))
        started = [{stage.name for stage in part} for part in parts]
        again = max((sum(call in each for each in started) for call in self.calls), default=0)
        _raise_if("it would start processes without end" if again > 1 or (again and in_background) else "")

    # -------------------------------------------------------------- one command

    def visit(self, words: Argv, redirects: Redirects, stdin: Output) -> Output:
        """Check a command and all that it would start."""
        output = None
        for argv in self._programs(words):
            name = name_of(argv)
            self.stages.append(PipelineStage(name, argv, redirects, self.state.cwd))
            self.listed = listed_paths(argv)
            output = self.listed if self.listed and prints_paths(argv) else known_output(argv, stdin, self.state)
            if name in self.state.functions:
                output = self.call(name, argv[1:], stdin)
            self._run_builtin(name, argv, None if stdin == UNKNOWN_VALUE else stdin)
            if self._is_new(argv, stdin):
                self._check(name, argv)
                self._depth += 1
                if self._depth > _MAX_DEPTH:
                    raise ScanBudgetExceeded
                started = self._start(name, argv, redirects, stdin)
                output = output if started is None else started
                self._depth -= 1
        return output

    def _programs(self, words: Argv) -> Iterator[Argv]:
        """The words once for each program that the first may name, if it is a pattern or has an unknown part."""
        yield words
        first = words[0]
        known = re.sub(f"[{UNKNOWN_VALUE}{UNKNOWN_BUT_SET}]", "", first)
        is_pattern = any(mark in first for mark in "*?[") and "**" not in first
        if is_pattern and len(first) > 1 and first != "[[" and known == first:
            found = sorted(islice(expanded(join(self.state.cwd or "/", first)), _MAX_NAMES))
            yield from ((each, *words[1:]) for each in found[:_MAX_PROGRAMS] if each != first)
        if known not in ("", first):
            yield (known, *words[1:])

    def _is_new(self, words: Argv, stdin: Output) -> bool:
        """Count a command; return False if it was visited in the same state, or too many are repeated."""
        visit = (words, self.state.cwd, stdin, tuple(self.state.variables.items()))
        self._argvs[words] = None
        if visit in self._visited:
            return False
        self._visited.add(visit)
        self._commands_left[self.is_repeated] -= 1
        if self._commands_left[False] < 0:
            raise ScanBudgetExceeded
        return self._commands_left[self.is_repeated] >= 0

    def _run_builtin(self, name: str, words: Argv, stdin: Output) -> None:
        if name in STATE_BUILTINS:
            self.state.run(name, words, stdin)
        if words[:2] == ("printf", "-v"):
            self.assigned("".join(words[2:3]), (formatted(words[3:]) or UNKNOWN_VALUE,))
        for word in words[1:] if name in _EVALUATE_SUBSCRIPTS else ():
            self._read_subscript(word)
            variable, equals, value = word.partition("=")
            if equals and name in _DECLARATIONS:
                values = self.state.value(value, "@") if "-n" in words else (self.state.with_home(value),)
                self.assigned(variable, any_of(values, tuple(map(str.lower, values)) if "-l" in words else ()))

    def _check(self, name: str, words: Argv) -> None:
        """Raise for a command that must not run, also among the arguments of a program not listed as a wrapper."""
        state = self.state
        self._words_left -= len(words) if name in HAZARD_CHECKS else 0
        if self._words_left < 0:
            raise ScanBudgetExceeded
        if name == "git" and "GIT_WORK_TREE" in state.variables:
            words = (words[0], f"--work-tree={state.value('GIT_WORK_TREE')[0]}", *words[1:])
        state.protected = with_created_links(state.protected, name, words, state.cwd)
        context = CommandContext(state.protected, state.cwd)
        _raise_if(hazard(context, name, words))
        for deletion in hidden_deletions(name, words):
            _raise_if(hazard(context, "rm", deletion))
        if name == UNKNOWN_VALUE and any(re.fullmatch(r"-[a-zA-Z]*(?:rf|fr)[a-zA-Z]*", word) for word in words):
            _raise_if(hazard(context, "rm", words))

    # -------------------------------------------------------------- what it starts

    def _start(self, name: str, words: Argv, redirects: Redirects, stdin: Output) -> Output:
        """Follow the commands, scripts and code that a command starts; return what they print."""
        output = None
        text = self.listed_before or None if stdin == UNKNOWN_VALUE else stdin
        if name == "xargs":
            text = next(filter(None, map(self.text_of, words)), text)
        started = started_by(words, None if text == UNKNOWN_VALUE else text)
        argvs = started.argvs if started is not STARTS_NOTHING else hidden_shells(name, words)
        with self._in_folder(folder_of(words)), self._git.variables_of(name, words):
            for argv in (*argvs, *self._git.check(name, words)):
                output = self.visit(argv, redirects, stdin) if argv else None
        files = tuple(self._written_scripts(name, words))
        if name in _RUN_TEXT or name == "trap" or INTERPRETERS.fullmatch(name):
            fed = started_by(words, UNKNOWN_VALUE) if stdin == UNKNOWN_VALUE else STARTS_NOTHING
            self._check_is_literal(name, started, fed, (text for text, _ in files))
        if alias := self.state.aliases.get(name):
            self.read(" ".join((alias, *(f"'{word}'" for word in words[1:]))), stdin)
        arguments = started.arguments or ("",)
        for script, given in (*((script, arguments) for script in started.scripts), *files):
            output = self._run_script(script, given, stdin, in_current_shell=name in ("eval", ".", "source"))
        for code in started.codes:
            _raise_if(code_hazard(self.state.protected, code[:_MAX_CODE_LENGTH], self.state.cwd))
            for script in scripts_in(code[:_MAX_CODE_LENGTH]):
                self.read(script)
            self._git.check_code(code[:_MAX_CODE_LENGTH])
        return output

    def _run_script(self, text: str, arguments: Argv, stdin: Output, *, in_current_shell: bool) -> Output:
        if in_current_shell:
            return self.read(text, stdin)
        with self.state.subshell():
            self.state.set_parameters(arguments[1:])
            self.state.assign("0", arguments[:1])
            return self.read(text, stdin)

    def _written_scripts(self, name: str, words: Argv) -> Iterator[tuple[str, Argv]]:
        """The texts of files that the line wrote and this command runs, each with its arguments."""
        places = range(1, len(words)) if name in _RUN_TEXT else (0,) if "/" in words[0] else ()
        for place in places:
            if text := self.text_of(words[place]):
                yield text, words[place:]

    def _check_is_literal(self, name: str, started: Started, fed: Started, files: Iterable[str]) -> None:
        """Record that a shell or interpreter would run text that is not literal; `fed` is what it starts from stdin."""
        scripts = () if name in (".", "source") else started.scripts
        texts = (*scripts, *started.codes, *fed.scripts, *fed.codes, *files)
        if any(map(_UNKNOWN_COMMAND.search, texts)):
            self._opaque = f"{name} would run text that cannot be read before it runs; write it to a file and run that"

    @contextmanager
    def _in_folder(self, folder: str) -> Iterator[None]:
        """Follow commands in this working directory; an empty one keeps the current."""
        before = self.state.cwd
        if folder:
            self.state.cwd = next(iter(self.state.protected.possible_paths(folder, before)), None)
        yield
        self.state.cwd = before if folder else self.state.cwd


def _raise_if(why: str) -> None:
    if why:
        raise _DangerFound(why)


def _displayable(word: str) -> str:
    return re.sub(f"[{UNKNOWN_VALUE}{UNKNOWN_BUT_SET}{SECRET}]", "$", word).replace(FIELD, " ")


_UNKNOWN_COMMAND = re.compile(rf"(?:\A|[\n;&|(])\s*{UNKNOWN_VALUE}")
_PROMPTS = names("PS0 PS1 PS2 PS4")
_COMMAND_VARIABLES = names(
    "PAGER GIT_PAGER MANPAGER EDITOR VISUAL GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_SSH_COMMAND GIT_EXTERNAL_DIFF LESSOPEN"
    " LESSCLOSE BROWSER SUDO_ASKPASS GIT_ASKPASS GIT_PROXY_COMMAND"
)
"""Variables whose values programs run as commands."""
_RUN_TEXT = SHELLS | {".", "source", "eval"}
_MAY_LEAK = NETWORK | {"exec"}
_DECLARATIONS = names("declare typeset local export readonly")
_EVALUATE_SUBSCRIPTS = _DECLARATIONS | names("test [ [[ let printf read unset")
