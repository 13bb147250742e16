"""A conversation whose line about what is held is no longer true gets the new one with the next prompt."""

from scripted_agent import build, call
from test_reminders import notes_of

from bradawl.app.held import HeldNotes, held_line
from bradawl.core.permissions import Policy, Sandbox

AUTO = Policy("auto", roots=("/project",), sandbox=Sandbox("bubblewrap"))
DEFAULT = Policy("default", roots=("/project",))
CHANGED = (
    "What is held has changed. Now it is:\n"
    "held: this run changes nothing: edits and commands that change something are refused"
)


def line_of(policy):
    return held_line(policy, cwd="/project", tmp="", can_ask=False)


def agent_with(policies, script):
    async def prompt():
        return f"<environment>\n{line_of(policies[-1])}\n</environment>"

    agent, model, _ = build(
        script,
        policy=lambda: policies[-1],
        system_prompt=prompt,
        middleware=(lambda context: HeldNotes(context, line_of),),
    )
    return agent, model


async def test_another_mode_or_sandbox_in_a_continued_session_is_told_once():
    policies = [AUTO]
    agent, model = agent_with(policies, [{"text": "a"}, {"tool_calls": [call("x")]}, {"text": "b"}, {"text": "c"}])
    async with agent.open() as session:
        await session.run("one")
    policies.append(DEFAULT)
    async with agent.open(session.id) as again:
        await again.run("two")
        await again.run("three")
    assert [notes_of(request[-1]) for request in model.requests] == [[], [CHANGED], [], []]


async def test_what_is_as_before_is_not_told_again():
    policies = [AUTO]
    agent, model = agent_with(policies, [{"text": "a"}, {"text": "b"}, {"text": "c"}, {"text": "d"}])
    async with agent.open() as session:
        await session.run("one")
        await session.run("two")
        policies.append(DEFAULT)
        await session.run("three")
        policies.append(AUTO)
        await session.run("four")
    told = [notes_of(request[-1]) for request in model.requests]
    assert told == [[], [], [CHANGED], [f"What is held has changed. Now it is:\n{line_of(AUTO)}"]]


async def test_plan_mode_has_a_note_of_its_own():
    policies = [AUTO]
    agent, model = agent_with(policies, [{"text": "a"}, {"text": "b"}])
    async with agent.open() as session:
        await session.run("one")
        session.choose_mode("plan")
        await session.run("two")
    assert not any(note.startswith("What is held") for note in notes_of(model.requests[-1][-1]))
