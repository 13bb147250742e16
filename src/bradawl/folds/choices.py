"""The user's choices that hold for a whole session, as a fold over the log: model, effort, name, folders."""

from collections.abc import Iterable

import msgspec

from bradawl.core.events import (
    DirsAdded,
    EffortChosen,
    Envelope,
    Event,
    ModelChosen,
    NameSet,
    RulesAdded,
    SessionForked,
    StateChanged,
)


class Choices(msgspec.Struct, frozen=True):
    """What the user chose in a session. Going back in the conversation takes none of it back."""

    model: ModelChosen | None = None
    """None for the model of the settings."""
    effort: str | None = None
    """None for that of the settings."""
    name: str = ""
    """Of the session; a fork has none at first."""
    dirs: tuple[str, ...] = ()
    """Folders that were added to the workspace, without those of the settings."""
    rules: tuple[str, ...] = ()
    """Permission rules, each after `allow`, `ask` or `deny`."""


def choices_in(entries: Iterable[Envelope]) -> Choices:
    """The choices in all entries of an agent, on whatever branch they were made."""
    choices = Choices()
    for envelope in entries:
        choices = choose(choices, envelope.event)
    return choices


def choose(choices: Choices, event: Event) -> Choices:
    """The choices after one more event."""
    replace = msgspec.structs.replace
    match event:
        case SessionForked():
            return replace(choices, name="")
        case StateChanged(ModelChosen(by_user=True) as model):
            return replace(choices, model=model)
        case StateChanged(EffortChosen(effort)):
            return replace(choices, effort=effort)
        case StateChanged(NameSet(name)):
            return replace(choices, name=name)
        case StateChanged(RulesAdded(added, removed)):
            rules = (rule for rule in choices.rules if rule not in removed)
            return replace(choices, rules=tuple(dict.fromkeys((*rules, *added))))
        case StateChanged(DirsAdded(paths)):
            return replace(choices, dirs=tuple(dict.fromkeys((*choices.dirs, *paths))))
        case _:
            return choices
