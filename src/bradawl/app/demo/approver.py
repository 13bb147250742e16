"""The demo's approver: allows the calls of the script, and no others."""

from bradawl.core.permissions import Answer, Choice, Question
from bradawl.testing.script import Script


class ScriptApprover:
    """`Approver` that allows a call once if the script contains it, with the same arguments.

    A call that asks to leave the sandbox is always denied.
    """

    def __init__(self, script: Script) -> None:
        self._scripted = {(call.name, call.raw_arguments) for entry in script.entries for call in entry.tool_calls}

    async def ask(self, question: Question) -> Answer:
        """Allow a call of the script, deny any other."""
        call = question.call
        is_scripted = (call.name, call.raw_arguments) in self._scripted
        if is_scripted and not question.request.effects.lifts:
            return Answer(True, by="user")
        return Answer(False, by="nobody", message="The demo allows only the calls of its script.")

    async def choose(self, choice: Choice) -> str | None:
        """No answer."""
        return None
