"""Reads any text as bash might, as far as it gets: commands at every depth, for whoever holds them against a call.

Never says that a text is harmless. Where bash would see something else, more commands are found rather than fewer.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from math import prod

from bradawl.safety.shell.deny.conditional_parts import BODY, JOINS, RESERVED, Parts
from bradawl.safety.shell.deny.expansion import (
    LISTED,
    UNTOLD,
    Piece,
    ansi,
    apart,
    as_text,
    in_order,
    listed,
    together,
    words_of,
)
from bradawl.safety.shell.deny.parameters import EXPANSION, expanded
from bradawl.safety.shell.deny.parsed_command import Draft, Listener, TooMuch
from bradawl.safety.shell.deny.tokens import ASSIGNMENT, KEY, QUOTED, TOKEN, ticked, unescaped
from bradawl.safety.shell.deny.variable_state import Flow, home_of

_MOST_TOKENS = 1_200
_MOST_TOKENS_OF_CALLS = 800  # of functions, whose bodies are read again
_DEEPEST = 40
_COST_OF_A_PATTERN = 50  # tokens
_COST_OF_A_COMMAND = 4
_WAIT = JOINS | {"|", "|&"}


class LooseReader:
    """Reads texts for one listener; together they may be so long and so deep."""

    def __init__(self, listener: Listener, flow: Flow) -> None:
        self._listener = listener
        self.flow = flow
        self.bodies: list[str] = []
        """Names of the functions and groups in whose bodies the reader is; empty for a group."""
        self.functions: dict[str, str] = {}
        """What they do, by their names."""
        self._left = _MOST_TOKENS
        self._left_for_calls = _MOST_TOKENS_OF_CALLS
        self._calling: list[str] = []
        self._depth = 0

    def read(self, text: str) -> list[Draft]:
        """Tell the listener of all commands in a text, and give back those at its top. Raises `TooMuch`."""
        return self._deeper(_Text(self, text), "")

    def call(self, name: str, arguments: Sequence[str]) -> bool:
        """Tell of what a function does with these arguments; false if there was too much of it to tell all."""
        if name in self._calling or name not in self.functions:
            return True
        before, mark, depth = self.flow.elements("@"), self.flow.mark(), len(self.bodies)
        self._change_purses()
        self._calling.append(name)
        self.bodies.append(name)
        try:
            self.flow.parameters(arguments)
            self.read(self.functions[name])
        except TooMuch:
            self.flow.back(mark)
            return False
        finally:
            del self.bodies[depth:]
            self._calling.pop()
            self._change_purses()
        self.flow.assign("@", before)
        return True

    def _change_purses(self) -> None:
        """What is read again costs the rest of the text nothing."""
        if not self._calling:
            self._left, self._left_for_calls = self._left_for_calls, self._left

    @property
    def is_in_a_call(self) -> bool:
        """Whether what is told now was told before, of other arguments."""
        return bool(self._calling)

    def tick(self, count: int = 1) -> None:
        """Another token, or as much work as so many of them."""
        self._left -= count
        if self._left < 0:
            raise TooMuch

    def inside(self, source: "_Text", closer: str) -> tuple[str, ...]:
        """The commands of a substitution; gives back what their output may be."""
        self._listener.subshell(begins=True)
        commands = self._deeper(source, closer)
        self._listener.subshell(begins=False)
        return self._listener.printed(commands)

    def default(self, source: "_Text") -> tuple[str, ...]:
        """What stands in an expansion up to its closing brace."""
        self._go_down()
        try:
            return source.quoted("}", self._listener)
        finally:
            self._depth -= 1

    def array(self, source: "_Text") -> list[str]:
        """The words up to the closing parenthesis."""
        self._go_down()
        try:
            return _Words(self, self._listener, source, ")").words()
        finally:
            self._depth -= 1

    def subshell(self, source: "_Text") -> list[Draft]:
        """The commands up to the closing parenthesis."""
        self._listener.subshell(begins=True)
        commands = self._deeper(source, ")")
        self._listener.subshell(begins=False)
        return commands

    def _deeper(self, source: "_Text", closer: str) -> list[Draft]:
        self._go_down()
        try:
            return _Commands(self, self._listener, source, closer).read()
        finally:
            self._depth -= 1

    def _go_down(self) -> None:
        if self._depth >= _DEEPEST:
            raise TooMuch
        self._depth += 1


class _Text:
    """A text and the place in it, with what both kinds of quoting share."""

    def __init__(self, reader: LooseReader, text: str) -> None:
        self.reader = reader
        self.text = text
        self.place = 0

    def quoted(self, end: str, listener: Listener) -> tuple[str, ...]:
        """What stands until an unescaped quote, brace or the end of the text; substitutions in it are read."""
        pieces: list[tuple[str, ...]] = []
        while self.place < len(self.text):
            self.reader.tick()
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
                pieces.append(self.expanded(match, listener))
        return tuple(together(pieces))

    def expanded(self, match: re.Match[str], listener: Listener) -> tuple[str, ...]:
        """The value of what begins with a dollar or a backtick."""
        match match.lastgroup:
            case "name" | "braced":
                return listener.value(match[match.lastgroup])
            case "expansion":
                return self._expansion(listener)
            case "substitution":
                return self.reader.inside(self, ")")
            case _:
                content, self.place = ticked(self.text, self.place)
                return self.reader.inside(_Text(self.reader, content), "")

    def _expansion(self, listener: Listener) -> tuple[str, ...]:
        match = EXPANSION.match(self.text, self.place)
        if match:
            self.place = match.end()
        return expanded(match, self.reader.default(self), self.reader.flow, listener)


class _Commands:
    """Reads one list of commands: a text, a substitution, a subshell."""

    def __init__(self, reader: LooseReader, listener: Listener, source: _Text, closer: str) -> None:
        self._reader = reader
        self._listener = listener
        self._source = source
        self._closer = closer
        self._all: list[Draft] = []
        self._pipeline: list[Draft] = []
        self._held: list[Callable[[], object]] = []
        self._parts = Parts(reader.flow, self._say)
        self._here: list[tuple[Draft, str, bool, bool]] = []
        self._draft = Draft()
        self._pieces: list[Piece] = []
        self._operator = ""
        self._bodies = reader.bodies
        self._floor = len(reader.bodies)
        self._starts: list[int] = []
        """Where these bodies begin in the text."""
        self._is_array = False
        """What the word at hand assigns."""
        self._named = ""
        self._is_waiting = False
        """For what follows `&&`, `||` or `|`."""
        self._cases = 0

    def read(self) -> list[Draft]:
        """All commands until the closing mark."""
        source = self._source
        text, match_at, tick = source.text, TOKEN.match, self._reader.tick
        while match := match_at(text, source.place):
            source.place = match.end()
            if match.lastgroup == "blank":
                self._end_word()
                continue
            tick()
            if match.lastgroup != "close":
                self._token(match)
            elif self._closes():
                break
        self._end_pipeline(in_background=False)
        self._tell()
        self._parts.end_all()
        del self._bodies[self._floor :]
        return self._all

    def _closes(self) -> bool:
        if self._closer == ")" and not self._cases:
            return True
        self._end_word()
        if self._cases:
            self._draft = Draft()  # a pattern
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
            case "redirect" | "joint" | "open":
                self._operate(kind, text)
            case "name" | "braced" if match[kind] == "IFS":
                self._end_word()
            case "dollar":
                self._pieces.append(((text,), False))
            case _:
                # What stands for a file is one word, whatever it is.
                self._pieces.append((self._source.expanded(match, self._listener), text in ("<(", ">(")))

    def _literal(self, kind: str, match: re.Match[str]) -> tuple[str, ...]:
        """Quoted text."""
        match kind:
            case "single":
                return (match[0].strip("'"),)
            case "quote":
                return self._source.quoted('"', self._listener)
            case "ansi":
                return (ansi(match[kind]),)
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
            self._open()
        else:
            self._join(text)

    # -------------------------------------------------------------- joints

    def _join(self, text: str) -> None:
        was_here = self._end_command()
        is_waiting, self._is_waiting = self._is_waiting and not was_here, text in _WAIT
        if text != "\n":
            self._end_list(text)
            return
        self._is_waiting = is_waiting
        if not is_waiting:
            self._end_list(text)
        for draft, mark, is_quoted, has_tabs in self._here:
            draft.text = self._here_document(mark, is_quoted=is_quoted, has_tabs=has_tabs)
        self._here = []
        self._tell()

    def _end_command(self) -> bool:
        """Whether there was one."""
        self._end_word()
        if was_here := not self._draft.is_empty:
            self._reader.tick(_COST_OF_A_COMMAND)
            self._pipeline.append(self._draft)
            self._all.append(self._draft)
        self._draft = Draft()
        return was_here

    def _end_pipeline(self, *, in_background: bool) -> None:
        self._end_command()
        if self._pipeline:
            bodies = tuple(self._bodies)
            self._say(partial(self._listener.pipeline, self._pipeline, bodies, in_background=in_background))
        self._pipeline = []

    def _end_list(self, joint: str) -> None:
        if joint in ("|", "|&"):
            return
        self._end_pipeline(in_background=joint == "&")
        self._parts.join(joint)

    def _say(self, event: Callable[[], object]) -> None:
        """Tell it as soon as all that belongs to the commands before has been read."""
        self._held.append(event)
        if not self._here:
            self._tell()

    def _tell(self) -> None:
        held, self._held = self._held, []
        for event in held:
            event()

    def _begin_group(self) -> None:
        """The body of a function, if one has just been named."""
        self._bodies.append(self._named)
        self._starts.append(self._source.text.rfind("{", 0, self._source.place) + 1)
        self._parts.begin(BODY if self._named else "{")
        self._named = ""

    def _end_group(self, start: int, end: int) -> None:
        self._starts.pop()
        if name := self._bodies.pop():
            self._reader.functions[name] = self._source.text[start:end]

    def _open(self) -> None:
        """A subshell, the parentheses of a function, or an array."""
        source = self._source
        if match := re.compile(r"[ \t]*\)").match(source.text, source.place):
            self._end_word()
            if len(self._draft.words) == 1 or self._draft.words[:1] == ["function"]:
                source.place = match.end()
                self._named = self._draft.words[-1]
                self._draft.words.clear()
                return
        elif self._pieces and self._pieces[-1][0][0].endswith("="):
            self._pieces.append(((listed(self._reader.array(source)),), True))
            self._is_array = True
            return
        if self._pieces and self._pieces[-1][0][0][-1:] in tuple("!@?*+"):
            self._pieces[-1] = ((self._pieces[-1][0][0][:-1] + "*",), False)  # a pattern, if `extglob` is set
        self._end_word()
        if self._operator or (self._draft.words and self._draft.words[0] not in ("for", "select")):
            self._end_command()
        self._begin_group()
        start = source.place
        self._draft.inside += self._reader.subshell(source)
        self._parts.end_compound()
        self._end_group(start - 1, source.place)

    # -------------------------------------------------------------- redirects

    def _redirect(self, operator: str) -> None:
        text = "".join(alternatives[0] for alternatives, _ in self._pieces)
        if self._pieces and (text.isdigit() or (text.startswith("{") and text.endswith("}"))):
            self._pieces = []  # the number of a descriptor
        self._end_word()
        self._operator = operator

    def _target(self, words: list[str], *, is_quoted: bool) -> None:
        operator, self._operator = self._operator, ""
        words = [as_text(word) for word in words]
        if operator in ("<<", "<<-"):
            self._here.append((self._draft, words[0], is_quoted, operator == "<<-"))
            self._draft.text = ""
        elif operator == "<<<":
            self._draft.text = words[0]
        elif not (operator in ("<&", ">&") and re.fullmatch(r"[0-9]*-?", words[0])):
            self._draft.redirects += [(operator, word) for word in words]

    def _here_document(self, mark: str, *, is_quoted: bool, has_tabs: bool) -> str:
        source = self._source
        self._reader.tick(_COST_OF_A_PATTERN)
        end = re.compile(("^\t*" if has_tabs else "^") + re.escape(mark) + "$", re.MULTILINE)
        match = end.search(source.text, source.place)
        body = source.text[source.place : match.start() if match else len(source.text)]
        source.place = match.end() if match else len(source.text)
        if is_quoted or not ("$" in body or "`" in body):
            return body
        return _Text(self._reader, body).quoted("", self._listener)[0]

    # -------------------------------------------------------------- words

    def _end_word(self) -> None:
        if not self._pieces:
            return
        pieces, self._pieces = self._pieces, []
        is_quoted = any(quoted for _, quoted in pieces)
        words = words_of(pieces)
        if self._operator:
            self._target([self._at_home(word, pieces) for word in words], is_quoted=is_quoted)
            return
        self._word(words, pieces, is_quoted=is_quoted)
        self._is_array = False

    def _word(self, words: list[str], pieces: list[Piece], *, is_quoted: bool) -> None:
        draft = self._draft
        if draft.is_empty and not is_quoted and words[0] in RESERVED:
            self._reserved(words[0])
            return
        if not draft.words and (match := ASSIGNMENT.match(words[0])):
            draft.assignments.append((match[1], self._assigned(match, words)))
            return
        choices = prod(len(alternatives) for alternatives, _ in pieces)
        if not (self._is_array and draft.words):  # `declare` and its like
            choices, words = choices if len(words) == choices else 0, apart(words)
        if draft.is_empty and words[0] == "-p":
            return  # of `time`
        if draft.words[:1] == ["function"] and words == ["{"] and len(draft.words) == 2 and not draft.assignments:
            self._named = draft.words[1]
            draft.words.clear()
            self._begin_group()
        elif draft.words[:1] == ["case"]:
            draft.words = [] if words == ["in"] else draft.words
        elif draft.words:
            if len(words) == choices > 1:
                draft.either.append((len(draft.words), choices))
            draft.words += [self._at_home(word, pieces) for word in in_order(words)]
        elif len(words) == choices:
            draft.words, draft.names = [self._at_home(words[0], pieces)], words[1:]
        else:
            draft.words = [self._at_home(word, pieces) for word in words]

    def _assigned(self, match: re.Match[str], words: list[str]) -> tuple[str, ...]:
        """What a variable gets."""
        values = tuple(self._home(word[match.end() :] if word.startswith(match[0]) else word) for word in words)
        name, place = match[1], match[2]
        if place:
            values = tuple(LISTED + value for value in values)
        elif not self._is_array:
            values = tuple(map(as_text, values))
        if not (place or match[0].endswith("+=")):
            return values
        before = self._reader.flow.elements(name) if self._reader.flow.is_known(name) or not place else ("",)
        return tuple(together([before, values]))

    def _reserved(self, word: str) -> None:
        if word == "{":
            self._begin_group()
        else:
            self._parts.reserved(word)
        if word == "}" and len(self._bodies) > self._floor:
            self._end_group(self._starts[-1], self._source.text.rfind("}", 0, self._source.place))
        elif word in ("for", "select", "case"):
            self._draft.words.append(word)
        if word in ("case", "esac"):
            self._cases = max(0, self._cases + (1 if word == "case" else -1))

    def _at_home(self, word: str, pieces: list[Piece]) -> str:
        return word if pieces[0][1] else self._home(word)

    def _home(self, word: str) -> str:
        """`~` and what it stands for."""
        if word[:1] != "~":
            return word
        name, slash, rest = word[1:].partition("/")
        variable = {"": "HOME", "+": "PWD", "-": "OLDPWD"}.get(name)
        return (self._listener.value(variable)[0] if variable else home_of(name) or UNTOLD) + slash + rest


class _Words(_Commands):
    """Reads the words of an array: none of them runs, but for what is substituted."""

    def words(self) -> list[str]:
        """All until the closing mark."""
        self._draft.words.append("")
        self.read()
        return [KEY.sub("", word) for word in self._draft.words[1:]]

    def _join(self, text: str) -> None:
        self._end_word()

    def _end_pipeline(self, *, in_background: bool) -> None:
        self._end_word()
