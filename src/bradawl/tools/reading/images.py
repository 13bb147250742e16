"""Prepares images for the model."""

import struct

import msgspec

from bradawl.core.errors import ToolError
from bradawl.core.messages import Image, Text
from bradawl.tools.reading.paging import Page

_MOST_BYTES = 3_750_000  # 5 MB in base64, the lowest limit among the providers (2026-11)
_MOST_PIXELS = 8_000
_NAMES = {
    "image/png": "a PNG image",
    "image/jpeg": "a JPEG image",
    "image/gif": "a GIF image",
    "image/webp": "a WebP image",
}


class _Size(msgspec.Struct, frozen=True):
    width: int
    height: int


def media_type_of(data: bytes) -> str:
    """The media type of an image that models can see; empty for other data."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data.startswith(b"RIFF") and data[8:12] == b"WEBP" else ""


def image_page(data: bytes, media_type: str, path: str) -> Page:
    """The image and a line about it. Raises `ToolError` for an image that no provider accepts."""
    what = f"{path} is {_NAMES[media_type]}, {len(data):,} bytes"
    size = _size(data, media_type)
    if size is None:
        raise ToolError(f"{what}, but it is damaged: its size in pixels can't be found")
    if len(data) > _MOST_BYTES:
        raise ToolError(
            f"{what}, more than the {_MOST_BYTES:,} that can be shown; make a smaller copy with bash "
            "(magick, ffmpeg, or Python with Pillow) and read that"
        )
    if max(size.width, size.height) > _MOST_PIXELS:
        raise ToolError(
            f"{what}, {size.width}x{size.height} pixels, more than the {_MOST_PIXELS} a side that can be shown; "
            "make a smaller copy with bash and read that"
        )
    return Page((Text(f"{what}, {size.width}x{size.height} pixels:"), Image(media_type, data)), "the image")


def _size(data: bytes, media_type: str) -> _Size | None:
    try:
        match media_type:
            case "image/png":
                return _Size(*struct.unpack(">II", data[16:24])) if data[12:16] == b"IHDR" else None
            case "image/gif":
                return _Size(*struct.unpack("<HH", data[6:10]))
            case "image/jpeg":
                return _jpeg_size(data)
            case _:
                return _webp_size(data)
    except (struct.error, IndexError):
        return None


def _jpeg_size(data: bytes) -> _Size | None:
    place = 2
    while place < len(data):
        if data[place] != 0xFF:
            return None
        marker = data[place + 1]
        if marker == 0xFF:  # padding
            place += 1
        elif marker in {0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF}:
            height, width = struct.unpack(">HH", data[place + 5 : place + 9])
            return _Size(width, height)
        elif marker in {0xD9, 0xDA}:
            return None
        else:
            place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    return None


def _webp_size(data: bytes) -> _Size | None:
    match data[12:16]:
        case b"VP8X":
            return _Size(1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little"))
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return _Size(1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
        case b"VP8 ":
            width, height = struct.unpack("<HH", data[26:30])
            return _Size(width & 0x3FFF, height & 0x3FFF)
        case _:
            return None
