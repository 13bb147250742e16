"""Middleware that tells the model where the project defines what a prompt names. Saves it a search."""

import threading
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from bradawl.agent.middleware import Finish, Middleware, MiddlewareContext
from bradawl.app.system_prompt import one_line
from bradawl.core.events import RequestParams
from bradawl.core.messages import User, text_of

if TYPE_CHECKING:
    from bradawl.app.project_definitions import Place

TIME_S = 0.15
"""For the search. It passes only for prompts that name something, and is little beside the step that it saves."""
_MORE_S = 0.15
"""How much longer the search may take before it is given up. Only a file system that hangs needs more."""
_LONGEST_PROMPT = 20_000
_LONGEST_NAME = 120
_LONGEST_NOTE = 2_000
_HEAD = "Where this project has names of the prompt, with lines:"


Find = Callable[[str, str, float, Callable[[str], bool]], "list[Place]"]


class NamedDefinitions(Middleware):
    """Queues a note with places of definitions before the first step of a turn."""

    def __init__(
        self,
        context: MiddlewareContext,
        root: str,
        is_refused: Callable[[str], bool],
        *,
        find: Find | None = None,
        time_s: float | None = None,
    ) -> None:
        """`root` is the project's folder. `is_refused` says which absolute paths must not be read. `find` gets the
        arguments of `places_named`, which it replaces; it is not waited for longer than about `time_s` seconds.
        """
        self._find = find or _find
        self._time_s = TIME_S if time_s is None else time_s
        self._conversation = context.conversation
        self._root = root
        self._is_refused = is_refused
        self._is_first_step = False
        self._told: set[Place] = set()

    def begin_turn(self, params: RequestParams) -> None:
        """A prompt follows."""
        self._is_first_step = True

    async def before_step(self) -> Finish | None:
        """Queue the note if the prompt names something that was not told yet."""
        if self._is_first_step:
            self._is_first_step = False
            found = [one for one in self._found() if one not in self._told and _is_short(one)]
            self._told.update(found)
            if found:
                self._conversation.note(_text(found))
        return None

    def _found(self) -> list["Place"]:
        messages = self._conversation.transcript.messages
        prompt = text_of(messages[-1].parts) if messages and isinstance(messages[-1], User) else ""
        found: list[Place] = []

        def find() -> None:
            end = monotonic() + self._time_s
            found.extend(self._find(self._root, prompt[:_LONGEST_PROMPT], end, self._is_refused))

        thread = threading.Thread(target=find, daemon=True)  # abandoned if the file system hangs
        try:
            thread.start()
        except RuntimeError:  # the system starts no more threads
            return []
        thread.join(self._time_s + _MORE_S)
        return [] if thread.is_alive() else found


def _find(root: str, text: str, end: float, is_refused: Callable[[str], bool]) -> "list[Place]":
    from bradawl.app.project_definitions import places_named  # not needed for a start without a prompt

    return places_named(root, text, end, is_refused)


def _is_short(place: "Place") -> bool:
    """Whether its names were made for readers."""
    return max(len(place.path), len(place.name)) <= _LONGEST_NAME


def _text(found: "list[Place]") -> str:
    by_path: dict[str, list[Place]] = {}
    for one in found:
        by_path.setdefault(one.path, []).append(one)
    lines = (one_line(f"{path}: {_in_file(places)}") for path, places in by_path.items())
    return "\n".join([_HEAD, *lines])[:_LONGEST_NOTE]


def _in_file(places: "list[Place]") -> str:
    """`Queue.remove 10-19; limit is used in Queue.add 3-8, Queue.clear 40-44`."""
    by_use: dict[str, list[str]] = {}
    for one in places:
        lines = f"{one.first}-{one.last}" if one.last > one.first else f"{one.first}"
        by_use.setdefault(one.uses, []).append(f"{one.name} {lines}" if one.name else f"line {lines}")
    return "; ".join(f"{use} is used in {', '.join(at)}" if use else ", ".join(at) for use, at in by_use.items())
