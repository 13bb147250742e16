"""Follows a tree of commands with all possible values of its variables, in the order in which a shell may run it."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import chain
from math import prod
from posixpath import join, normpath

from bradawl.safety.shell.argv import Argv
from bradawl.safety.shell.deny.exfiltration import PipelineStage
from bradawl.safety.shell.deny.expansion import (
    FIELD,
    MAX_LENGTH,
    MAX_VALUES,
    UNKNOWN_BUT_SET,
    UNKNOWN_VALUE,
    Values,
    any_of,
    combined,
    with_braces,
)
from bradawl.safety.shell.deny.shell_state import ShellState
from bradawl.safety.shell.deny.syntax import AndOr, Array, Command, Limits, Parser, Part, Substitution, Text, Word
from bradawl.safety.shell.errors import ScanBudgetExceeded

Redirects = tuple[tuple[str, str], ...]
"""(operator, target) of redirections that name a file."""
Output = str | None
"""What a command prints or gets as input; None if that is unknown. An unknown input from a pipe is `UNKNOWN_VALUE`."""

_EXTENDED_PATTERN = re.compile(r"[!@?*+]\((?:[^()]|\([^()]*\))*\)")
_KEY = re.compile(r"\A\[[^\]]*\]=")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\+?=|\[)")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[[^\]]*\])?(\+)?=")


class Interpreter(ABC):
    """Calls `visit` for each simple command, at any depth."""

    def __init__(self, state: ShellState, limits: Limits) -> None:
        self.state = state
        self.limits = limits
        self.written: dict[str, str] = {}
        """Texts that the commands write to files, by name."""
        self.stages: list[PipelineStage] = []
        """Commands of the current pipeline so far."""
        self.calls: list[str] = []
        """The functions whose bodies enclose the current place."""
        self.is_repeated = False
        """Whether the commands here were visited before: in a function that is called, or another turn of a loop."""
        self.listed = ""
        """Patterns, one a line, for the paths that the last command lists."""
        self.listed_before = ""
        """The same for the command before in the pipeline."""
        self._ended: list[PipelineStage] = []
        """Commands of pipelines that have ended."""
        self._seen_calls: set[object] = set()
        self._steps_left = {False: _MAX_STEPS, True: _MAX_REPEATED_STEPS}
        """By `is_repeated`, so that repeated commands take nothing from the rest of the text."""

    @abstractmethod
    def visit(self, words: Argv, redirects: Redirects, stdin: Output) -> Output:
        """Receive a command with one combination of possible words."""

    @abstractmethod
    def redirected(self, operator: str, target: str) -> None:
        """Receive the target of a redirection, before its command."""

    @abstractmethod
    def assigned(self, name: str, values: Values) -> None:
        """Receive the values that a variable gets, and set it."""

    @abstractmethod
    def command_ended(self, stages: list[PipelineStage], redirects: Redirects, stdin: Output, output: Output) -> Output:
        """Receive the parts, input and output of a command, simple or compound; return the output to pass on."""

    @abstractmethod
    def pipeline_ended(self, parts: list[list[PipelineStage]], *, in_background: bool) -> None:
        """Receive all commands of a pipeline, by the part that they belong to."""

    def file(self, name: str) -> str:
        """The key of a file in `written`."""
        return name if UNKNOWN_VALUE in name else normpath(join(self.state.cwd or "", name))

    def text_of(self, name: str) -> Output:
        """The text that the commands so far have written to a file; None if unknown."""
        return self.written.get(self.file(name))

    def read(self, text: str, stdin: Output = None) -> Output:
        """Follow the commands of a text."""
        return self._run(Parser(text, self.limits).commands(), stdin)

    def call(self, name: str, arguments: Argv, stdin: Output) -> Output:
        """Follow the body of a function; again only if something it may depend on has changed."""
        state, body = self.state, self.state.functions[name]
        before = state.variables.pop("@", (UNKNOWN_VALUE,))
        call = (id(body), arguments, state.cwd, tuple(state.variables.items()))
        output = None
        if call not in self._seen_calls and len(self.calls) < _MAX_CALLS:
            self._seen_calls.add(call)
            state.set_parameters(arguments)
            self.calls.append(name)
            with self._repeating():
                output = self._run(body, stdin)
            self.calls.pop()
        state.variables["@"] = before
        return output

    @contextmanager
    def _repeating(self) -> Iterator[None]:
        before, self.is_repeated = self.is_repeated, True
        yield
        self.is_repeated = before

    # -------------------------------------------------------------- lists and compound commands

    def _run(self, commands: list[AndOr], stdin: Output) -> Output:
        return _joined([self._and_or(each, stdin) for each in commands])

    def _and_or(self, and_or: AndOr, stdin: Output) -> Output:
        outputs, before = list[Output](), ""
        with self.state.subshell() if and_or.in_background else nullcontext(), ExitStack() as maybe:
            for operator, pipeline in and_or.parts:
                if operator == "||" or operator != before:
                    maybe.close()
                    maybe.enter_context(self.state.branch())
                outputs.append(self._pipeline(pipeline, stdin, in_background=and_or.in_background))
                before = operator
        return _joined(outputs)

    def _pipeline(self, commands: list[Command], stdin: Output, *, in_background: bool) -> Output:
        outer, self.stages = self.stages, []
        output = None
        parts: list[list[PipelineStage]] = []
        for command in commands:
            mark, first = len(self._ended), len(self.stages)
            self.listed_before, self.listed = self.listed if command is not commands[0] else "", ""
            # A shell may run the last part itself: bash does so with `lastpipe` set.
            part = self.state.branch if command is commands[-1] else self.state.subshell
            with part() if len(commands) > 1 else nullcontext():
                output = self._command(command, stdin)
            if command.keyword in ("(", "{") and len(commands) > 1:
                self.stages += self._ended[mark:]
            parts.append(self.stages[first:])
            stdin = UNKNOWN_VALUE if output is None else output
        stages, self.stages = self.stages, outer
        self._ended += stages
        self.pipeline_ended(parts, in_background=in_background)
        return output

    def _command(self, command: Command, stdin: Output) -> Output:
        self._steps_left[self.is_repeated] -= 1
        if self._steps_left[False] < 0:
            raise ScanBudgetExceeded
        if self._steps_left[self.is_repeated] < 0:
            return None
        redirects, stdin = self._redirects(command, stdin)
        mark = len(self.stages)
        match command.keyword:
            case "":
                output = self._simple(command.words, redirects, stdin)
            case "function":
                output = self._define(command)
            case "(" | "{":
                with self.state.subshell() if command.keyword == "(" else nullcontext():
                    output = self._run(command.bodies[0], stdin)
            case _:
                output = self._conditional(command, stdin)
        return self.command_ended(self.stages[mark:], redirects, stdin, output)

    def _redirects(self, command: Command, stdin: Output) -> tuple[Redirects, Output]:
        """The files that a command opens, and its input."""
        redirects: list[tuple[str, str]] = []
        for redirect in command.redirects:
            targets = [value.replace(FIELD, " ") for value in self._values(redirect.word)]
            is_input = redirect.descriptor in ("", "0")
            if redirect.operator in ("<<", "<<-", "<<<"):
                stdin = "\n".join(targets) if is_input else stdin
            elif not (redirect.operator in ("<&", ">&") and re.fullmatch(r"[0-9]*-?", targets[0])):
                redirects += [(redirect.operator, target) for target in targets]
                stdin = self.text_of(targets[0]) if redirect.operator == "<" and is_input else stdin
        for operator, target in redirects:
            self.redirected(operator, target)
        return tuple(redirects), stdin

    def _conditional(self, command: Command, stdin: Output) -> Output:
        """Follow a command that may run some of its parts, or some more than once."""
        words = [self._values(word) for word in command.words]
        if command.keyword in ("for", "select") and words:
            items = any_of(*words[2:]) if words[2:] else self.state.value("@", "@")
            values = chain(*(item.removeprefix(FIELD).split(FIELD) for item in items))
            self.state.assign(words[0][0], (*values, *(("",) if command.keyword == "select" else ())))
        before = self.state.variables
        output = self._run_bodies(command, stdin)
        if command.keyword in ("for", "select", "while") and self.state.variables != before:
            with self._repeating():
                self._run_bodies(command, stdin)
        return output

    def _run_bodies(self, command: Command, stdin: Output) -> Output:
        outputs: list[Output] = []
        for body in command.bodies:
            is_condition = body is command.bodies[0] and command.keyword in ("if", "while")
            with nullcontext() if is_condition else self.state.branch():
                outputs.append(self._run(body, stdin))
        return _joined(outputs)

    def _define(self, command: Command) -> None:
        """Follow the body of a function with unknown parameters."""
        name = self._values(command.words[0])[0]
        body = self.state.functions[name] = [each for body in command.bodies for each in body]
        with self.state.subshell():
            self.state.variables["@"] = (UNKNOWN_BUT_SET,)
            self.calls.append(name)
            self._run(body, None)
            self.calls.pop()

    # -------------------------------------------------------------- simple commands

    def _simple(self, words: list[Word], redirects: Redirects, stdin: Output) -> Output:
        variables: dict[str, Values] = {}
        choices: list[list[Argv]] = []
        for word in words:
            if choices or not self._is_assignment(word, variables):
                choices.append(self._fields(word))
        before = {name: self.state.variables.get(name) for name in variables}
        for name, values in variables.items():
            self.assigned(name, values)
        if not choices:
            return stdin if any(operator == "<" for operator, _ in redirects) else ""
        if prod(map(len, choices)) > MAX_VALUES:
            choices = [[tuple(chain(*each))] for each in choices]  # all values as words of one command
        argvs = [tuple(chain(*each)) for each in combined(choices)]
        outputs: list[Output] = []
        for argv in filter(None, argvs):
            with self.state.branch() if len(argvs) > 1 else nullcontext():
                outputs.append(self.visit(argv, redirects, stdin))
        self.state.restore(before)
        return _joined(outputs)

    def _is_assignment(self, word: Word, variables: dict[str, Values]) -> bool:
        """Add the assignment that a word is to `variables`; return whether it is one."""
        first = word[0]
        if not isinstance(first, Text) or first.is_quoted or not _NAME.match(first.text):
            return False
        values = self._values(word, is_split=False)
        match = _ASSIGNMENT.match(values[0])
        if match is None:
            return False
        name, index, adds = match.groups()
        values = tuple((FIELD if index else "") + self.state.with_home(value[match.end() :]) for value in values)
        if index or adds:
            values = any_of("".join(each) for each in combined([self.state.variables.get(name, ("",)), values]))
        variables[name] = values
        return True

    # -------------------------------------------------------------- words

    def _fields(self, word: Word) -> list[Argv]:
        """The words that one word expands to, for each of its possible values."""
        if len(word) == 1 and isinstance(part := word[0], Text) and (part.is_quoted or part.text.isalnum()):
            return [(part.text,)]
        values = self._values(word)
        if any(isinstance(part, Array) for part in word):  # in a declaration
            return [(value,) for value in values]
        keeps_empty = any(not isinstance(part, Array) and part.is_quoted for part in word)
        return [tuple(field for field in value.split(FIELD) if field or keeps_empty) for value in values]

    def _values(self, word: Word, *, is_split: bool = True) -> Values:
        """Possible values of a word; the words that it expands to are separated by `FIELD`."""
        choices = [self._part(part, is_split=is_split) for part in word]
        plain = [isinstance(part, Text) and not part.is_quoted for part in word]
        if any("{" in each[0] for each, is_plain in zip(choices, plain, strict=True) if is_plain):
            choices = [
                each if is_plain else tuple(value.translate(_HIDDEN) for value in each)
                for each, is_plain in zip(choices, plain, strict=True)
            ]
            values = tuple(with_braces("".join(each)).translate(_SHOWN) for each in combined(choices))
        else:
            values = any_of("".join(each) for each in combined(choices))
        if prod(map(len, choices)) > MAX_VALUES or any(len(value) > MAX_LENGTH for value in values):
            self.limits.is_whole = False
            values = tuple(value if len(value) <= MAX_LENGTH else UNKNOWN_VALUE for value in values)
        if word and not isinstance(word[0], Array) and not word[0].is_quoted:
            values = tuple(FIELD.join(map(self.state.with_home, value.split(FIELD))) for value in values)
        return values

    def _part(self, part: Part, *, is_split: bool) -> Values:
        if isinstance(part, Text):
            return (part.text if part.is_quoted else _EXTENDED_PATTERN.sub("*", part.text),)
        if isinstance(part, Array):
            items = (_KEY.sub("", value) for word in part.words for value in self._values(word))
            return ("".join(FIELD + item for item in items),)
        if isinstance(part, Substitution):
            values = self._substituted(part)
        elif part.name == "IFS" and not part.is_quoted:
            return (FIELD,)
        else:
            operand = self._values(part.operand, is_split=False) if part.operand else ("",)
            values = self.state.expanded(part, operand)
        if not is_split:
            return tuple(value.removeprefix(FIELD).replace(FIELD, " ") for value in values)
        if part.is_quoted:
            return tuple(value.removeprefix(FIELD) for value in values)
        separators = re.escape("".join(self.state.variables.get("IFS", ())) + FIELD)
        return tuple(FIELD.join(filter(None, re.split(rf"[\s{separators}]+", value))) for value in values)

    def _substituted(self, part: Substitution) -> Values:
        self.listed = ""
        with self.state.subshell():
            output = self._run(part.commands, UNKNOWN_VALUE if part.file == ">" else None)
        if part.file:
            name = f"{UNKNOWN_VALUE}{len(self.written)}"
            self.written[name] = UNKNOWN_VALUE if output is None else output
            return (name,)
        if self.listed:
            return (self.listed, UNKNOWN_VALUE)
        return (UNKNOWN_VALUE if output is None else output.rstrip("\n"),)


def _joined(outputs: list[Output]) -> Output:
    return None if None in outputs else "".join(filter(None, outputs))


_HIDDEN, _SHOWN = str.maketrans("{},", "\x04\x05\x06"), str.maketrans("\x04\x05\x06", "{},")
"""For the braces in parts of a word that bash does not expand."""
_MAX_CALLS = 8  # functions that call each other
_MAX_STEPS = 1_000  # commands, simple and compound
_MAX_REPEATED_STEPS = 300
