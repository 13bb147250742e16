"""A project with real files, an agent whose scripted calls change them, and a scanner that walks all files."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from scripted_agent import build

from bradawl.agent.agent import Agent
from bradawl.agent.session import Session
from bradawl.app.undo import Undo
from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.checkpoints.store import ContentStore
from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.tools import ToolSpec
from bradawl.core.workspace import Checkpoint
from bradawl.testing.fakes import MemoryStore
from bradawl.testing.scripted import ScriptedModel
from bradawl.tools.editing.diffs import describe_change

States = dict[bytes, FileState]


class ChangeParams(msgspec.Struct, frozen=True):
    """What a call does: the name of one of the test's functions."""

    do: str


class ChangeTool:
    """A tool whose calls run functions of the test."""

    spec = ToolSpec("change")
    params = ChangeParams

    def __init__(self, functions: dict[str, Callable[[], object]]) -> None:
        self.functions = functions

    def effects(self, params: ChangeParams, context: CallContext) -> Effects:
        """Unknown: it may change any file."""
        return UNKNOWN

    async def run(self, params: ChangeParams, context: CallContext) -> ToolOutput:
        """Run the function."""
        self.functions[params.do]()
        return ToolOutput((Text(f"did {params.do}"),))


class WalkingChanges:
    """`WorkspaceChanges` that reads all files before and after each call."""

    def __init__(self, root: Path, store: ContentStore) -> None:
        self.root, self.store = root, store
        self._before: States = {}
        self._found: list[tuple[str, Checkpoint]] = []

    async def begin(self, call_id: str, paths: tuple[str, ...] | None) -> tuple[Checkpoint, ...]:
        """Read all files."""
        self._before = self.read()
        return await self.settle(call_id.rpartition("/")[0])

    def end(self, call_id: str) -> None:
        """Read all files and save what differs."""
        before, after = self._before, self.read()
        paths = sorted(path for path in {**before, **after} if before.get(path) != after.get(path))
        owner, _, name = call_id.rpartition("/")
        ref = ""
        if paths:
            changes = tuple(Change(path, before.get(path), after.get(path)) for path in paths)
            ref = self.store.save_record(ChangeRecord(name, 0, changes))
            self.store.flush()
        self._found.append((owner, Checkpoint(name, ref)))
        self._before = after

    async def settle(self, owner: str = "") -> tuple[Checkpoint, ...]:
        """The checkpoints of an owner."""
        found = tuple(checkpoint for each, checkpoint in self._found if each == owner)
        self._found = [(each, checkpoint) for each, checkpoint in self._found if each != owner]
        return found

    async def covers(self) -> bool:
        """True: all contents are saved."""
        return True

    def read(self) -> States:
        """The states of all paths below the root; contents are saved."""
        states: States = {}
        for place, folders, files in os.walk(os.fsencode(self.root)):
            for name in (*folders, *files):
                path = place + b"/" + name
                states[path] = self._state(path)
        return states

    def _state(self, path: bytes) -> FileState:
        found = os.lstat(path)
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISLNK(found.st_mode):
            return FileState("link", mode, target=os.readlink(path))  # noqa: PTH115 - the path is in bytes
        if stat.S_ISDIR(found.st_mode):
            return FileState("folder", mode)
        if not stat.S_ISREG(found.st_mode):
            return FileState("other", mode)
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            return FileState("file", mode, self.store.add(file, found.st_size), found.st_size)
        finally:
            os.close(file)


class UndoWorld:
    """A project, an agent and its store."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.root.mkdir()
        self._folder = folder / "checkpoints"
        self._stores: list[ContentStore] = []
        self.store = self._open_store()
        self.changes = WalkingChanges(self.root, self.store)
        self.sessions = MemoryStore()
        self.functions: dict[str, Callable[[], object]] = {}

    def agent(self, script: list[dict[str, Any]], **more: Any) -> tuple[Agent, ScriptedModel]:
        """An agent with this script."""
        usual = {"tools": (ChangeTool(self.functions),), "changes": self.changes, "store": self.sessions}
        agent, model, _ = build(script, **{**usual, "project": str(self.root), **more})
        return agent, model

    def undo(self, session: Session) -> Undo:
        """Undo for a session of the agent."""
        return Undo(session, self._open_store, [str(self.root)], describe_change)

    def _open_store(self) -> ContentStore:
        store = ContentStore(self._folder)
        self._stores.append(store)
        return store

    def close(self) -> None:
        """Close the stores."""
        for store in self._stores:
            store.close()

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def doing(self, name: str, function: Callable[[], object]) -> dict[str, Any]:
        """A reply of the script: one call that runs the function."""
        self.functions[name] = function
        return {"tool_calls": [{"id": f"id_{name}", "name": "change", "arguments": {"do": name}}]}

    def writing(self, name: str, file: str, text: str) -> dict[str, Any]:
        """A reply of the script: one call that writes a file."""
        return self.doing(name, lambda: self.write(file, text))

    def tree(self) -> dict[str, tuple[int, bytes]]:
        """All paths below the root with mode and content."""
        found: dict[str, tuple[int, bytes]] = {}
        for path in sorted(self.root.rglob("*")):
            mode = path.lstat().st_mode
            data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            found[str(path.relative_to(self.root))] = mode, data
        return found
