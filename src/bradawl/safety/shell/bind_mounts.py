"""Folders of this machine that a command mounts in a container."""

from collections.abc import Iterator
from itertools import pairwise

import msgspec

from bradawl.safety.shell.argv import Argv


class BindMount(msgspec.Struct, frozen=True):
    """A source on this machine and its path in the container."""

    source: str
    target: str
    is_read_only: bool
    is_volume: bool = False
    """Whether the source is the name of a volume of the container engine, which is no path."""


def bind_mounts(argv: Argv) -> Iterator[BindMount]:
    """Yield the mounts that the options `-v`, `--volume` and `--mount` of a container's command describe."""
    for before, word in pairwise(argv):
        text = word.partition("=")[2] if word.startswith(("--volume=", "--mount=")) else word
        if before in ("-v", "--volume") or word.startswith("--volume="):
            source, target, options = (*text.split(":", 2), "", "")[:3]
            is_volume = "/" not in source and source not in (".", "..")
            yield BindMount(source, target, "ro" in options.split(","), is_volume)
        elif before == "--mount" or word.startswith("--mount="):
            given = [part.partition("=") for part in text.split(",")]
            parts = {name: value for name, _, value in given}
            source, target = (_first(parts, keys) for keys in (("source", "src"), ("target", "dst", "destination")))
            yield BindMount(source, target, "ro" in parts or "readonly" in parts)


def _first(parts: dict[str, str], keys: tuple[str, ...]) -> str:
    return next((parts[key] for key in keys if key in parts), "")
