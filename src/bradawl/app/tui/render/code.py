"""Syntax colours: lines of code one after the other, so that a block can be drawn while it arrives."""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bradawl.app.tui.render.cells import Span, chop_spans, painted, shown
from bradawl.app.tui.render.palettes import Role
from bradawl.app.tui.render.theme import Theme

if TYPE_CHECKING:
    from pygments.lexer import Lexer

_LONGEST_LINE: Final = 1_000
"""Characters of a line that is coloured; longer ones are data."""
_MOST_EMPTY: Final = 100
"""Tokens without text that the lexer of a line may produce."""
_COMMENTS: Final = (("/*", "*/"), ("<!--", "-->"))
_ROLES: Final[dict[str, Role]] = {
    "Token.Comment": "comment",
    "Token.Generic.Deleted": "error",
    "Token.Generic.Heading": "heading",
    "Token.Generic.Inserted": "ok",
    "Token.Generic.Prompt": "dim",
    "Token.Generic.Subheading": "heading",
    "Token.Keyword": "keyword",
    "Token.Keyword.Constant": "number",
    "Token.Keyword.Type": "type",
    "Token.Literal.Number": "number",
    "Token.Literal.String": "string",
    "Token.Name.Attribute": "attribute",
    "Token.Name.Builtin": "builtin",
    "Token.Name.Class": "type",
    "Token.Name.Decorator": "attribute",
    "Token.Name.Exception": "type",
    "Token.Name.Function": "function",
    "Token.Name.Tag": "keyword",
    "Token.Operator": "operator",
    "Token.Operator.Word": "keyword",
}
_BY_ENDING: Final = {
    **{"h": "c", "mjs": "javascript", "cjs": "javascript", "svelte": "html", "m": "objective-c", "sql": "sql"},
    **{"pl": "perl", "r": "r", "conf": "ini"},
}


Token = tuple[int, Any, str]
"""Where a token begins, its type and its text."""


class CodeState(msgspec.Struct, frozen=True):
    """What the lines before the next one leave open."""

    stack: tuple[str, ...] = ("root",)
    """States of the lexer."""
    comment_end: str = ""
    """The end of a block comment that is open; empty for none."""


class Highlighter:
    """Colours lines of one language. The caller keeps the state, so that a line can be drawn again."""

    def __init__(self, language: str, theme: Theme) -> None:
        """An unknown language is not coloured."""
        self._theme = theme
        self._lexer = _lexer_of(language.lower()) if theme.codes else None
        self._has_state = self._lexer is not None and _is_regular(self._lexer)
        self._codes: dict[Any, str] = {}
        self._comments = _comments_of(self._lexer) if self._has_state and self._lexer else ()

    def line(self, text: str, state: CodeState) -> tuple[list[Span], CodeState]:
        """The spans of a line without its end, and the state behind it."""
        text = shown(text)
        if self._lexer is None or len(text) > _LONGEST_LINE:
            return [(text, "")], state
        if state.comment_end:
            return self._in_comment(text, state)
        tokens, stack = self._tokens(self._lexer, text, state.stack)
        end = self._opened_comment(text, tokens)
        if end:
            return self._up_to_comment(text, tokens, end), CodeState(state.stack, end[1])
        return self._spans(tokens), CodeState(stack)

    def _in_comment(self, text: str, state: CodeState) -> tuple[list[Span], CodeState]:
        at = text.find(state.comment_end)
        comment = self._theme.code("comment")
        if at < 0:
            return [(text, comment)], state
        at += len(state.comment_end)
        spans, behind = self.line(text[at:], CodeState(state.stack))
        return [(text[:at], comment), *spans], behind

    def _opened_comment(self, text: str, tokens: list[Token]) -> tuple[int, str] | None:
        """Where a comment begins that does not end on the line, and its end."""
        for begin, end in self._comments:
            if begin not in text:
                continue
            for place, kind, value in tokens:
                if "String" in str(kind) or (text.startswith(end, place + len(value) - len(end)) and len(value) > 3):
                    continue
                if text.startswith(begin, place) and end not in text[place + len(begin) :]:
                    return place, end
        return None

    def _up_to_comment(self, text: str, tokens: list[Token], end: tuple[int, str]) -> list[Span]:
        before = self._spans([token for token in tokens if token[0] < end[0]])
        return [*before, (text[end[0] :], self._theme.code("comment"))]

    def _tokens(self, lexer: "Lexer", text: str, stack: tuple[str, ...]) -> tuple[list[Token], tuple[str, ...]]:
        """The tokens of a line, and the states of the lexer behind it; one token if the lexer does not end."""
        from pygments.lexer import ExtendedRegexLexer, LexerContext

        line = text + "\n"
        if self._has_state:
            context = LexerContext(line, 0, list(stack))
            try:
                # The loop of this class keeps its states in the context, and it works for every table of rules.
                found = ExtendedRegexLexer.get_tokens_unprocessed(lexer, context=context)  # pyright: ignore[reportArgumentType] uses the rules alone
                tokens = _whole(found, line)
                return (tokens, tuple(context.stack)) if tokens else self._without_lexer(text, stack)
            except TypeError:  # a callback of the lexer that takes no context
                self._has_state = False
        tokens = _whole(lexer.get_tokens_unprocessed(line), line)
        return (tokens, stack) if tokens else self._without_lexer(text, stack)

    def _without_lexer(self, text: str, stack: tuple[str, ...]) -> tuple[list[Token], tuple[str, ...]]:
        self._lexer = None
        return [(0, "", text)], stack

    def _spans(self, tokens: Iterable[Token]) -> list[Span]:
        return [(value.rstrip("\n"), self._code_of(kind)) for _, kind, value in tokens]

    def _code_of(self, kind: Any) -> str:  # noqa: ANN401 a token type, which pygments does not type
        if kind not in self._codes:
            known: list[Role] = [_ROLES[name] for name in _names(str(kind)) if name in _ROLES]
            self._codes[kind] = self._theme.code(*known[:1])
        return self._codes[kind]


def highlight(code: str, language: str, theme: Theme, width: int) -> list[str]:
    """The lines of a text in colour, those wider than `width` cells split."""
    highlighter, state = Highlighter(language, theme), CodeState()
    lines: list[str] = []
    for line in code.removesuffix("\n").split("\n"):
        spans, state = highlighter.line(line, state)
        lines += [painted(part) for part in chop_spans(spans, width)]
    return lines


def language_of(path: str) -> str:
    """The language of a file by its name; empty if it is not known."""
    name = path.rpartition("/")[2]
    ending = name.rpartition(".")[2].lower()
    return _BY_ENDING.get(ending) or _languages_of_files().get(f"*.{ending}") or _languages_of_files().get(name, "")


def _whole(tokens: Iterable[Token], line: str) -> list[Token]:
    """The tokens of a line; empty if they are not the line: some lexers produce empty tokens without end."""
    found = list(islice(tokens, 2 * len(line) + _MOST_EMPTY))
    return found if "".join(value for _, _, value in found) == line else []


def _names(kind: str) -> Iterator[str]:
    """A token type and those above it."""
    while kind:
        yield kind
        kind = kind.rpartition(".")[0]


@cache
def _languages() -> dict[str, str]:
    """Names of lexers by alias. Plugins of other packages are not loaded: they would run at the first unknown name."""
    from pygments.lexers import get_all_lexers

    return {alias: name for name, aliases, _, _ in get_all_lexers(plugins=False) for alias in aliases}


@cache
def _languages_of_files() -> dict[str, str]:
    from pygments.lexers import get_all_lexers

    found: dict[str, str] = {}
    for _, aliases, patterns, _ in get_all_lexers(plugins=False):
        for pattern in patterns if aliases else ():
            found.setdefault(pattern, aliases[0])
    return found


def _lexer_of(language: str) -> "Lexer | None":
    if not language or language in ("text", "plain", "txt"):
        return None
    name = _languages().get(language)
    if name is None:
        return None
    from pygments.lexers import find_lexer_class

    made = find_lexer_class(name)
    return None if made is None else made()


def _is_regular(lexer: "Lexer") -> bool:
    """Whether the lexer is a table of rules, and nothing else."""
    from pygments.lexer import ExtendedRegexLexer, RegexLexer

    tokenizers = (RegexLexer.get_tokens_unprocessed, ExtendedRegexLexer.get_tokens_unprocessed)
    return isinstance(lexer, RegexLexer) and type(lexer).get_tokens_unprocessed in tokenizers


def _comments_of(lexer: "Lexer") -> tuple[tuple[str, str], ...]:
    """The block comments that the language has."""
    return tuple(pair for pair in _COMMENTS if _is_comment(lexer, f"{pair[0]} x {pair[1]}"))


def _is_comment(lexer: "Lexer", text: str) -> bool:
    tokens = _whole(lexer.get_tokens_unprocessed(text), text)
    return bool(tokens) and all("Comment" in str(kind) for _, kind, value in tokens if value.strip())
