"""Finds tool calls in the text of a reply, for servers that do not parse them. Pure.

The conditions are narrow, because text about calls must never run: the call is complete in a notation that
models are trained on, its name is that of a given tool, its arguments are a JSON object, and it is not quoted
(by a code fence, inline code or quotation marks).

Source of the notations: the models' published chat templates, checked 2026-11-20.
"""

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from bradawl.providers.chat.inline_thinking import possible_start
from bradawl.providers.chat.text_call_forms import TextCallParser, Unfinished, WrittenCall

_CLOSERS: Mapping[str, str] = {
    "<tool_call>": "</tool_call>",
    "<function=": "</function>",
    "<|python_tag|>": "",
    "[TOOL_CALLS]": "",
    "<|tool_calls_section_begin|>": "<|tool_calls_section_end|>",
    "<\uff5ctool▁calls▁begin\uff5c>": "<\uff5ctool▁calls▁end\uff5c>",
}
"""The opening and closing marker of a call; without a closing one it extends to the end of the text."""
_OPENERS = tuple(_CLOSERS)
_OPENER = "|".join(map(re.escape, _OPENERS))
_BARE = "bare"
_BARE_STARTS = tuple(f'{{"{key}":' for key in ("name", "type", "parameters", "arguments", "function"))
_QUOTES = frozenset("\"'`\u201c\u2018\u00ab\u201e")
_TRIES = 64


class _QuoteTracker:
    """Tracks whether the end of a growing text is quoted, by Markdown or quotation marks."""

    def __init__(self) -> None:
        self._fence = ""
        self._lead = ""
        self._ticks = 0
        self._marks = 0
        self._last = ""
        self._noted: list[str] = []

    def note(self, text: str) -> None:
        """Append text; it is scanned by `is_quoted`."""
        self._noted.append(text)

    def _catch_up(self) -> None:
        text = "".join(self._noted)
        self._noted.clear()
        if not text:
            return
        *lines, rest = text.split("\n")
        for line in lines:
            self._extend(line)
            self._end_line()
        self._extend(rest)
        self._last = text[-1]

    def _extend(self, piece: str) -> None:
        if len(self._lead) < 80:
            self._lead += piece[:80]
        self._ticks += piece.count("`")
        self._marks += piece.count('"') - piece.count('\\"')

    def _end_line(self) -> None:
        run = self._fence_of(self._lead)
        if not self._fence:
            self._fence = run
        elif run.startswith(self._fence) and not self._lead.strip().strip(run[0]):
            self._fence = ""
        self._lead = ""
        self._ticks = self._marks = 0

    @staticmethod
    def _fence_of(line: str) -> str:
        found = re.match(r"[ \t>]*(?:[-*+] |\d+[.)] )?[ \t]*(`{3,}|~{3,})", line)
        return found[1] if found else ""

    @property
    def is_quoted(self) -> bool:
        """True if text that follows now is quoted."""
        self._catch_up()
        if self._fence or self._fence_of(self._lead) or self._lead.lstrip().startswith(">"):
            return True
        return self._ticks % 2 == 1 or self._marks % 2 == 1 or self._last in _QUOTES


class TextCalls:
    """Finds the calls in the text of one reply. `tools` maps the names of the given tools to their JSON Schema.

    Text that may begin a call is held back; all other text is returned at once.
    """

    def __init__(self, tools: Mapping[str, msgspec.Raw]) -> None:
        self._parser = TextCallParser(tools)
        self._quoting = _QuoteTracker()
        self._state: Literal["start", "text", "call"] = "start"
        self._pending = ""
        self._opener = ""
        self._held: list[str] = []
        self._tail = ""
        self._tries = 0
        self._found: list[tuple[str, tuple[WrittenCall, ...]]] = []

    @property
    def calls(self) -> tuple[WrittenCall, ...]:
        """The calls found so far, in order."""
        return tuple(call for _, calls in self._found for call in calls)

    def feed(self, text: str) -> str:
        """Scan more text; returns the text to show."""
        if self._state == "text" and not self._pending and "<" not in text and "[" not in text:
            self._quoting.note(text)
            return text
        shown: list[str] = []
        while text:
            text = self._hold(text, shown) if self._state == "call" else self._scan(text, shown)
        return "".join(shown)

    def finish(self, *, cut: bool = False) -> str:
        """End of the text; returns the held text that is not a call. `cut` if the reply was truncated."""
        if self._state != "call":
            rest, self._pending = self._pending, ""
            return rest
        block = "".join(self._held)
        self._held = []
        self._state = "text"
        calls = self._parser.read(self._opener, block)
        if isinstance(calls, Unfinished) and not cut:
            # The token that closes a call often ends the reply as well, and servers drop it.
            calls = self._parser.read(self._opener, block + _CLOSERS.get(self._opener, ""))
        if isinstance(calls, Unfinished):
            begun = self._parser.truncated_call(block) if cut else None
            calls = () if begun is None else (begun,)
        if not calls:
            return block
        self._found.append((block, calls))
        return ""

    def break_off(self) -> str:
        """The stream broke: returns held text that had not begun a call."""
        rest, self._pending = self._pending, ""
        return rest

    def give_up(self) -> str:
        """The server has parsed calls itself: returns all text that was taken for calls."""
        blocks = [block for block, _ in self._found]
        self._found = []
        return "".join([*blocks, "".join(self._held), self._pending])

    # -------------------------------------------------------------- text

    def _scan(self, text: str, shown: list[str]) -> str:
        """Scan text up to the possible beginning of a call; returns the rest."""
        text, self._pending = self._pending + text, ""
        if self._state == "start" and self._may_be_bare(text):
            return ""
        found = re.search(_OPENER, text)
        if found is None:
            end = len(text) - possible_start(text, _OPENERS)
            self._show(text[:end], shown)
            if self._quoting.is_quoted:
                self._show(text[end:], shown)
            else:
                self._pending = text[end:]
            return ""
        self._show(text[: found.start()], shown)
        if self._quoting.is_quoted:
            self._show(found[0], shown)
            return text[found.end() :]
        self._begin(found[0])
        return text[found.start() :]

    def _show(self, text: str, shown: list[str]) -> None:
        if text:
            self._quoting.note(text)
            shown.append(text)

    def _begin(self, opener: str) -> None:
        self._state = "call"
        self._opener = opener
        self._held = []
        self._tail = ""
        self._tries = 0

    def _may_be_bare(self, text: str) -> bool:
        """True if the reply may be a single bare call, which begins with its JSON."""
        compact = "".join(text[:200].split())
        if any(compact.startswith(start) for start in _BARE_STARTS):
            self._begin(_BARE)
            self._held = [text]
            return True
        if any(start.startswith(compact) for start in _BARE_STARTS):
            self._pending = text
            return True
        self._state = "text"
        return False

    # -------------------------------------------------------------- calls

    def _hold(self, text: str, shown: list[str]) -> str:
        """Hold a call until it is complete; returns the text after it."""
        self._held.append(text)
        closer = _CLOSERS.get(self._opener, "")
        if not closer:
            return ""
        seen = self._tail + text
        self._tail = seen[-200:]
        if closer not in seen:
            return ""
        return self._try_to_close("".join(self._held), closer, shown)

    def _try_to_close(self, block: str, closer: str, shown: list[str]) -> str:
        end = block.find(closer)
        while end >= 0:
            end += len(closer)
            rest = block[end:].lstrip(" \t")
            calls = self._parser.read(self._opener, block[:end])
            if not isinstance(calls, Unfinished):
                return self._decide(block, end, rest, calls, shown)
            end = block.find(closer, end)
        self._tries += 1
        return self._reject(block, shown) if self._tries > _TRIES else ""

    def _decide(self, block: str, end: int, rest: str, calls: tuple[WrittenCall, ...], shown: list[str]) -> str:
        if not calls:
            return self._reject(block, shown)
        if not rest:
            return ""  # the line may continue
        if rest[0] not in "\r\n<[":
            return self._reject(block, shown)
        self._found.append((block[:end], calls))
        self._held = []
        self._state = "text"
        return block[end:].lstrip()

    def _reject(self, block: str, shown: list[str]) -> str:
        """It is not a call: its opening marker becomes text, and the text after it is scanned again."""
        self._held = []
        self._state = "text"
        self._show(self._opener, shown)
        return block[len(self._opener) :]
