"""The tool `exit_plan`: shows the user a plan, and ends plan mode when they approve it."""

from typing import Annotated, Final

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.events import ModeChosen
from bradawl.core.messages import Text
from bradawl.core.permissions import Choice, Mode
from bradawl.core.ports import Approver, CallContext, ToolOutput
from bradawl.core.tools import ToolSpec

_LONGEST: Final = 50_000
_YES: Final[dict[str, Mode]] = {
    "Yes, and ask me before each change": "default",
    "Yes, and edit files in the workspace without asking": "accept-edits",
    "Yes, and ask only for what leaves the workspace or its sandbox": "auto",
    "Yes, and ask nothing": "bypass",
}
MODES: Final[tuple[Mode, ...]] = ("default", "accept-edits", "auto")
_OWN: Final = "Yes, but with a plan that I write now"
_NO: Final = "No, go on planning"
_ASSENT: Final = frozenset({"y", "yes", "ok", "okay", "approve", "approved", "go", "lgtm"})
_REFUSAL: Final = frozenset({"n", "no", "nope", "reject", "rejected", "stop"})
_NOBODY: Final = (
    "The plan is not approved: no user is present, or the user did not want to answer. Plan mode stays. Don't ask "
    "again; end your turn with the whole plan as your answer."
)


class ExitPlanParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """In plan mode: show the user your plan; once they approve it, changes may be made."""

    plan: Annotated[str, msgspec.Meta(description="What you will change, where, and how you will check it.")]


class ExitPlan:
    """The tool `exit_plan`."""

    spec: ToolSpec = ToolSpec("exit_plan", rule_names=("ExitPlanMode",), shows=("plan",), main_agent_only=True)
    params: type[ExitPlanParams] = ExitPlanParams

    def __init__(self, modes: tuple[Mode, ...] = MODES) -> None:
        """`modes` are the modes the user may continue in; a yes without a mode chooses the first."""
        self._modes = modes
        self._yes: dict[str, Mode] = {text: mode for text, mode in _YES.items() if mode in modes}

    def effects(self, params: ExitPlanParams, context: CallContext) -> Effects:
        """Asks the user, and may end plan mode. Outside of plan mode a call that declares `mode` is not run."""
        if not params.plan.strip():
            raise ToolError("plan is empty; write down what you will change, where, and how you will check it")
        if len(params.plan) > _LONGEST:
            raise ToolError(f"the plan has {len(params.plan):,} characters; keep to {_LONGEST:,}, a user reads it")
        return Effects(session=("user", "mode"))

    async def run(self, params: ExitPlanParams, context: CallContext) -> ToolOutput:
        """The user's answer to the plan. Only a yes changes the mode."""
        self.effects(params, context)
        if context.approver is None:
            return ToolOutput((Text(_NOBODY),))
        question = Choice(f"{params.plan.strip()}\n\nShall this plan be carried out?", (*self._yes, _OWN, _NO))
        said = await context.approver.choose(question)
        if said is None or not said.strip():
            return ToolOutput((Text(_NOBODY),))
        if said == _OWN:
            return ToolOutput((Text(await self._with_their_plan(context, context.approver)),))
        return ToolOutput((Text(self._settle(said.strip(), context)),))

    def _settle(self, said: str, context: CallContext) -> str:
        first = said.partition(" ")[0].lower().strip(".,:;!")
        if said in self._yes or first in _ASSENT:
            context.change(ModeChosen(self._yes.get(said, self._modes[0])))
            words = "" if said in self._yes else f" They said: {said}"
            return f"The user approved the plan: carry it out.{words}"
        words = "" if said == _NO or said.lower() in _REFUSAL else f" They said: {said}"
        return f"The user did not approve the plan, and plan mode stays: change it, or ask what is missing.{words}"

    async def _with_their_plan(self, context: CallContext, approver: Approver) -> str:
        plan = await approver.choose(Choice("Write the plan as it shall be carried out."))
        if plan is None or not plan.strip():
            return "The user wanted to write a plan of their own and gave none. Plan mode stays; ask what they want."
        context.change(ModeChosen(self._modes[0]))
        return f"The user approved this plan of their own instead of yours. Carry it out:\n{plan.strip()}"
