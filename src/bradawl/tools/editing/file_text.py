"""Decodes a file to text that can be encoded back to the same bytes."""

import msgspec

from bradawl.core.errors import ToolError
from bradawl.tools.reading.decoding import LATIN_1, UTF_8, Encoding, encoding_of


class FileText(msgspec.Struct, frozen=True):
    """The text of a file with any bytes, and the mapping of its offsets to bytes."""

    text: str
    encoding: Encoding

    def place(self, offset: int) -> int:
        """Byte offset of the character at `offset`."""
        before = self.text[:offset].encode(self.encoding.codec, _error_handler(self.encoding))
        return len(self.encoding.bom) + len(before)

    @property
    def data(self) -> bytes:
        """The bytes of the text, with the byte order mark."""
        return self.encoding.bom + self.text.encode(self.encoding.codec, _error_handler(self.encoding))


def _error_handler(encoding: Encoding) -> str:
    """The handler of codec errors that keeps undecodable bytes in the text."""
    return "surrogatepass" if encoding.codec.startswith("utf-16") else "surrogateescape"


def file_text_of(data: bytes, encoding: Encoding) -> FileText:
    """Decode without loss, except for an odd last byte of UTF-16, which no text can match."""
    body = data[len(encoding.bom) :]
    if encoding.codec.startswith("utf-16") and len(body) % 2:
        body = body[:-1]
    return FileText(body.decode(encoding.codec, _error_handler(encoding)), encoding)


def encodings_of(data: bytes, old: str, shown: str) -> tuple[Encoding, ...]:
    """The encodings to try, the likeliest first. Raises `ToolError` when the file is not text.

    A file of UTF-8 with a few invalid bytes is shown as Latin-1, so the model may have copied text of either encoding.
    """
    encoding = encoding_of(data, shown)
    if encoding is not LATIN_1:
        return (encoding,)
    both = (UTF_8, LATIN_1) if _is_mostly_utf8(data) else (LATIN_1, UTF_8)
    return both[:1] if old.isascii() else both


def _is_mostly_utf8(data: bytes) -> bool:
    """True if the data has about as many valid multi-byte characters of UTF-8 as invalid bytes, or more."""
    stray = len(data) - len(data.decode("utf-8", "ignore").encode())
    beyond_ascii = len(data.translate(None, bytes(range(128))))
    return beyond_ascii - stray >= 2 * stray


def check_encodable(text: str, encoding: Encoding, shown: str) -> None:
    """Raises `ToolError` for new text that the file's encoding has no bytes for."""
    try:
        encoding.encode(text)
    except UnicodeEncodeError as error:
        wrong = text[error.start]
        if encoding.codec == "latin-1":
            reason = (
                f"{shown} is not UTF-8 (it was read as latin-1), which has no {wrong!r}; use only characters it has, "
                "or convert the file with bash (iconv) first"
            )
        else:
            reason = f"new_string holds {wrong!r}, which is half a character; write the character itself"
        raise ToolError(reason) from None
