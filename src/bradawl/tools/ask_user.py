"""The tool `ask_user`: asks the user a question."""

from typing import Annotated

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.messages import Text
from bradawl.core.permissions import Choice
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.tools import ToolSpec

_MOST_OPTIONS = 9
_NO_ANSWER = (
    "No answer: no user is present, or the user did not want to give one. Decide yourself, don't ask again, and say in "
    "the end what you assumed."
)


class AskUserParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ask the user what you can't find out, where a wrong guess would cost much."""

    question: str
    options: Annotated[list[str], msgspec.Meta(description="Likely answers, best first; any other may be given.")] = []


class AskUser:
    """The tool `ask_user`."""

    spec: ToolSpec = ToolSpec("ask_user", rule_names=("AskUserQuestion",), shows=("question",), main_agent_only=True)
    params: type[AskUserParams] = AskUserParams

    def effects(self, params: AskUserParams, context: CallContext) -> Effects:
        """Changes the session part `user`, so questions are asked one at a time and never repeated."""
        return Effects(session=("user",))

    async def run(self, params: AskUserParams, context: CallContext) -> ToolOutput:
        """The user's answer. Raises `ToolError` for an empty question or too many options."""
        question = params.question.strip()
        options = tuple(dict.fromkeys(option for text in params.options if (option := " ".join(text.split()))))
        if not question:
            raise ToolError("question is empty; say what you want to know")
        if len(options) > _MOST_OPTIONS:
            raise ToolError(f"{len(options)} options are too many; give {_MOST_OPTIONS} at most, the user may add one")
        said = None if context.approver is None else await context.approver.choose(Choice(question, options))
        if said is None or not said.strip():
            return ToolOutput((Text(_NO_ANSWER),))
        return ToolOutput((Text(f"The user says: {said.strip()}"),))
