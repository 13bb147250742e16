"""Files that a withdrawn reply has read do not count as seen by the model."""

from scripted_agent import build, results

from bradawl.testing.fakes import MemoryFiles
from bradawl.tools.read_file import ReadFile
from bradawl.tools.write_file import WriteFile


def use(number: int, name: str, **arguments: str) -> dict:
    return {"id": f"id_{number}", "name": name, "arguments": arguments}


async def test_a_file_read_only_by_a_withdrawn_reply_can_not_be_overwritten() -> None:
    files = MemoryFiles({"/project/x": b"precious\n"})
    reads = [use(1, "read_file", file_path="x"), use(2, "read_file", file_path="/none" * 60)]
    script = [
        {"tool_calls": reads, "faults": {"cut_at_byte": 80}},
        {"tool_calls": [use(3, "write_file", file_path="x", content="gone")]},
        {"tool_calls": [use(4, "read_file", file_path="x")]},
        {"tool_calls": [use(5, "write_file", file_path="x", content="new")]},
        {"text": "ok"},
    ]
    agent, *_ = build(script, tools=(ReadFile(), WriteFile()), files=files)

    async with agent.open() as session:
        await session.run("go")
        refused, read, written = results(session.transcript.messages)
    assert "exists and you have not read it" in refused and "precious" in read
    assert written.startswith("Wrote 1 line") and files.files == {"/project/x": b"new"}
