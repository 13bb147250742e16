"""The object of `--output-format json` gives the verdict of the exit code, and is printed once."""

import asyncio
import json
import os
import signal

import msgspec
import pytest

from bradawl.agent.session import TurnResult
from bradawl.app.exit_code import Meter, exit_code, result_of, result_of_command
from bradawl.core.errors import Failure
from bradawl.core.usage import Usage

REASONS = ("completed", "error", "steps", "budget", "time", "limit", "refused", "cancelled", "interrupted")


def agrees(result: dict, code: int) -> bool:
    failed = code != 0
    verdict = (result["exit_code"], result["is_error"], result["subtype"] != "success", result["reason"] != "completed")
    return verdict in ((code, failed, failed, failed), (74, True, True, False))  # 74: the answer itself is complete


@pytest.mark.parametrize("saved", [True, False])
@pytest.mark.parametrize("reason", REASONS)
def test_the_object_of_a_turn_agrees_with_the_exit_code(reason, saved):
    for failure in (None, Failure("server", "x", retryable=True)):
        turn = TurnResult(reason, "", 1, Usage(), None, failure, "id", saved, ())
        code = exit_code(reason, failure, saved=saved)
        assert agrees(json.loads(result_of(turn, code, (), Meter()).to_json()), code)


@pytest.mark.parametrize("code", [0, 1, 130, 143])
def test_the_object_of_a_slash_command_agrees_with_its_exit_code(code):
    result = json.loads(result_of_command("one\ntwo", "id", Meter(), code).to_json())
    assert agrees(result, code) and result["result"] == "one\ntwo"
    assert result["errors"] == ([] if code == 0 else ["one\ntwo"])


class UnclosableModel:
    """A model whose connections can't be closed."""

    def __init__(self, model) -> None:
        self._model = model
        self.info, self.open, self.window = model.info, model.open, model.window

    async def aclose(self) -> None:
        raise RuntimeError("the connection is stuck")


@pytest.mark.parametrize("prompt", ["x", "/status"])
def test_an_error_after_the_answer_does_not_change_the_verdict(world, prompt):
    def build(settings, approver):
        agent = world.build(settings, approver)
        return msgspec.structs.replace(agent, model=UnclosableModel(agent.model))

    code = world.run("-p", prompt, "--output-format", "json", build=build)
    (line,) = world.out.splitlines()
    assert code == 0 and agrees(json.loads(line), code)
    assert "note: the run is over, but its connections could not be closed: the connection is stuck" in world.err
    assert world.run("-p", prompt, build=build) == 0


class InterruptedModel(UnclosableModel):
    """A model at whose end a signal arrives."""

    async def aclose(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()


def test_a_signal_after_the_answer_does_not_change_the_verdict(world):
    def build(settings, approver):
        agent = world.build(settings, approver)
        return msgspec.structs.replace(agent, model=InterruptedModel(agent.model))

    code = world.run("-p", "x", "--output-format", "json", build=build)
    (line,) = world.out.splitlines()
    assert code == 0 and agrees(json.loads(line), code)


@pytest.mark.parametrize(("argv", "code"), [(("x", "-r", "01NOSUCHSESSION"), 1), (("",), 2)])
def test_a_failed_run_prints_the_object_also_if_only_a_file_asks_for_it(json_by_file, argv, code):
    assert json_by_file.run("-p", *argv) == code
    (line,) = json_by_file.out.splitlines()
    assert agrees(json.loads(line), code)


def test_a_flag_for_text_wins_over_the_file(json_by_file):
    assert json_by_file.run("-p", "x", "-r", "01NOSUCHSESSION", "--output-format", "text") == 1
    assert json_by_file.out == ""


@pytest.fixture
def json_by_file(world):
    folder = world.home / ".config" / "bradawl"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('output_format = "json"\n')
    return world
