"""`read_file` shows the definitions that the conversation names with the outline of long code."""

from scripted_agent import build, results

from bradawl.testing.fakes import MemoryFiles
from bradawl.tools.outlines.thresholds import WHOLE_BYTES
from bradawl.tools.read_file import ReadFile

CODE = (
    "class Queue:\n    def put(self):\n        full()\n\n    def take(self):\n        empty()\n\n"
    + "# \n" * WHOLE_BYTES
)


def read(number: int) -> dict:
    return {"id": f"id_{number}", "name": "read_file", "arguments": {"file_path": "queue.py"}}


async def test_definitions_named_in_a_prompt_are_shown_until_the_prompt_is_taken_back() -> None:
    script = [{"text": "hello"}, {"tool_calls": [read(1)]}, {"text": "ok"}, {"tool_calls": [read(2)]}, {"text": "ok"}]
    agent, *_ = build(script, tools=(ReadFile(),), files=MemoryFiles({"/project/queue.py": CODE.encode()}))
    async with agent.open() as session:
        await session.run("hello")
        start = session.conversation.entries()[-1].seq
        await session.run("why is queue.take slow?")
        (named,) = results(session.transcript.messages)
        await session.rewind(start, "talk")
        await session.run("look at the queue")
        (other,) = results(session.transcript.messages)
    shown = (
        "\n\n(definitions that this conversation names:)\n"
        "[lines 5-6: Queue.take]\n    def take(self):\n        empty()\n"
    )
    assert shown in named and "2-3\t  def put(self)" in named
    assert other == named.replace(shown, "\n")
