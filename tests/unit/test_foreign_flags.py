"""Flags of Claude Code: taken, warned about or refused, none ignored in silence; and values under other names."""

import pytest
from stream_runs import BOTH

from bradawl.app.cli import UsageError, parse
from bradawl.app.foreign_flags import FLAGS
from bradawl.app.settings.load import load_settings
from bradawl.core.errors import SettingsError

SILENT = ["--verbose", "--debug-to-stderr", "--include-hook-events", "--strict-mcp-config"]


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.names[0])
def test_a_flag_is_silent_a_warning_or_a_refusal(flag):
    argv = ["-p", "x", flag.names[0], *(["some,value"] if flag.takes_value else [])]
    assert (flag.names[0] in SILENT) == (not flag.warning and not flag.refusal)
    if flag.refusal:
        with pytest.raises(UsageError, match=f"{flag.names[0]} is not possible: "):
            parse(argv)
        return
    warnings = parse(argv)["flag_warnings"]
    assert [warning.partition(":")[0] for warning in warnings] == ([flag.names[0]] if flag.warning else [])


@pytest.mark.parametrize(
    "argv",
    [
        ("--setting-sources=user,project",),
        ("--setting-sources", "local, project, user"),
        ("--mcp-config", '{"mcpServers": {}}'),
        ("--settings", "{}"),
        ("--agents", "{}"),
        ("--thinking", "adaptive"),
    ],
)
def test_a_value_that_asks_for_what_is_done_anyway_is_taken(argv):
    assert parse(["-p", "x", *argv])["flag_warnings"] == []


@pytest.mark.parametrize("argv", [("--setting-sources=",), ("--setting-sources", "project")])
def test_settings_that_are_read_although_they_were_left_out_are_a_warning(argv):
    assert "the settings of the user" in parse(["-p", "x", *argv])["flag_warnings"][0]


def test_a_flag_that_is_given_twice_counts_as_a_whole():
    (warning,) = parse(["-p", "x", "--mcp-config", "{}", "--mcp-config", "servers.json"])["flag_warnings"]
    assert "MCP servers are not used" in warning


def test_warnings_are_printed(world):
    assert world.run("-p", "x", "--mcp-config", "servers.json", "--verbose") == 0
    assert "note: --mcp-config: MCP servers are not used\n" in world.err


@pytest.mark.parametrize(
    ("given", "meant"),
    [("Bash,Read", "bash,read_file"), (" Edit , grep ", "edit_file,grep"), ("", "none"), ("default", "default")],
)
def test_tools_have_their_names_here(given, meant):
    assert parse(["-p", "x", "--tools", given])["tools"] == meant


def test_an_empty_system_prompt_is_none_only_where_a_sdk_passes_it():
    assert parse([*BOTH, "--system-prompt", ""])["system_prompt"] is None
    assert parse(["-p", "x", "--system-prompt", ""])["system_prompt"] == ""


def test_the_mode_that_refuses_questions_asks_nobody():
    options = parse([*BOTH, "--permission-mode", "dontAsk", "--permission-prompt-tool", "stdio"])
    assert (options["permission_mode"], options["permission_prompt_tool"]) == ("default", None)


def test_messages_on_stdin_need_no_p():
    assert parse(list(BOTH))["headless"] is True


@pytest.mark.parametrize(
    "argv",
    [
        ("-o", "x"),
        ("--include-partial-messages",),
        ("--permission-prompt-tool", "stdio"),
        ("--fork-session",),
        ("-p", "x", "--fork-session"),
        ("-p", "x", "-c", "--session-id", "0b0e7b0a-3f6c-4c57-9d2f-0123456789ab"),
    ],
)
def test_flags_without_a_meaning_are_wrong_usage(argv):
    with pytest.raises(UsageError):
        parse(list(argv))


@pytest.mark.parametrize("value", ["x", "-1", "1e3", "nan", "inf", "", "1,5"])
def test_a_budget_is_a_plain_number(value, tmp_path):
    environ = {"HOME": str(tmp_path), "BRADAWL_MODEL": "groq/x", "GROQ_API_KEY": "k"}
    with pytest.raises(SettingsError, match="--max-budget-usd must be a number"):
        load_settings({"max_budget_usd": value, "headless": True}, environ, str(tmp_path))
    settings = load_settings({"max_budget_usd": "1.5", "headless": True}, environ, str(tmp_path))
    assert settings.values["max_budget_usd"] == 1.5


def test_a_schema_can_be_given_itself(tmp_path):
    environ = {"HOME": str(tmp_path), "BRADAWL_MODEL": "groq/x", "GROQ_API_KEY": "k"}
    given = {"headless": True, "json_schema": ' {"type": "object"}'}
    assert load_settings(given, environ, str(tmp_path)).answer_schema == ' {"type": "object"}'
    with pytest.raises(SettingsError, match="is not a JSON Schema"):
        load_settings({**given, "json_schema": '{"type": '}, environ, str(tmp_path))
