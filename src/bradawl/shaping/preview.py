"""Shortens long results to their beginning and end, with the number of characters left out."""

from bradawl.core.messages import Document, Image, Text
from bradawl.core.ports import ToolOutput

_MOST_CUT = 8
"""A greater number of long texts is shown as one text."""

Shown = tuple[Text | Image | Document, ...]


def fitted(output: ToolOutput) -> tuple[Shown, bytes | None]:
    """The parts, shortened to the output's limit, and the whole text if it was shortened."""
    texts = [part.text for part in output.parts if isinstance(part, Text)]
    if output.limit is None or sum(map(len, texts)) <= output.limit:
        return output.parts, output.full
    whole = output.full or "".join(texts).encode("utf-8", "backslashreplace")
    parts, room = output.parts, _room([len(text) for text in texts], output.limit)
    if room < output.limit // _MOST_CUT:
        others = (part for part in parts if not isinstance(part, Text))
        parts, room = (Text("".join(texts)), *others), output.limit
    return tuple(Text(cut_middle(part.text, room)) if isinstance(part, Text) else part for part in parts), whole


def _room(lengths: list[int], limit: int) -> int:
    """The longest length of each text so that all fit: short texts stay whole, the others share the rest."""
    lengths.sort()
    for place, length in enumerate(lengths):
        share = limit // (len(lengths) - place)
        if length > share:
            return share
        limit -= length
    return limit


def cut_middle(text: str, most: int) -> str:
    """Beginning and end of a text that is too long, with the number of characters left out between them."""
    if len(text) <= most:
        return text
    head, tail = ends_of(text, most)
    return f"{head.rstrip(chr(10))}\n[... {_missing(text, head, tail)} cut ...]\n{tail}"


def ends_of(text: str, most: int) -> tuple[str, str]:
    """Beginning and end of a text that is longer than `most`, cut at line breaks if possible. The end gets two thirds,
    because errors and results are usually there.
    """
    third = most // 3
    head, tail = text[:third], text[len(text) - 2 * third :]
    if "\n" in head[third // 2 :]:
        head = head[: head.rindex("\n") + 1]
    if "\n" in tail[:third]:
        tail = tail[tail.index("\n") + 1 :]
    return head, tail


def _missing(text: str, head: str, tail: str) -> str:
    total = text.count("\n") + (not text.endswith("\n"))
    first, last = head.count("\n") + 1, text.count("\n", 0, len(text) - len(tail))
    is_whole = head.endswith("\n") and text[: len(text) - len(tail)].endswith("\n")
    if is_whole and first <= last:
        return f"lines {first:,}-{last:,} of {total:,}"
    characters = f"characters {len(head) + 1:,}-{len(text) - len(tail):,} of {len(text):,}"
    return f"{characters}, lines {first:,}-{last + 1:,} of {total:,}"
