"""Layers of settings, the strongest first: flags, variables, project files, the user's file. Values are unchecked."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

Kind = Literal["flag", "variable", "project", "user"]


class Layer(NamedTuple):
    """Settings from one place."""

    values: Mapping[str, object]
    place_of: Callable[[str], str]
    """What to call a setting of this place in a message."""
    kind: Kind
    folder: str = ""
    """What relative paths in it start from; empty for the working directory."""


class Found(NamedTuple):
    """A value, not yet judged, and where it stands."""

    value: object
    place: str
    kind: Kind
    folder: str = ""
    """What relative paths in it start from; empty for the working directory."""
    rank: int = 0
    """Of the layer it stands in; 0 is the strongest."""


class Sources(NamedTuple):
    """All layers, the strongest first, and what they said that needs telling."""

    layers: tuple[Layer, ...]
    warnings: list[str]

    def find(self, name: str) -> Found | None:
        """A setting as the strongest layer that has it says."""
        return next(self.all(name), None)

    def all(self, name: str) -> Iterator[Found]:
        """What each layer says of a setting, from the strongest on: for lists, which add up."""
        for rank, layer in enumerate(self.layers):
            if (value := layer.values.get(name)) is not None:
                yield Found(value, layer.place_of(name), layer.kind, layer.folder, rank)

    def without_project(self) -> "Sources":
        """The same, but for what came with the project."""
        return Sources(tuple(layer for layer in self.layers if layer.kind != "project"), self.warnings)


def place_in(path: Path) -> Callable[[str], str]:
    """Names a key of a file."""
    return lambda key: f"{path}: {key}"
