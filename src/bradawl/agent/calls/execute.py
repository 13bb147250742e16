"""Runs an allowed call, and logs its start, its result and what hooks change in the result."""

import asyncio
from collections import deque

import msgspec

from bradawl.agent.calls import hooks
from bradawl.agent.calls.call import NOT_RUN, Prepared, tool_failed
from bradawl.agent.calls.context import CallServices, JudgedFiles, context_of
from bradawl.agent.calls.running_call import CallQuestions, QuestionFailed
from bradawl.agent.changes import ConversationChanges
from bradawl.agent.recovery import state_of
from bradawl.core.effects import Effects
from bradawl.core.errors import SessionError, ToolError
from bradawl.core.events import ResultAmended, ToolFinished, ToolStarted
from bradawl.core.messages import Text, ToolCall, ToolResult
from bradawl.core.permissions import Grant
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.shaping.preview import fitted
from bradawl.shaping.validation import validated

_PRINTED_CHARACTERS = 4_000


async def execute(services: CallServices, prepared: Prepared, grant: Grant) -> ToolFinished:
    """Run an allowed call. Before it may change anything, its start is in the log and on the disk."""
    call, output, printed = prepared.call, None, Printed()
    try:
        output = await _run_and_find_changes(services, prepared, grant, printed)
        shown, full = fitted(output)
        full_ref, whereabouts = await _store(services, output, full)
    except _NotSaved as error:
        text = f"{call.name} was not run: what it would change could not be saved first: {error}"
        return ToolFinished(call.id, "error", (Text(text),))
    except (asyncio.CancelledError, QuestionFailed) as ending:
        if call.id in services.conversation.transcript.started:
            services.conversation.record(_cancelled(call, output, printed))
        if isinstance(ending, QuestionFailed):
            raise ending.error from ending
        raise
    outcome = "error" if output.is_error else "ok"
    return ToolFinished(call.id, outcome, (*shown, *whereabouts), full_ref, output.has_failed_part)


async def _log_start(services: CallServices, prepared: Prepared) -> None:
    """Log that the effect may happen from now on; before a change, wait for the disk."""
    effects, conversation = prepared.effects, services.conversation
    if effects.is_read_only:
        conversation.record(ToolStarted(prepared.call.id))
    else:
        before = await state_of(services.files, effects.writes)
        await conversation.reach_disk(conversation.record(ToolStarted(prepared.call.id, before)))


async def _store(services: CallServices, output: ToolOutput, full: bytes | None) -> tuple[str | None, tuple[Text, ...]]:
    """Store the full text of a shortened result. Returns its blob, and the text that tells the model where it is."""
    blobs, ref = services.conversation.blobs, None
    try:
        if output.full_file:
            ref = await blobs.adopt(output.full_file)
        elif full is not None:
            ref = await blobs.put(full)
        return ref, () if ref is None else (Text(f"\n[all of it: {blobs.path(ref)}]"),)
    except SessionError as error:
        return ref, (Text(f"\n[the rest can't be read again: {error}]"),)


class _NotSaved(Exception):
    """The state before the call could not be saved, so the call may not run."""


async def _run_and_find_changes(
    services: CallServices, prepared: Prepared, grant: Grant, printed: "Printed"
) -> ToolOutput:
    """Run a call between the save of the state before it and the search for what it changed. Raises `_NotSaved`."""
    has_begun = await _begin(services, prepared)
    try:
        return await _run(services, prepared, grant, printed)
    finally:
        if services.changes is not None and has_begun:
            services.changes.end(prepared.call.id)


async def _begin(services: CallServices, prepared: Prepared) -> bool:
    """Save the state before a call and, at the same time, log its start. Whether `changes` waits for the call's end.

    Raises `_NotSaved`.
    """
    changes, call_id = services.changes, prepared.call.id
    if changes is not None:
        await changes.settle_earlier(call_id)
    if changes is None or prepared.effects.is_read_only:
        await _log_start(services, prepared)
        return False
    saving = None
    try:
        async with asyncio.TaskGroup() as group:
            saving = group.create_task(_saved(changes, call_id, prepared.effects))
            await _log_start(services, prepared)
    except BaseException:
        # A save that is cancelled ends the call by itself.
        if saving and not saving.cancelled() and saving.result() is True:
            changes.end(call_id)
        raise
    has_begun = saving.result()
    if isinstance(has_begun, ToolError):
        raise _NotSaved(str(has_begun)) from has_begun
    if isinstance(has_begun, Exception):  # a defect of the port: the turn fails
        services.conversation.record(ToolFinished(call_id, "cancelled", (Text(NOT_RUN),)))
        raise has_begun
    return has_begun


async def _saved(changes: ConversationChanges, call_id: str, effects: Effects) -> bool | Exception:
    """What `changes.begin` returns or raises: its failure does not end the logging beside it."""
    try:
        return await changes.begin(call_id, effects)
    except Exception as error:
        return error


class Printed:
    """The last characters of the progress a running call has shown."""

    def __init__(self) -> None:
        self._pieces: deque[str] = deque(maxlen=200)
        self.has_begun = False

    def add(self, text: str) -> None:
        """Append text."""
        self._pieces.append(text[-_PRINTED_CHARACTERS:])

    def __str__(self) -> str:
        return "".join(self._pieces)[-_PRINTED_CHARACTERS:]


def _cancelled(call: ToolCall, output: ToolOutput | None, printed: Printed) -> ToolFinished:
    if output is not None:  # the tool had finished; only its full text was not stored yet
        return ToolFinished(call.id, "error" if output.is_error else "ok", fitted(output)[0])
    if not printed.has_begun:
        return ToolFinished(call.id, "cancelled", (Text(NOT_RUN),))
    text = "[cancelled while it was running; it may have done part of its work]"
    return ToolFinished(call.id, "cancelled", (Text(f"{printed}\n{text}".lstrip()),))


async def _run(services: CallServices, prepared: Prepared, grant: Grant, printed: Printed) -> ToolOutput:
    """Make the call. Raises `QuestionFailed` if a question during the call failed, whatever the tool makes of it."""
    context = context_of(services, prepared.call, prepared.place, grant, printed.add)
    questions, files = CallQuestions(services, prepared, grant), JudgedFiles(context.files, prepared.effects)
    printed.has_begun = True
    context = msgspec.structs.replace(context, files=files, permit=questions.permit, approver=questions)
    try:
        output = await _output(prepared, context)
    finally:
        questions.is_over = True
    questions.check()
    return output


async def _output(prepared: Prepared, context: CallContext) -> ToolOutput:
    """The tool's output; its exceptions as an output that is an error."""
    try:
        return validated(await prepared.tool.run(prepared.params, context), ToolOutput)
    except ToolError as error:
        return ToolOutput((Text(str(error)),), is_error=True)
    except Exception as error:
        import traceback  # rarely needed

        full = traceback.format_exc().encode("utf-8", "replace")
        return ToolOutput((Text(tool_failed(prepared.tool, error)),), full=full, is_error=True)


async def finalize(services: CallServices, call: ToolCall, finished: ToolFinished) -> None:
    """Log the result, and the result as the hooks changed it."""
    record = services.conversation.record
    record(finished)
    if not services.hooks:
        return
    result = ToolResult(call.id, call.name, finished.shown, finished.outcome != "ok")
    try:
        amended = await hooks.after_call(services.hooks, call, result, record)
    except BaseException:  # the turn is cancelled: no hook has approved the result, and a later turn would show it
        record(ResultAmended(call.id, hooks.withheld(result, "the turn ended before its hooks").parts, "hook"))
        raise
    if amended.parts != result.parts:
        record(ResultAmended(call.id, amended.parts, "hook"))
