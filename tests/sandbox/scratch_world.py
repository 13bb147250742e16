"""Sessions with a scripted model whose commands run in bubblewrap, and the folder behind their `/tmp`."""

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bradawl import ModelSettings, Settings, build_agent
from bradawl.agent.session import TurnResult
from bradawl.app.build.workspace import folders_of
from bradawl.core.deltas import Notice
from bradawl.core.events import Envelope, Live, ToolFinished
from bradawl.core.messages import Text
from bradawl.core.ports import Hook


class ScratchProject:
    """A project; `run` runs one prompt, in a new session or an existing one."""

    def __init__(self, place: Path) -> None:
        self.place, self.root = Path(os.path.realpath(place)), Path(os.path.realpath(place)) / "work"
        self.root.mkdir()
        self.results: list[str] = []
        """What the model saw of each call of the last run."""
        self.notices: list[str] = []

    def settings(self, replies: tuple[Any, ...], **changes: Any) -> Settings:
        script = [
            {"text": reply} if isinstance(reply, str) else {"tool_calls": list(reply)} for reply in (*replies, "done")
        ]
        (self.place / "script.json").write_text(json.dumps(script))
        standard = {
            "model": ModelSettings("scripted", str(self.place / "script.json")),
            "cwd": str(self.root),
            "home": str(self.place / "data"),
            "user_home": str(self.place),
            "environment": {"HOME": str(self.place), "PATH": os.environ["PATH"], "TMPDIR": os.environ["TMPDIR"]},
            "headless": True,
            "user_tools": False,
        }
        return Settings(**{**standard, **changes})

    def run(
        self, *replies: Any, prompt: str = "go", session: str | None = None, hooks: Sequence[Hook] = (), **changes: Any
    ) -> TurnResult:
        self.results, self.notices = [], []

        def emit(item: Envelope | Live) -> None:
            if isinstance(item, Envelope) and isinstance(item.event, ToolFinished):
                self.results.append("".join(part.text for part in item.event.shown if isinstance(part, Text)))
            elif isinstance(item, Live) and isinstance(item.item, Notice):
                self.notices.append(item.item.text)

        async def run() -> TurnResult:
            agent = build_agent(self.settings(replies, **changes), notify=self.notices.append, hooks=hooks)
            try:
                async with agent.open(session) as opened:
                    return await opened.run(prompt, emit)
            finally:
                await agent.aclose()

        return asyncio.run(run())

    @property
    def scratch(self) -> Path:
        return Path(folders_of(self.settings(())).scratch)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """One call of a reply."""
    return {"name": name, "arguments": arguments}


def bash(command: str, **arguments: Any) -> tuple[dict[str, Any], ...]:
    """A reply with one call of bash."""
    return (call("bash", command=command, **arguments),)


def write(path: str, content: str = "text\n") -> tuple[dict[str, Any], ...]:
    """A reply with one call of write_file."""
    return (call("write_file", file_path=path, content=content),)


def read(path: str) -> tuple[dict[str, Any], ...]:
    """A reply with one call of read_file."""
    return (call("read_file", file_path=path),)
