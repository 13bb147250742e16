"""The approver with `--permission-prompt-tool stdio`: asks the program that started bradawl on the control channel."""

from collections.abc import Callable
from typing import Final, Literal, cast

import msgspec

from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.app.exit_code import Denial
from bradawl.app.json_values import call_input
from bradawl.app.stream_json.control_channel import ControlChannel, RequestFailed
from bradawl.app.stream_json.input_messages import Json
from bradawl.app.stream_json.lines import CanUseTool
from bradawl.core.arguments import is_object
from bradawl.core.errors import BradawlError
from bradawl.core.permissions import Answer, Choice, Question
from bradawl.safety.control_characters import escape

_CONNECTION: Final = "network"
_CHANGED: Final = (
    "The program that answers has changed the arguments of the call (updatedInput). bradawl runs a call as the model "
    "made it, or not at all."
)


class ControlApprover:
    """`Approver` that sends each question as a `can_use_tool` request and waits for the answer, however long it takes.

    Without an answer, because stdin is closed or the request failed, the call is refused as in a run without a user.
    """

    def __init__(
        self,
        channel: ControlChannel,
        without_user: DenyAllApprover,
        *,
        agent_of: Callable[[str], str],
        waits: Callable[[bool], None],
        warn: Callable[[str], None],
    ) -> None:
        """`agent_of` names the sub-agent of a call. `waits` is told when a question begins and ends to wait."""
        self._channel, self.without_user = channel, without_user
        self._agent_of, self._waits, self._warn = agent_of, waits, warn
        self.asks = True
        """False in the mode `dontAsk`: what would be asked is refused."""
        self.cancel: Callable[[], None] = _nothing
        """Ends the running turn."""
        self.set_mode: Callable[[str], object] = _nothing
        """Changes the permission mode by its name in the stream. Raises `BradawlError`."""
        self.declined: list[Denial] = []
        """The calls that were refused by an answer; the front end empties it."""

    async def ask(self, question: Question) -> Answer:
        """The answer of the program that started bradawl."""
        agreed = await self.without_user.ask(question) if not self.asks or self.without_user.agreed else None
        if agreed is not None and (agreed.allowed or not self.asks):
            return agreed
        request = self._request(question)
        self._waits(True)
        try:
            answer = await self._channel.ask(request)
        except RequestFailed as error:
            self._warn(f"{request.tool_name}: no permission: {error}")
            return await self.without_user.ask(question)
        finally:
            self._waits(False)
        return self._answer(request, answer)

    async def choose(self, choice: Choice) -> str | None:
        """No answer: the control channel has no such question."""
        return None

    def _request(self, question: Question) -> CanUseTool:
        effects, call = question.request.effects, question.call
        arguments = call_input(call.raw_arguments)
        is_connection = effects.lifts == ("host",)
        if is_connection:
            arguments = {"hosts": list(effects.hosts), **arguments}
        touched = (("writes", effects.writes), ("reads", effects.reads), ("reaches", effects.hosts))
        agent = self._agent_of(call.id)
        return CanUseTool(
            tool_name=_CONNECTION if is_connection else call.name,
            input=arguments,
            decision_reason=question.reason,
            description="\n".join(f"{verb} {escape(name)}" for verb, names in touched for name in names),
            tool_use_id=call.id,
            agent_id=agent or msgspec.UNSET,
        )

    def _answer(self, request: CanUseTool, answer: Json) -> Answer:
        behavior = answer.get("behavior")
        if behavior not in ("allow", "deny"):
            return self._deny(request, f'The answer has no "behavior" that is allow or deny, but {behavior!r:.60}.')
        if behavior == "deny":
            if answer.get("interrupt") is True:
                self.cancel()
            message = answer.get("message")
            return self._deny(request, message if isinstance(message, str) else "")
        if answer.get("updatedInput", request.input) != request.input:
            self._warn(f"{request.tool_name} was refused: {_CHANGED}")
            return self._deny(request, _CHANGED)
        if problem := self._updated(answer.get("updatedPermissions")):
            self._warn(f"{request.tool_name} was refused: {problem}")
            return self._deny(request, problem)
        return Answer(True, by="user")

    def _deny(self, request: CanUseTool, message: str) -> Answer:
        self.declined.append(Denial(request.tool_name, request.tool_use_id, request.input))
        return Answer(False, by="user", message=message)

    def _updated(self, updates: object) -> str:
        """Carry out the updates of permissions that came with a yes. Returns why the yes can't count; else empty.

        All are looked at before one takes effect: an answer that is refused changes nothing.
        """
        if updates is None:
            return ""
        if not isinstance(updates, list):
            return "its updatedPermissions are not a list."
        listed = cast("list[object]", updates)
        if any(_kind(update) == "stricter" for update in listed):
            return "it came with a permission rule (updatedPermissions) that bradawl can't add during a run."
        modes = [str(update.get("mode")) for update in listed if is_object(update) and _kind(update) == "mode"]
        try:
            for mode in modes[-1:]:  # the last one holds, as if each were set in turn
                self.set_mode(mode)
        except BradawlError as error:
            return str(error)
        if len(modes) < len(listed):
            self._warn("a rule that came with a permission (updatedPermissions) was not added; the call was allowed")
        return ""


def _kind(update: object) -> Literal["mode", "stricter", "wider"]:
    """What an update does. A rule that allows more may be left out; one that allows less may not."""
    kind = update.get("type") if is_object(update) else None
    if kind == "setMode":
        return "mode"
    behavior = update.get("behavior") if is_object(update) else None
    if (kind == "addRules" and behavior == "allow") or kind == "addDirectories":
        return "wider"
    return "stricter"


def _nothing(*_: object) -> None: ...
