"""What a run without a user prints about refused calls: on stderr, in the JSON, and with its exit code."""

import json
from typing import Any

from headless_runs import run_without_user
from scripted_agent import build, call, results
from test_connections import AUTO, CommandTool, run_of

from bradawl.agent.configuration import Limits
from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.core.permissions import Policy

EDITING = Policy("accept-edits", roots=("/project",))
REFUSED, EDIT = call("run the tests", unknown=True), call("edit", writes=["/project/a"])
ADVICE = "No user is present to be asked; to allow such calls rerun with"


async def run(*calls: Any, as_json: bool = False, **changes: Any) -> tuple[int, str, str]:
    script = [{"tool_calls": [each]} for each in calls] + [{"text": "The end."}]
    given = {"approver": DenyAllApprover("/home/u"), "policy": lambda: EDITING, **changes}
    agent, *_ = build(script, **given)
    return await run_without_user(agent, as_json=as_json)


async def test_a_completed_run_says_what_was_refused_and_ends_with_0() -> None:
    code, out, err = await run(REFUSED, EDIT)
    assert (code, out) == (0, "The end.\n")
    assert f"bradawl: done without 1 refused call: probe(run the tests). {ADVICE}" in err


async def test_a_run_that_stopped_at_a_refusal_says_so_and_ends_with_5() -> None:
    code, out, err = await run(EDIT, REFUSED)
    assert (code, out) == (5, "The end.\n")
    assert f"bradawl: the model stopped at 1 refused call: probe(run the tests). {ADVICE}" in err


async def test_a_run_that_ended_otherwise_names_what_was_refused_after_how_it_ended() -> None:
    code, _, err = await run(REFUSED, EDIT, limits=Limits(max_steps=1))
    lines = [line for line in err.splitlines() if line.startswith("bradawl: ")]
    assert code == 4 and "The limit of steps is reached" in lines[0]
    assert lines[1].startswith(f"bradawl: 1 refused call: probe(run the tests). {ADVICE}")


async def test_a_refusal_of_the_provider_is_not_taken_for_the_models_end_at_a_refused_call() -> None:
    script = [{"tool_calls": [REFUSED]}, {"text": "I can't.", "stop": "content_filter"}]
    for as_json in (False, True):
        agent, *_ = build(script, approver=DenyAllApprover("/home/u"), policy=lambda: EDITING)
        code, out, err = await run_without_user(agent, as_json=as_json)
        (line,) = (line for line in err.splitlines() if line.startswith("bradawl: "))
        assert code == 5 and "stopped at" not in line
        assert line.startswith(
            "bradawl: The model's provider refused to go on. 1 refused call: probe(run the tests). No"
        )
    assert json.loads(out)["errors"] == [line.removeprefix("bradawl: ")]


async def test_of_many_refused_calls_three_are_shown() -> None:
    _, _, err = await run(*(call(f"c{number}", unknown=True) for number in range(5)), EDIT)
    assert "5 refused calls: probe(c0), probe(c1), probe(c2) and 2 more. " in err


async def test_the_text_of_a_call_is_cleaned_and_cut() -> None:
    _, _, err = await run(call("\x1b[2J\n" + "x" * 500, unknown=True), EDIT)
    (line,) = (line for line in err.splitlines() if "done without" in line)
    assert "\x1b" not in line and "xxx...). No user" in line and len(line) < 500


async def test_refused_hosts_are_named_with_their_command() -> None:
    script = [run_of("a.example", "b.example:81"), {"text": "ok"}]
    agent, *_ = build(script, tools=(CommandTool(),), policy=lambda: AUTO, approver=DenyAllApprover())
    code, _, err = await run_without_user(agent)
    assert code == 0
    assert "done without refused connections: bash() to a.example, b.example:81. No user" in err
    assert "rerun with --network a.example --network b.example:81" in err


async def test_of_many_refused_hosts_three_are_shown() -> None:
    script = [run_of("a.example", "b.example", "c.example", "d.example", "e.example"), {"text": "ok"}]
    agent, *_ = build(script, tools=(CommandTool(),), policy=lambda: AUTO, approver=DenyAllApprover())
    _, _, err = await run_without_user(agent)
    assert "refused connections: bash() to a.example, b.example, c.example and 2 more. No user" in err


async def test_the_json_agrees_with_the_exit_code_and_says_why_each_call_was_refused() -> None:
    for calls, code, is_error, reason in (([REFUSED, EDIT], 0, False, "completed"), ([REFUSED], 5, True, "refused")):
        found, out, err = await run(*calls, as_json=True)
        result = json.loads(out)
        assert (found, result["exit_code"], result["is_error"], result["reason"]) == (code, code, is_error, reason)
        assert result["subtype"] == ("error_during_execution" if is_error else "success")
        arguments = {"name": "run the tests", "unknown": True}
        known = {"tool_name": "probe", "tool_use_id": "id_run the tests", "tool_input": arguments}
        assert result["permission_denials"] == [known]
        assert result["denials"] == [{**known, "reason": "what it would change can't be told"}]
        assert bool(result["errors"]) == is_error and ADVICE in err


async def test_without_refused_calls_both_lists_are_empty() -> None:
    _, out, err = await run(EDIT, as_json=True)
    result = json.loads(out)
    assert result["denials"] == result["permission_denials"] == [] and "refused" not in err


async def test_an_id_used_again_does_not_mix_up_hosts_and_reasons() -> None:
    one, other = run_of("a.example", name="c"), run_of("b.example", name="c")
    agent, *_ = build(
        [one, other, {"text": "ok"}], tools=(CommandTool(),), policy=lambda: AUTO, approver=DenyAllApprover()
    )
    _, out, _ = await run_without_user(agent, as_json=True)
    assert [each["hosts"] for each in json.loads(out)["denials"]] == [["a.example"], ["b.example"]]


async def test_only_the_first_refusal_of_a_reply_says_how_to_go_on() -> None:
    script = [{"tool_calls": [REFUSED, call("another", unknown=True)]}, {"tool_calls": [REFUSED]}, {"text": "The end."}]
    agent, model, _ = build(script, approver=DenyAllApprover("/home/u"), policy=lambda: EDITING)
    await run_without_user(agent)
    needed = "it needs permission (what it would change can't be told)"
    refused = f"probe was not run: {needed}, and no user is present to give it."
    go_on = " Do what you can without, and say what is left undone."
    assert results(model.requests[-1]) == [f"{refused}{go_on}", refused, f"{refused}{go_on}"]
