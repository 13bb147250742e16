"""The declarations of bradawl's own tools, and permission requests built from them."""

from bradawl.core.effects import Effects
from bradawl.core.permissions import Request
from bradawl.core.tools import ToolSpec
from bradawl.tools.agent import AgentTool
from bradawl.tools.ask_user import AskUser
from bradawl.tools.bash import Bash
from bradawl.tools.bash_kill import BashKill
from bradawl.tools.bash_output import BashOutput
from bradawl.tools.edit_file import EditFile
from bradawl.tools.exit_plan import ExitPlan
from bradawl.tools.glob import Glob
from bradawl.tools.grep import Grep
from bradawl.tools.multi_edit import MultiEdit
from bradawl.tools.read_file import ReadFile
from bradawl.tools.todo_write import TodoWrite
from bradawl.tools.web_fetch import WebFetch
from bradawl.tools.write_file import WriteFile

OWN_TOOLS = (
    *(Bash(), BashOutput, BashKill, ReadFile, WriteFile, EditFile, MultiEdit, Glob, Grep, AgentTool, TodoWrite),
    *(WebFetch, AskUser, ExitPlan),
)
SPECS: dict[str, ToolSpec] = {tool.spec.name: tool.spec for tool in OWN_TOOLS}


def spec_of(name: str) -> ToolSpec:
    """The declaration of a tool of bradawl; an empty one for an unknown name."""
    return SPECS.get(name) or ToolSpec(name)


def request(name: str, effects: Effects, digest: str = "d") -> Request:
    """A permission request for a call of that tool."""
    spec = spec_of(name)
    return Request(name, digest, effects, spec.rule_names, spec.read_rules)
