"""What is shown of a result that is too long: its beginning, its end, and what lies between."""

from bradawl.core.messages import Document, Image, Text
from bradawl.core.ports import ToolOutput

Shown = tuple[Text | Image | Document, ...]


def fitted(output: ToolOutput) -> tuple[Shown, bytes | None]:
    """The parts within the output's limit, and the whole text if some of it is not in them."""
    texts = [part.text for part in output.parts if isinstance(part, Text)]
    if output.limit is None or sum(map(len, texts)) <= output.limit:
        return output.parts, output.full
    longest = max(texts, key=len)
    room = max(output.limit - sum(map(len, texts)) + len(longest), output.limit // 2)
    parts = tuple(
        Text(cut_middle(longest, room)) if isinstance(part, Text) and part.text == longest else part
        for part in output.parts
    )
    whole = output.full or "".join(texts).encode("utf-8", "backslashreplace")
    return parts, whole


def cut_middle(text: str, most: int) -> str:
    """Beginning and end of a text, at line breaks where there are any, and how much is missing between them."""
    if len(text) <= most:
        return text
    half = most // 2
    head, tail = text[:half], text[len(text) - half :]
    if "\n" in head[half // 2 :]:
        head = head[: head.rindex("\n") + 1]
    if "\n" in tail[: half // 2]:
        tail = tail[tail.index("\n") + 1 :]
    return f"{head.rstrip(chr(10))}\n[... {_missing(text, head, tail)} cut ...]\n{tail}"


def _missing(text: str, head: str, tail: str) -> str:
    total = text.count("\n") + (not text.endswith("\n"))
    first, last = head.count("\n") + 1, text.count("\n", 0, len(text) - len(tail))
    is_whole = head.endswith("\n") and text[: len(text) - len(tail)].endswith("\n")
    if is_whole and first <= last:
        return f"lines {first:,}-{last:,} of {total:,}"
    characters = f"characters {len(head) + 1:,}-{len(text) - len(tail):,} of {len(text):,}"
    return f"{characters}, lines {first:,}-{last + 1:,} of {total:,}"
