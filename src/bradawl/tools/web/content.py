"""Recognises media types of web responses and decodes their text. Pure."""

import codecs
import re
from typing import Final

_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_IMAGES: Final = (
    ("image/png", b"\x89PNG\r\n\x1a\n"),
    ("image/jpeg", b"\xff\xd8\xff"),
    ("image/gif", b"GIF8"),
    ("image/webp", b"RIFF"),
)
_NEVER_TEXT: Final = re.compile(
    r"(?:audio|video|font)/.*|image/(?!svg).*|application/(?:pdf|zip|gzip|x-gzip|x-tar|x-bzip2?|x-xz|zstd|x-7z-compressed"
    r"|vnd\.(?!.*(?:json|xml)$).*|msword|wasm|java-archive|x-msdownload|x-apple-diskimage)"
)
_KINDS: Final = (
    (b"%PDF", "application/pdf"),
    (b"PK\x03\x04", "a zip archive, or a document that is one"),
    (b"\x1f\x8b", "application/gzip"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a Windows program"),
)
_SAMPLE: Final = 8_192
_HEAD: Final = 4_096
_TEXT_CONTROLS: Final = frozenset(b"\t\n\r\f\b\x1b\v\a")
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED: Final = re.compile(
    rb"<meta[^>]{0,400}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]+)|<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([a-zA-Z0-9_:.-]+)",
    re.IGNORECASE,
)
# The meaning of labels on the web: https://encoding.spec.whatwg.org/#names-and-labels, November 2026.
_MEANT: Final = {
    **dict.fromkeys(("ascii", "iso8859-1"), "cp1252"),
    **{"iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874", "gb2312": "gb18030", "gbk": "gb18030"},
    **{"shift_jis": "cp932", "euc_kr": "cp949", "ks_c_5601-1987": "cp949", "utf-16": "utf-16-le"},
}
_TEXT_CODECS: Final = re.compile(
    r"utf-8|utf-16-[lb]e|cp(?:125\d|866|874|932|949)|iso8859-\d+|koi8-[rut]|mac-(?:roman|cyrillic)|gb18030|big5(?:hkscs)?"
    r"|euc_jp|iso2022_jp"
)


def media_type(content_type: str) -> str:
    """The type without its parameters, in lower case; empty if there is none."""
    name = content_type.partition(";")[0].strip().lower()
    return name if re.fullmatch(r"[\w.+-]+/[\w.+-]+", name) else ""


def is_never_text(media: str) -> bool:
    """True for media types that can't be shown, so the body need not be fetched."""
    return bool(_NEVER_TEXT.fullmatch(media)) and media not in dict(_IMAGES)


def image_type(media: str, body: bytes) -> str:
    """The type of an image the model can see, confirmed by its bytes; else empty."""
    found = next((name for name, magic in _IMAGES if body.startswith(magic)), "")
    is_webp = body[8:12] == b"WEBP"
    return found if media.startswith("image/") and (found != "image/webp" or is_webp) else ""


def binary_kind(media: str, body: bytes) -> str:
    """The kind of a body that is not text; empty for text."""
    if any(body.startswith(mark) for mark, _ in _MARKS):
        return ""
    sample = body[:_SAMPLE]
    controls = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in sample)
    if 0 not in sample and controls * 20 <= len(sample) and not body.startswith(b"%PDF"):
        return ""
    known = next((kind for magic, kind in _KINDS if body.startswith(magic)), "")
    return known or (media if media and not media.startswith("text/") else "binary data")


def is_html(media: str, text: str) -> bool:
    """True for a page to be converted to Markdown."""
    if media in _HTML:
        return True
    start = text[:1_000].lstrip().lower()
    return media in ("", "application/octet-stream") and start.startswith(("<!doctype html", "<html"))


def decode(body: bytes, content_type: str, *, is_cut: bool = False) -> str:
    """Decode text like a browser: by its BOM, the server's charset, its own declaration, or a guess."""
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace")
    said = re.search(r"charset\s*=\s*[\"']?([^\s\"';]+)", content_type, re.IGNORECASE)
    codec = _codec(said[1]) if said else ""
    if not codec and (found := _DECLARED.search(body[:_HEAD])):
        codec = _codec((found[1] or found[2]).decode())
        codec = "" if codec.startswith("utf-16") else codec  # the declaration was read as ASCII, so it is wrong
    return body.decode(codec or ("utf-8" if _is_utf_8(body, is_cut=is_cut) else "cp1252"), "replace")


def _codec(label: str) -> str:
    """Python's codec for a web label; empty for an unknown label."""
    try:
        name = codecs.lookup(label.strip()).name
    except (LookupError, ValueError):
        return ""
    name = _MEANT.get(name, name)
    return name if _TEXT_CODECS.fullmatch(name) else ""


def _is_utf_8(body: bytes, *, is_cut: bool) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(body, final=not is_cut)
    except UnicodeDecodeError:
        return False
    return True
