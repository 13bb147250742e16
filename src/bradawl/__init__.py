"""A coding agent for the terminal, and a library for building one."""

from bradawl._version import __version__

TYPE_CHECKING = False  # the module `typing` may be a project's until `__main__` has looked at the search path

if TYPE_CHECKING:
    from bradawl.agent.agent import Agent
    from bradawl.agent.session import Session, TurnResult
    from bradawl.app.build.agent import build_agent
    from bradawl.app.build.tools import build_tools
    from bradawl.app.settings.load import load_settings
    from bradawl.app.settings.model_settings import ModelSettings
    from bradawl.app.settings.settings import Settings
    from bradawl.core.effects import Effects
    from bradawl.core.errors import ToolError
    from bradawl.core.messages import Image, Text
    from bradawl.core.ports import CallContext, ToolOutput
    from bradawl.core.tools import ToolSpec
    from bradawl.tools.custom import tool

__all__ = [
    "Agent",
    "CallContext",
    "Effects",
    "Image",
    "ModelSettings",
    "Session",
    "Settings",
    "Text",
    "ToolError",
    "ToolOutput",
    "ToolSpec",
    "TurnResult",
    "__version__",
    "build_agent",
    "build_tools",
    "load_settings",
    "tool",
]

_HOMES = {
    "Agent": "bradawl.agent.agent",
    "Session": "bradawl.agent.session",
    "TurnResult": "bradawl.agent.session",
    "build_agent": "bradawl.app.build.agent",
    "build_tools": "bradawl.app.build.tools",
    "ModelSettings": "bradawl.app.settings.model_settings",
    "Settings": "bradawl.app.settings.settings",
    "load_settings": "bradawl.app.settings.load",
    "Effects": "bradawl.core.effects",
    "ToolError": "bradawl.core.errors",
    "Image": "bradawl.core.messages",
    "Text": "bradawl.core.messages",
    "CallContext": "bradawl.core.ports",
    "ToolOutput": "bradawl.core.ports",
    "ToolSpec": "bradawl.core.tools",
    "tool": "bradawl.tools.custom",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used, so that `import bradawl` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'bradawl' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
