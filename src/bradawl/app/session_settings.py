"""What a session keeps of the flags that it runs with: model, effort and context window. Nothing that permits more.

A later run of the session continues with what they said, unless it says something else. All other flags are for their
run alone.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from bradawl.core.events import ModelChosen

if TYPE_CHECKING:
    from bradawl.agent.session import Session
    from bradawl.app.settings.settings import Settings


def keep_flags(session: "Session", settings: "Settings", given: Iterable[str]) -> None:
    """Record what the given flags say, if it is another choice than the session has."""
    names = set(given)
    if "effort" in names and session.model.chosen_effort != settings.effort:
        session.model.choose_effort(settings.effort)
    if names.isdisjoint(("model", "context_window")):
        return
    now, flags = session.choices.now.model, settings.model
    wanted = now
    if wanted is None or ("model" in names and (wanted.provider, wanted.model) != (flags.provider, flags.name)):
        wanted = ModelChosen(flags.provider, flags.name, by_user=True)
    if "context_window" in names:
        wanted = replace(wanted, context_window=flags.context_window)
    if wanted != now:
        session.choices.record(wanted)
