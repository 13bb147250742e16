"""Parses a small, strict subset of bash: simple commands of literal words, joined by `;`, newline, `&&`, `||` and `|`.

It never guesses: text that bash might read in any other way raises `UnsupportedSyntax`.
"""

import re
from typing import Literal, cast

import msgspec

from bradawl.safety.shell.errors import UnsupportedSyntax

LONGEST = 8_192
MOST_COMMANDS = 50
Join = Literal[";", "&&", "||"]


class Word(msgspec.Struct, frozen=True):
    """One argument after quote removal. With `is_glob` it is a pattern that bash may replace by names."""

    text: str
    is_glob: bool = False


class Redirect(msgspec.Struct, frozen=True):
    """A file that is opened before the command starts."""

    writes: bool
    target: Word


class SimpleCommand(msgspec.Struct, frozen=True):
    """Assignments, words and redirects. `start` is the offset of its first byte."""

    start: int
    words: tuple[Word, ...]
    assignments: tuple[tuple[str, str], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    name: str = ""
    """The first word if no part of it was quoted, else empty."""

    @property
    def argv(self) -> tuple[str, ...]:
        """The texts of the words; a pattern is not expanded."""
        return tuple(word.text for word in self.words)


class Pipeline(msgspec.Struct, frozen=True):
    """Commands joined by `|`, and how the pipeline is joined to the one before."""

    join: Join
    commands: tuple[SimpleCommand, ...]


class ParsedLine(msgspec.Struct, frozen=True):
    """A parsed line or script.

    In `text` line continuations are replaced by blanks. The offsets of tokens count its bytes.
    """

    text: str
    pipelines: tuple[Pipeline, ...]
    tokens: tuple["Token", ...]

    @property
    def argvs(self) -> tuple[tuple[str, ...], ...]:
        """The words of each command that has any, in order."""
        return tuple(command.argv for pipeline in self.pipelines for command in pipeline.commands if command.words)


class Token(msgspec.Struct, frozen=True):
    """A piece of the text and its byte range; `kind` is `word`, `joint`, `redirect`, `duplicate` or `newline`."""

    kind: str
    text: str
    start: int
    end: int


# In double quotes `\` stays where the character behind it has no meaning there, and so does a `$` that begins nothing.
_IN_DOUBLE_QUOTES = r"""(?:[^"\\$`!]|\\[A-Za-z0-9_.*+?^|(){}<>\[\]/,:;=@%&~#' -]|\$(?=["| ]|\\[|)]))*"""
_TOKEN = re.compile(
    r"(?P<blank>[ \t]+)"
    r"|(?P<newline>\n)"
    r"|(?P<comment>\#[^\n]*)"
    r"|(?P<joint>(?:&&|\|\||;|\|)(?![;&|]))"
    r"|(?P<duplicate>(?:1?>&2|2>&1)(?=[ \t\n;|&]|$))"
    r"|(?P<redirect>(?:[12]?>>?|&>>?|0?<)(?![&<>|(]))"
    rf"""|(?P<word>(?:'[^']*'|"{_IN_DOUBLE_QUOTES}"|[A-Za-z0-9_./:,@%+^=*?~!\[\]-]+)+)"""
)
_PIECE = re.compile(r"""'([^']*)'|"([^"]*)"|([^'"]+)""")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_PLAIN_GLOB = r"[A-Za-z0-9_./*?=-]+"
_NAME = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./-]*|\[")
_APPENDS = r"[A-Za-z_][A-Za-z0-9_]*\+="
_PADDING = re.compile(r"[ \t]{80}|\n(?:[ \t]*\n){7}")
_CONTINUATION = r"(?<=[ \t])\\\n"
_RESERVED = frozenset(
    {"if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in"}
    | {"function", "select", "time", "coproc"}
)


def parse_line(text: str, home: str) -> ParsedLine:
    """Parse a line or script. Raises `UnsupportedSyntax`.

    `home` replaces an unquoted `~`; empty means that it isn't known.
    """
    _check_characters(text)
    text = _join_lines(text)
    tokens = _tokens(text)
    return ParsedLine(text, _Grouping(tokens, home).pipelines(), tokens)


def _check_characters(text: str) -> None:
    if len(text) > LONGEST or not text.strip() or _PADDING.search(text):
        raise UnsupportedSyntax
    if text.isascii():
        if not text.replace("\n", "").replace("\t", "").isprintable():
            raise UnsupportedSyntax
    elif not all(map(_is_visible, text)):
        raise UnsupportedSyntax


def _is_visible(char: str) -> bool:
    """True for printable ASCII, and for assigned letters and marks with a visible shape."""
    if char.isascii():
        return char.isprintable() or char in "\n\t"
    from unicodedata import category, normalize

    # Compatibility characters are excluded: they look like other characters, and some are blank.
    return (
        category(char)[0] in "LM" and not re.match(_UNSEEN, char) and normalize("NFKC", char) == normalize("NFC", char)
    )


_UNSEEN = "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\uffa0\u3164\U000e0000-\U000e0fff]"


def _join_lines(text: str) -> str:
    """Replace line continuations by blanks of the same length. Raises `UnsupportedSyntax` if one may be quoted."""
    if "\\\n" not in text:
        return text
    if any(mark in text for mark in ("'", '"', "#", "<<")):
        raise UnsupportedSyntax
    return re.sub(_CONTINUATION, "  ", text)


def _tokens(text: str) -> tuple[Token, ...]:
    """Tokens for the whole text except blanks and comments. Offsets count bytes."""
    tokens: list[Token] = []
    place, offset, length = 0, 0, len(text)
    is_ascii = text.isascii()
    while place < length:
        match = _TOKEN.match(text, place)
        if match is None:
            raise UnsupportedSyntax
        kind, piece = match.lastgroup or "", match[0]
        size = len(piece) if is_ascii else len(piece.encode())
        if kind == "comment" and tokens and tokens[-1].end == offset and tokens[-1].kind != "newline":
            raise UnsupportedSyntax  # `a#b` is one word
        if kind not in ("blank", "comment"):
            tokens.append(Token(kind, piece, offset, offset + size))
        place, offset = match.end(), offset + size
    return tuple(tokens)


class _Grouping:
    """Groups tokens into pipelines: commands between joints, none of them empty."""

    def __init__(self, tokens: tuple[Token, ...], home: str) -> None:
        self._tokens = tokens
        self._home = home
        self._place = 0

    def pipelines(self) -> tuple[Pipeline, ...]:
        """All pipelines, in order."""
        found: list[Pipeline] = []
        join: Join | None = ";"
        count = 0
        while True:
            self._skip_newlines()
            if self._place == len(self._tokens) and join in (None, ";") and found:
                return tuple(found)
            if join is None:
                raise UnsupportedSyntax
            commands = self._commands()
            count += len(commands)
            if count > MOST_COMMANDS:
                raise UnsupportedSyntax
            found.append(Pipeline(join, commands))
            join = self._joint()

    def _peek(self) -> Token | None:
        return self._tokens[self._place] if self._place < len(self._tokens) else None

    def _skip_newlines(self) -> None:
        while (token := self._peek()) and token.kind == "newline":
            self._place += 1

    def _joint(self) -> Join | None:
        """The joint behind a pipeline; None at the end."""
        token = self._peek()
        if token is None:
            return None
        self._place += 1
        return ";" if token.kind == "newline" else cast(Join, token.text)

    def _commands(self) -> tuple[SimpleCommand, ...]:
        commands = [self._command()]
        while (token := self._peek()) and token.text == "|" and token.kind == "joint":
            self._place += 1
            self._skip_newlines()
            commands.append(self._command())
        return tuple(commands)

    def _command(self) -> SimpleCommand:
        first = self._peek()
        if first is None or first.kind in ("newline", "joint"):
            raise UnsupportedSyntax
        words: list[Word] = []
        assignments: list[tuple[str, str]] = []
        redirects: list[Redirect] = []
        name = ""
        while (token := self._peek()) and token.kind not in ("newline", "joint"):
            self._place += 1
            if token.kind == "redirect":
                redirects.append(Redirect("<" not in token.text, self._target(token)))
            elif token.kind == "word" and not words and (match := _ASSIGNMENT.match(token.text)):
                assignments.append((match[1], _literal(token.text[match.end() :])))
            elif token.kind == "word":
                self._check_is_no_descriptor(token)
                name = name if words else _name(token)
                words.append(_word(token.text, self._home))
        if first.kind != "word" and (words or assignments):
            raise UnsupportedSyntax  # a redirect in front: rare, and parsers differ about the words behind it
        if words and words[0].text.startswith("%"):
            raise UnsupportedSyntax  # a job of the shell, also if the percent sign was quoted
        return SimpleCommand(first.start, tuple(words), tuple(assignments), tuple(redirects), name)

    def _target(self, redirect: Token) -> Word:
        token = self._peek()
        if token is None or token.kind != "word":
            raise UnsupportedSyntax
        self._place += 1
        self._check_is_no_descriptor(token)
        word = _word(token.text, self._home)
        if word.is_glob or not word.text:
            raise UnsupportedSyntax
        return word

    def _check_is_no_descriptor(self, token: Token) -> None:
        """Reject digits directly before a redirect: `12>f` opens descriptor 12."""
        after = self._peek()
        touches = after is not None and after.start == token.end and after.kind in ("redirect", "duplicate")
        if touches and token.text.isdigit():
            raise UnsupportedSyntax


def _name(token: Token) -> str:
    """The name of the command; empty if a part of it was quoted.

    Raises `UnsupportedSyntax` for a reserved word or a pattern.
    """
    if "'" in token.text or '"' in token.text:
        if re.match(_APPENDS, token.text):
            raise UnsupportedSyntax
        return ""
    if not _NAME.fullmatch(token.text) or token.text in _RESERVED:
        raise UnsupportedSyntax
    return token.text


def _literal(raw: str) -> str:
    """The value of an assignment."""
    word = _word(raw, "")
    if word.is_glob:
        raise UnsupportedSyntax
    return word.text


def _word(raw: str, home: str) -> Word:
    """The word without its quotes, `~` replaced.

    Raises `UnsupportedSyntax` for anything but literal text, `*` and `?`.
    """
    if raw in ("[", "]", "!", "!="):
        return Word(raw)
    text, is_glob = "", False
    for single, double, plain in _PIECE.findall(raw):
        if plain:
            is_glob = is_glob or "*" in plain or "?" in plain
            text += _plain(plain, text, raw, home)
        else:
            text += single or double
    if is_glob:
        _check_glob(raw)
    return Word(text, is_glob)


def _check_glob(raw: str) -> None:
    """Accept only `*` and `?` in unquoted text, and no pattern characters in quotes."""
    for single, double, plain in _PIECE.findall(raw):
        if plain and not re.fullmatch(_PLAIN_GLOB, plain):
            raise UnsupportedSyntax
        if any(mark in single or mark in double for mark in "*?[]\\"):
            raise UnsupportedSyntax


def _plain(plain: str, before: str, raw: str, home: str) -> str:
    if any(mark in plain for mark in "[]!"):
        raise UnsupportedSyntax
    if "~" not in plain:
        return plain
    if not before and (plain == raw == "~" or plain.startswith("~/")) and plain.count("~") == 1:
        return _at_home(plain, home)
    # A tilde is a plain letter within a word, but not where a value or an entry of a path list may begin.
    if plain.startswith("~") or "=~" in plain or ":~" in plain:
        raise UnsupportedSyntax
    return plain


def _at_home(plain: str, home: str) -> str:
    if not home.startswith("/") or any(mark in home for mark in "*?[]\\") or "*" in plain or "?" in plain:
        raise UnsupportedSyntax
    return home.rstrip("/") + plain[1:] if plain != "~" else home
