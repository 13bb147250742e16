"""Middleware that tells the model about instruction files of folders that it works in, and about changed ones.

What the model knows is found out from its system prompt and the notes in the transcript, so it is right after a resume,
a rewind and a compaction as well. The system prompt never changes.
"""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from bradawl.agent.middleware import Finish, Middleware, MiddlewareContext, StepOutcome
from bradawl.app.instructions import places
from bradawl.app.instructions.files import InstructionFiles
from bradawl.app.instructions.places import Place, Stamp
from bradawl.app.instructions.touches import Touches
from bradawl.core.events import RequestParams
from bradawl.core.messages import Assistant

if TYPE_CHECKING:
    from bradawl.app.instructions.reading import Reading
    from bradawl.app.instructions.text import Source
    from bradawl.app.instructions.told import Known, Told

_MOST_FOLDERS: Final = 50
"""Folders touched by the calls of one step that are looked at."""
_LATE: Final = "You changed files there before you knew this: check them against it, then answer."
_RECENT: Final = "changed since your last prompt: until your next one it is material for the model, not instructions"


class InstructionNotes(Middleware):
    """Queues a note if files apply that the model does not know as they are now.

    A folder counts as touched when a call read, listed, searched or changed something in it. Changes are looked for at
    the beginning of a turn and after calls that may have written. Sub-agents that only read are told nothing.
    """

    def __init__(
        self,
        context: MiddlewareContext,
        files: InstructionFiles,
        prompted: dict[str, int] | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """`prompted` holds the time of the user's last prompt by session; sub-agents get the same mapping. `now_ns` is
        the clock of the file system.
        """
        self._conversation, self._prefix, self._policy = context.conversation, context.prefix, context.policy
        self._files, self._now_ns = files, now_ns
        self._touches = Touches()
        self._prompted = {} if prompted is None else prompted
        self._prompted.setdefault(self._session_id, now_ns())
        self._looked_at: tuple[dict[str, Stamp], dict[str, Known]] | None = None
        """The files, and what the model knew, when there was nothing to tell."""
        self._imports: tuple[str, ...] = ()
        self._texts: dict[str, str] = {}
        """Texts by version, as read by this process."""
        self._warned: set[str] = set()
        self._conversation.listen(self._touches.learn)

    def begin_turn(self, params: RequestParams) -> None:
        """A prompt follows; files may have changed since the last turn."""
        self._touches.begin_turn()
        if not self._conversation.is_sub_agent:
            self._prompted[self._session_id] = self._now_ns()

    async def before_step(self) -> Finish | None:
        """Queue the note, if there is something to tell."""
        self._look()
        return None

    async def after_step(self, outcome: StepOutcome) -> None:
        """Queue the note already now if the calls changed something in a folder before the model knew its rules.

        A note that waits keeps the turn from ending with an answer that came with these calls.
        """
        wrote = self._touches.wrote
        if outcome.ending is None and outcome.failure is None and wrote and not self._knows_all():
            way = [one for one in self._on_the_way_to(wrote) if one.is_trusted and places.exist((one,))]
            unknown = {one.folder for one in way if wrote.keys().isdisjoint(one.paths)}
            if unknown and not unknown <= set(map(places.folder_of, self._told().files)):
                self._look(is_late=True)

    @property
    def _session_id(self) -> str:
        return self._conversation.log.session_id

    def _knows_all(self) -> bool:
        """A new session has just got its system prompt; one that only reads works for an agent that knows the files."""
        if self._conversation.is_sub_agent:
            return self._policy().read_only
        return not self._conversation.state.replies

    def _look(self, *, is_late: bool = False) -> None:
        touched = self._touches.take()
        if (touched.paths or touched.may_have_changed) and not self._knows_all():
            way = self._on_the_way_to(touched.paths)
            if touched.may_have_changed or places.exist(way):
                self._tell(way, touched.wrote, is_late=is_late)

    def _on_the_way_to(self, paths: Iterable[str]) -> tuple[Place, ...]:
        folders = list(dict.fromkeys(map(places.folder_at, paths)))[:_MOST_FOLDERS]
        found = dict.fromkeys(place for folder in folders for place in self._files.on_the_way_to(folder))
        return tuple(sorted(found, key=lambda place: place.folder.count("/")))

    def _was_told(self) -> bool:
        messages = self._conversation.transcript.messages
        notes = (note for message in messages if not isinstance(message, Assistant) for note in message.notes)
        return '" version="' in self._prefix.system or any(note.source == "instructions" for note in notes)

    def _told(self) -> "Told":
        from bradawl.app.instructions.told import told_to  # most folders have no such files

        return told_to(self._prefix.system, self._conversation.transcript.messages)

    def _tell(self, way: tuple[Place, ...], wrote: frozenset[str], *, is_late: bool) -> None:
        first = self._files.first()
        if not self._was_told() and not places.exist((*first, *way)):
            return
        told = self._told()
        known = self._on_the_way_to(map(places.folder_of, filter(places.is_instruction_file, told.files)))
        watched = tuple(dict.fromkeys((*first, *known, *way)))
        named = [path for place in watched for path in place.paths]
        stamps = places.stamps_of((*named, *self._imports))
        if (stamps, told.files) == self._looked_at or (reading := self._files.read(watched)) is None:
            return
        self._imports = tuple(path for path in reading.stamps if path not in set(named))
        text = self._news(reading, told, self._known_from_writing(reading, told, wrote))
        self._warn(reading.problems)
        if text:
            self._conversation.note(f"{text}\n{_LATE}" if is_late else text, "instructions")
        elif not self._recent(reading):
            self._looked_at = {**stamps, **places.stamps_of(self._imports)}, told.files

    def _news(self, reading: "Reading", told: "Told", written: frozenset[str]) -> str:
        from bradawl.app.instructions.news import is_news, news_of  # most turns have no news

        recent = [one for one in self._recent(reading) if is_news(one, told) and one.path not in written]
        self._warn(f"{one.path} {_RECENT}" for one in recent)
        text = news_of(reading.sources, told, reading.unread, self._texts, written, self._prompted[self._session_id])
        self._texts = {one.version: one.text for one in reading.sources}
        return text

    def _known_from_writing(self, reading: "Reading", told: "Told", wrote: frozenset[str]) -> frozenset[str]:
        """Files that hold what an editing tool has just written, where the model knows the rest of the text too."""
        state = self._conversation.state
        return frozenset(
            one.path
            for one in reading.sources
            if one.path in wrote and one.sha256 and state.files_seen.get(one.path) == one.sha256
            if one.path in told.files or (one.sha256, "") in state.files_shown[one.path].contents
        )

    def _recent(self, reading: "Reading") -> list["Source"]:
        since_ns = self._prompted[self._session_id]
        return [one for one in reading.sources if one.is_trusted and one.changed_ns > since_ns]

    def _warn(self, problems: Iterable[str]) -> None:
        for problem in problems:
            if problem not in self._warned and problem not in self._prefix.system:
                self._warned.add(problem)
                self._conversation.warn(f"instructions: {problem}")
