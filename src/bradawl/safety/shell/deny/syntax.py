"""Parses any text as bash might into a tree of commands; what is not closed ends with the text, nothing is an error.

Where the syntax is ambiguous the parser finds more commands than bash would run, not fewer.
"""

import re
from typing import Final, NamedTuple

_MAX_DEPTH: Final = 40
_COST_OF_A_COMMAND: Final = 4  # tokens
_COST_OF_A_DOCUMENT: Final = 50
_MAX_SUM: Final = 1_000  # characters of an arithmetic expression


class Text(NamedTuple):
    """Literal characters of a word."""

    text: str
    is_quoted: bool = False


class Parameter(NamedTuple):
    """`$name` or `${name...}`."""

    name: str
    is_quoted: bool = False
    subscript: str | None = None
    """Of an array, without the brackets."""
    prefix: str = ""
    """`!` or `#` before the name."""
    operator: str = ""
    operand: "tuple[Part, ...]" = ()


class Substitution(NamedTuple):
    """`$(...)`, backticks, or a process substitution."""

    commands: "list[AndOr]"
    is_quoted: bool = False
    file: str = ""
    """`<` or `>` for `<(...)` or `>(...)`, which stand for the name of a file."""


class Array(NamedTuple):
    """The value of `name=(...)`."""

    words: "list[Word]"


Part = Text | Parameter | Substitution | Array
Word = tuple[Part, ...]


class Redirect:
    """A redirection; the word of a here-document is its content, filled in once that has been read."""

    def __init__(self, descriptor: str, operator: str, word: Word) -> None:
        self.descriptor = descriptor
        """Empty if none is given."""
        self.operator = operator
        self.word = word


class Command:
    """A simple command, or a compound one with the reserved word that begins it."""

    def __init__(self, keyword: str = "") -> None:
        self.keyword = keyword
        """`if`, `while`, `for`, `select`, `case`, `{`, `(` or `function`; empty for a simple command."""
        self.words: list[Word] = []
        """Also the variable and words of `for`, the word of `case`, the name of a function."""
        self.redirects: list[Redirect] = []
        self.bodies: list[list[AndOr]] = []
        """Its lists of commands in the order of the text, conditions included."""


class AndOr(NamedTuple):
    """Pipelines, each with the `&&` or `||` before it."""

    parts: list[tuple[str, list[Command]]]
    in_background: bool


_WORD_END = r"(?=[\s;&|()<>]|\Z)"
_BLANKS = re.compile(r"(?:[ \t\r]|\\\n)*(?:(?<![^ \t\n;&|()<>])#[^\n]*)?")
_START = re.compile(
    rf"(?P<prefix>(?:!|time(?:[ \t]+-p)?|coproc(?:[ \t]+\w+(?=[ \t]+[({{]))?){_WORD_END})"
    r"|(?:function[ \t]+)?(?P<function>[^\s;&|()<>'\"`$\\=]+)[ \t]*\([ \t]*\)"
    r"|function[ \t]+(?P<named>[^\s;&|()<>'\"`$\\]+)"
    rf"|(?P<sum>\(\()|(?P<compound>(?:if|while|until|for|select|case|\{{){_WORD_END}|\()"
)
_CLOSER = re.compile(rf"\)|;;&?|;&|(?:then|elif|else|fi|do|done|esac|\}}){_WORD_END}")
_REDIRECT = re.compile(r"([0-9]+|\{\w+\})?(<<<|<<-?|&>>?|<>|[<>]&|>>|>\||[<>](?!\())(?:[ \t]|\\\n)*")
_IN_A_PATTERN = r"(?:[^()\n;`$]|\$(?!\())"
_PART = re.compile(
    r"(?P<sum>\$\(\(|\$\[[^\]\n`$]*\])"
    rf"|(?P<text>(?:[^ \t\r\n;&|()<>'\"`$\\]|(?<=[!@?*+])\((?:{_IN_A_PATTERN}|\({_IN_A_PATTERN}*\))*\))+)"
    r"|'(?P<single>[^']*)'?|\$?(?P<quote>\")"
    r"|\$'(?P<ansi>(?:[^'\\]|\\.)*)'?|\\(?P<escape>.?)|\$(?P<name>[A-Za-z_]\w*|[0-9@*#?$!-])|(?P<expansion>\$\{)"
    r"|(?P<substitution>\$\(|[<>]\()|(?P<tick>`)|(?P<dollar>\$)|(?P<array>(?<==)\()",
    re.DOTALL,
)
_QUOTED = re.compile(
    r"(?P<sum>\$\(\(|\$\[[^\]\n`$]*\])|(?P<text>[^\"\\$`}']+)|'(?P<single>[^']*)'?|\\(?P<escape>.?)|\$(?P<name>[A-Za-z_]\w*|[0-9@*#?$!-])|(?P<expansion>\$\{)"
    r"|(?P<substitution>\$\()|(?P<tick>`)|(?P<end>[\"}])|(?P<dollar>\$)",
    re.DOTALL,
)
_EXPANSION = re.compile(
    r"(?P<prefix>[!#](?=[A-Za-z_0-9@*]))?(?P<name>[A-Za-z_]\w*|[0-9]+|[@*])?(?:\[(?P<index>[^\]$`{}]{0,40})\])?"
    r"(?P<operator>:?[-=+?]|%%?|##?|/[/#%]?|:|\^\^?|,,?|@)?"
)
_ANSI_C = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)
_LETTERS: Final = {"n": "\n", "t": "\t", "e": "\x1b", "a": "\a", "r": "\r"}


class Limits:
    """The tokens and levels of nesting that are left for a text and the scripts in it."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.depth = 0
        self.is_whole = True
        """Whether they sufficed."""


class _Source:
    """A text with the current position. At the limits it ends early."""

    def __init__(self, text: str, limits: Limits) -> None:
        self._text = text
        self._place = 0
        self._limits = limits

    def _spend(self) -> bool:
        """Count a token; return False, and go to the end of the text, if that exceeds the limits."""
        self._limits.tokens -= 1
        if self._limits.tokens < 0 or self._limits.depth > _MAX_DEPTH:
            self._limits.tokens, self._limits.is_whole, self._place = 0, False, len(self._text)
        return self._place < len(self._text)

    def _is_at_end(self) -> bool:
        """Skip blanks and a comment; return whether the text ends there."""
        if blanks := _BLANKS.match(self._text, self._place):
            self._place = blanks.end()
        return self._place >= len(self._text)

    def _take(self, pattern: str | re.Pattern[str]) -> re.Match[str] | None:
        """Take what matches behind blanks."""
        compiled = re.compile(pattern) if isinstance(pattern, str) else pattern
        match = None if self._is_at_end() else compiled.match(self._text, self._place)
        self._place = match.end() if match else self._place
        return match


class Parser(_Source):
    """Parses one text. At the limits it stops as at the end of the text."""

    def __init__(self, text: str, limits: Limits) -> None:
        super().__init__(text, limits)
        self._closers: list[tuple[str, ...]] = []
        """What ends each open list of commands."""
        self._documents: list[tuple[Redirect, bool]] = []
        """Here-documents that begin on the next line, and whether tabs are removed."""

    def commands(self, *closers: str) -> list[AndOr]:
        """All commands up to one of the closers, which is not taken, or the end of the text."""
        self._closers.append(closers)
        self._limits.depth += 1
        found: list[AndOr] = []
        while self._spend() and not self._is_at_end():
            if closer := _CLOSER.match(self._text, self._place):
                if any(closer[0] in each for each in self._closers):
                    break
                self._place = closer.end()  # closes nothing
            elif not self._takes_newline() and not self._take(r"[;&|]+"):
                found.append(self._and_or())
        self._limits.depth -= 1
        self._closers.pop()
        return found

    def content(self, end: str = "", *, is_quoted: bool = True) -> Word:
        """What follows up to `end` or the end of the text; without `is_quoted`, single quotes quote."""
        parts: list[Part] = []
        self._limits.depth += 1
        while self._spend() and (match := _QUOTED.match(self._text, self._place)):
            self._place = match.end()
            if match["end"] == end:
                break
            if end == "}" and match["end"]:
                parts += self.content('"')
            elif match["single"] is not None and is_quoted:
                self._place = match.start() + 1
                parts.append(Text("'", True))
            elif match["escape"] is not None:
                is_escape = match["escape"] in ("\n", *'"\\$`')
                parts.append(Text(match["escape"].strip("\n") if is_escape else match[0], True))
            else:
                parts.append(self._part(match, is_quoted=True))
        self._limits.depth -= 1
        return tuple(parts) or (Text("", True),)

    def _skip_newlines(self) -> None:
        while not self._is_at_end() and self._takes_newline():
            pass

    def _takes_newline(self) -> bool:
        """Take a line break and the here-documents behind it, if there is one."""
        if not self._text.startswith("\n", self._place):
            return False
        self._place += 1
        pending, self._documents = self._documents, []
        for redirect, has_tabs in pending:
            self._limits.tokens -= _COST_OF_A_DOCUMENT
            mark = "".join(part.text for part in redirect.word if isinstance(part, Text))
            after = r"(?:\r?$|(?=\)))" if any(")" in each for each in self._closers) else r"\r?$"
            end = re.compile(("^\t*" if has_tabs else "^") + re.escape(mark) + after, re.MULTILINE)
            match = end.search(self._text, self._place)
            body = self._text[self._place : match.start() if match else len(self._text)]
            self._place = match.end() if match else len(self._text)
            is_literal = any(isinstance(part, Text) and part.is_quoted for part in redirect.word)
            redirect.word = (Text(body, True),) if is_literal else Parser(body, self._limits).content()
        return True

    # -------------------------------------------------------------- commands

    def _and_or(self) -> AndOr:
        parts = [("", self._pipeline())]
        while operator := self._take(r"&&|\|\|"):
            self._skip_newlines()
            parts.append((operator[0], self._pipeline()))
        return AndOr(parts, self._take(r"&(?!>)") is not None)

    def _pipeline(self) -> list[Command]:
        stages = [self._command()]
        while self._take(r"\|&?(?!\|)"):
            self._skip_newlines()
            stages.append(self._command())
        return stages

    def _command(self) -> Command:
        start = self._take(_START)
        while start and start["prefix"] and self._spend():
            start = self._take(_START)
        self._limits.tokens -= _COST_OF_A_COMMAND
        command = Command()
        if start is None:
            self._words(command)
            return command
        if name := start["function"] or start["named"]:
            self._skip_newlines()
            command = Command("function")
            command.words.append((Text(name),))
            self._limits.depth += 1
            if self._spend():
                command.bodies.append([AndOr([("", [self._command()])], False)])
            self._limits.depth -= 1
        elif start["sum"] and (word := self._sum(is_quoted=False)):
            command.words += [(Text(":"),), word]
        elif start["compound"] or start["sum"]:
            self._place -= len(start["sum"] or "") and 1
            command = self._compound(start["compound"] or "(")
        self._words(command, redirects_only=True)
        return command

    def _compound(self, keyword: str) -> Command:
        command = Command("while" if keyword == "until" else keyword)
        match command.keyword:
            case "if":
                self._bodies(command, "fi", "then", "elif", "else")
            case "while":
                self._bodies(command, "done", "do")
            case "{" | "(":
                self._bodies(command, "}" if keyword == "{" else ")")
            case "for" | "select":
                if self._take(r"\(\("):
                    sum_ = Command()
                    sum_.words += [(Text(":"),), self._sum(is_quoted=False) or (Text(""),)]
                    command.bodies.append([AndOr([("", [sum_])], False)])
                else:
                    self._for_words(command)
                self._take(";")
                self._skip_newlines()
                self._bodies(command, *(("}",) if self._take(r"\{") else ("done", "do")))
            case _:
                self._take(" *")
                command.words.append(self._word())
                self._skip_newlines()
                self._take(rf"in{_WORD_END}")
                self._case_items(command)
        return command

    def _for_words(self, command: Command) -> None:
        self._take(" *")
        command.words.append(self._word())
        self._skip_newlines()
        if self._take(rf"in{_WORD_END}"):
            command.words.append((Text("in"),))
            self._words(command)

    def _bodies(self, command: Command, end: str, *between: str) -> None:
        while True:
            command.bodies.append(self.commands(end, *between))
            closer = self._take(_CLOSER) if self._is_before((end, *between)) else None
            if closer is None or closer[0] == end:
                return

    def _is_before(self, closers: tuple[str, ...]) -> bool:
        closer = None if self._is_at_end() else _CLOSER.match(self._text, self._place)
        return closer is not None and closer[0] in closers

    def _case_items(self, command: Command) -> None:
        place = -1
        while place < self._place:
            place = self._place
            self._skip_newlines()
            if self._take(rf"esac{_WORD_END}"):
                return
            self._take(r"\(")
            while pattern := self._word():
                command.words.append(pattern)
                self._take(r"\|")
            self._take(r"\)")
            command.bodies.append(self.commands("esac", ";;", ";&", ";;&"))
            self._take(r";;&?|;&")

    def _words(self, command: Command, *, redirects_only: bool = False) -> None:
        """Read words and redirections up to the end of a command."""
        while not self._is_at_end():
            if (redirect := self._take(_REDIRECT)) and self._spend():
                self._redirect(command, redirect)
            elif redirects_only or not (word := self._word()):
                return
            else:
                command.words.append(word)
                if word == (Text("]]"),) and command.words[0] == (Text("[["),):
                    return  # a reserved word may follow

    def _redirect(self, command: Command, match: re.Match[str]) -> None:
        begin = self._place
        redirect = Redirect(match[1] or "", match[2], self._word())
        command.redirects.append(redirect)
        if match[2] in ("<<", "<<-"):
            mark = self._text[begin : self._place]
            redirect.word = (Text(re.sub(r"['\"\\]", "", mark), bool(re.search(r"['\"\\]", mark))),)
            self._documents.append((redirect, match[2] == "<<-"))

    # -------------------------------------------------------------- words

    def _word(self) -> Word:
        """Read one word; empty if none begins here."""
        parts: list[Part] = []
        self._limits.depth += 1
        while (match := _PART.match(self._text, self._place)) and self._spend():
            self._place = match.end()
            if match["quote"]:
                parts += self.content('"')
            else:
                parts.append(self._part(match, is_quoted=False))
        self._limits.depth -= 1
        return tuple(parts)

    def _part(self, match: re.Match[str], *, is_quoted: bool) -> Part:
        kind = match.lastgroup or ""
        match kind:
            case "single" | "escape":
                return Text("" if match[0] == "\\\n" else match[kind], True)
            case "ansi":
                return Text(_ANSI_C.sub(_character, match["ansi"]), True)
            case "name":
                return Parameter(match["name"], is_quoted)
            case "sum":
                return self._arithmetic(match[0], is_quoted=is_quoted)
            case "expansion":
                return self._expansion(is_quoted=is_quoted)
            case "substitution" | "tick":
                commands = self._between_ticks(is_quoted=is_quoted) if kind == "tick" else self._group()
                return Substitution(commands, is_quoted, match[0][0].strip("$`"))
            case "array":
                return self._array()
            case _:
                return Text(match[0], is_quoted)

    def _expansion(self, *, is_quoted: bool) -> Parameter:
        match = _EXPANSION.match(self._text, self._place)
        if match is None or match["name"] is None:
            return Parameter("#", is_quoted, operator="?", operand=self.content("}", is_quoted=is_quoted))
        self._place = match.end()
        given = match.groupdict("")
        return Parameter(
            match["name"],
            is_quoted,
            match["index"],
            given["prefix"],
            given["operator"],
            self.content("}", is_quoted=is_quoted),
        )

    def _arithmetic(self, text: str, *, is_quoted: bool) -> Part:
        """`$((...))`, of which only the substitutions run; else a substitution that begins with a subshell."""
        if text != "$((":
            return Parameter("#", is_quoted)
        if word := self._sum(is_quoted=is_quoted):
            return Parameter("#", is_quoted, operator="?", operand=word)
        self._place -= 1
        return Substitution(self._group(), is_quoted)

    def _sum(self, *, is_quoted: bool) -> Word:
        """Read an arithmetic expression behind its two parentheses; empty if it does not end with two."""
        depth, place = 0, self._place
        for place in range(self._place, min(len(self._text), self._place + _MAX_SUM)):
            depth += {"(": 1, ")": -1}.get(self._text[place], 0)
            if depth < 0:
                break
        if depth >= 0 or not self._text.startswith("))", place):
            return ()
        content = self._text[self._place : place]
        self._place = place + 2
        return Parser(content, self._limits).content(is_quoted=is_quoted)

    def _group(self) -> list[AndOr]:
        outer, self._documents = self._documents, []
        commands = self.commands(")")
        self._take(r"\)")
        self._documents = outer + self._documents
        return commands

    def _between_ticks(self, *, is_quoted: bool) -> list[AndOr]:
        end = self._place
        while end < len(self._text) and self._text[end] != "`":
            end += 2 if self._text[end] == "\\" else 1
        content = re.sub(r"\\([`$\\\"])" if is_quoted else r"\\([`$\\])", r"\1", self._text[self._place : end])
        self._place = end + 1
        return Parser(content, self._limits).commands()

    def _array(self) -> Array:
        words: list[Word] = []
        place = -1
        while place < self._place and not self._take(r"\)"):
            place = self._place
            self._skip_newlines()
            if word := self._word():
                words.append(word)
            else:
                self._take(r"[^\s)]")
        return Array(words)


def _character(match: re.Match[str]) -> str:
    """The character of an escape in `$'...'`."""
    if code := match[1] or match[2] or match[3]:
        return chr(min(int(code, 16), 0x10FFFF))
    return chr(int(match[4], 8) & 0xFF) if match[4] else _LETTERS.get(match[5], match[5])
