"""After a crash during a call, the resumed session reports which of its files were changed."""

import pytest
from scripted_agent import Probe, build, call, results

from bradawl.core.events import ToolStarted
from bradawl.testing.fakes import MemoryFiles, MemoryStore


class Writer(Probe):
    """A tool that writes the files of its call one after the other."""

    def __init__(self, files: MemoryFiles) -> None:
        super().__init__()
        self._files = files

    async def run(self, params, context):
        for path in params.writes:
            known = self._files.files.get(path)
            before = None if known is None else (await context.files.read(path, 100)).sha256
            await context.files.replace(path, b"new", before)
        return await super().run(params, context)


async def killed_at_the_start_of_its_call(files: MemoryFiles, call_: dict) -> tuple[MemoryStore, str]:
    """A store whose log ends with `ToolStarted`, and the id of its session."""
    store = MemoryStore()
    agent, *_ = build([{"tool_calls": [call_]}, {"text": "ok"}], store=store, files=files, tools=(Writer(files),))
    session_id = (await agent.run("go")).session_id
    entries = store.logs[session_id].entries
    end = next(n for n, entry in enumerate(entries) if isinstance(entry.event, ToolStarted))
    del entries[end + 1 :]
    return store, session_id


async def resumed(store: MemoryStore, session_id: str, files: MemoryFiles) -> str:
    agent, model, _ = build([{"text": "ok"}], store=store, files=files, tools=(Writer(files),))

    async with agent.open(session_id) as session:
        await session.run("go on")
        assert not model.failures
        return results(session.transcript.messages)[0]


@pytest.mark.parametrize(
    ("undone", "said"),
    [
        ([], "Of the files it was to write: changed: /p/a, /p/b."),
        (["/p/b"], "Of the files it was to write: changed: /p/a; not changed: /p/b."),
        (["/p/a", "/p/b"], "Of the files it was to write: not changed: /p/a, /p/b."),
    ],
)
async def test_a_resume_reports_which_files_a_killed_call_had_changed(undone: list[str], said: str) -> None:
    old = {"/p/a": b"old"}
    files = MemoryFiles(old)
    store, session_id = await killed_at_the_start_of_its_call(files, call("w", writes=["/p/a", "/p/b"]))
    assert files.files == {"/p/a": b"new", "/p/b": b"new"}
    for path in undone:
        files.files.pop(path)
        files.files |= {path: old[path]} if path in old else {}
    text = await resumed(store, session_id, files)
    assert "may or may not have happened" in text and text.endswith(said)


async def test_of_a_call_with_unknown_effects_only_the_interruption_is_reported() -> None:
    files = MemoryFiles()
    text = await resumed(*await killed_at_the_start_of_its_call(files, call("w", unknown=True)), files)
    assert "may or may not have happened" in text and "files" not in text


async def test_of_a_folder_no_change_is_reported() -> None:
    files = MemoryFiles({"/p/d/x": b"old", "/p/a": b"old"})
    store, session_id = await killed_at_the_start_of_its_call(files, call("w", writes=["/p/a", "/p/d"]))
    text = await resumed(store, session_id, files)
    assert "may or may not have happened" in text and "/p/d" not in text and text.endswith("changed: /p/a.")
