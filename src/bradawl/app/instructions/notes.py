"""Middleware that tells the model about instruction files of folders that it works in, and about changed ones.

What the model knows is found out from its system prompt and the notes in the transcript, so it is right after a resume,
a rewind and a compaction as well. The system prompt never changes.
"""

from collections.abc import Iterable
from typing import Final

from bradawl.agent.middleware import Finish, Middleware, MiddlewareContext
from bradawl.app.instructions import places
from bradawl.app.instructions.files import InstructionFiles
from bradawl.app.instructions.places import Place, Stamp
from bradawl.app.instructions.told import Known, Told, told_to
from bradawl.core.effects import Effects
from bradawl.core.events import CallPrepared, Cwd, Event, RequestParams, StateChanged, ToolFinished

_MOST_FOLDERS: Final = 50
"""Folders touched by the calls of one step that are looked at."""


class InstructionNotes(Middleware):
    """Queues a note if files apply that the model does not know as they are now.

    A folder counts as touched when a call read, listed, searched or changed something in it. Changes are looked for at
    the beginning of a turn and after calls that may have written. Sub-agents that only read are told nothing.
    """

    def __init__(self, context: MiddlewareContext, files: InstructionFiles) -> None:
        self._conversation, self._prefix, self._policy = context.conversation, context.prefix, context.policy
        self._files = files
        self._calls: dict[str, Effects] = {}
        self._touched: dict[str, None] = {}
        """Paths, in order."""
        self._may_have_changed = False
        self._written: set[str] | None = set()
        """Files that only editing tools wrote since the last look, so that the model knows them; None if anything else
        may have written."""
        self._looked_at: tuple[dict[str, Stamp], dict[str, Known]] | None = None
        """The files, and what the model knew, when it was last told everything."""
        self._imports: tuple[str, ...] = ()
        self._texts: dict[str, str] = {}
        """Texts by version, as read by this process."""
        self._warned: set[str] = set()
        self._conversation.listen(self._learn)

    def begin_turn(self, params: RequestParams) -> None:
        """A prompt follows; files may have changed since the last turn."""
        self._may_have_changed, self._written = True, None

    async def before_step(self) -> Finish | None:
        """Queue the note, if there is something to tell."""
        touched, self._touched = tuple(self._touched), {}
        changed, self._may_have_changed = self._may_have_changed, False
        written, self._written = self._written, set()
        if (touched or changed) and not self._knows_all():
            way = self._on_the_way_to(touched)
            if changed or places.exist(way):
                self._tell(way, written or set())
        return None

    def _knows_all(self) -> bool:
        """A new session has just got its system prompt; one that only reads works for an agent that knows the files."""
        if self._conversation.is_sub_agent:
            return self._policy().read_only
        return not self._conversation.state.replies

    def _learn(self, event: Event) -> None:
        match event:
            case CallPrepared(call_id=call_id, effects=effects):
                self._calls[call_id] = effects
            case ToolFinished(call_id=call_id, outcome=outcome):
                effects = self._calls.pop(call_id, None)
                if effects is not None and outcome != "refused":
                    self._touched.update(dict.fromkeys((*effects.reads, *effects.writes)))
                    if not effects.is_read_only:
                        self._note_writes(effects)
            case StateChanged(Cwd(path)):
                self._touched[path] = None
            case _:
                pass

    def _note_writes(self, effects: Effects) -> None:
        self._may_have_changed = True
        if effects.commands or effects.unknown:
            self._written = None
        elif self._written is not None:
            self._written.update(effects.writes)

    def _on_the_way_to(self, paths: Iterable[str]) -> tuple[Place, ...]:
        folders = list(dict.fromkeys(map(places.folder_at, paths)))[:_MOST_FOLDERS]
        found = dict.fromkeys(place for folder in folders for place in self._files.on_the_way_to(folder))
        return tuple(sorted(found, key=lambda place: place.paths[0].count("/")))

    def _tell(self, way: tuple[Place, ...], written: set[str]) -> None:
        told = told_to(self._prefix.system, self._conversation.transcript.messages)
        watched = self._watched(told, way)
        if not told.files and not places.exist(watched):
            return
        stamps = places.stamps_of((*(path for place in watched for path in place.paths), *self._imports))
        if (stamps, told.files) == self._looked_at:
            return
        reading = self._files.read(watched)
        if reading is None:
            return
        from bradawl.app.instructions.news import news_of  # most turns have no news

        named = {path for place in watched for path in place.paths}
        self._imports = tuple(path for path in reading.stamps if path not in named)
        text = news_of(reading.sources, told, reading.unread, self._texts, written)
        self._texts = {one.version: one.text for one in reading.sources}
        self._warn(reading.problems)
        if text:
            self._conversation.note(text, "instructions")
        else:
            imported = places.stamps_of(self._imports)
            self._looked_at = {**stamps, **imported}, told.files

    def _watched(self, told: Told, way: tuple[Place, ...]) -> tuple[Place, ...]:
        first = self._files.first()
        known = self._on_the_way_to(map(places.folder_of, told.files))
        return tuple(dict.fromkeys((*first, *sorted((*known, *way), key=lambda place: place.paths[0].count("/")))))

    def _warn(self, problems: Iterable[str]) -> None:
        for problem in problems:
            if problem not in self._warned and problem not in self._prefix.system:
                self._warned.add(problem)
                self._conversation.warn(f"instructions: {problem}")
