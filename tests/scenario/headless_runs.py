"""Runs an agent without a user, as `bradawl -p` does, with streams in memory."""

import io
from typing import Any

from bradawl.app.builtin_commands import builtin_commands
from bradawl.app.console import Console
from bradawl.app.frontend import RunRequest
from bradawl.app.headless import HeadlessScreen, run_headless
from bradawl.app.interrupts import Interrupts
from bradawl.app.notices import NoticeStream
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.settings import Settings


async def run_without_user(agent: Any, *, as_json: bool = False, **changes: Any) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of a headless run of the prompt `go`. `changes` are settings."""
    model = ModelSettings("scripted", "x")
    settings = Settings(model=model, cwd="/project", home="/home/u", sandbox="off", headless=True, **changes)
    out, err = io.StringIO(), io.StringIO()
    screen = HeadlessScreen(Console(io.StringIO(), out, err, {}))
    notices = NoticeStream(screen.emit)
    request = RunRequest(settings, lambda *_: agent, lambda _: None, builtin_commands, lambda: settings, notices, "go")

    with Interrupts() as interrupts:
        frontend = request.start(agent.approver, screen.emit, user_is_there=False)
        code = await run_headless(frontend, screen, None, interrupts, as_json=as_json)
    return code, out.getvalue(), err.getvalue()
