"""Connects instruction files (AGENTS.md) with the system prompt, the middleware, the trust and the rules of a run."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from bradawl.agent.middleware import Middleware, MiddlewareContext, MiddlewareFactory
from bradawl.app.build.workspace import RunFolders
from bradawl.app.policies import Policies
from bradawl.app.settings.settings import Settings

if TYPE_CHECKING:
    from bradawl.app.instructions.files import InstructionFiles


def instructions_in_prompt(
    settings: Settings, folders: RunFolders, policies: Policies, notify: Callable[[str], None] | None
) -> Callable[[], str]:
    """Returns the part of the system prompt with the instruction files; empty without any."""

    def section() -> str:
        if settings.values.get("safe_mode"):
            return ""
        from bradawl.app.instructions.places import exist

        files = _files(settings, folders, policies)
        if not exist(files.first()):
            return ""
        from bradawl.app.instructions.prompt import instructions_section  # most folders have no such files

        return instructions_section(files, notify or _ignore)

    return section


def instruction_notes(settings: Settings, folders: RunFolders, policies: Policies) -> tuple[MiddlewareFactory, ...]:
    """Makes the middleware that tells of further and changed instruction files; none in safe mode."""
    if settings.values.get("safe_mode"):
        return ()
    prompted: dict[str, int] = {}  # by session, for its sub-agents

    def make(context: MiddlewareContext) -> Middleware:
        from bradawl.app.instructions.notes import InstructionNotes  # not needed without a session

        return InstructionNotes(context, _files(settings, folders, policies), prompted)

    return (make,)


def _files(settings: Settings, folders: RunFolders, policies: Policies) -> "InstructionFiles":
    from bradawl.app.instructions.files import InstructionFiles

    return InstructionFiles(
        folders.project,
        folders.roots,
        settings.config_home or settings.home,
        settings.user_home,
        lambda top: _is_trusted(settings, top),
        policies.asks_before_reading,
    )


def _is_trusted(settings: Settings, top: str) -> bool:
    """Whether the user trusts the project with this top folder. Each checkout is a project of its own."""
    from bradawl.app.instructions.places import project_of

    if top == os.path.realpath(settings.project or project_of(os.path.realpath(settings.cwd))):
        return settings.is_trusted
    from bradawl.safety.trust.store import TrustStore  # most workspaces are one project

    return TrustStore(settings.home, settings.user_home).is_trusted(top)


def _ignore(_: str) -> None: ...
