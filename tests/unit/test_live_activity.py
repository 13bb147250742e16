"""The line with the spinner names a call that runs now."""

import pytest

from bradawl.app.tui.live.painter import LivePainter
from bradawl.app.tui.render.theme import theme_named
from bradawl.core.effects import Effects
from bradawl.core.events import (
    CallPrepared,
    Envelope,
    Event,
    PermissionAsked,
    PermissionDecided,
    ToolFinished,
    ToolStarted,
)

CHECKED = tuple(CallPrepared(each, 1, each, "{}", Effects()) for each in ("make", "lint", "docs"))
ALL = (*CHECKED, *(ToolStarted(each.call_id) for each in CHECKED))


def ended(call_id: str) -> ToolFinished:
    return ToolFinished(call_id, "ok", ())


@pytest.mark.parametrize(
    ("events", "shown"),
    [
        (CHECKED, "Working"),
        ((*CHECKED, ToolStarted("make")), "Running make"),
        ((*CHECKED, ToolStarted("lint"), CHECKED[2]), "Running lint"),
        ((*CHECKED, ToolStarted("docs"), ToolStarted("make")), "Running make +1"),
        (ALL, "Running make +2"),
        ((*ALL, ended("docs")), "Running make +1"),
        ((*ALL, ended("make"), ended("docs")), "Running lint"),
        ((*ALL, ended("make"), ended("lint"), ended("docs")), "Waiting for the model"),
        ((*CHECKED, ToolStarted("make"), ended("make")), "Working"),
        ((*CHECKED, PermissionAsked("make", "?"), PermissionDecided("make", "allow", "user")), "Working"),
        ((*CHECKED, PermissionDecided("docs", "deny", "user"), ToolStarted("make")), "Running make"),
    ],
)
def test_the_spinner_names_the_first_call_that_runs(events: tuple[Event, ...], shown: str) -> None:
    painter = LivePainter(theme_named("plain", "none"), lambda: 80, lambda: None)
    painter.activity.begins()
    for seq, event in enumerate(events):
        painter.emit(Envelope(seq, None, 0, "main", event))
    assert painter.activity.line(painter.theme, 80)[2:].partition(" · ")[0] == shown
