"""Runs an agent without a user, as `bradawl -p` does, with streams in memory."""

import io
from typing import Any

from bradawl.app.commands.builtin import builtin_commands
from bradawl.app.console import Console
from bradawl.app.frontend import RunRequest
from bradawl.app.headless import HeadlessRun
from bradawl.app.interrupts import Interrupts
from bradawl.app.notices import NoticeStream
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.settings import Settings


async def run_without_user(agent: Any, *, as_json: bool = False, **changes: Any) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of a headless run of the prompt `go`. `changes` are settings."""
    model = ModelSettings("scripted", "x")
    settings = Settings(
        model=model,
        cwd="/project",
        home="/home/u",
        sandbox="off",
        headless=True,
        output_format="json" if as_json else "text",
        **changes,
    )
    out, err = io.StringIO(), io.StringIO()
    notices = NoticeStream(lambda _: None)
    request = RunRequest(settings, lambda *_: agent, lambda _: None, builtin_commands, lambda: settings, notices, "go")

    with Interrupts() as interrupts:
        run = HeadlessRun(request, Console(io.StringIO(), out, err, {}), interrupts, str)
        frontend = request.start(agent.approver, run.emit, user_is_there=False)
        code = await run.run(frontend, None)
    return code, out.getvalue(), err.getvalue()
