"""Layers of settings, the strongest first: flags, variables, project files, the user's file. Values are unchecked."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

Kind = Literal["flag", "variable", "project", "user"]


class Layer(NamedTuple):
    """The settings of one source."""

    values: Mapping[str, object]
    place_of: Callable[[str], str]
    """The name of a setting of this layer in messages, by the setting's name."""
    kind: Kind
    folder: str = ""
    """The folder that relative paths start from; empty for the working directory."""


class UncheckedValue(NamedTuple):
    """An unchecked value and its source."""

    value: object
    place: str
    kind: Kind
    folder: str = ""
    """The folder that relative paths start from; empty for the working directory."""
    rank: int = 0
    """Position of its layer; 0 is the strongest."""


class Sources(NamedTuple):
    """All layers, the strongest first, and warnings for the user."""

    layers: tuple[Layer, ...]
    warnings: list[str]

    def find(self, name: str) -> UncheckedValue | None:
        """The value in the strongest layer that has the setting."""
        return next(self.all(name), None)

    def all(self, name: str) -> Iterator[UncheckedValue]:
        """The values in all layers, the strongest first: for lists, to which each layer adds."""
        for rank, layer in enumerate(self.layers):
            if (value := layer.values.get(name)) is not None:
                yield UncheckedValue(value, layer.place_of(name), layer.kind, layer.folder, rank)

    def without_project(self) -> "Sources":
        """The layers without the project's files."""
        return Sources(tuple(layer for layer in self.layers if layer.kind != "project"), self.warnings)


def place_in(path: Path) -> Callable[[str], str]:
    """A function that names a key of a file in messages."""
    return lambda key: f"{path}: {key}"
