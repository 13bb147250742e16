"""Scans a shell text for dangers that no permission mode allows, and lists the commands that it would start.

The scan is best effort and can only refuse a call: a text without findings still needs the permission of the rules or
the user.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import msgspec

from bradawl.safety.shell.deny.command_context import CommandContext
from bradawl.safety.shell.deny.deletions import hidden_deletions, hidden_shells, with_created_links
from bradawl.safety.shell.deny.destructive import HAZARD_CHECKS, hazard
from bradawl.safety.shell.deny.disk_lookups import predicted_output, programs_named
from bradawl.safety.shell.deny.exfiltration import NETWORK, PipelineStage, code_hazard, leak, prints_secret, scripts_in
from bradawl.safety.shell.deny.expansion import ARRAY_ITEM, UNKNOWN_BUT_SET, UNKNOWN_VALUE
from bradawl.safety.shell.deny.lenient_parser import LenientParser
from bradawl.safety.shell.deny.oversized_text import obvious_danger
from bradawl.safety.shell.deny.parsed_command import ParsedCommand, ScanBudgetExceeded
from bradawl.safety.shell.deny.predicted_output import listed_paths, prints_paths
from bradawl.safety.shell.deny.protected_targets import SECRET, ProtectedTargets
from bradawl.safety.shell.deny.shell_state import STATE_BUILTINS, ShellState
from bradawl.safety.shell.deny.variable_state import VariableState
from bradawl.safety.shell.deny.wrappers import SHELLS, STARTS_NOTHING, Argv, Started, folder_of, name_of, started_by

_MAX_COMMANDS = 150
_COST_OF_A_PATH = 3  # tokens
_MAX_DEPTH = 8  # scripts in scripts
_MAX_CODE_LENGTH = 4_000


class ScanResult(msgspec.Struct, frozen=True):
    """Findings of a scan."""

    danger: str = ""
    argvs: tuple[Argv, ...] = ()
    """Words of all commands at any depth; `$` marks an unknown part."""
    is_whole: bool = True
    """Whether the scan reached the end of the text."""
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


def scan(text: str, *, cwd: str, protected: ProtectedTargets) -> ScanResult:
    """Scan a text as bash would run it in `cwd`. Never raises; budgets bound it to a few milliseconds for any text."""
    scanner = _Scanner(protected, cwd)
    is_whole = True
    try:
        scanner.read(text)
        if scanner.inputs:
            _Scanner(protected, cwd, "\n".join(scanner.inputs)).read(text)
    except _DangerFound as found:
        return scanner.result(found.why, is_whole=True)
    except ScanBudgetExceeded:
        is_whole = False
    return scanner.result("" if is_whole else obvious_danger(text), is_whole=is_whole)


class _DangerFound(Exception):
    """Ends a scan with the reason why the text must not run."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class _Scanner:
    """Visits the commands of one text in order and tracks the state of the shell that would run them."""

    def __init__(self, protected: ProtectedTargets, cwd: str, loop_input: str = "") -> None:
        """`loop_input` is the text that `read` may get in a loop whose redirection follows its end."""
        self.inputs: list[str] = []
        """Texts redirected into loops, found where the loops end."""
        self._loop_input = loop_input
        self._is_sourced = False
        """Whether a script that was not scanned may have set variables."""
        self._protected = protected
        self._variables = VariableState(
            HOME=protected.home or UNKNOWN_VALUE, OLDPWD=(protected.environment or {}).get("OLDPWD") or UNKNOWN_VALUE
        )
        self._argvs: dict[Argv, str | None] = {}
        self._opened: dict[str, None] = {}
        self._outputs: dict[str, None] = {}
        self._parser = LenientParser(self, self._variables)
        self._shell = ShellState(self._variables, cwd, self._set)
        self._written: dict[str, str] = {}
        self._printed: set[str] = set()
        """Known outputs of substitutions."""
        self._call_count = 0
        self._script_depth = 0

    def read(self, text: str) -> None:
        """Scan a text for bash. Raises `_DangerFound` and `ScanBudgetExceeded`."""
        self._parser.read(text)

    def result(self, why: str, *, is_whole: bool) -> ScanResult:
        """The findings so far, with `why` as the danger."""
        return ScanResult(
            why,
            tuple(tuple(_displayable(word) for word in words) for words in self._argvs),
            is_whole,
            self._shell.leaves,
            tuple(map(_displayable, self._opened)),
            tuple(self._shell.folders),
            self._protected.links,
            tuple(map(_displayable, self._outputs)),
        )

    # -------------------------------------------------------------- visitor

    def visit_subshell(self, *, begins: bool) -> None:
        """Begin a subshell, or end it and restore the working directory and variables from before it."""
        if begins:
            self._shell.outer.append(self._shell.cwd)
            self._variables.begin_branch()
        else:
            self._shell.cwd = self._shell.outer.pop()
            self._variables.discard_branch()

    def _end_pipeline_part(self, *, may_stay: bool) -> None:
        """End a part of a pipeline. A shell may run the last part itself: bash does so with `lastpipe` set."""
        before = self._shell.outer.pop()
        if may_stay:
            self._variables.merge_branch()
        else:
            self._shell.cwd = before
            self._variables.discard_branch()

    def variable_value(self, name: str) -> tuple[str, ...]:
        """Possible values of a variable, also as split by IFS."""
        if name == "PWD":
            return (self._shell.cwd or UNKNOWN_VALUE,)
        values = self._known_values(name)
        if name == "IFS" or not self._variables.is_known("IFS"):
            return values
        marks = "".join(self._variables.value("IFS")).replace(UNKNOWN_VALUE, "")
        split = (value.translate(dict.fromkeys(map(ord, marks), " ")) for value in values)
        return tuple(dict.fromkeys((*values, *split)))

    def _known_values(self, name: str) -> tuple[str, ...]:
        if self._variables.is_known(name) or not name.isidentifier() or name in _SET_BY_BASH or self._is_sourced:
            return self._variables.value(name)
        return self._protected.variable(name)

    def substitution_output(self, commands: Sequence[ParsedCommand]) -> tuple[str, ...]:
        """Possible outputs of a substitution: its text if known, else `SECRET` or `UNKNOWN_VALUE`."""
        if commands and (output := commands[-1].output) is not None:
            self._printed.add(output.rstrip("\n"))
            return (output.rstrip("\n"),)
        stages = (_stage(tuple(one.words), one, self._shell.cwd) for one in commands)
        if any(prints_secret(self._protected, one) for one in stages):
            return (SECRET,)
        guess = listed_paths(tuple(commands[0].words)) if len(commands) == 1 else None
        self._printed |= {guess} if guess else set()
        return (guess, UNKNOWN_VALUE) if guess else (UNKNOWN_VALUE,)

    def visit_pipeline(self, commands: Sequence[ParsedCommand], bodies: Sequence[str], *, in_background: bool) -> None:
        """Check the commands of one pipeline, each alone and then together."""
        text: str | None = None
        printed: str | None = None
        stages: list[PipelineStage] = []
        for command in commands:
            command.literal_stdin = printed if command.stdin is None else command.stdin
            command.stdin = text if command.stdin is None else command.stdin
            # The rest of a loop is visited after its head and must see the loop's variable.
            is_isolated = (in_background or len(commands) > 1) and command.words[:1] not in _ASSIGNING_COMMANDS
            if is_isolated:
                self.visit_subshell(begins=True)
            stages += self._visit_command(command)
            if is_isolated:
                self._end_pipeline_part(may_stay=command is commands[-1] and not in_background)
            words = tuple(command.words)
            command.output = predicted_output(
                words, command.stdin, self._shell.cwd, self._protected, self.variable_value
            )
            printed = command.output
            text = listed_paths(words) if printed is None else printed
            printed = text if printed is None and prints_paths(words) else printed
            if printed is None and len(commands) > 1 and any(prints_secret(self._protected, one) for one in stages):
                printed = SECRET
            self._record_written_files(command, stages)
        if any(one.name in _MAY_LEAK or any("/dev/" in target for _, target in one.redirects) for one in stages):
            _raise_if(leak(self._protected, stages))
        _raise_if(_fork_bomb([one.name for one in stages], bodies, in_background=in_background))

    def _record_written_files(self, command: ParsedCommand, stages: Sequence[PipelineStage]) -> None:
        """Record texts and secrets that a command writes to files, which later commands may run or send."""
        targets = [target for operator, target in command.redirects if ">" in operator]
        if command.words[:1] == ["tee"]:
            targets += [word for word in command.words[1:] if word[:1] != "-"]
        if command.output:
            self._written |= dict.fromkeys(targets, command.output)
        if command.words[:1] in (["cp"], ["mv"], ["ln"], ["install"]) and len(command.words) > 2:
            *sources, target = command.words[1:]
            targets = [target] if any(self._protected.is_secret(one, self._shell.cwd) for one in sources) else []
        elif not (targets and any(prints_secret(self._protected, one) for one in stages)):
            return
        for target in targets:
            self._protected = self._protected.with_secret_copy(target, self._shell.cwd)

    # -------------------------------------------------------------- one command

    def _visit_command(self, command: ParsedCommand) -> list[PipelineStage]:
        """Check a command and all that its wrappers start; return them as stages of its pipeline."""
        inside = (inner for inner in command.subshell_commands if inner.words)
        stages = [_stage(tuple(inner.words), inner, self._shell.cwd) for inner in inside]
        self._resolve_stdin(command)
        self._opened |= dict.fromkeys(value for _, values in command.assignments for value in values)
        for operator, target in command.redirects:
            self._opened[target] = None
            if ">" in operator:
                self._outputs[target] = None
                _raise_if(self._protected.guard(target, self._shell.cwd, adds=operator == ">>"))
        if not command.words:
            self._assign(command)
            self._record_loop_input(command)
            return stages or [_stage((), command, self._shell.cwd)]
        is_isolated = bool(command.assignments) and command.words[:1] not in _ASSIGNING_COMMANDS
        if is_isolated:
            self._variables.begin_branch()
            self._assign(command)
        for words in (each for way in command.program_argvs() for each in programs_named(way, self._shell.cwd)):
            stages += self._visit_argv(words, command, 0)
        for words in command.call_argvs() if command.alternatives else ():
            self._visit_argv(words, command, 0)
        if is_isolated:
            self._variables.discard_branch()
        return stages or [_stage((), command, self._shell.cwd)]

    def _resolve_stdin(self, command: ParsedCommand) -> None:
        """Set the standard input to the text of a file that the line wrote, or to a process substitution's output."""
        if command.stdin is None:
            sources = [target for operator, target in command.redirects if operator == "<"]
            sources += [after for word, after in pairwise(command.words) if word in ("-a", "--arg-file")]
            texts = (name if name in self._printed else self._written.get(name) for name in sources)
            command.stdin = next(filter(None, texts), None)
            command.literal_stdin = command.literal_stdin or command.stdin

    def _record_loop_input(self, command: ParsedCommand) -> None:
        """Record the input of a compound command, which is known only where the command ends."""
        if command.stdin and not self._loop_input:
            self.inputs.append(command.stdin)

    def _assign(self, command: ParsedCommand) -> None:
        for name, values in command.assignments:
            self._set(name, values)

    def _set(self, name: str, values: tuple[str, ...]) -> None:
        self._variables.assign(name, values)
        _raise_if(self._variable_danger(name, values))
        for value in values:
            self._read_subscript(value)
            if name in _COMMAND_VARIABLES and " " in value:
                self._parser.read(value)

    def _read_subscript(self, word: str) -> None:
        """Scan the subscript of an array: bash runs the substitutions in it even if it is quoted."""
        if "[" in word and ("$(" in word or "`" in word):
            self._parser.read(": " + word.partition("[")[2].replace("]", " "))

    def _variable_danger(self, name: str, values: tuple[str, ...]) -> str:
        for value in values if name in _PROMPT_VARIABLES else ():
            if name == "PROMPT_COMMAND" or "$(" in value or "`" in value:
                self._parser.read(value)
        is_lost = name == "HISTFILE" and any(value in ("", "/dev/null") for value in values)
        return "it would stop the shell from keeping its history" if is_lost else ""

    def _visit_argv(self, words: Argv, command: ParsedCommand, depth: int) -> list[PipelineStage]:
        name = name_of(words)
        if not words or depth > _MAX_DEPTH:
            return []
        if name in self._shell.aliases and depth < _MAX_DEPTH and not self._shell.aliases[name].startswith(f"{name} "):
            self._parser.read(" ".join((self._shell.aliases[name], *map(_quoted, words[1:]))))
        if name in self._parser.functions and not (command.alternatives and words == tuple(command.words)):
            self._call_function(name, words)
        self._run_state_builtin(name, words, command)
        is_known = not (self._parser.is_in_a_call and any(UNKNOWN_VALUE in word for word in words))
        if self._argvs.get(words, "") == self._shell.cwd and not command.stdin and is_known:
            return [_stage(words, command, self._shell.cwd)]
        self._count_command(words)
        self._argvs[words] = self._shell.cwd
        if name in HAZARD_CHECKS:
            self._parser.spend_tokens(_COST_OF_A_PATH * len(words))
        self._check_hazards(name, words)
        started = started_by(words, command.stdin)
        stages = [_stage(words, command, self._shell.cwd)]
        for argv in started.argvs if started is not STARTS_NOTHING else hidden_shells(name, words):
            with self._in_folder(folder_of(words)):
                stages += self._visit_argv(argv, command, depth + 1)
        self._read_scripts(started, in_current_shell=name == "eval")
        if name in _RUN_IN_CURRENT_SHELL:
            self._variables.widen_all()
            self._is_sourced = self._is_sourced or name != "trap"
        arguments = words if "/" in words[0] else words[1:]
        self._read_scripts(
            Started(
                scripts=tuple(self._written.pop(word, "") for word in _script_operands(name, words)),
                arguments=arguments,
            ),
            in_current_shell=False,
        )
        return stages

    def _run_state_builtin(self, name: str, words: Argv, command: ParsedCommand) -> None:
        for word in words[1:] if name in _EVALUATE_SUBSCRIPTS else ():
            self._read_subscript(word)
        if name in STATE_BUILTINS:
            self._parser.spend_tokens(_COST_OF_A_PATH if name in ("cd", "pushd", "popd") else 0)
            self._shell.run(name, words, command.literal_stdin or self._loop_input, self._protected)

    @contextmanager
    def _in_folder(self, folder: str) -> Iterator[None]:
        """Check started commands in this working directory; an empty one keeps the current."""
        before = self._shell.cwd
        if folder:
            self._shell.cwd = next(iter(self._protected.possible_paths(folder, before)), None)
        yield
        if folder:
            self._shell.cwd = before

    def _check_hazards(self, name: str, words: Argv) -> None:
        """Raise for a command that must not run, also among the arguments of a program not listed as a wrapper."""
        if any(self._parser.open_bodies) and not self._parser.is_in_a_call:
            # Each call of the function is checked with its own arguments.
            words = tuple(word.replace(UNKNOWN_VALUE, UNKNOWN_BUT_SET) for word in words)
        if name == "git" and self._variables.is_known("GIT_WORK_TREE"):
            words = (words[0], f"--work-tree={self._variables.value('GIT_WORK_TREE')[0]}", *words[1:])
        self._protected = with_created_links(self._protected, name, words, self._shell.cwd)
        context = CommandContext(self._protected, self._shell.cwd)
        _raise_if(hazard(context, name, words))
        for deletion in hidden_deletions(name, words):
            _raise_if(hazard(context, "rm", deletion))

    def _count_command(self, words: Argv) -> None:
        is_called = self._parser.is_in_a_call
        self._call_count += is_called and words not in self._argvs
        if (self._call_count if is_called else len(self._argvs) - self._call_count) >= _MAX_COMMANDS:
            raise ScanBudgetExceeded

    def _call_function(self, name: str, words: Argv) -> None:
        """Scan the body of a function that the text defines, with these arguments."""
        cwd, depth = self._shell.cwd, len(self._shell.outer)
        if not self._parser.call(name, words[1:]):
            self._shell.cwd = cwd
            del self._shell.outer[depth:]

    def _read_scripts(self, started: Started, *, in_current_shell: bool) -> None:
        """Scan scripts and code; `in_current_shell`: the current shell runs them, not a child shell."""
        if not (started.scripts or started.codes) or self._script_depth > _MAX_DEPTH:
            return
        self._script_depth += 1
        for script in started.scripts:
            if in_current_shell:
                self._parser.read(script)
                continue
            self.visit_subshell(begins=True)
            self._variables.widen_all()
            zero, *others = started.arguments or ("",)
            self._variables.set_parameters(others, zero)
            self._parser.read(script)
            self.visit_subshell(begins=False)
        for code in started.codes:
            _raise_if(code_hazard(self._protected, code[:_MAX_CODE_LENGTH], self._shell.cwd))
            for script in scripts_in(code[:_MAX_CODE_LENGTH]):
                self._parser.read(script)
        self._script_depth -= 1


def _raise_if(why: str) -> None:
    if why:
        raise _DangerFound(why)


def _stage(words: Argv, command: ParsedCommand, cwd: str | None) -> PipelineStage:
    return PipelineStage(name_of(words), words, tuple(command.redirects), cwd)


def _displayable(word: str) -> str:
    return word.replace(UNKNOWN_VALUE, "$").replace(UNKNOWN_BUT_SET, "$").replace(SECRET, "$").replace(ARRAY_ITEM, " ")


def _script_operands(name: str, words: Argv) -> Argv:
    """Operands that may be files a command runs as scripts."""
    if name in SHELLS or name in (".", "source"):
        return words[1:]
    return (words[0], words[0].removeprefix("./")) if "/" in words[0] else ()


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _fork_bomb(names: list[str], bodies: Sequence[str], *, in_background: bool) -> str:
    """The danger of a function that starts itself more than once or in the background; empty if there is none."""
    again = max((names.count(body) for body in bodies if body), default=0)
    is_bomb = again > 1 or (again and in_background)
    return "it would start processes without end" if is_bomb else ""


_PROMPT_VARIABLES = frozenset({"PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4"})
_ASSIGNING_COMMANDS = (["for"], ["select"], ["read"], ["mapfile"], ["readarray"])
_RUN_IN_CURRENT_SHELL = frozenset({"eval", ".", "source", "trap"})
_MAY_LEAK = NETWORK | {"exec"}
_EVALUATE_SUBSCRIPTS = frozenset(
    {"test", "[", "[[", "let", "printf", "read", "declare", "typeset", "local", "export", "unset"}
)
_COMMAND_VARIABLES = frozenset(
    {"PAGER", "GIT_PAGER", "MANPAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_SSH_COMMAND"}
    | {"GIT_EXTERNAL_DIFF", "LESSOPEN", "LESSCLOSE", "BROWSER", "SUDO_ASKPASS", "GIT_ASKPASS", "GIT_PROXY_COMMAND"}
)
"""Variables whose values programs run as commands."""
_SET_BY_BASH = frozenset(
    {"BASHPID", "BASH_VERSION", "BASH", "COLUMNS", "COMP_LINE", "DIRSTACK", "EPOCHREALTIME", "EPOCHSECONDS", "EUID"}
    | {
        "FUNCNAME",
        "GROUPS",
        "HOSTNAME",
        "HOSTTYPE",
        "IFS",
        "LINENO",
        "LINES",
        "MACHTYPE",
        "MAPFILE",
        "OLDPWD",
        "OPTARG",
    }
    | {
        "OPTIND",
        "OSTYPE",
        "PIPESTATUS",
        "PPID",
        "PS1",
        "PS4",
        "PWD",
        "RANDOM",
        "REPLY",
        "SECONDS",
        "SHELLOPTS",
        "SHLVL",
    }
    | {"SRANDOM", "UID", "_", "PATH", "TERM", "COPROC", "BASH_SOURCE", "BASH_REMATCH", "BASH_ENV"}
)
"""Variables that bash sets itself, so that their inherited values don't count."""
