"""Permission modes at the prompt: `/mode` and `/plan`."""

import io

import pytest
from cli_world import World


@pytest.fixture
def world(tmp_path):
    """The command line with a model that replies as the test scripts it."""
    return World(tmp_path, [])


def test_the_mode_is_shown_and_changed_between_turns(world):
    world.script = [{"text": "One.", "expect": "Plan mode is on"}, {"text": "Two.", "expect": "Plan mode is over"}]
    lines = ("/mode default", "/plan", "/status", "a", "/plan", "b", "/mode bypass", "/mode", "/mode fast")
    assert world.run(stdin="\n".join(lines) + "\n") == 0
    assert world.out.count("\nmode plan: ") == 1 and "\nmode          plan: " in world.out
    assert world.out.index("mode plan: ") < world.out.index("One.") < world.out.rindex("mode default: ")
    assert "Two." in world.out and "Questions can only be switched off at the start" in world.out
    assert "There is no mode 'fast' of /mode; there are default, accept-edits, plan, auto, bypass." in world.out


def test_plan_mode_is_kept_in_a_resumed_session(world):
    world.script = [{"text": "One."}]
    assert world.run(stdin="/plan\na\n") == 0
    world.script, world.stdout = [], io.StringIO()
    assert world.run("-c", stdin="/mode\n") == 0
    assert "mode plan: nothing may change" in world.out
