"""Parses any text as bash might and passes the commands at every depth to a visitor.

A result without commands doesn't prove a text harmless. Where the syntax is ambiguous the parser reports more commands
than bash would run, not fewer.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from math import prod

from bradawl.safety.shell.deny.conditional_parts import AND_OR, FUNCTION_BODY, RESERVED, ConditionalParts
from bradawl.safety.shell.deny.expansion import (
    ARRAY_ITEM,
    UNKNOWN_VALUE,
    Piece,
    ansi_c_text,
    array_as_text,
    array_value,
    combinations,
    expanded_words,
    split_arrays,
    unknown_first,
)
from bradawl.safety.shell.deny.parameters import EXPANSION, expanded
from bradawl.safety.shell.deny.parsed_command import CommandVisitor, ParsedCommand, ScanBudgetExceeded
from bradawl.safety.shell.deny.tokens import ASSIGNMENT, KEY, QUOTED, TOKEN, backtick_content, unescaped
from bradawl.safety.shell.deny.variable_state import VariableState, home_of

_MAX_TOKENS = 1_200
_MAX_CALL_TOKENS = 800  # for the bodies of called functions, which are parsed again for each call
_MAX_DEPTH = 40
_COST_OF_A_PATTERN = 50  # tokens
_COST_OF_A_COMMAND = 4
_CONTINUING_OPERATORS = AND_OR | {"|", "|&"}


class LenientParser:
    """Parses texts for one visitor, within one budget of tokens and nesting levels for all of them."""

    def __init__(self, visitor: CommandVisitor, variables: VariableState) -> None:
        self._visitor = visitor
        self.variables = variables
        self.open_bodies: list[str] = []
        """Names of the function bodies and groups that enclose the current position; empty for a group."""
        self.functions: dict[str, str] = {}
        """Bodies of functions, by name."""
        self._tokens_left = _MAX_TOKENS
        self._call_tokens_left = _MAX_CALL_TOKENS
        self._calling: list[str] = []
        self._depth = 0

    def read(self, text: str) -> list[ParsedCommand]:
        """Pass all commands of a text to the visitor; return those of the top level. Raises `ScanBudgetExceeded`."""
        return self._read_nested(_Source(self, text), "")

    def call(self, name: str, arguments: Sequence[str]) -> bool:
        """Parse the body of a function with these arguments; return False if that exceeded its budget."""
        if name in self._calling or name not in self.functions:
            return True
        before, mark, depth = self.variables.array_values("@"), self.variables.snapshot(), len(self.open_bodies)
        self._swap_token_budgets()
        self._calling.append(name)
        self.open_bodies.append(name)
        try:
            self.variables.set_parameters(arguments)
            self.read(self.functions[name])
        except ScanBudgetExceeded:
            self.variables.restore(mark)
            return False
        finally:
            del self.open_bodies[depth:]
            self._calling.pop()
            self._swap_token_budgets()
        self.variables.assign("@", before)
        return True

    def _swap_token_budgets(self) -> None:
        """Calls have a budget of their own, so that parsing bodies again takes nothing from the rest of the text."""
        if not self._calling:
            self._tokens_left, self._call_tokens_left = self._call_tokens_left, self._tokens_left

    @property
    def is_in_a_call(self) -> bool:
        """Whether the body of a called function is parsed, whose commands were reported at its definition."""
        return bool(self._calling)

    def spend_tokens(self, count: int = 1) -> None:
        """Deduct tokens from the budget. Raises `ScanBudgetExceeded`."""
        self._tokens_left -= count
        if self._tokens_left < 0:
            raise ScanBudgetExceeded

    def substitution(self, source: "_Source", closer: str) -> tuple[str, ...]:
        """Parse the commands of a substitution; return their possible outputs."""
        self._visitor.visit_subshell(begins=True)
        commands = self._read_nested(source, closer)
        self._visitor.visit_subshell(begins=False)
        return self._visitor.substitution_output(commands)

    def expansion_operand(self, source: "_Source") -> tuple[str, ...]:
        """Possible values of the text of an expansion up to its closing brace."""
        self._enter_level()
        try:
            return source.quoted("}", self._visitor)
        finally:
            self._depth -= 1

    def array(self, source: "_Source") -> list[str]:
        """Parse the items of an array up to the closing parenthesis."""
        self._enter_level()
        try:
            return _ArrayParser(self, self._visitor, source, ")").words()
        finally:
            self._depth -= 1

    def subshell(self, source: "_Source") -> list[ParsedCommand]:
        """Parse the commands of a subshell up to the closing parenthesis."""
        self._visitor.visit_subshell(begins=True)
        commands = self._read_nested(source, ")")
        self._visitor.visit_subshell(begins=False)
        return commands

    def _read_nested(self, source: "_Source", closer: str) -> list[ParsedCommand]:
        self._enter_level()
        try:
            return _CommandListParser(self, self._visitor, source, closer).read()
        finally:
            self._depth -= 1

    def _enter_level(self) -> None:
        if self._depth >= _MAX_DEPTH:
            raise ScanBudgetExceeded
        self._depth += 1


class _Source:
    """A text with the current position, and the parsing that quoted and unquoted text share."""

    def __init__(self, parser: LenientParser, text: str) -> None:
        self.parser = parser
        self.text = text
        self.place = 0

    def quoted(self, end: str, visitor: CommandVisitor) -> tuple[str, ...]:
        """Possible values of the text up to `end`, an unescaped quote or brace; parses the substitutions in it."""
        pieces: list[tuple[str, ...]] = []
        while self.place < len(self.text):
            self.parser.spend_tokens()
            match = QUOTED.match(self.text, self.place)
            if match is None:
                break
            self.place = match.end()
            kind = match.lastgroup
            if kind == "end" and match[0] == end:
                break
            if kind in ("text", "end", "dollar"):
                pieces.append((match[0],))
            elif kind == "escape":
                pieces.append((unescaped(match["escape"]),))
            else:
                pieces.append(self.expanded(match, visitor))
        return tuple(combinations(pieces))

    def expanded(self, match: re.Match[str], visitor: CommandVisitor) -> tuple[str, ...]:
        """Possible values of what begins with a dollar or a backtick."""
        match match.lastgroup:
            case "name" | "braced":
                return visitor.variable_value(match[match.lastgroup])
            case "expansion":
                return self._expansion(visitor)
            case "substitution":
                return self.parser.substitution(self, ")")
            case _:
                content, self.place = backtick_content(self.text, self.place)
                return self.parser.substitution(_Source(self.parser, content), "")

    def _expansion(self, visitor: CommandVisitor) -> tuple[str, ...]:
        match = EXPANSION.match(self.text, self.place)
        if match:
            self.place = match.end()
        return expanded(match, self.parser.expansion_operand(self), self.parser.variables, visitor)


class _CommandListParser:
    """Parses one list of commands: a text, a substitution or a subshell."""

    def __init__(self, parser: LenientParser, visitor: CommandVisitor, source: _Source, closer: str) -> None:
        self._parser = parser
        self._visitor = visitor
        self._source = source
        self._closer = closer
        self._all: list[ParsedCommand] = []
        self._pipeline: list[ParsedCommand] = []
        self._deferred: list[Callable[[], object]] = []
        self._parts = ConditionalParts(parser.variables, self._defer)
        self._here_documents: list[tuple[ParsedCommand, str, bool, bool]] = []
        self._command = ParsedCommand()
        self._pieces: list[Piece] = []
        self._operator = ""
        self._open_bodies = parser.open_bodies
        self._floor = len(parser.open_bodies)
        self._starts: list[int] = []
        """Offsets in the text at which these bodies begin."""
        self._is_array = False
        """Whether the current word assigns an array."""
        self._function_name = ""
        self._expects_command = False
        """After `&&`, `||` or `|`, where a newline doesn't end the list."""
        self._cases = 0

    def read(self) -> list[ParsedCommand]:
        """Parse and return all commands up to the closing parenthesis or the end of the text."""
        source = self._source
        text, match_at, spend_tokens = source.text, TOKEN.match, self._parser.spend_tokens
        while match := match_at(text, source.place):
            source.place = match.end()
            if match.lastgroup == "blank":
                self._end_word()
                continue
            spend_tokens()
            if match.lastgroup != "close":
                self._token(match)
            elif self._ends_at_parenthesis():
                break
        self._end_pipeline(in_background=False)
        self._run_deferred()
        self._parts.end_all()
        del self._open_bodies[self._floor :]
        return self._all

    def _ends_at_parenthesis(self) -> bool:
        self._end_word()  # it may be `esac`
        if self._closer == ")" and not self._cases:
            return True
        if self._cases:
            self._command = ParsedCommand()  # a pattern
        else:
            self._end_pipeline(in_background=False)
        return False

    def _token(self, match: re.Match[str]) -> None:
        kind, text = match.lastgroup, match[0]
        match kind:
            case "text":
                self._text(text)
            case "single" | "double" | "quote" | "ansi" | "escape":
                self._pieces.append((self._literal(kind, match), True))
            case "redirect" | "control" | "open":
                self._operate(kind, text)
            case "name" | "braced" if match[kind] == "IFS":
                self._end_word()
            case "dollar":
                self._pieces.append(((text,), False))
            case _:
                # A process substitution is one word, whatever it contains.
                self._pieces.append((self._source.expanded(match, self._visitor), text in ("<(", ">(")))

    def _literal(self, kind: str, match: re.Match[str]) -> tuple[str, ...]:
        match kind:
            case "single":
                return (match[0].strip("'"),)
            case "quote":
                return self._source.quoted('"', self._visitor)
            case "ansi":
                return (ansi_c_text(match[kind]),)
            case _:
                return (match[kind],)

    def _text(self, text: str) -> None:
        if text[0] == "#" and not self._pieces:
            end = self._source.text.find("\n", self._source.place)
            self._source.place = len(self._source.text) if end < 0 else end
            return
        self._pieces.append(((text,), False))

    def _operate(self, kind: str, text: str) -> None:
        if kind == "redirect":
            self._redirect(text)
        elif kind == "open":
            self._open_parenthesis()
        else:
            self._end_at_operator(text)

    # -------------------------------------------------------------- control operators

    def _end_at_operator(self, text: str) -> None:
        had_command = self._end_command()
        is_waiting, self._expects_command = self._expects_command and not had_command, text in _CONTINUING_OPERATORS
        if text != "\n":
            self._end_list(text)
            return
        self._expects_command = is_waiting
        if not is_waiting:
            self._end_list(text)
        for command, mark, is_quoted, has_tabs in self._here_documents:
            command.stdin = self._here_document(mark, is_quoted=is_quoted, has_tabs=has_tabs)
        self._here_documents = []
        self._run_deferred()

    def _end_command(self) -> bool:
        """End the current command; return whether there was one."""
        self._end_word()
        if had_command := not self._command.is_empty:
            self._parser.spend_tokens(_COST_OF_A_COMMAND)
            self._pipeline.append(self._command)
            self._all.append(self._command)
        self._command = ParsedCommand()
        return had_command

    def _end_pipeline(self, *, in_background: bool) -> None:
        self._end_command()
        if self._pipeline:
            bodies = tuple(self._open_bodies)
            self._defer(partial(self._visitor.visit_pipeline, self._pipeline, bodies, in_background=in_background))
        self._pipeline = []

    def _end_list(self, control: str) -> None:
        if control in ("|", "|&"):
            return
        self._end_pipeline(in_background=control == "&")
        self._parts.join(control)

    def _defer(self, event: Callable[[], object]) -> None:
        """Report an event once the pending here-documents of earlier commands have been read."""
        self._deferred.append(event)
        if not self._here_documents:
            self._run_deferred()

    def _run_deferred(self) -> None:
        held, self._deferred = self._deferred, []
        for event in held:
            event()

    def _begin_group(self) -> None:
        """Begin a group, or the body of the function whose name was just read."""
        self._open_bodies.append(self._function_name)
        self._starts.append(self._source.text.rfind("{", 0, self._source.place) + 1)
        self._parts.begin(FUNCTION_BODY if self._function_name else "{")
        self._function_name = ""

    def _end_group(self, start: int, end: int) -> None:
        self._starts.pop()
        if name := self._open_bodies.pop():
            self._parser.functions[name] = self._source.text[start:end]

    def _open_parenthesis(self) -> None:
        """Parse what follows `(`: a subshell, the parentheses of a function definition, or an array."""
        source = self._source
        if match := re.compile(r"[ \t]*\)").match(source.text, source.place):
            self._end_word()
            if len(self._command.words) == 1 or self._command.words[:1] == ["function"]:
                source.place = match.end()
                self._function_name = self._command.words[-1]
                self._command.words.clear()
                return
        elif self._pieces and self._pieces[-1][0][0].endswith("="):
            self._pieces.append(((array_value(self._parser.array(source)),), True))
            self._is_array = True
            return
        if self._pieces and self._pieces[-1][0][0][-1:] in tuple("!@?*+"):
            self._pieces[-1] = ((self._pieces[-1][0][0][:-1] + "*",), False)  # a pattern, if `extglob` is set
        self._end_word()
        if self._operator or (self._command.words and self._command.words[0] not in ("for", "select")):
            self._end_command()
        self._begin_group()
        start = source.place
        self._command.subshell_commands += self._parser.subshell(source)
        self._parts.end_compound()
        self._end_group(start - 1, source.place)

    # -------------------------------------------------------------- redirects

    def _redirect(self, operator: str) -> None:
        text = "".join(alternatives[0] for alternatives, _ in self._pieces)
        if self._pieces and (text.isdigit() or (text.startswith("{") and text.endswith("}"))):
            self._pieces = []  # the number of a file descriptor
        self._end_word()
        self._operator = operator

    def _target(self, words: list[str], *, is_quoted: bool) -> None:
        operator, self._operator = self._operator, ""
        words = [array_as_text(word) for word in words]
        if operator in ("<<", "<<-"):
            self._here_documents.append((self._command, words[0], is_quoted, operator == "<<-"))
            self._command.stdin = ""
        elif operator == "<<<":
            self._command.stdin = words[0]
        elif not (operator in ("<&", ">&") and re.fullmatch(r"[0-9]*-?", words[0])):
            self._command.redirects += [(operator, word) for word in words]

    def _here_document(self, mark: str, *, is_quoted: bool, has_tabs: bool) -> str:
        source = self._source
        self._parser.spend_tokens(_COST_OF_A_PATTERN)
        end = re.compile(("^\t*" if has_tabs else "^") + re.escape(mark) + "$", re.MULTILINE)
        match = end.search(source.text, source.place)
        body = source.text[source.place : match.start() if match else len(source.text)]
        source.place = match.end() if match else len(source.text)
        if is_quoted or not ("$" in body or "`" in body):
            return body
        return _Source(self._parser, body).quoted("", self._visitor)[0]

    # -------------------------------------------------------------- words

    def _end_word(self) -> None:
        if not self._pieces:
            return
        pieces, self._pieces = self._pieces, []
        is_quoted = any(quoted for _, quoted in pieces)
        words = expanded_words(pieces)
        if self._operator:
            self._target([self._expand_tilde_in(word, pieces) for word in words], is_quoted=is_quoted)
            return
        self._word(words, pieces, is_quoted=is_quoted)
        self._is_array = False

    def _word(self, words: list[str], pieces: list[Piece], *, is_quoted: bool) -> None:
        command = self._command
        if command.is_empty and not is_quoted and words[0] in RESERVED:
            self._reserved(words[0])
            return
        if not command.words and (match := ASSIGNMENT.match(words[0])):
            command.assignments.append((match[1], self._assigned(match, words)))
            return
        choices = prod(len(alternatives) for alternatives, _ in pieces)
        if not (self._is_array and command.words):  # an array assigned by `declare` and so on
            choices, words = choices if len(words) == choices else 0, split_arrays(words)
        if command.is_empty and words[0] == "-p":
            return  # of `time`
        if command.words[:1] == ["function"] and words == ["{"] and len(command.words) == 2 and not command.assignments:
            self._function_name = command.words[1]
            command.words.clear()
            self._begin_group()
        elif command.words[:1] == ["case"]:
            command.words = [] if words == ["in"] else command.words
        elif command.words:
            if len(words) == choices > 1:
                command.alternatives.append((len(command.words), choices))
            command.words += [self._expand_tilde_in(word, pieces) for word in unknown_first(words)]
        elif len(words) == choices:
            command.words, command.other_names = [self._expand_tilde_in(words[0], pieces)], words[1:]
        else:
            command.words = [self._expand_tilde_in(word, pieces) for word in words]

    def _assigned(self, match: re.Match[str], words: list[str]) -> tuple[str, ...]:
        """Possible values that an assignment gives to a variable."""
        values = tuple(self._expand_tilde(word[match.end() :] if word.startswith(match[0]) else word) for word in words)
        name, place = match[1], match[2]
        if place:
            values = tuple(ARRAY_ITEM + value for value in values)
        elif not self._is_array:
            values = tuple(map(array_as_text, values))
        if not (place or match[0].endswith("+=")):
            return values
        before = (
            self._parser.variables.array_values(name) if self._parser.variables.is_known(name) or not place else ("",)
        )
        return tuple(combinations([before, values]))

    def _reserved(self, word: str) -> None:
        if word == "{":
            self._begin_group()
        else:
            self._parts.reserved(word)
        if word == "}" and len(self._open_bodies) > self._floor:
            self._end_group(self._starts[-1], self._source.text.rfind("}", 0, self._source.place))
        elif word in ("for", "select", "case"):
            self._command.words.append(word)
        if word in ("case", "esac"):
            self._cases = max(0, self._cases + (1 if word == "case" else -1))

    def _expand_tilde_in(self, word: str, pieces: list[Piece]) -> str:
        return word if pieces[0][1] else self._expand_tilde(word)

    def _expand_tilde(self, word: str) -> str:
        """Expand a leading `~`, `~+`, `~-` or `~user`."""
        if word[:1] != "~":
            return word
        name, slash, rest = word[1:].partition("/")
        variable = {"": "HOME", "+": "PWD", "-": "OLDPWD"}.get(name)
        return (
            (self._visitor.variable_value(variable)[0] if variable else home_of(name) or UNKNOWN_VALUE) + slash + rest
        )


class _ArrayParser(_CommandListParser):
    """Parses the items of an array, of which only the substitutions run."""

    def words(self) -> list[str]:
        """Parse and return the items up to the closing parenthesis."""
        self._command.words.append("")
        self.read()
        return [KEY.sub("", word) for word in self._command.words[1:]]

    def _end_at_operator(self, text: str) -> None:
        self._end_word()

    def _end_pipeline(self, *, in_background: bool) -> None:
        self._end_word()
