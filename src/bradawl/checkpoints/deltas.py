"""Differences between two versions of a content: what both begin with, what both end with, and the bytes between.

An edit changes one place of a file, so this is nearly as small as a general difference and costs one comparison.
"""

import struct

_FORM = struct.Struct("<32sQQ")
_STEP = 65_536


def encode_delta(base_digest: bytes, base: bytes, data: bytes) -> bytes:
    """The difference that makes `data` of `base`; `base_digest` (32 bytes) names the base for the reader."""
    prefix = _common(base, data, 0)
    suffix = _common(base, data, prefix, from_end=True)
    return _FORM.pack(base_digest, prefix, suffix) + data[prefix : len(data) - suffix]


def base_of(delta: bytes) -> bytes:
    """Digest of the content that the difference applies to; shorter than 32 bytes if it is damaged."""
    return delta[:32]


def apply_delta(base: bytes, delta: bytes) -> bytes:
    """The content that the difference makes of its base; arbitrary bytes if it is damaged."""
    if len(delta) < _FORM.size:
        return b""
    _, prefix, suffix = _FORM.unpack_from(delta)
    return base[:prefix] + delta[_FORM.size :] + base[max(len(base) - suffix, 0) :]


def _common(one: bytes, other: bytes, used: int, *, from_end: bool = False) -> int:
    """Length of the common beginning, or of the common end that leaves the first `used` bytes of both."""
    most, length, step = min(len(one), len(other)) - used, 0, _STEP

    def is_same(start: int, end: int) -> bool:
        if from_end:
            return one[len(one) - end : len(one) - start] == other[len(other) - end : len(other) - start]
        return one[start:end] == other[start:end]

    while length < most and step:
        size = min(step, most - length)
        if is_same(length, length + size):
            length += size
        else:
            step = size // 2
    return length
