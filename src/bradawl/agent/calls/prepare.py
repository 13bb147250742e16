"""Prepares a tool call: finds the tool, checks the arguments, runs hooks, and declares the effects."""

import json

import msgspec

from bradawl.agent.calls import hooks
from bradawl.agent.calls.call import LEAVES_PLAN, Prepared, Refused, tool_failed
from bradawl.agent.calls.context import CallServices, JudgedFiles, context_of, current_place
from bradawl.core.arguments import Arguments, parse_arguments
from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.events import CallPrepared
from bradawl.core.messages import Part, ToolCall
from bradawl.core.permissions import Allow, Grant, Request
from bradawl.core.ports import AnyTool, Params
from bradawl.safety.permissions.names_in_sandbox import decide_by_both_names
from bradawl.shaping import call_errors, fitting
from bradawl.shaping.parameter_aliases import several_edits, translated
from bradawl.shaping.parameter_values import AmbiguousValue, Contradiction
from bradawl.shaping.validation import declared, half_character

_SEVERAL = "multi_edit"
"""The tool for a list of edits that is given to `edit_file`, as other agents take it."""
_LONGEST_ARGUMENTS = 4_000_000
"""Characters, more than any model writes into one call; longer arguments are not even parsed."""


async def prepare(
    services: CallServices, call: ToolCall, step: int, before: tuple[Part, ...], refusal: str = ""
) -> Prepared | Refused:
    """Check the call, run the hooks before it, and log it. Nothing is touched.

    `before` are the parts of the reply between the call before and this one. A `refusal` is the answer of a call that
    is logged without being checked.
    """
    checked = Refused(call, refusal) if refusal else check(services, call)
    call = checked.call  # hooks, questions and the log see the parameters under the tool's own names
    if isinstance(checked, Prepared) and services.hooks:
        verdict = await hooks.before_call(services.hooks, call, services.conversation.record)
        if isinstance(verdict, str):
            checked = Refused(call, verdict, "refused")
        elif verdict != call:
            call = verdict
            checked = check(services, call)
            call = checked.call
    effects = checked.effects if isinstance(checked, Prepared) else Effects()
    services.conversation.record(CallPrepared(call.id, step, call.name, call.raw_arguments, effects, before))
    return checked


def check(services: CallServices, call: ToolCall) -> Prepared | Refused:
    """Find the tool, check the arguments, and declare the effects; repeated after earlier calls changed cwd or env."""
    if call.name not in services.tools and call.name.lower() in services.tools:
        call = msgspec.structs.replace(call, name=call.name.lower())
    tool = services.tools.get(call.name)
    if tool is None or len(call.raw_arguments) > _LONGEST_ARGUMENTS:
        return Refused(call, _unknown_tool(services, call.name) if tool is None else _too_long(call))
    read = _read(services, tool, call)
    if isinstance(read, Refused):
        return read
    call, tool, params = read
    place = current_place(services.conversation)
    try:
        effects = declared(tool.effects(params, context_of(services, call, place)))
    except ToolError as error:
        return Refused(call, str(error))
    except Exception as error:
        return Refused(call, tool_failed(tool, error))
    if LEAVES_PLAN in effects.session and services.policy().mode != "plan":
        return Refused(call, f"{call.name} was not run: this is not plan mode. Changes may be made; just go on.")
    return Prepared(call, tool, params, effects, place)


def _read(services: CallServices, tool: AnyTool, call: ToolCall) -> tuple[ToolCall, AnyTool, Params] | Refused:
    """The call under the tool's own names, the tool that is meant, and the decoded arguments."""
    arguments, status = parse_arguments(call.raw_arguments, cut=call.status == "truncated")
    if arguments is None or call.status != "ok":
        return Refused(
            call,
            call_errors.unusable(
                tool.spec.name, tool.params, call.raw_arguments, status if arguments is None else call.status
            ),
        )
    if fault := half_character(call.raw_arguments, arguments):
        return Refused(call, f"{call.name} was not run: {fault}")
    several = several_edits(call.name, arguments)
    if several is not None and (other := services.tools.get(_SEVERAL)) is not None:
        call, tool, arguments = _with(msgspec.structs.replace(call, name=_SEVERAL), several), other, several
    try:
        own = translated(call.name, arguments, tool.params, services.conversation.state.cwd)
        call = call if own is arguments else _with(call, own)
        return call, tool, fitting.decoded(own, tool.params)
    except AmbiguousValue as error:
        names = f"\n{fitting.signature(tool.params)}" if isinstance(error, Contradiction) else ""
        return Refused(call, f"{call.name} was not run: {error}.{names}")
    except (msgspec.ValidationError, RecursionError) as error:
        return Refused(call, call_errors.unfit(tool.spec.name, tool.params, arguments, error))
    except Exception as error:  # raised by `__post_init__` of the struct
        return Refused(call, tool_failed(tool, error))


def _with(call: ToolCall, arguments: Arguments) -> ToolCall:
    return msgspec.structs.replace(call, raw_arguments=json.dumps(arguments))


def _too_long(call: ToolCall) -> str:
    size, most = len(call.raw_arguments), _LONGEST_ARGUMENTS
    return f"{call.name} was not run: its arguments have {size:,} characters, {most:,} is the most. Send less at once."


def _unknown_tool(services: CallServices, name: str) -> str:
    from bradawl.shaping.tool_names import unknown_tool  # rarely needed

    known = tuple(name for name, tool in services.tools.items() if getattr(tool, "is_listed", True))
    return unknown_tool(name, known, was_removed=name in services.conversation.state.removed_tools)


async def foreseen_failure(services: CallServices, prepared: Prepared, grant: Grant) -> Refused | None:
    """The result of a call that fails whatever the user answers; None for any other, and where that can't be told."""
    from bradawl.shaping.foreseen_failures import check as check_can_run  # many runs ask nothing

    def may_read(path: str) -> bool:
        request = Request("read_file", "", Effects(reads=(path,)), ("Read",), "exact")
        return isinstance(decide_by_both_names(services.policy(), request), Allow)

    context = context_of(services, prepared.call, prepared.place, grant)
    context = msgspec.structs.replace(context, files=JudgedFiles(context.files, prepared.effects))
    try:
        await check_can_run(prepared.tool, prepared.params, context, prepared.effects.writes, may_read, services.files)
    except ToolError as error:
        return Refused(prepared.call, str(error))
    except Exception as error:
        return Refused(prepared.call, tool_failed(prepared.tool, error))
    return None
