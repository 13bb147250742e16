"""`--output-format stream-json`: the lines of a run, turns from stdin, and the agreement of last line and exit code."""

import base64
import io
import json

import msgspec
import pytest
from stream_runs import BOTH, STREAM, agrees, control, kinds, lines_of, run_stream, user

from bradawl.core.errors import SessionBusy
from bradawl.core.usage import Price
from bradawl.testing.fakes import FakeTool
from bradawl.testing.scripted import ScriptedModel

CALL = {"text": "I look.", "tool_calls": [{"id": "c1", "name": "look", "arguments": {"key": "a"}}]}


def test_the_lines_of_a_run_are_init_replies_results_and_the_end(world):
    world.script = [CALL, {"text": "Done."}]
    code = world.run("-p", "x", *STREAM)
    lines = lines_of(world.out)
    assert code == 0 and agrees(lines[-1], code)
    assert [kind for kind in kinds(lines) if kind != "system/notice"] == [
        "system/init",
        "assistant",
        "user",
        "assistant",
        "result",
    ]
    init, (first, result_of_call, _) = lines[0], [line for line in lines if line["type"] in ("assistant", "user")]
    assert init["tools"] == ["look"] and init["permissionMode"] == "default"
    assert [block["type"] for block in first["message"]["content"]] == ["text", "tool_use"]
    assert first["message"]["content"][1]["input"] == {"key": "a"}
    assert result_of_call["message"]["content"][0]["tool_use_id"] == "c1"
    assert {line["session_id"] for line in lines} == {init["session_id"]}
    assert len({line["uuid"] for line in lines}) == len(lines)


def test_a_result_follows_the_reply_with_its_call_although_the_call_ended_before_it(world):
    """Calls run while the model still talks."""
    early = FakeTool("look")
    world.script = [{**CALL, "text": "I look. " * 200}, {"text": "Done."}]
    world.run("-p", "x", *STREAM, build=lambda *given: msgspec.structs.replace(world.build(*given), tools=(early,)))
    found = kinds(lines_of(world.out))
    assert found.index("assistant") < found.index("user")


def events_of(lines):
    return [line["event"] for line in lines if line["type"] == "stream_event"]


def test_partial_messages_are_blocks_that_begin_grow_and_end_in_order(world):
    world.script = [{"thinking": "hm", **CALL}, {"text": "Done."}]
    world.run("-p", "x", *STREAM, "--include-partial-messages")
    lines = lines_of(world.out)
    events = events_of(lines)
    ends = [number for number, event in enumerate(events) if event["type"] == "message_stop"]
    first = events[: ends[0] + 1]
    begun = [event["content_block"]["type"] for event in first if event["type"] == "content_block_start"]
    assert begun == ["thinking", "text", "tool_use"]
    assert [event["index"] for event in first if event["type"] == "content_block_start"] == [0, 1, 2]
    assert [event["index"] for event in first if event["type"] == "content_block_stop"] == [0, 1, 2]
    deltas = [event["delta"] for event in first if event["type"] == "content_block_delta"]
    assert "".join(delta.get("text", "") for delta in deltas) == "I look."
    assert json.loads("".join(delta.get("partial_json", "") for delta in deltas)) == {"key": "a"}
    assert first[-2]["delta"]["stop_reason"] == "tool_use"
    (whole, *_) = [line for line in lines if line["type"] == "assistant"]
    assert first[0]["message"]["id"] == whole["message"]["id"]


def test_without_the_flag_there_are_no_partial_messages(world):
    world.run("-p", "x", *STREAM)
    assert events_of(lines_of(world.out)) == []


# ------------------------------------------------------------------ the last line and the exit code


def failing(status):
    return [{"faults": {"status": status}}] * 20


ENDS = {
    "completed": (("-p", "x"), None, 0),
    "failed": (("-p", "x"), failing(400), 1),
    "retryable": (("-p", "x"), failing(503), 75),
    "wrong flag": (("-p", "x", "--no-such-flag"), None, 2),
    "flag without value": (("-p", "x", "--max-steps"), None, 2),
    "wrong value": (("-p", "x", "--max-steps", "none"), None, 2),
    "empty prompt": (("-p", ""), None, 2),
    "no such session": (("-p", "x", "-r", "01NOSUCHSESSION"), None, 1),
    "nothing to continue": (("-p", "x", "-c"), None, 1),
    "no sandbox": (("-p", "x", "--sandbox", "required"), None, 3),
    "limit": (("-p", "x", "--max-steps", "1"), [CALL, CALL], 4),
    "refused": (("-p", "x"), [{"text": "No.", "stop": "refusal"}], 5),
    "refused call": (("-p", "x"), [{"tool_calls": [{"name": "change", "arguments": {}}]}, {"text": "No."}], 5),
    "unwritable answer": (("-p", "x", "-o", "/nowhere/at/all"), None, 74),
    "slash command": (("-p", "/status"), None, 0),
    "unknown slash command": (("-p", "/nonsense"), None, 2),
    "wrong slash command": (("-p", "/mode nonsense"), None, 2),
    "formats that do not fit": (("--input-format", "stream-json", "--output-format", "json"), None, 2),
}


def with_change(world):
    """Builds an agent with a tool that needs a permission; a required sandbox is not there."""
    from bradawl.app.settings.settings import NoSandbox
    from bradawl.core.effects import Effects

    def build(settings, approver):
        if settings.sandbox == "required":
            raise NoSandbox("There is no sandbox.")
        tools = (FakeTool("look"), FakeTool("change", effects=Effects(writes=("/project/x",))))
        return msgspec.structs.replace(world.build(settings, approver), tools=tools)

    return build


@pytest.mark.parametrize("format_", ["stream-json", "json"])
@pytest.mark.parametrize("end", ENDS)
def test_the_last_line_agrees_with_the_exit_code(world, end, format_):
    argv, script, expected = ENDS[end]
    world.script = script or [{"text": "Done."}]
    more = () if "--output-format" in argv else ("--output-format", format_)
    assert world.run(*more, *argv, build=with_change(world)) == expected, world.err
    last = json.loads(world.out.splitlines()[-1])
    assert agrees(last, expected), last
    assert bool(last["errors"]) == (expected != 0), last
    assert "Traceback" not in world.err


def test_a_busy_session_and_a_defect_agree_too(world):
    def busy(settings, approver):
        raise SessionBusy("Session x is open in another program.")

    def broken(settings, approver):
        raise RuntimeError("a bug")

    for build, expected in ((busy, 75), (broken, 1)):
        world.stdout.truncate(0), world.stdout.seek(0)
        assert world.run("-p", "x", *STREAM, build=build) == expected
        assert agrees(lines_of(world.out)[-1], expected)


# ------------------------------------------------------------------ messages on stdin


def test_several_messages_are_turns_of_one_session_with_a_result_each(world):
    world.script = [{"text": "One."}, {"text": "Two.", "expect": "second"}]
    code, lines = run_stream(world, user("first", uuid="u1"), user("second"))
    results = [line for line in lines if line["type"] == "result"]
    assert code == 0 and [line["result"] for line in results] == ["One.", "Two."]
    assert len({line["session_id"] for line in lines}) == 1
    assert results[0]["user_message_uuids"] == ["u1"] and "user_message_uuid" not in results[1]
    assert [line["num_turns"] for line in results] == [1, 1]
    assert kinds(lines).count("system/init") == 2


def test_the_exit_code_is_that_of_the_last_turn(world):
    world.script = [{"faults": {"status": 400}}, {"text": "Two."}]
    code, lines = run_stream(world, user("first"), user("second"))
    assert code == 0 and [line["exit_code"] for line in lines if line["type"] == "result"] == [1, 0]


def test_blocks_become_a_prompt_with_images_and_one_text(world):
    data = base64.b64encode(b"\x89PNG").decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    world.script = [{"text": "Seen.", "expect": "what\nis this"}]
    blocks = [{"type": "text", "text": "what"}, {"type": "text", "text": "is this"}, image]
    code, lines = run_stream(world, user(blocks), argv=(*BOTH, "--replay-user-messages"))
    assert code == 0
    (replayed,) = [line for line in lines if line.get("isReplay")]
    assert replayed["message"]["content"] == blocks


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (user(""), "it is empty"),
        (user([]), "it is empty"),
        (user(None), "neither a text nor a list of blocks"),
        (user([{"type": "tool_result", "tool_use_id": "x", "content": "y"}]), "'tool_result' is no text"),
        (user(["x"]), "'None' is no text"),
        (user([{"type": "image", "source": {"type": "url", "url": "http://x"}}]), "must be of the type base64"),
        (user([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "?"}}]), "not base64"),
        ({"type": "user"}, 'no "message"'),
        ({"type": "user", "message": {"role": "assistant", "content": "x"}}, "only user is possible"),
    ],
)
def test_a_message_that_cannot_be_used_has_a_result_and_the_next_one_is_run(world, message, said):
    code, lines = run_stream(world, {**message, "uuid": "u1"}, user("x"))
    first, last = (line for line in lines if line["type"] == "result")
    assert (first["exit_code"], first["user_message_uuid"]) == (2, "u1") and said in first["errors"][0]
    assert code == 0 and last["result"] == "Done."


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nonsense", "it is not JSON"),
        ("[1]", "not a JSON object"),
        ('"x"', "not a JSON object"),
        ("{}", 'with a text "type"'),
        ('{"type": 1}', 'with a text "type"'),
        ('{"type": "user", "type": "user"}', "given twice"),
        ('{"type": "user"', "it is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"type": "control_request", "request": {}}', "needs"),
        ('{"type": "control_response", "response": {}}', "needs"),
        ("\x00\x01", "it is not JSON"),
    ],
)
def test_a_line_that_is_no_message_ends_the_input_and_the_result_names_it(world, line, said):
    code, lines = run_stream(world, user("x"), "", line, user("never"))
    first, last = (line for line in lines if line["type"] == "result")
    assert (first["result"], first["exit_code"]) == ("Done.", 0)
    assert code == 2 and "Line 3 of stdin" in last["errors"][0] and said in last["errors"][0]
    assert "never" not in world.out


def test_input_without_a_message_is_wrong_usage_and_with_requests_alone_it_is_not(world):
    code, (result,) = run_stream(world)
    assert code == 2 and "stdin is empty" in result["errors"][0]
    world.stdout.truncate(0), world.stdout.seek(0)
    code, lines = run_stream(world, control("initialize", hooks=None))
    assert code == 0 and kinds(lines) == ["control_response", "result"]


def test_the_last_line_needs_no_newline_and_carriage_returns_are_ignored(world):
    world.script = [{"text": "Done."}] * 2
    assert world.run(*BOTH, stdin=json.dumps(user("a")) + "\r\n" + json.dumps(user("b"))) == 0
    assert [line["result"] for line in lines_of(world.out) if line["type"] == "result"] == ["Done.", "Done."]


def test_half_characters_of_a_message_are_replaced(world):
    world.script = [{"text": "Done.", "expect": "say \ufffd"}]
    code, lines = run_stream(world, '{"type":"user","uuid":"\\ud800","message":{"content":"say \\ud83d"}}')
    assert code == 0 and lines[-1]["user_message_uuid"] == "\ufffd"


def test_a_whole_pair_of_surrogates_is_one_character(world):
    world.script = [{"text": "Done.", "expect": "say \U0001f600"}]
    code, _ = run_stream(world, '{"type":"user","message":{"content":"say \\ud83d\\ude00"}}')
    assert code == 0


def test_objects_of_unknown_types_are_ignored_with_a_warning(world):
    code, _ = run_stream(world, {"type": "keep_alive"}, user("x"))
    assert code == 0 and "note: a message of the type keep_alive on stdin was ignored" in world.err


def test_a_slash_command_is_run_unless_a_program_composed_the_text(world):
    world.script = [{"text": "Read.", "expect": "/status"}]
    code, lines = run_stream(world, user("/status"), user("/status", client_composed=True))
    command, turn = (line for line in lines if line["type"] == "result")
    assert code == 0 and "session" in command["result"] and turn["result"] == "Read."


# ------------------------------------------------------------------ requests


def responses(lines):
    return [line["response"] for line in lines if line["type"] == "control_response"]


def test_every_request_is_answered_in_order(world):
    asked = [
        control("initialize", "1", hooks={}),
        control("nonsense", "2"),
        control("set_permission_mode", "3", mode="acceptEdits"),
        control("set_permission_mode", "4", mode="bypassPermissions"),
        control("set_permission_mode", "5", mode=3),
        control("set_model", "6", model=None),
        control("set_model", "7", model="nowhere/another"),
        control("mcp_status", "8"),
        control("interrupt", "9"),
    ]
    _, lines = run_stream(world, *asked)
    found = responses(lines)
    assert [each["request_id"] for each in found] == [str(number) for number in range(1, 10)]
    assert [each["subtype"] for each in found] == [
        *("success", "error", "success", "error", "error"),
        *("success", "error", "success", "success"),
    ]
    assert "nonsense" in found[1]["error"] and "set_permission_mode" in found[1]["error"]
    assert all(request["request"]["subtype"] not in found[0].get("error", "") for request in asked)


@pytest.mark.parametrize("field", ["hooks", "sdkMcpServers", "systemPrompt", "appendSystemPrompt", "jsonSchema"])
def test_what_initialize_asks_for_in_vain_is_an_error(world, field):
    _, lines = run_stream(world, control("initialize", **{field: {"x": 1}}))
    (answer,) = responses(lines)
    assert answer["subtype"] == "error" and "can't" in answer["error"]


def test_what_only_has_no_effect_is_a_warning(world):
    _, lines = run_stream(world, control("initialize", agents={"x": {}}, forwardSubagentText=True))
    assert responses(lines)[0]["subtype"] == "success"
    assert "note: initialize: agents has no effect in bradawl" in world.err
    assert "forwardSubagentText" not in world.err


def test_a_mode_holds_for_the_next_turn_and_its_init_says_so(world):
    code, lines = run_stream(world, control("set_permission_mode", mode="plan"), user("x"))
    assert code == 0 and [line["permissionMode"] for line in lines if line.get("subtype") == "init"] == ["plan"]


@pytest.mark.parametrize(("name", "last"), [(None, "none"), ("default", "none"), ("scripted/two.json", "two")])
def test_set_model_holds_from_the_next_message_on_and_its_init_says_so(world, tmp_path, monkeypatch, name, last):
    monkeypatch.chdir(tmp_path)
    world.script = [{"text": "Of the settings."}] * 2
    for script in ("one", "two"):
        (tmp_path / f"{script}.json").write_text(json.dumps([{"text": f"Of {script}."}] * 2))
    code, lines = run_stream(
        world,
        *(control("set_model", "1", model="scripted/one.json"), user("a")),
        *(control("set_model", "2", model=name), control("set_model", "3", model=7), user("b")),
    )
    assert [each["subtype"] for each in responses(lines)] == ["success", "success", "error"]
    inits = [line["model"] for line in lines if line.get("subtype") == "init"]
    assert code == 0 and inits[-1] == f"scripted/{tmp_path}/{last}.json"
    results = [line["result"] for line in lines if line["type"] == "result"]
    assert results[-1] == ("Of two." if last == "two" else "Of the settings.")


def test_a_model_that_can_not_be_used_is_an_error_and_the_one_before_answers(world):
    world.script = [{"text": "Done."}]
    code, lines = run_stream(world, control("set_model", model="openai/gpt-5.5"), user("x"))
    (answer,) = responses(lines)
    assert "No key for openai" in answer["error"] and code == 0 and lines[-1]["result"] == "Done."


def test_an_interrupt_before_the_turn_begins_ends_that_turn_and_no_other(world):
    world.script = [{"text": "One."}, {"text": "Two."}]
    code, lines = run_stream(world, user("first"), control("interrupt"), user("second"))
    first, second = (line for line in lines if line["type"] == "result")
    assert (first["reason"], first["terminal_reason"]) == ("cancelled", "aborted_streaming")
    assert code == 0 and second["is_error"] is False


def test_a_question_after_the_end_of_the_input_is_refused_as_without_a_user(world):
    world.script = [{"tool_calls": [{"id": "c1", "name": "change", "arguments": {}}]}, {"text": "No."}]
    code, lines = run_stream(
        world, user("x"), argv=(*BOTH, "--permission-prompt-tool", "stdio"), build=with_change(world)
    )
    assert code == 5 and [each["tool_name"] for each in lines[-1]["denials"]] == ["change"]


# ------------------------------------------------------------------ further flags


def test_flags_that_need_others_say_which(world):
    for argv, needed in (
        (("-p", "x", "--include-partial-messages"), "--output-format stream-json"),
        (("-p", "x", *STREAM, "--permission-prompt-tool", "stdio"), "--input-format stream-json"),
        (("-p", "x", *STREAM, "--replay-user-messages"), "--input-format stream-json"),
        (("--input-format", "stream-json"), "--output-format stream-json"),
        (("-p", "prompt", *BOTH), "the prompts come from stdin"),
    ):
        assert world.run(*argv) == 2 and needed in world.err.splitlines()[-1], argv


def test_a_budget_ends_the_run_before_the_request_after_it(world):
    price = Price(input=1_000_000.0, output=1_000_000.0, cache_read=0.0, cache_write=0.0)  # a dollar for each token

    def build(settings, approver):
        from bradawl.app.budget import Budget, BudgetLimit

        budget = Budget(settings.values["max_budget_usd"])
        model = ScriptedModel(json.dumps([CALL, CALL, {"text": "Done."}]).encode(), price=price)
        return msgspec.structs.replace(
            world.build(settings, approver), model=model, middleware=(lambda context: BudgetLimit(context, budget),)
        )

    argv = ("-p", "x", *STREAM, "--max-budget-usd")
    assert world.run(*argv, "0.5", build=build) == 4
    last = lines_of(world.out)[-1]
    assert (last["subtype"], last["reason"], last["num_turns"]) == ("error_max_budget_usd", "budget", 1)
    world.stdout.truncate(0), world.stdout.seek(0)
    assert world.run(*argv, "1000000", build=build) == 0


def test_a_budget_needs_a_price(tmp_path, monkeypatch):
    from bradawl.app.cli import run
    from bradawl.app.console import Console

    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.json").write_text('[{"text": "Done."}]')
    environ = {"HOME": str(tmp_path), "BRADAWL_MODEL": "scripted/script.json", "BRADAWL_SANDBOX": "off"}
    out = io.StringIO()
    argv = ["-p", "x", *STREAM, "--max-budget-usd", "1"]
    assert run(argv, environ, Console(io.StringIO(), out, io.StringIO(), environ)) == 2
    assert "is not known, so --max-budget-usd can't be kept" in lines_of(out.getvalue())[-1]["errors"][0]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ((), "bradawl refuses every command"),
        (("--permission-prompt-tool", "stdio"), "you are asked about every command"),
    ],
)
def test_the_warning_about_a_missing_sandbox_says_who_decides(world, argv, said):
    run_stream(world, user("x"), argv=(*BOTH, *argv))
    assert said in world.err
