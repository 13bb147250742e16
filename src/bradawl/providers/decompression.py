"""Incremental decompression of the content codings gzip and deflate. Pure."""

from collections.abc import Iterable, Iterator

_LIMIT_BYTES = 64 * 1024
_MOST_CODINGS = 4


class DecompressionError(Exception):
    """The body is not compressed as its `content-encoding` says."""


class Decompressor:
    """Decompresses one body; codings other than gzip and deflate are passed through. Raises `DecompressionError`."""

    def __init__(self, content_encoding: str) -> None:
        names = [name.strip().lower() for name in content_encoding.split(",")]
        if len(names) > _MOST_CODINGS:  # each coding nests another generator
            raise DecompressionError
        self._codings = [_Coding(name) for name in reversed(names) if name in ("gzip", "deflate")]

    def feed(self, packed: bytes) -> Iterator[bytes]:
        """The decompressed bytes, in pieces of limited size. Raises `DecompressionError`."""
        pieces: Iterator[bytes] = iter((packed,))
        for coding in self._codings:
            pieces = coding.feed(pieces)
        return pieces


class _Coding:
    """The incremental decompressor of one content coding."""

    def __init__(self, name: str) -> None:
        import zlib

        self._zlib = zlib
        self._engine = zlib.decompressobj(31) if name == "gzip" else None
        self._begun = b""

    def feed(self, packed: Iterable[bytes]) -> Iterator[bytes]:
        for piece in packed:
            if self._engine is None:
                self._begun += piece
                if len(self._begun) < 2:
                    continue
                piece, self._begun = self._begun, b""
                # `deflate` means zlib, but some servers omit its header of two bytes.
                has_header = piece[0] & 15 == 8 and int.from_bytes(piece[:2], "big") % 31 == 0
                self._engine = self._zlib.decompressobj(15 if has_header else -15)
            engine = self._engine
            try:
                while not engine.eof and (data := engine.decompress(piece, _LIMIT_BYTES)):
                    yield data
                    piece = engine.unconsumed_tail
            except self._zlib.error as error:
                raise DecompressionError from error
