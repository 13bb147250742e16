"""Tool calls that a model wrote into its text, because its server has no parser for them. Pure.

What counts is decided narrowly, for text that only speaks of calls must never run: the whole call
stands in one of the forms that models are trained to write, the name is one of the tools on offer,
the arguments are a JSON object, and nothing quotes it (a code fence, inline code, quotation marks).

Forms as published in the models' chat templates, checked 2026-11-20.
"""

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from bradawl.providers.chat.inline_thinking import possible_start
from bradawl.providers.chat.text_call_forms import Forms, Unfinished, WrittenCall

_CLOSERS: Mapping[str, str] = {
    "<tool_call>": "</tool_call>",
    "<function=": "</function>",
    "<|python_tag|>": "",
    "[TOOL_CALLS]": "",
    "<|tool_calls_section_begin|>": "<|tool_calls_section_end|>",
    "<\uff5ctool▁calls▁begin\uff5c>": "<\uff5ctool▁calls▁end\uff5c>",
}
"""How a call begins and ends; without an end it goes to the end of the text."""
_OPENERS = tuple(_CLOSERS)
_OPENER = "|".join(map(re.escape, _OPENERS))
_BARE = "bare"
_BARE_STARTS = tuple(f'{{"{key}":' for key in ("name", "type", "parameters", "arguments", "function"))
_QUOTES = frozenset("\"'`\u201c\u2018\u00ab\u201e")
_TRIES = 64


class _Quoting:
    """Whether the end of a growing text is quoted, in the ways of Markdown and of prose."""

    def __init__(self) -> None:
        self._fence = ""
        self._lead = ""
        self._ticks = 0
        self._marks = 0
        self._last = ""
        self._noted: list[str] = []

    def note(self, text: str) -> None:
        """More of the text; it is looked at when somebody asks."""
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
        """True when whatever comes now is quoted."""
        self._catch_up()
        if self._fence or self._fence_of(self._lead) or self._lead.lstrip().startswith(">"):
            return True
        return self._ticks % 2 == 1 or self._marks % 2 == 1 or self._last in _QUOTES


class TextCalls:
    """Finds the calls in the text of one reply. `tools` are those on offer: name to JSON Schema.

    Only what may be the beginning of a call is kept back; everything else is given back at once.
    """

    def __init__(self, tools: Mapping[str, msgspec.Raw]) -> None:
        self._forms = Forms(tools)
        self._quoting = _Quoting()
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
        """Take more text; gives back what is to be shown."""
        if self._state == "text" and not self._pending and "<" not in text and "[" not in text:
            self._quoting.note(text)
            return text
        shown: list[str] = []
        while text:
            text = self._hold(text, shown) if self._state == "call" else self._scan(text, shown)
        return "".join(shown)

    def finish(self, *, cut: bool = False) -> str:
        """The text is over; gives back what was no call after all. `cut`: it ended before its time."""
        if self._state != "call":
            rest, self._pending = self._pending, ""
            return rest
        block = "".join(self._held)
        self._held = []
        self._state = "text"
        calls = self._forms.read(self._opener, block)
        if isinstance(calls, Unfinished) and not cut:
            # The token that ends a call often ends the reply too, and is not passed on.
            calls = self._forms.read(self._opener, block + _CLOSERS.get(self._opener, ""))
        if isinstance(calls, Unfinished):
            begun = self._forms.begun(block) if cut else None
            calls = () if begun is None else (begun,)
        if not calls:
            return block
        self._found.append((block, calls))
        return ""

    def break_off(self) -> str:
        """The stream broke: gives back what only might have begun a call."""
        rest, self._pending = self._pending, ""
        return rest

    def give_up(self) -> str:
        """The reply has calls of its own: everything that was taken for a call is text after all."""
        blocks = [block for block, _ in self._found]
        self._found = []
        return "".join([*blocks, "".join(self._held), self._pending])

    # -------------------------------------------------------------- text

    def _scan(self, text: str, shown: list[str]) -> str:
        """Text up to where a call may begin; gives back what has not been looked at."""
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
        """A reply that is nothing but one call begins like its JSON."""
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
        """Keeps a call back until it is whole; gives back what comes after it."""
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
            calls = self._forms.read(self._opener, block[:end])
            if not isinstance(calls, Unfinished):
                return self._decide(block, end, rest, calls, shown)
            end = block.find(closer, end)
        self._tries += 1
        return self._reject(block, shown) if self._tries > _TRIES else ""

    def _decide(self, block: str, end: int, rest: str, calls: tuple[WrittenCall, ...], shown: list[str]) -> str:
        if not calls:
            return self._reject(block, shown)
        if not rest:
            return ""  # more may stand on the line
        if rest[0] not in "\r\n<[":
            return self._reject(block, shown)
        self._found.append((block[:end], calls))
        self._held = []
        self._state = "text"
        return block[end:].lstrip()

    def _reject(self, block: str, shown: list[str]) -> str:
        """It was no call: its opener is text like any other, and what follows is looked at anew."""
        self._held = []
        self._state = "text"
        self._show(self._opener, shown)
        return block[len(self._opener) :]
