"""Detects the encoding of a file, or the kind of a file that is not text."""

import codecs

import msgspec

from bradawl.core.errors import ToolError

_KINDS = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a RIFF media file (WebP, WAV, AVI)"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive, or a document that is one (docx, xlsx, jar, whl)"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\x7fELF", "an ELF program or library"),
    (b"MZ", "a Windows program or library"),
    (b"SQLite format 3", "an SQLite database"),
    (b"OggS", "an Ogg media file"),
    (b"ID3", "an MP3 file"),
    (b"\x00asm", "a WebAssembly module"),
)
_TEXT_CONTROLS = frozenset(b"\t\n\r\f\b\x1b\v\a")
_SAMPLE = 8_192


class Encoding(msgspec.Struct, frozen=True):
    """The encoding of a file: codec and byte order mark."""

    codec: str
    """Name of a Python codec that writes no byte order mark."""
    bom: bytes = b""

    @property
    def note(self) -> str:
        """A note about the encoding; empty for plain UTF-8."""
        if self.codec == "latin-1":
            return "not valid UTF-8, read as Latin-1"
        return "" if self.codec == "utf-8" else self.codec.upper()

    def decode(self, data: bytes) -> str:
        """The text of a whole file, without its byte order mark."""
        return self.decode_piece(data[len(self.bom) :])

    def decode_piece(self, data: bytes) -> str:
        """The text of a part of a file."""
        return data.decode(self.codec, "replace")

    def encode(self, text: str) -> bytes:
        """The bytes of a piece of text, without a byte order mark. Raises `UnicodeEncodeError`."""
        return text.encode(self.codec)


UTF_8 = Encoding("utf-8")
LATIN_1 = Encoding("latin-1")
_MARKED = (
    Encoding("utf-8", codecs.BOM_UTF8),
    Encoding("utf-16-le", codecs.BOM_UTF16_LE),
    Encoding("utf-16-be", codecs.BOM_UTF16_BE),
)


def encoding_of(data: bytes, path: str, size: int = 0) -> Encoding:
    """The encoding of a file of `size` bytes that begins with `data`. Raises `ToolError` if it is not text."""
    for marked in _MARKED:
        if data.startswith(marked.bom) and not data.startswith(codecs.BOM_UTF32_LE):
            return marked
    if not _is_text(data[:_SAMPLE]) or b"\0" in data:
        raise ToolError(
            f"{path} is not text: {_kind(data)}, {size or len(data):,} bytes; use bash with a program for such files"
        )
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return LATIN_1
    return UTF_8


def _is_text(sample: bytes) -> bool:
    controls = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in sample)
    return controls * 20 <= len(sample)


def _kind(data: bytes) -> str:
    return next((kind for magic, kind in _KINDS if data.startswith(magic)), "binary data of an unknown kind")


def notes_on(lines: list[str], encoding: Encoding) -> list[str]:
    """Notes about lines that are shown: their encoding if it is not UTF-8, and characters that can't be seen."""
    notes = [f"({encoding.note})"] if encoding.note else []
    if all(line.isascii() for line in lines):
        return notes
    from bradawl.safety.control_characters import hidden_note

    hidden = hidden_note("\n".join(lines))
    return [*notes, hidden] if hidden else notes


def split_lines(text: str) -> list[str]:
    """The lines as an editor counts them: only a line feed ends a line, and the last one may have none."""
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else lines


def presentable(text: str) -> str:
    """The text with escapes for bytes of file names that are not UTF-8, so that it can be sent."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
