"""Layers of settings, the strongest first: flags, variables, the profile, project files, the user's file.

Values are unchecked.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

Kind = Literal["flag", "variable", "project", "user"]


class Layer(NamedTuple):
    """The settings of one source."""

    values: Mapping[str, object]
    source_of: Callable[[str], str]
    """The flag, the variable, or file and line of a setting of this layer, by the setting's name."""
    kind: Kind
    folder: str = ""
    """The folder that relative paths start from; empty for the working directory."""
    is_file: bool = False
    """Messages name the key besides the source."""
    profile: str = ""
    """The name of the profile, if the layer is one."""

    def place_of(self, name: str) -> str:
        """The place of a setting in messages: a flag, a variable, or file, line and key."""
        return f"{self.source_of(name)}: {name}" if self.is_file else self.source_of(name)


class UncheckedValue(NamedTuple):
    """An unchecked value and its source."""

    value: object
    name: str
    layer: Layer
    rank: int = 0
    """Position of its layer; 0 is the strongest."""

    @property
    def place(self) -> str:
        """The place in messages."""
        return self.layer.place_of(self.name)

    @property
    def kind(self) -> Kind:
        """The kind of its layer."""
        return self.layer.kind

    @property
    def folder(self) -> str:
        """The folder that relative paths start from; empty for the working directory."""
        return self.layer.folder


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
                yield UncheckedValue(value, name, layer, rank)

    def without_project(self) -> "Sources":
        """The layers without the project's files."""
        return Sources(tuple(layer for layer in self.layers if layer.kind != "project"), self.warnings)
