"""Writes Markdown: inline text within a block, and the sequence of blocks. Pure."""

import re
from typing import Final

_MOST_FRAMES: Final = 20
_MOST_CONTAINERS: Final = 50
_MOST_INDENTED: Final = 8
_PERMALINKS: Final = frozenset({"#", "¶", "§", "🔗", "permalink", "link to this heading"})
_WRAPS: Final = {"strong": "**", "em": "*"}


class _Frame:
    """Text within one inline element."""

    def __init__(self, kind: str, target: str = "") -> None:
        self.kind = kind
        self.target = target
        self.pieces: list[str] = []

    @property
    def has_text(self) -> bool:
        return any(piece.strip() for piece in self.pieces)

    def text(self) -> str:
        text = "".join(self.pieces)
        core = text.strip()
        if not core:
            return text
        if self.kind == "code":
            longest = max(map(len, re.findall("`+", core)), default=0)
            mark = "`" * (longest + 1)
            core = f"{mark} {core} {mark}" if longest else f"{mark}{core}{mark}"
        elif self.kind == "link":
            core = f"[{core}]({self.target})" if self.target else "" if core.lower() in _PERMALINKS else core
        elif self.kind:
            core = f"{_WRAPS[self.kind]}{core}{_WRAPS[self.kind]}"
        first = text.index(text.lstrip()[0])
        return f"{text[:first]}{core}{text[len(text.rstrip()) :]}"


class Inline:
    """The inline text of the current block: emphasis, links and code."""

    def __init__(self) -> None:
        self._frames = [_Frame("")]

    @property
    def is_in_code(self) -> bool:
        """True within inline code."""
        return any(frame.kind == "code" for frame in self._frames)

    def add(self, text: str) -> None:
        """Add text, with its white space reduced."""
        self._frames[-1].pieces.append(re.sub(r"\s+", " ", text))

    def break_line(self) -> None:
        """The next text begins a line."""
        self._frames[-1].pieces.append("\n")

    def open(self, kind: str, target: str = "") -> None:
        """Begin `strong`, `em`, `code` or a `link` to `target`; one nested in the same kind is ignored."""
        if len(self._frames) < _MOST_FRAMES and not self.is_in_code and all(each.kind != kind for each in self._frames):
            self._frames.append(_Frame(kind, target))

    def close(self, kind: str) -> None:
        """Close the element and everything opened within it; does nothing if it is not open."""
        if any(frame.kind == kind for frame in self._frames):
            while self._fold() != kind:
                pass

    def take(self) -> str:
        """Return the text so far and start again. Open elements stay open, except a link."""
        open_frames = self._frames[1:]
        while len(self._frames) > 1:
            self._fold()
        text = self._frames.pop().text()
        text = re.sub(r" *\n *", "\n", re.sub(" {2,}", " ", text)).strip()
        self._frames = [_Frame("")]
        for frame in open_frames:
            self._frames.append(_Frame(frame.kind, "" if frame.has_text else frame.target))
        return text

    def _fold(self) -> str:
        """Close the innermost element; returns its kind."""
        frame = self._frames.pop()
        self._frames[-1].pieces.append(frame.text())
        return frame.kind


class _Container:
    """An open list, item or quote."""

    def __init__(self, kind: str, first: str = "", rest: str = "", number: int = 1) -> None:
        self.kind = kind
        self.first = first
        """Prefix of the first line; later lines have the other prefix."""
        self.rest = rest
        self.number = number
        """Number of a list's next item."""
        self.has_begun = False


class Blocks:
    """The finished blocks, each with the prefixes of its lists and quotes."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.size = 0
        """Characters so far."""
        self._containers: list[_Container] = []
        self._is_list_running = False

    def put(self, text: str) -> None:
        """Add a block, after a blank line unless it is the next item of a list or the definition of a term."""
        begun = {each.kind for each in self._containers if each.first != each.rest}
        is_next_item = "dd" in begun or ("li" in begun and self._is_list_running)
        if self.lines and not is_next_item:
            self._line("".join(each.rest for each in self._containers if each.has_begun).rstrip())
        for line in text.split("\n"):
            self._line((self._margin() + line).rstrip())
        self._is_list_running = self.is_in("li")

    def is_in(self, kind: str) -> bool:
        """Whether a container of that kind is open."""
        return any(each.kind == kind for each in self._containers)

    def begin_list(self, *, is_numbered: bool, first: int = 1) -> None:
        """A list begins."""
        self._push(_Container("ol" if is_numbered else "ul", number=first))

    def begin_item(self) -> None:
        """Begin the next item of the innermost list; the one before ends."""
        is_in_list = self.is_in("ul") or self.is_in("ol")
        ended_by = ("ul", "ol") if is_in_list else ()
        while self._containers and self._containers[-1].kind not in ended_by and (is_in_list or self.is_in("li")):
            self._containers.pop()
        around = self._containers[-1] if is_in_list else _Container("ul")
        mark = f"{around.number}. " if around.kind == "ol" else "- "
        around.number += 1
        self._push(_Container("li", mark, " " * len(mark)))

    def begin(self, kind: str) -> None:
        """Begin a `blockquote`, or the definition (`dd`) of a term."""
        first, rest = ("> ", "> ") if kind == "blockquote" else (": ", "  ")
        self._push(_Container(kind, first, rest))

    def end(self, kind: str) -> None:
        """End the innermost container of that kind, with all in it; does nothing if there is none."""
        if self.is_in(kind):
            while self._containers.pop().kind != kind:
                pass
        if not (self.is_in("ul") or self.is_in("ol")):
            self._is_list_running = False

    def _push(self, container: _Container) -> None:
        # Deeper levels are ignored: prefixes that grow with the depth would make deeply nested pages huge.
        if len(self._containers) < _MOST_CONTAINERS:
            if len(self._containers) >= 2 * _MOST_INDENTED:
                container.first = container.rest = ""
            self._containers.append(container)

    def _margin(self) -> str:
        margin = "".join(each.first for each in self._containers)
        for each in self._containers:
            each.first = each.rest
            each.has_begun = True
        return margin

    def _line(self, text: str) -> None:
        self.lines.append(text)
        self.size += len(text) + 1
