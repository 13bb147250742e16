"""One call from the model's words to the model's answer: prepare, execute, finalize."""

import asyncio
from collections import deque
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, assert_never

import msgspec

from bradawl.agent import hooks
from bradawl.agent.judged_files import JudgedFiles
from bradawl.agent.questions import ASKS, OneByOne
from bradawl.agent.recovery import state_of
from bradawl.core.arguments import Arguments, parse_arguments
from bradawl.core.deltas import ToolProgress
from bradawl.core.effects import Effects
from bradawl.core.errors import SessionError, ToolError
from bradawl.core.events import (
    CallPrepared,
    CheckpointTaken,
    Outcome,
    PermissionAsked,
    PermissionDecided,
    ResultAmended,
    State,
    StateChanged,
    ToolFinished,
    ToolStarted,
)
from bradawl.core.messages import Part, Text, ToolCall, ToolResult
from bradawl.core.permissions import Allow, Answer, Ask, Decision, Deny, Grant, Question, Request, decide
from bradawl.core.ports import AnyTool, CallContext, Params, ToolOutput
from bradawl.core.rules import path_rules
from bradawl.shaping import fitting
from bradawl.shaping.approval_scope import covered
from bradawl.shaping.preview import fitted
from bradawl.shaping.ruled_files import ruled
from bradawl.shaping.validation import declared, validated

if TYPE_CHECKING:
    from bradawl.agent.session import Session


LEAVES_PLAN = "mode"
"""The part of a session that a call declares to change when it ends plan mode."""
_PRINTED_CHARACTERS = 4_000
_LONGEST_ARGUMENTS = 4_000_000
"""More than any model writes into one call; what is longer is not even read."""


class Place(msgspec.Struct, frozen=True):
    """Where a call runs: a copy, so that what later calls change does not reach it."""

    cwd: str
    env: Mapping[str, str | None]


class Prepared(msgspec.Struct, frozen=True):
    """A call that is known and well-formed; not yet allowed."""

    call: ToolCall
    tool: AnyTool
    params: Params
    effects: Effects
    place: Place
    """What its paths were resolved against; it runs there too."""


class Refused(msgspec.Struct, frozen=True):
    """A call that will not run, and what the model should do instead."""

    call: ToolCall
    text: str
    outcome: Outcome = "error"


async def prepare(
    session: "Session", call: ToolCall, step: int, before: tuple[Part, ...], refusal: str = ""
) -> Prepared | Refused:
    """Find the tool, check the arguments, let hooks look, and declare the effects. Nothing is touched.

    With a `refusal` the call is only written down; that is its answer.
    """
    checked = Refused(call, refusal) if refusal else check(session, call)
    if isinstance(checked, Prepared) and session.agent.hooks:
        verdict = await hooks.before_call(session.agent.hooks, call, session.record)
        if isinstance(verdict, str):
            checked = Refused(call, verdict, "refused")
        elif verdict != call:
            call = msgspec.structs.replace(verdict, id=call.id, name=call.name)
            checked = check(session, call)
    effects = checked.effects if isinstance(checked, Prepared) else Effects()
    session.record(CallPrepared(call.id, step, call.name, call.raw_arguments, effects, before))
    return checked


def place_of(session: "Session") -> Place:
    """Where a call that begins now runs."""
    return Place(session.state.cwd, dict(session.state.env))


def check(session: "Session", call: ToolCall) -> Prepared | Refused:
    """Everything about a call that needs no waiting; used again when the calls before it have moved the session."""
    tool = session.tools.get(call.name)
    if tool is None or len(call.raw_arguments) > _LONGEST_ARGUMENTS:
        return Refused(call, _unknown_tool(call.name, tuple(session.tools)) if tool is None else _too_long(call))
    arguments, status = parse_arguments(call.raw_arguments, cut=call.status == "truncated")
    if arguments is None or call.status != "ok":
        return Refused(call, _unusable_arguments(tool, call, status if arguments is None else call.status))
    try:
        params = fitting.decoded(arguments, tool.params)
    except (msgspec.ValidationError, RecursionError) as error:
        return Refused(call, _unfit(tool, arguments, error))
    except Exception as error:  # out of a struct's own check
        return Refused(call, _broke(tool, error))
    place = place_of(session)
    try:
        effects = declared(tool.effects(params, _context(session, call, place, None)))
    except ToolError as error:
        return Refused(call, str(error))
    except Exception as error:
        return Refused(call, _broke(tool, error))
    if LEAVES_PLAN in effects.session and session.policy().mode != "plan":
        return Refused(call, f"{call.name} was not run: this is not plan mode. Changes may be made; just go on.")
    return Prepared(call, tool, params, effects, place)


def _too_long(call: ToolCall) -> str:
    size, most = len(call.raw_arguments), _LONGEST_ARGUMENTS
    return f"{call.name} was not run: its arguments have {size:,} characters, {most:,} is the most. Send less at once."


def _broke(tool: AnyTool, error: Exception) -> str:
    return f"{tool.spec.name} broke: {type(error).__name__}: {error}. The tool is at fault, not your call."


def _unknown_tool(name: str, known: tuple[str, ...]) -> str:
    from difflib import get_close_matches  # only a mistaken model pays for it

    near = get_close_matches(name, known, 1, 0.5)
    guess = f" Did you mean {near[0]}?" if near else ""
    return f"There is no tool named {name!r}; nothing was run.{guess} The tools are: {', '.join(known)}."


def _unusable_arguments(tool: AnyTool, call: ToolCall, status: str) -> str:
    if status == "truncated":
        return (
            f"{tool.spec.name} was not run: its arguments were cut off after {len(call.raw_arguments)} characters, "
            "because the reply hit its length limit. Send the call again with less in it, or in several parts."
        )
    wrong = fitting.what_is_wrong(call.raw_arguments)
    return f"{tool.spec.name} was not run: its arguments could not be read: {wrong}.\n{fitting.signature(tool.params)}"


def _unfit(tool: AnyTool, arguments: Arguments, error: Exception) -> str:
    why = fitting.unknown_names(arguments, tool.params) or _readable(error)
    return f"{tool.spec.name} was not run: {why}.\n{fitting.signature(tool.params)}"


def _readable(error: Exception) -> str:
    """`Expected int, got str (in timeout)` rather than msgspec's path syntax."""
    text = str(error).replace("`", "")
    what, separator, where = text.partition(" - at $")
    return f"{what} (in {where.lstrip('.')})" if separator and where.strip(".") else what


async def authorize(session: "Session", prepared: Prepared, reply_ended: asyncio.Event) -> Grant | Refused:
    """Decide whether the call may run; ask if it must be asked, once the reply has ended."""
    call = prepared.call
    if ASKS in prepared.effects.session:
        await reply_ended.wait()  # a question is never taken back, as a reply may be that has not ended
    decision = _decide(session, prepared)
    if isinstance(decision, Ask):
        await reply_ended.wait()
        async with session.asking:
            # An earlier answer may have settled this question too.
            decision = _decide(session, prepared)
            if isinstance(decision, Ask):
                return await _ask(session, prepared, decision)
    match decision:
        case Allow(grant, reason):
            if not prepared.effects.is_read_only:
                session.record(PermissionDecided(call.id, "allow", "policy", reason))
            return grant
        case Deny(reason):
            session.record(PermissionDecided(call.id, "deny", "policy", reason))
            return Refused(call, f"{call.name} was not run: {reason}.", "refused")
        case _:
            assert_never(decision)


def _scope(session: "Session", prepared: Prepared, ask: Ask) -> str:
    """What a yes for the session covers; empty for no more than this one call."""
    return covered(_request(prepared), ask, session.name, prepared.place.cwd, prepared.place.env)


def _request(prepared: Prepared) -> Request:
    digest = sha256(prepared.call.raw_arguments.encode("utf-8", "surrogatepass")).hexdigest()
    spec = prepared.tool.spec
    return Request(spec.name, digest, prepared.effects, spec.rule_names, spec.read_rules)


def _decide(session: "Session", prepared: Prepared) -> Decision:
    decision = decide(session.policy(), _request(prepared))
    if isinstance(decision, Ask) and _scope(session, prepared, decision) in session.allowed:
        return Allow(decision.grant, "allowed by the user for this session")
    return decision


async def _ask(session: "Session", prepared: Prepared, ask: Ask) -> Grant | Refused:
    call = prepared.call
    session.record(PermissionAsked(call.id, ask.reason))
    answer = await session.agent.approver.ask(
        Question(call, _request(prepared), ask.reason, ask.grant, prepared.place.cwd, prepared.place.env)
    )
    word = "allow" if answer.allowed else "deny"
    session.record(PermissionDecided(call.id, word, answer.by, ", ".join(answer.rules), answer.scope))
    if answer.allowed:
        if answer.scope == "session" and (scope := _scope(session, prepared, ask)):
            session.allowed.add(scope)
        return ask.grant
    return _denied(session, call, ask.reason, answer)


def _denied(session: "Session", call: ToolCall, reason: str, answer: Answer) -> Refused:
    if answer.by == "nobody":
        session.denials.append(call)
        text = (
            f"it needs permission ({reason}), and nobody is here to give it. Do what you can without, and say what is "
            "left undone"
        )
        return Refused(call, f"{call.name} was not run: {text}.", "refused")
    said = f" They said: {answer.message}" if answer.message else " Do something else, or say what you need and why."
    return Refused(call, f"{call.name} was not run: the user declined.{said}", "refused")


async def execute(session: "Session", prepared: Prepared, grant: Grant) -> ToolFinished:
    """Run an allowed call. Before it may change anything, the log that says so is on the disk."""
    call, output, printed = prepared.call, None, Printed()
    try:
        if (unsaved := await _save_state(session, prepared)) is not None:
            return unsaved
        await _log_start(session, prepared)
        output = await _run(session, prepared, grant, printed)
        shown, full = fitted(output)
        full_ref, whereabouts = await _store(session, output, full)
    except asyncio.CancelledError:
        if call.id in session.transcript.started:
            session.record(_cancelled(call, output, printed))
        raise
    return ToolFinished(call.id, "error" if output.is_error else "ok", (*shown, *whereabouts), full_ref)


async def _log_start(session: "Session", prepared: Prepared) -> None:
    """From here on the effect may happen; before a change the log that says so is on the disk."""
    effects = prepared.effects
    if effects.is_read_only:
        session.record(ToolStarted(prepared.call.id))
    else:
        before = await state_of(session, effects.writes)
        await session.log.durable(session.record(ToolStarted(prepared.call.id, before)))


async def _store(session: "Session", output: ToolOutput, full: bytes | None) -> tuple[str | None, tuple[Text, ...]]:
    """Keep the whole of a result that is shown in part; gives back its blob and what the model is told of it."""
    ref = None
    try:
        if output.full_file:
            ref = await session.blobs.adopt(output.full_file)
        elif full is not None:
            ref = await session.blobs.put(full)
        return ref, () if ref is None else (Text(f"\n[all of it: {session.blobs.path(ref)}]"),)
    except SessionError as error:
        return ref, (Text(f"\n[the rest can't be read again: {error}]"),)


async def _save_state(session: "Session", prepared: Prepared) -> ToolFinished | None:
    """Save what the call may overwrite; gives back the answer to a call that may not run because that failed."""
    call, checkpoints = prepared.call, session.agent.checkpoints
    if checkpoints is None or not prepared.effects.writes:
        return None
    try:
        reference = await checkpoints.take(prepared.effects.writes)
    except ToolError as error:
        text = f"{call.name} was not run: what it would change could not be saved first: {error}"
        return ToolFinished(call.id, "error", (Text(text),))
    session.record(CheckpointTaken(call.id, reference))
    return None


class Printed:
    """The end of what a running call has shown so far."""

    def __init__(self) -> None:
        self._pieces: deque[str] = deque(maxlen=200)

    def add(self, text: str) -> None:
        """More of it."""
        self._pieces.append(text[-_PRINTED_CHARACTERS:])

    def __str__(self) -> str:
        return "".join(self._pieces)[-_PRINTED_CHARACTERS:]


def _cancelled(call: ToolCall, output: ToolOutput | None, printed: Printed) -> ToolFinished:
    if output is not None:  # it was done; only its copy for later reading was not
        return ToolFinished(call.id, "error" if output.is_error else "ok", fitted(output)[0])
    text = "[cancelled while it was running; it may have done part of its work]"
    return ToolFinished(call.id, "cancelled", (Text(f"{printed}\n{text}".lstrip()),))


async def _run(session: "Session", prepared: Prepared, grant: Grant, printed: Printed) -> ToolOutput:
    async def permit(effects: Effects) -> None:
        begun = asyncio.Event()
        begun.set()
        found = await authorize(session, msgspec.structs.replace(prepared, effects=declared(effects)), begun)
        if isinstance(found, Refused):
            raise ToolError(found.text)

    try:
        context = _context(session, prepared.call, prepared.place, grant, printed)
        files = JudgedFiles(context.files, prepared.effects)
        context = msgspec.structs.replace(context, files=files, permit=permit)
        return validated(await prepared.tool.run(prepared.params, context), ToolOutput)
    except ToolError as error:
        return ToolOutput((Text(str(error)),), is_error=True)
    except Exception as error:
        import traceback  # only a broken tool pays for it

        return ToolOutput(
            (Text(_broke(prepared.tool, error)),), full=traceback.format_exc().encode("utf-8", "replace"), is_error=True
        )


async def finalize(session: "Session", call: ToolCall, finished: ToolFinished) -> None:
    """Log the answer, and what hooks make of it."""
    session.record(finished)
    if not session.agent.hooks:
        return
    result = ToolResult(call.id, call.name, finished.shown, finished.outcome != "ok")
    amended = await hooks.after_call(session.agent.hooks, call, result, session.record)
    if amended.parts != result.parts:
        session.record(ResultAmended(call.id, amended.parts, "hook"))


def _context(
    session: "Session", call: ToolCall, place: Place, grant: Grant | None, printed: Printed | None = None
) -> CallContext:
    def progress(text: str) -> None:
        if printed is not None:
            printed.add(text)
        session.show(ToolProgress(call.id, text))

    def change(state: State) -> None:
        session.record(StateChanged(state))

    agent, rules = session.agent, path_rules(session.policy().rules)
    return CallContext(
        call_id=call.id,
        cwd=place.cwd,
        env=place.env,
        files=ruled(agent.files, rules),
        processes=agent.processes,
        seen=session.seen,
        grant=grant,
        progress=progress,
        change=change,
        jobs=session.jobs,
        spawner=session.spawner.at(place.cwd, place.env, progress),
        approver=OneByOne(session),
        rules=rules,
    )
