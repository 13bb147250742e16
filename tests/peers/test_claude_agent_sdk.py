"""The Claude Agent SDK runs bradawl in place of Claude Code: it reads the stream and drives the control channel."""

import asyncio
import json
import logging
import os
import sys
from contextlib import aclosing
from pathlib import Path

import jsonschema_rs
import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultError,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TaskNotificationMessage,
    TaskStartedMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    query,
)
from claude_agent_sdk.types import HookMatcher, PermissionUpdate

from bradawl.testing.server import serve_in_thread

CLI = Path(sys.executable).with_name("bradawl")
SCHEMA = jsonschema_rs.validator_for(
    json.loads((Path(__file__).parents[2] / "docs" / "stream-json.schema.json").read_text())
)
TOUCH = {"tool_calls": [{"id": "c1", "name": "bash", "arguments": {"command": "touch made"}}]}
DONE = {"text": "Done."}


@pytest.fixture
def options(tmp_path):
    """Options of a run on a scripted server, in a project of its own."""
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    environ = {"HOME": str(home), "BRADAWL_MODEL": "openai/gpt", "OPENAI_API_KEY": "sk-none", "BRADAWL_SANDBOX": "off"}

    def options(server, **more):
        env = {**environ, "BRADAWL_BASE_URL": server.base_url}
        return ClaudeAgentOptions(cli_path=CLI, cwd=project, env=env, **more)

    options.project = project
    return options


@pytest.fixture
def printed(monkeypatch):
    """Every line that the SDK read from bradawl, checked against the schema at the end of the test."""
    from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

    lines = []
    read = SubprocessCLITransport.read_messages

    async def reading(self):
        async with aclosing(read(self)) as messages:
            async for message in messages:
                lines.append(message)
                yield message

    monkeypatch.setattr(SubprocessCLITransport, "read_messages", reading)
    yield lines
    assert lines[-1]["type"] in ("result", "control_response")  # the latter where no prompt was sent
    for line in lines:
        SCHEMA.validate(line)


async def answers(prompt, options):
    return [message async for message in query(prompt=prompt, options=options)]


def of_kind(messages, kind):
    return [message for message in messages if isinstance(message, kind)]


async def test_query_gets_replies_calls_results_and_the_end(options, printed, caplog):
    caplog.set_level(logging.WARNING, logger="claude_agent_sdk")
    (options.project / "a.txt").write_text("hello\n")
    read = {"name": "read_file", "arguments": {"file_path": "a.txt"}, "id": "c1"}
    with serve_in_thread([{"text": "I read.", "thinking": "hm", "tool_calls": [read]}, DONE]) as server:
        messages = await answers("read a.txt", options(server))
    init = of_kind(messages, SystemMessage)[0]
    assert (init.subtype, init.data["model"], init.data["cwd"]) == ("init", "openai/gpt", str(options.project))
    first, last = of_kind(messages, AssistantMessage)
    assert first.content[:2] == [ThinkingBlock("hm", ""), TextBlock("I read.")]
    assert first.content[2] == ToolUseBlock("c1", "read_file", {"file_path": "a.txt"})
    (user,) = of_kind(messages, UserMessage)
    (block,) = user.content
    assert isinstance(block, ToolResultBlock) and block.tool_use_id == "c1" and "hello" in block.content
    assert last.content == [TextBlock("Done.")]
    result = messages[-1]
    assert isinstance(result, ResultMessage)
    assert (result.subtype, result.is_error, result.result, result.num_turns) == ("success", False, "Done.", 2)
    assert result.session_id == first.session_id == init.data["session_id"]
    assert result.terminal_reason == "completed" and result.stop_reason == "end_turn"
    assert caplog.records == []  # such as one about a version that is too old


async def test_partial_messages_are_events_of_the_messages_api(options, printed):
    with serve_in_thread([{"text": "One two three."}]) as server:
        messages = await answers("x", options(server, include_partial_messages=True))
    events = [message.event for message in of_kind(messages, StreamEvent)]
    assert [event["type"] for event in events if event["type"] != "content_block_delta"] == [
        "message_start",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    deltas = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(deltas) == "One two three."


async def test_a_failed_run_raises_what_the_result_says(options, printed):
    failed = {"faults": {"status": 400}}
    with serve_in_thread([failed]) as server, pytest.raises(ResultError) as caught:
        await answers("x", options(server))
    assert caught.value.exit_code == 1
    assert printed[-1]["exit_code"] == 1 and printed[-1]["api_error_status"] == 400


async def test_an_error_before_the_session_is_told_too(options, printed):
    with serve_in_thread([]) as server, pytest.raises(ResultError, match="There is no session 01NOSUCHSESSION"):
        await answers("x", options(server, resume="01NOSUCHSESSION"))


async def test_allow_and_deny_are_asked_for_and_obeyed(options, printed):
    asked = []

    async def decide(name, arguments, context):
        asked.append((name, arguments, context.tool_use_id, context.decision_reason))
        if arguments["command"] == "touch made":
            return PermissionResultAllow()
        return PermissionResultDeny(message="not this one")

    other = {"tool_calls": [{"id": "c2", "name": "bash", "arguments": {"command": "touch other"}}]}
    with serve_in_thread([TOUCH, other, {"text": "Done.", "expect": "not this one"}]) as server:
        messages = await answers(prompts("go"), options(server, can_use_tool=decide))
        assert server.failures == []
    assert [each[:3] for each in asked] == [
        ("bash", {"command": "touch made"}, "c1"),
        ("bash", {"command": "touch other"}, "c2"),
    ]
    assert all(each[3] for each in asked)
    assert sorted(each.name for each in options.project.iterdir()) == ["made"]
    result = messages[-1]
    assert (result.is_error, result.result) == (False, "Done.")
    assert [each["tool_use_id"] for each in result.permission_denials] == ["c2"]


async def prompts(*texts):
    for text in texts:
        yield {"type": "user", "message": {"role": "user", "content": text}, "uuid": f"uuid-{text}"}


async def test_several_prompts_with_questions_are_turns_of_one_session(options, printed):
    """The SDK closes stdin when the session is idle, not after the first result: `session_state_changed` says so."""

    async def allow(name, arguments, context):
        return PermissionResultAllow()

    again = {"tool_calls": [{"id": "c2", "name": "bash", "arguments": {"command": "touch again"}}]}
    with serve_in_thread([TOUCH, DONE, again, {"text": "Again."}]) as server:
        messages = await answers(prompts("one", "two"), options(server, can_use_tool=allow))
    results = of_kind(messages, ResultMessage)
    assert [result.result for result in results] == ["Done.", "Again."]
    assert [result.user_message_uuid for result in results] == ["uuid-one", "uuid-two"]
    assert len({result.session_id for result in results}) == 1
    assert sorted(each.name for each in options.project.iterdir()) == ["again", "made"]


async def test_changed_arguments_are_refused_and_the_model_is_told(options, printed):
    async def change(name, arguments, context):
        return PermissionResultAllow(updated_input={"command": "touch instead"})

    with serve_in_thread([TOUCH, {"text": "Done.", "expect": "changed the arguments"}]) as server:
        await answers(prompts("go"), options(server, can_use_tool=change))
        assert server.failures == []
    assert list(options.project.iterdir()) == []


async def test_a_mode_that_comes_with_a_permission_is_set(options, printed):
    asked = []

    async def allow(name, arguments, context):
        asked.append(name)
        update = PermissionUpdate(type="setMode", mode="acceptEdits")
        return PermissionResultAllow(updated_permissions=[update])

    def write(number):
        arguments = {"file_path": f"{number}.txt", "content": "x"}
        return {"tool_calls": [{"id": f"w{number}", "name": "write_file", "arguments": arguments}]}

    with serve_in_thread([write(1), write(2), DONE]) as server:
        await answers(prompts("go"), options(server, can_use_tool=allow))
    assert asked == ["write_file"]
    assert sorted(each.name for each in options.project.iterdir()) == ["1.txt", "2.txt"]


async def test_hooks_and_mcp_servers_of_the_program_are_refused(options, printed):
    async def guard(data, tool_use_id, context):
        return {}

    hooks = {"PreToolUse": [HookMatcher(hooks=[guard])]}
    with serve_in_thread([]) as server, pytest.raises(Exception, match="a hook that guards calls would never run"):
        await answers("x", options(server, hooks=hooks))


async def test_the_client_has_a_conversation(options, printed):
    with serve_in_thread([{"text": "One."}, {"text": "Two.", "expect": "second"}]) as server:
        async with ClaudeSDKClient(options(server)) as client:
            assert "compact" in {each["name"] for each in (await client.get_server_info())["commands"]}
            await client.query("first")
            one = [message async for message in client.receive_response()]
            await client.set_permission_mode("plan")
            await client.query("second")
            two = [message async for message in client.receive_response()]
            assert server.failures == []
    assert (one[-1].result, two[-1].result) == ("One.", "Two.")
    assert one[-1].session_id == two[-1].session_id
    modes = [
        message.data["permissionMode"] for message in of_kind([*one, *two], SystemMessage) if "tools" in message.data
    ]
    assert modes == ["default", "plan"]


async def test_bypass_is_refused_in_a_run_that_began_without_it(options, printed):
    with serve_in_thread([]) as server:
        async with ClaudeSDKClient(options(server)) as client:
            with pytest.raises(Exception, match="only be switched off at the start"):
                await client.set_permission_mode("bypassPermissions")
            with pytest.raises(Exception, match="names no model"):
                await client.set_model("openai/")
            await client.set_model("gpt")


async def test_an_interrupt_ends_the_turn_and_the_next_one_runs(options, printed):
    os.mkfifo(options.project / "started")
    wait = {"tool_calls": [{"id": "c1", "name": "bash", "arguments": {"command": "echo > started; sleep 300"}}]}
    with serve_in_thread([wait, {"text": "Here."}]) as server:
        settings = options(server, permission_mode="bypassPermissions")
        async with ClaudeSDKClient(settings) as client:
            await client.query("go")
            await asyncio.to_thread((options.project / "started").read_text)
            await client.interrupt()
            ended = [message async for message in client.receive_response()]
            assert (ended[-1].is_error, ended[-1].terminal_reason) == (True, "aborted_streaming")
            await client.query("still there?")
            after = [message async for message in client.receive_response()]
            assert (after[-1].is_error, after[-1].result) == (False, "Here.")


async def test_an_interrupt_takes_an_open_question_back(options, printed):
    asked, cancelled = asyncio.Event(), asyncio.Event()

    async def never(name, arguments, context):
        asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with serve_in_thread([TOUCH]) as server:
        async with ClaudeSDKClient(options(server, can_use_tool=never)) as client:
            await client.query("go")
            await asyncio.wait_for(asked.wait(), 60)
            await client.interrupt()
            ended = [message async for message in client.receive_response()]
            await asyncio.wait_for(cancelled.wait(), 60)
    assert ended[-1].terminal_reason == "aborted_streaming"
    assert any(line["type"] == "control_cancel_request" for line in printed)
    assert list(options.project.iterdir()) == []


async def test_a_prompt_that_a_program_composed_is_no_command(options, printed):
    with serve_in_thread([{"text": "Read.", "expect": "/help"}]) as server:
        messages = await answers("/help", options(server, verbatim_prompts=True))
        assert server.failures == []
        command = await answers("/help", options(server))
    assert messages[-1].result == "Read."
    assert "/compact" in command[-1].result and command[-1].num_turns == 0


async def test_sub_agents_are_tasks_and_name_the_call_that_started_them(options, printed):
    spawn = {"tool_calls": [{"id": "c1", "name": "agent", "arguments": {"prompt": "look", "kind": "explore"}}]}
    with serve_in_thread([spawn, {"text": "Found."}, DONE]) as server:
        messages = await answers("x", options(server, tools=["Task", "Read"]))
    assert [message.parent_tool_use_id for message in of_kind(messages, AssistantMessage)] == [None, "c1", None]
    (started,), (ended,) = of_kind(messages, TaskStartedMessage), of_kind(messages, TaskNotificationMessage)
    assert (started.tool_use_id, started.task_type) == ("c1", "local_agent")
    assert (ended.task_id, ended.status, ended.usage["tool_uses"]) == (started.task_id, "completed", 0)


async def test_the_options_of_the_sdk_are_understood(options, printed):
    told = []
    more = {
        "system_prompt": {"type": "preset", "preset": "claude_code", "append": "Be brief."},
        "allowed_tools": ["Read", "Bash(ls:*)"],
        "disallowed_tools": ["WebFetch"],
        "max_turns": 3,
        "permission_mode": "acceptEdits",
        "setting_sources": ["user", "project"],
        "add_dirs": [options.project],
        "session_id": "0b0e7b0a-3f6c-4c57-9d2f-0123456789ab",
        "output_format": {"type": "json_schema", "schema": {"type": "object", "required": ["a"]}},
        "extra_args": {"replay-user-messages": None},
        "mcp_servers": {"x": {"command": "true"}},
        "stderr": told.append,
    }
    with serve_in_thread([{"text": '{"a": 1}'}]) as server:
        messages = await answers("x", options(server, **more))
    result = messages[-1]
    assert (result.is_error, result.structured_output) == (False, {"a": 1})
    assert result.session_id == "0b0e7b0a-3f6c-4c57-9d2f-0123456789ab"
    assert [message.content for message in of_kind(messages, UserMessage)] == ["x"]
    assert "note: --mcp-config: MCP servers are not used" in told
    with serve_in_thread([{"text": "On.", "expect": "go on"}]) as server:
        on = await answers("go on", options(server, resume=result.session_id, fork_session=True))
        said = [each["content"] for each in server.requests[0]["messages"] if each["role"] == "user"]
        assert said[0].startswith("x")
    assert on[-1].result == "On." and on[-1].session_id != result.session_id


async def test_rules_of_given_settings_hold_and_unknown_settings_end_the_run(options, printed):
    with serve_in_thread([TOUCH, DONE]) as server:
        settings = json.dumps({"permissions": {"deny": ["Bash"]}})
        more = {"settings": settings, "permission_mode": "bypassPermissions"}
        messages = await answers("x", options(server, **more))
    assert messages[-1].result == "Done." and not (options.project / "made").exists()
    with serve_in_thread([]) as server:
        settings = json.dumps({"hooks": {"PreToolUse": []}})
        with pytest.raises(ResultError, match="hooks is no setting"):
            await answers("x", options(server, settings=settings))
