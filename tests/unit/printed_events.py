"""Output of the two front ends of the command line for a sequence of events."""

import io
from types import SimpleNamespace

from tool_specs import OWN_TOOLS

from bradawl.app.progress import Progress
from bradawl.app.tui.plain.painter import Painter
from bradawl.core.events import Envelope, Event, Live
from bradawl.core.messages import Origin

ORIGIN = Origin("openai_chat", "openai", "m")


def envelope(event: Event, agent: str = "main") -> Envelope:
    return Envelope(0, None, 0, agent, event)


def progress(*events: Envelope | Live, **options) -> str:
    """The progress that a headless run prints for these events."""
    stream = io.StringIO()
    shown = Progress(stream, **options)
    shown.learn(OWN_TOOLS)
    for event in events:
        shown.emit(event)
    return stream.getvalue()


def painted(*items: Envelope | Live) -> str:
    """The terminal's output for these events, without colour."""
    console = SimpleNamespace(stdout=io.StringIO(), stdout_colour=False)
    console.draw = console.stdout.write
    painter = Painter(console)
    painter.learn(OWN_TOOLS)
    for item in items:
        painter.emit(item)
    return console.stdout.getvalue()
