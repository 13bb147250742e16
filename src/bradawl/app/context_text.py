"""The picture that `/context` shows of a `ContextReport`: plain text without colours, for any width from 32 columns."""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import Final, NamedTuple

from bradawl.app.context_report import CompactionForecast, ContextReport, Request, Spent
from bradawl.app.rendering import cut, one_line, price_text, usage_text
from bradawl.core.usage import Usage
from bradawl.shaping.context_use import ContextPart

USUAL_WIDTH: Final = 80
_NARROWEST, _TABLE, _WIDE = 32, 64, 70
_INNER_SHOWN, _REQUESTS_SHOWN, _MISSES_SHOWN = 5, 5, 5
_KINDS: Final = {
    "system": ("s", "system prompt"),
    "tools": ("t", "tools"),
    "lost": ("l", "lost texts"),
    "compaction": ("k", "compacted"),
    "prompts": ("p", "prompts"),
    "notes": ("n", "notes"),
    "replies": ("r", "replies"),
    "thinking": ("h", "thinking"),
    "calls": ("c", "calls"),
    "results": ("x", "results"),
    "images": ("i", "images"),
    "files": ("f", "files"),
    "other": ("o", "other"),
}
_FREE, _RESERVED, _THRESHOLD = ".", "=", "|"
_REASONS: Final = {
    "model": "another model",
    "compaction": "the conversation was compacted",
    "tools": "other tools",
    "changed": "what was sent before is sent differently",
    "rewound": "the conversation was taken back",
}
_SOURCES: Final = {
    "settings": "",
    "server": "",
    "assumed": "The size of the window is assumed: the server does not say it. Set it with --context-window N.",
}


def context_text(report: ContextReport, width: int = USUAL_WIDTH) -> str:
    """Several lines of at most `width` columns; 32 is the least."""
    page = _Page(report, max(_NARROWEST, width))
    blocks = (page.head(), [page.bar()], page.table(), page.compaction(), page.cache(), page.requests(), page.rest())
    return "\n\n".join("\n".join(block) for block in map(list, blocks) if block)


class TextAroundPicture(NamedTuple):
    """What stands around a picture of the window that a terminal draws itself."""

    above: list[str]
    compaction: list[str]
    """What is compacted next."""
    details: list[str]
    """The parts, the cache and the requests."""


def text_around_picture(report: ContextReport, width: int) -> TextAroundPicture:
    """Lines of at most `width` columns; 32 is the least."""
    page = _Page(report, max(_NARROWEST, width), has_bar=False)
    blocks = (page.inner_parts(), page.cache(), page.requests(), page.rest())
    details = "\n\n".join("\n".join(block) for block in map(list, blocks) if block).split("\n")
    return TextAroundPicture([*page.head()], [*page.compaction()], details)


_NOT_COMPACTED: Final = "Nothing is compacted: a request that does not fit any more fails. /compact makes room."
_COMPACTED_LATE: Final = (
    "The size of the window is not known, so the conversation is compacted only when the server refuses a request as "
    "too long. With --context-window N it is compacted before that. /compact does it now."
)


class _Page:
    def __init__(self, report: ContextReport, width: int, *, has_bar: bool = True) -> None:
        self._report, self._width, self._has_bar = report, width, has_bar
        self._table = min(width, _TABLE)

    def head(self) -> Iterator[str]:
        report = self._report
        used, window = report.used, report.window.tokens
        about = "" if used.reported == used.tokens else "~"
        model = one_line(f"{report.provider}/{report.model}")
        yield from self._wrapped(
            f"{about}{used.tokens:,} of {window:,} tokens, {_percent(used.tokens, window)} %, {model}"
        )
        if used.reported:
            rest = used.tokens - used.reported
            later = f", ~{rest:,} since then are estimated" if rest else ""
            yield from self._wrapped(f"{used.reported:,} were counted by the model{later}. The parts are estimated.")
        else:
            yield from self._wrapped("All is estimated: the model has not counted the conversation as it is now.")
        if source := _SOURCES[report.window.source]:
            yield from self._wrapped(source)
        for note in report.notes:
            yield from self._wrapped(one_line(note))

    def bar(self) -> str:
        """One character for each part of the window."""
        report = self._report
        window = max(1, report.window.tokens)
        ends, end = [], 0
        for part in report.parts:
            end += part.tokens
            ends.append((end, _KINDS[part.name][0]))
        ends += [(max(end, window - report.reserved_output), _FREE), (window, _RESERVED)]
        cells = [_mark_at((place + 0.5) * window / self._width, ends) for place in range(self._width)]
        for threshold in report.compaction_thresholds:
            cells[min(self._width - 1, int(threshold * self._width / window))] = _THRESHOLD
        return "".join(cells)

    def table(self) -> Iterator[str]:
        report = self._report
        yield self._row("", "", "items", "tokens", "%")
        for part in report.parts:
            mark, label = _KINDS[part.name]
            if len(part.parts) == 1 and part.parts[0].name:
                yield self._part(mark, f"{label}: {part.parts[0].name}", part)
                continue
            yield self._part(mark, label, part)
            shown, others = _shown(part.parts)
            for each in shown:
                yield self._part("", f"  {each.name}", each)
            if others:
                inner = sum(each.tokens for each in others)
                yield self._numbers("", f"  {len(others)} others", sum(each.count for each in others), inner)
        yield self._numbers(_FREE, "free", 0, report.free)
        yield self._numbers(_RESERVED, "for the reply", 0, report.reserved_output)

    def inner_parts(self) -> Iterator[str]:
        """A line for each part that is divided by name."""
        for part in self._report.parts:
            shown, others = _shown(part.parts)
            texts = [f"{one_line(each.name)} {each.tokens:,}" for each in shown if each.name]
            if others:
                texts.append(f"{len(others)} others {sum(each.tokens for each in others):,}")
            if texts:
                yield from self._wrapped(f"{_KINDS[part.name][1]}: {', '.join(texts)}")

    def _part(self, mark: str, label: str, part: ContextPart) -> str:
        return self._numbers(mark, label, part.count, part.tokens)

    def _numbers(self, mark: str, label: str, count: int, tokens: int) -> str:
        share = _percent(tokens, self._report.window.tokens)
        return self._row(mark, label, f"{count:,}" if count else "", f"{tokens:,}", share)

    def _row(self, mark: str, label: str, count: str, tokens: str, share: str) -> str:
        width = self._table - 23
        return f"{mark:<2}{_cell(label, width)}{count:>6}{tokens:>10}{share:>5}".rstrip()

    def compaction(self) -> Iterator[str]:
        forecast = self._report.next_compaction
        if forecast is None:
            yield from self._wrapped(_COMPACTED_LATE if self._report.compacts_after_errors else _NOT_COMPACTED)
            return
        yield from self._forecast(forecast)

    def _forecast(self, forecast: CompactionForecast) -> Iterator[str]:
        left = forecast.at_tokens - self._report.used.tokens
        when = f"in {left:,} tokens" if left > 0 else "with the next request"
        tiers = ", ".join(f"{each:,}" for each in self._report.compaction_thresholds)
        mark = f"{_THRESHOLD} marks the tiers" if self._has_bar else "The tiers"
        yield from self._wrapped(
            f"Next compaction: {one_line(forecast.tier)}, at {forecast.at_tokens:,} tokens, {when}. Now it would free "
            f"~{forecast.frees_tokens:,} tokens. {mark}: {tiers}."
        )
        for part in forecast.what:
            yield self._row("", f"  {one_line(part.label)}", "", f"{part.tokens:,}", "")

    # -------------------------------------------------------------- requests

    def cache(self) -> Iterator[str]:
        report = self._report
        if not report.requests:
            yield "No request has been answered yet."
            return
        if report.cache.hit_rate is None:
            yield from self._wrapped(
                f"Cache: {one_line(report.model)} reported no cached tokens. It has no cache, or does not report it, "
                "or the requests were too short for it."
            )
            return
        total = report.total
        yield from self._wrapped(
            f"Cache: {100 * report.cache.hit_rate:.0f} % of the prompt tokens were read from it: "
            f"{total.cache_read:,} read, {total.cache_write:,} written, {total.uncached:,} neither."
        )
        opened = [each for each in report.requests if _reason(each)]
        others = [each for each in report.requests if each.is_miss and not _reason(each)]
        yield from self._misses("New prefixes, and what a hit would have saved:", opened)
        yield from self._misses("Misses without a new prefix; caches expire:", others)

    def _misses(self, title: str, misses: Sequence[Request]) -> Iterator[str]:
        if not misses:
            return
        yield from self._wrapped(title)
        largest = sorted(misses, key=_missed, reverse=True)[:_MISSES_SHOWN]
        for each in misses:
            if each in largest:
                yield from self._wrapped(f"{each.step:<5} {_why(each)}: {_extra(each)}", indent=2)
        if len(misses) > len(largest):
            yield f"  and {len(misses) - len(largest)} smaller ones"

    def requests(self) -> Iterator[str]:
        """The last requests."""
        requests = self._report.requests
        if not requests:
            return
        shown = requests[-_REQUESTS_SHOWN:]
        more = f", the last {len(shown)} of {len(requests)}" if len(requests) > len(shown) else ""
        yield f"Requests{more}:"
        is_wide = self._width >= _WIDE
        columns = (
            ("step", "read", "written", "neither", "output", "hit", "cost")
            if is_wide
            else ("step", "prompt", "hit", "cost")
        )
        yield _columns(columns)
        for each in shown:
            yield self._request(each, is_wide=is_wide)

    def _request(self, request: Request, *, is_wide: bool) -> str:
        spent = request.spent
        if spent is None:
            return f"{request.step:<6}no report"
        about = "~" if spent.source == "estimated" else ""
        prompt = spent.uncached + spent.cache_read + spent.cache_write
        hit = (
            f"{100 * spent.cache_read / prompt:.0f} %"
            if prompt and self._report.cache.is_reported and not about
            else "-"
        )
        cost = "?" if spent.cost_usd is None else about + price_text(spent.cost_usd)
        if not is_wide:
            return _columns((request.step, f"{about}{prompt:,}", hit, cost))
        cached = ("-", "-") if about else (f"{spent.cache_read:,}", f"{spent.cache_write:,}")
        row = _columns((request.step, *cached, f"{about}{spent.uncached:,}", f"{about}{spent.output:,}", hit, cost))
        said = " withdrawn" if request.withdrawn else " taken back" if request.taken_back else ""
        return f"{row}{said}"

    def rest(self) -> Iterator[str]:
        """What is not in the window, and was paid for."""
        report = self._report
        if report.total.requests:
            yield from self._wrapped(f"In all: {_spent_text(report.total)}.")
        if report.taken_back.requests:
            yield from self._wrapped(f"Taken back, and paid for: {_spent_text(report.taken_back)}.")
        if agents := report.sub_agents.count:
            which = "1 sub-agent" if agents == 1 else f"{agents} sub-agents"
            yield from self._wrapped(f"Outside of this window, {which}: {_spent_text(report.sub_agents.spent)}.")

    def _wrapped(self, text: str, indent: int = 0) -> list[str]:
        begin = " " * indent
        return wrap(text, self._width, initial_indent=begin, subsequent_indent=begin + "      " * bool(indent))


def _mark_at(token: float, ends: Iterable[tuple[int, str]]) -> str:
    return next((mark for end, mark in ends if token < end), _RESERVED)


def _shown(parts: tuple[ContextPart, ...]) -> tuple[tuple[ContextPart, ...], tuple[ContextPart, ...]]:
    """The parts that get a line of their own, and the others; one other would need a line anyway."""
    count = len(parts) if len(parts) <= _INNER_SHOWN + 1 else _INNER_SHOWN
    return parts[:count], parts[count:]


def _percent(tokens: int, window: int) -> str:
    share = 100 * tokens / max(1, window)
    return f"{share:.0f}" if share >= 9.95 or not tokens else f"{max(0.1, share):.1f}"


def _cell(label: str, width: int) -> str:
    """A label of a tool may be anything that the model wrote; characters that are not ASCII may take two columns."""
    indent = len(label) - len(label.lstrip(" "))
    text = one_line(label)
    shown = cut(text, (width - indent) if text.isascii() else (width - indent) // 2)
    return f"{' ' * indent + shown:<{width}}"


def _columns(values: Sequence[str]) -> str:
    first, *numbers = values
    widths = (9, 9, 9, 8, 6, 10) if len(numbers) > 3 else (10, 6, 10)
    return f"{first:<6}" + "".join(f"{value:>{width}}" for value, width in zip(numbers, widths, strict=True))


def _missed(request: Request) -> int:
    return request.missed


def _reason(request: Request) -> str:
    """Why its prefix is new; empty if it is not, or is the first."""
    said = (
        f"{_REASONS.get(each.reason, each.reason)}{f' ({one_line(each.first_change)})' if each.first_change else ''}"
        for each in request.new_prefixes
        if each.reason != "start"
    )
    return ", ".join(said)


def _why(request: Request) -> str:
    if reason := _reason(request):
        return reason
    return f"after {_pause_text(request.pause_s)}" if request.pause_s is not None else "the first request"


def _pause_text(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3_600:.0f} h"


def _extra(request: Request) -> str:
    extra = request.extra_cost_usd
    if not request.missed:
        return "nothing was missed"
    return f"{request.missed:,} tokens, {'price unknown' if extra is None else f'+{price_text(extra)}'}"


def _spent_text(spent: Spent) -> str:
    usage = Usage(
        input=spent.uncached,
        output=spent.output,
        cache_read=spent.cache_read,
        cache_write=spent.cache_write,
        source=spent.source,
    )
    return usage_text(spent.requests, usage, spent.cost_usd).replace(" step", " request", 1)
