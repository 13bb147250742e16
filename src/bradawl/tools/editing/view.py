"""Decodes a file to text that can be encoded back to the same bytes."""

import msgspec

from bradawl.core.errors import ToolError
from bradawl.tools.reading.decoding import LATIN_1, UTF_8, Encoding, encoding_of


class View(msgspec.Struct, frozen=True):
    """The text of a file with any bytes, and the mapping of its offsets to bytes."""

    text: str
    encoding: Encoding

    def place(self, offset: int) -> int:
        """Byte offset of the character at `offset`."""
        return len(self.encoding.bom) + len(self.text[:offset].encode(self.encoding.codec, _carrier(self.encoding)))

    @property
    def data(self) -> bytes:
        """The bytes that the text stands for, with the mark in front."""
        return self.encoding.bom + self.text.encode(self.encoding.codec, _carrier(self.encoding))


def _carrier(encoding: Encoding) -> str:
    """How undecodable bytes travel through text and back."""
    return "surrogatepass" if encoding.codec.startswith("utf-16") else "surrogateescape"


def view_of(data: bytes, encoding: Encoding) -> View:
    """Decode without loss; of UTF-16 a last odd byte is left out, which no text can match."""
    body = data[len(encoding.bom) :]
    if encoding.codec.startswith("utf-16") and len(body) % 2:
        body = body[:-1]
    return View(body.decode(encoding.codec, _carrier(encoding)), encoding)


def encodings_of(data: bytes, old: str, shown: str) -> tuple[Encoding, ...]:
    """The encodings to try, the likeliest first. Raises `ToolError` when the file is no text.

    A file that is UTF-8 but for a few stray bytes is read as Latin-1, so the model may have copied either.
    """
    encoding = encoding_of(data, shown)
    if encoding is not LATIN_1:
        return (encoding,)
    both = (UTF_8, LATIN_1) if _is_mostly_utf8(data) else (LATIN_1, UTF_8)
    return both[:1] if old.isascii() else both


def _is_mostly_utf8(data: bytes) -> bool:
    """True when there are about as many whole characters of UTF-8 as stray bytes, or more."""
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
