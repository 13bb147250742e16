"""What all front ends share: one stream of warnings, the mode, and the texts about the end of a turn."""

from typing import Any

import msgspec
import pytest
from cli_world import World

from bradawl.agent.session import TurnResult
from bradawl.app.frontend import RunRequest
from bradawl.app.launch import load_builtin_commands
from bradawl.app.notices import NoticeStream
from bradawl.app.outcomes import outcome_of
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.settings import Settings
from bradawl.core.deltas import Notice
from bradawl.core.errors import Failure, SettingsError
from bradawl.core.events import Envelope, LimitReached, Live
from bradawl.core.messages import ToolCall
from bradawl.core.ports import OpenSession
from bradawl.core.usage import Usage
from bradawl.testing.fakes import MemoryStore, ScriptedApprover

SETTINGS = Settings(model=ModelSettings("scripted", "x"), cwd="/project", home="/home/u")


class Recorder:
    """Records the items a front end is given; warnings are recorded as their texts."""

    def __init__(self) -> None:
        self.shown: list[Any] = []

    def emit(self, item: Envelope | Live) -> None:
        self.shown.append(item.item.text if isinstance(item, Live) and isinstance(item.item, Notice) else item)

    @property
    def warnings(self) -> list[str]:
        return [each for each in self.shown if isinstance(each, str)]


def start(world: World, recorder: Recorder, settings: Settings = SETTINGS, **changes: Any) -> Any:
    """A front end over a scripted agent; one warning was emitted before it started."""
    early = Recorder()
    notices = NoticeStream(early.emit)
    notices("from the settings")

    def build(settings: Settings, approver: Any) -> Any:
        agent = world.build(settings, approver)
        notices("from the build")
        return agent

    request = RunRequest(settings, build, lambda _: None, load_builtin_commands, lambda: settings, notices)
    frontend = request.start(ScriptedApprover(), recorder.emit, user_is_there=True, **changes)
    assert early.warnings == ["from the settings"]
    return frontend


async def test_all_warnings_reach_a_front_end_in_the_stream_of_its_events(world):
    recorder = Recorder()
    frontend = start(world, recorder, warnings=lambda: ["from the front end"])

    async with frontend.open() as session:
        await session.run("go")
    assert recorder.warnings[0] == "from the build"
    assert recorder.warnings[1].startswith("NO SANDBOX")
    assert recorder.warnings[2:] == ["from the front end"]


class StoreWithNotice(MemoryStore):
    """A store that gives a warning with each session it opens."""

    def open(self, session_id: str) -> OpenSession:
        """The session with an empty blob store and a warning."""
        opened = super().open(session_id)
        return OpenSession(opened.log, MemoryStore().blobs, opened.entries, ("from the store",))


async def test_a_warning_of_the_session_is_passed_on_when_it_opens_or_with_the_turn_that_caused_it(world):
    world.store = StoreWithNotice()
    world.script = [{"text": "One."}, {"text": "Two."}]
    recorder = Recorder()
    frontend = start(world, recorder, msgspec.structs.replace(SETTINGS, sandbox="off"))

    async with frontend.open() as session:
        await session.run("go")
    async with frontend.open(session.id) as session:
        assert recorder.warnings[1:] == ["from the store"]
        await session.run("go on")
    assert recorder.warnings[2].startswith("The system prompt of this session is lost")
    assert len(recorder.warnings) == 3


async def test_announce_gives_the_warnings_of_the_start_once_and_before_a_turn(world):
    recorder = Recorder()
    frontend = start(world, recorder)
    frontend.announce()

    async with frontend.open() as session:
        await session.run("go")
    assert [text[:10] for text in recorder.warnings] == ["from the b", "NO SANDBOX"]
    assert isinstance(recorder.shown[1], str)


async def test_leaving_plan_mode_restores_the_mode_before_it_and_a_fixed_mode_is_kept(world):
    frontend = start(world, Recorder())
    fixed = start(world, Recorder(), msgspec.structs.replace(SETTINGS, permission_mode="default", is_mode_fixed=True))

    async with frontend.open() as session:
        session.choose_mode("accept-edits")
        session.toggle_plan_mode()
        assert session.mode == "plan"
        session.toggle_plan_mode()
        assert session.mode == "accept-edits"
        with pytest.raises(SettingsError, match="only be switched off at the start"):
            session.choose_mode("bypass")
    async with fixed.open() as session:
        with pytest.raises(SettingsError, match="fixed"):
            session.choose_mode("auto")


def turn(
    reason: Any,
    failure: Failure | None = None,
    *,
    saved: bool = True,
    denials: tuple[ToolCall, ...] = (),
    limit: LimitReached | None = None,
) -> Any:
    return TurnResult(reason, "", 1, Usage(), None, failure, "id", saved, denials, limit=limit)


DOWN = Failure("server", "The server is down.", retryable=True)
REQUESTS = LimitReached("requests", 3, 3)
CALLS = (ToolCall("a", "bash", "{}"),)


@pytest.mark.parametrize(
    ("ended", "kind", "with_user", "without_user"),
    [
        (turn("completed"), "completed", "", ""),
        (turn("steps"), "stopped", "The limit of steps is reached; say `go on`", "--max-steps sets another."),
        (turn("budget"), "stopped", "The limit of budget is reached; say `go on`", "The limit of budget is reached."),
        (turn("limit", limit=REQUESTS), "stopped", "The limit of requests is reached; say", "of requests is reached."),
        (turn("refused"), "stopped", "The model refused.", "The model refused: I can't."),
        (turn("refused", denials=CALLS), "stopped", "a question was not answered", "DENIED"),
        (turn("refused", DOWN, denials=CALLS), "failed", "The server is down.", "DENIED"),
        (turn("refused", DOWN), "failed", "The server is down.", "The model refused: I can't."),
        (turn("cancelled"), "cancelled", "What was done so far is kept.", "The run was interrupted."),
        (turn("error", DOWN), "failed", "The server is down.", "The server is down."),
        (turn("error"), "failed", "The turn ended with an error.", "The turn ended with an error."),
    ],
)
def test_the_end_of_a_turn_has_one_wording_with_a_user_and_one_without(ended, kind, with_user, without_user):
    attended = outcome_of(ended, user_is_there=True)
    assert attended.kind == kind and with_user in attended.text
    assert without_user in outcome_of(ended, user_is_there=False, refusal="I can't.", denials="DENIED").text


@pytest.mark.parametrize("reason", ["steps", "budget", "refused", "cancelled", "error", "interrupted"])
def test_without_a_user_the_outcome_says_that_the_session_could_not_be_saved_however_the_turn_ended(reason):
    ended = [outcome_of(turn(reason, saved=saved), user_is_there=False) for saved in (True, False)]
    more = " The session could not be saved, so undo may not know what it changed."
    assert ended[1] == (ended[0].kind, f"{ended[0].text}{more}")


def test_without_a_user_the_outcome_says_that_the_answer_could_not_be_saved():
    assert "could not be saved" in outcome_of(turn("completed", saved=False), user_is_there=False).text
