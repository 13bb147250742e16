"""Reads any text as bash might, as far as it gets: commands at every depth, for whoever holds them against a call.

Never says that a text is harmless. Where bash would see something else, more commands are found rather than fewer.
"""

import re
from collections.abc import Callable
from functools import partial
from math import prod

from bradawl.safety.shell_drafts import Draft, Listener, TooMuch
from bradawl.safety.shell_expansion import MOST_WORDS, UNTOLD, Piece, ansi, together, words_of
from bradawl.safety.shell_flow import ANYTHING, Flow, in_doubt
from bradawl.safety.shell_parts import BODY, JOINS, RESERVED, Parts

_MOST_TOKENS = 1_200
_DEEPEST = 40
_COST_OF_A_PATTERN = 50  # tokens
_COST_OF_A_COMMAND = 4
_WAIT = JOINS | {"|", "|&"}

_TOKEN = re.compile(
    r"(?P<blank>(?:[ \t\r]|\\\n)+)"
    r"|(?P<text>[^ \t\r\n;&|()<>'\"`$\\]+)"
    r"|(?P<single>'[^']*'?)"
    r'|"(?P<double>[^"\\$`]*)"'
    r'|(?P<quote>")'
    r"|\$'(?P<ansi>(?:[^'\\]|\\.)*)'?"
    r"|\\(?P<escape>.?)"
    r"|\$(?P<name>[A-Za-z_]\w*|[0-9@*#?$!-])|\$\{(?P<braced>[A-Za-z_]\w*)\}"
    r"|(?P<expansion>\$\{)"
    r"|(?P<substitution>\$\(|[<>]\()"
    r"|(?P<tick>`)"
    r"|(?P<redirect><<<|<<-?|&>>?|<>|[<>]&|>>|>\||[<>])"
    r"|(?P<joint>&&|\|\||;;&?|;&|\|&|[;&|\n])"
    r"|(?P<open>\()"
    r"|(?P<close>\))"
    r"|(?P<dollar>\$)",
    re.DOTALL,
)
_QUOTED = re.compile(
    r"(?P<text>[^\"\\$`}]+)|\\(?P<escape>.?)|\$(?P<name>[A-Za-z_]\w*|[0-9@*#?$!-])|\$\{(?P<braced>[A-Za-z_]\w*)\}"
    r"|(?P<expansion>\$\{)|(?P<substitution>\$\()|(?P<tick>`)|(?P<end>[\"}])|(?P<dollar>\$)",
    re.DOTALL,
)
_DEFAULT = re.compile(r"([A-Za-z_]\w*)?(:?[-=+?])?")


class LooseReader:
    """Reads texts for one listener; together they may be so long and so deep."""

    def __init__(self, listener: Listener, flow: Flow) -> None:
        self._listener = listener
        self.flow = flow
        self.bodies: list[str] = []
        """Names of the functions and groups in whose bodies the reader is; empty for a group."""
        self._left = _MOST_TOKENS
        self._depth = 0

    def read(self, text: str) -> list[Draft]:
        """Tell the listener of all commands in a text, and give back those at its top. Raises `TooMuch`."""
        return self._deeper(_Text(self, text), "")

    def tick(self, count: int = 1) -> None:
        """Another token, or as much work as so many of them."""
        self._left -= count
        if self._left < 0:
            raise TooMuch

    def inside(self, source: "_Text", closer: str) -> str:
        """The commands of a substitution; gives back what stands for their output."""
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
            match = _QUOTED.match(self.text, self.place)
            if match is None:
                break
            self.place = match.end()
            kind = match.lastgroup
            if kind == "end" and match[0] == end:
                break
            if kind in ("text", "end", "dollar"):
                pieces.append((match[0],))
            elif kind == "escape":
                pieces.append((_unescaped(match["escape"]),))
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
                return (self.reader.inside(self, ")"),)
            case _:
                return (self.reader.inside(_Text(self.reader, self._ticked()), ""),)

    def _expansion(self, listener: Listener) -> tuple[str, ...]:
        match = _DEFAULT.match(self.text, self.place)
        name, operator = (match[1], match[2] or "") if match else (None, "")
        if match:
            self.place = match.end()
        rest = self.reader.default(self)
        value = listener.value(name) if name else ANYTHING
        match operator.lstrip(":"):
            case "-" | "=":
                if UNTOLD in value or (operator.startswith(":") and "" in value):
                    value = in_doubt((*filter(None, value), *rest))
                if operator.endswith("="):
                    self.reader.flow.assign(name or "", value)
                return value
            case "?":
                return value
            case "+":
                return in_doubt(rest)
            case _:
                return value if rest == ("",) else ANYTHING

    def _ticked(self) -> str:
        end = self.place
        while 0 <= end < len(self.text) and self.text[end] != "`":
            end += 2 if self.text[end] == "\\" else 1
        content = self.text[self.place : end]
        self.place = end + 1
        return content.replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\")


def _unescaped(char: str) -> str:
    if char == "\n":
        return ""
    return char if char in '"\\$`' else "\\" + char


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
        self._named = ""
        self._is_waiting = False
        """For what follows `&&`, `||` or `|`."""
        self._cases = 0

    def read(self) -> list[Draft]:
        """All commands until the closing mark."""
        source = self._source
        text, match_at, tick = source.text, _TOKEN.match, self._reader.tick
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
        self._parts.begin(BODY if self._named else "{")
        self._named = ""

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
            self._pieces.append((self._array(), True))
            return
        self._end_word()
        if self._operator or (self._draft.words and self._draft.words[0] not in ("for", "select")):
            self._end_command()
        self._begin_group()
        self._draft.inside += self._reader.subshell(source)
        self._parts.end_compound()
        del self._bodies[-1:]

    def _array(self) -> tuple[str, ...]:
        """The words up to the closing parenthesis, none of which runs."""
        source = self._source
        end = source.text.find(")", source.place)
        content = source.text[source.place : end if end >= 0 else len(source.text)]
        if "$(" in content or "`" in content:
            return tuple(word for draft in self._reader.subshell(source) for word in draft.words)[:MOST_WORDS]
        source.place += len(content) + 1
        return tuple(word.strip("'\"") for word in content.split()[:MOST_WORDS]) or ("",)

    # -------------------------------------------------------------- redirects

    def _redirect(self, operator: str) -> None:
        text = "".join(alternatives[0] for alternatives, _ in self._pieces)
        if self._pieces and (text.isdigit() or (text.startswith("{") and text.endswith("}"))):
            self._pieces = []  # the number of a descriptor
        self._end_word()
        self._operator = operator

    def _target(self, words: list[str], *, is_quoted: bool) -> None:
        operator, self._operator = self._operator, ""
        if operator in ("<<", "<<-"):
            self._here.append((self._draft, words[0], is_quoted, operator == "<<-"))
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
            self._target([self._at_home(word, pieces) for word in words[:1]], is_quoted=is_quoted)
            return
        draft = self._draft
        if draft.is_empty and not is_quoted and words[0] in RESERVED:
            self._reserved(words[0])
        elif not draft.words and (match := re.match(r"([A-Za-z_]\w*)\+?=", words[0])):
            values = tuple(self._home(word[match.end() :] if word.startswith(match[0]) else word) for word in words)
            if match[0].endswith("+="):
                values = tuple(together([self._listener.value(match[1]), values]))
            draft.assignments.append((match[1], values))
        elif draft.words[:1] == ["function"] and words == ["{"] and len(draft.words) == 2 and not draft.assignments:
            self._named = draft.words[1]
            draft.words.clear()
            self._begin_group()
        elif draft.words[:1] == ["case"]:
            draft.words = [] if words == ["in"] else draft.words
        elif draft.words:
            draft.words += [self._at_home(word, pieces) for word in sorted(words, key=_is_told)]
        elif len(words) == prod(len(alternatives) for alternatives, _ in pieces):
            draft.words, draft.names = [self._at_home(words[0], pieces)], words[1:]
        else:
            draft.words = [self._at_home(word, pieces) for word in words]

    def _reserved(self, word: str) -> None:
        if word == "{":
            self._begin_group()
        else:
            self._parts.reserved(word)
        if word == "}" and len(self._bodies) > self._floor:
            self._bodies.pop()
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
        return (self._listener.value(variable)[0] if variable else UNTOLD) + slash + rest


def _is_told(word: str) -> bool:
    """What can't be told comes first, so that nobody takes one of several values for the only one."""
    return UNTOLD not in word
