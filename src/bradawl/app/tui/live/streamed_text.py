"""The text of a reply while it arrives, as the lines that are finished and those that still grow."""

from bradawl.app.tui.render.markdown import MarkdownStream
from bradawl.app.tui.render.theme import Theme
from bradawl.safety.control_characters import StreamCleaner


class StreamedText:
    """Cleans and renders one text after the other."""

    def __init__(self) -> None:
        self._cleaner = StreamCleaner()
        self._stream: MarkdownStream | None = None
        self._width = 0

    @property
    def is_open(self) -> bool:
        """A text has begun and not ended."""
        return self._stream is not None

    def feed(self, text: str, theme: Theme, width: int) -> bool:
        """Add text; true if it begins one. Blank lines before the first word are left out."""
        shown = self._cleaner.feed(text)
        begins = self._stream is None
        if self._stream is None:
            shown = shown.lstrip("\n")
            if not shown.strip():
                return False
            self._stream, self._width = MarkdownStream(theme, width), width
        self._stream.feed(shown)
        return begins

    def frame(self, width: int, limit: int) -> tuple[list[str], list[str]]:
        """The lines that are finished since the last frame, and those that still grow, at most `limit`."""
        if self._stream is None:
            return [], []
        if width != self._width:
            self._width = width
            self._stream.resize(width)
        frame = self._stream.frame(limit)
        return frame.committed, frame.tail

    def end(self) -> list[str]:
        """End the text; returns its last lines."""
        rest = self._cleaner.finish()
        stream, self._stream = self._stream, None
        if stream is None:
            return []
        if rest:
            stream.feed(rest)
        return stream.finish()
