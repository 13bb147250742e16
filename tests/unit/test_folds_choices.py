"""The user's choices for a session are a fold over all of its entries."""

from bradawl.core.events import (
    DirsAdded,
    EffortChosen,
    Envelope,
    Event,
    ModelChosen,
    NameSet,
    SessionForked,
    SessionOpened,
    StateChanged,
)
from bradawl.folds.choices import Choices, choices_in


def choices(*events: Event) -> Choices:
    return choices_in(Envelope(seq, seq - 1 if seq else None, 1, "main", event) for seq, event in enumerate(events))


def test_the_last_choice_of_each_kind_counts_and_folders_add_up():
    mine = ModelChosen("openai", "gpt-y", by_user=True)
    found = choices(
        SessionOpened(1, "/p", "/p"),
        StateChanged(mine),
        StateChanged(ModelChosen("openai", "a-fallback")),
        StateChanged(EffortChosen("low")),
        StateChanged(EffortChosen("high")),
        StateChanged(DirsAdded(("/a", "/b"))),
        StateChanged(DirsAdded(("/b", "/c"))),
        StateChanged(NameSet("one")),
        StateChanged(NameSet("two")),
    )
    assert found == Choices(mine, "high", "two", ("/a", "/b", "/c"))


def test_a_fork_inherits_all_choices_but_the_name():
    mine = ModelChosen("openai", "gpt-y", by_user=True)
    found = choices(
        SessionOpened(1, "/p", "/p"),
        StateChanged(mine),
        StateChanged(NameSet("one")),
        SessionForked(1, "01X", 2, "/p", "/p"),
    )
    assert found == Choices(mine)
