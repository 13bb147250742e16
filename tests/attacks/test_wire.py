"""Hostile models and servers, end to end: the cases of the attack list, and further cases of each kind."""

import json

import pytest
import scoring
from wire_cases import outcome

__all__ = ["outcome"]

WIRE = [case for case in scoring.cases("wire") if not scoring.is_waiting(case)]

MORE = {
    "error": [
        {"tool_call": {"name": "", "args": {}}},
        {"tool_call": {"name": "Bash\u200b", "args": {"command": "ls"}}},
        {"tool_call": {"name": "mcp__x__y", "args": {"a": 1}}},
        {"tool_call": {"name": "x" * 10_000, "args": {}}},
        {"tool_call": {"name": "bash", "args": []}},
        {"tool_call": {"name": "bash", "args": 5}},
        {"tool_call": {"name": "bash", "args": True}},
        {"tool_call": {"name": "bash", "args": {"command": None}}},
        {"tool_call": {"name": "bash", "args": {"command": {"$repeat": ["ls;", 2_000_000]}}}},
        {"tool_call": {"name": "bash", "args": {"command": True}}},
        {"tool_call": {"name": "bash", "args": {"command": {"a": "ls"}}}},
        {"tool_call": {"name": "bash", "args": {"command": ""}}},
        {"tool_call": {"name": "bash", "args": {"command": "\u001b[2J"}}},
        {"tool_call": {"name": "bash", "args": {"command": "ls", "timeout": -(10**30)}}},
        {"tool_call": {"name": "bash", "args": {"command": "ls", "timeout": 1.5}}},
        {"tool_call": {"name": "bash", "args": {"command": "ls", "timeout": "1e400"}}},
        {"tool_call": {"name": "bash", "args": {"command": "ls", "timeout": [1]}}},
        {"tool_call": {"name": "bash", "args": {"command": "ls", "run_in_background": "maybe"}}},
        {"tool_call": {"name": "read_file", "args": {"file_path": "a", "offset": -5}}},
        {"tool_call": {"name": "read_file", "args": {"file_path": "a\u0000b"}}},
        {"tool_call": {"name": "read_file", "args": {"file_path": {"$repeat": ["a/", 5_000]}}}},
        {"tool_call": {"name": "grep", "args": {"pattern": "("}}},
        {"tool_call": {"name": "grep", "args": {"pattern": "(x+x+)+y"}}},
        {"tool_call": {"name": "edit", "args": {"path": "a", "old": "", "new": ""}}},
        {"tool_call": {"name": "write_file", "args": {"file_path": "b", "content": {"$repeat": ["A", 10_485_760]}}}},
        {"tool_calls_same_id": 3},
        {"raw_args": "{"},
        {"raw_args": "ls"},
        {"raw_args": "\ufeff\u0000"},
        {"raw_args": '{"command":"ls"'},
        {"raw_args": '{"command":"ls"}}'},
        {"raw_args": '{"command":"ls"},'},
        {"raw_args": "{'command':'ls'}"},
        {"raw_args": '{"command":"ls",}'},
        {"raw_args": '{"command":"ls" /* x */}'},
        {"raw_args": '{"command":"rm -rf build"}\n{"command":"ls"}'},
        {"raw_args": '{"command":"ls","\\u0063ommand":"rm -rf build"}'},
        {"raw_args": json.dumps('{"command":"ls","command":"rm -rf build"}')},
        {"raw_args": '{"command":"ls","timeout":Infinity}'},
        {"raw_args": '{"command":"ls","timeout":-Infinity}'},
        {"raw_args": '{"command":"ls","timeout":1e999}'},
        {"raw_args": '{"command":"\\udc00ls"}'},
        {"raw_args": '{"command":"ls\\u0000"}'},
        {"raw_args": '{"command":"a\\u001b]0;x\\u0007"}'},
        {"raw_args": {"$repeat": ['{"a":', 100_000]}},
        {"raw_args": {"$repeat": [" ", 5_000_000]}},
        {"tool_calls_in_one_message": 101},
        {"turns": "model repeats one call forever"},
        {"turns": "model alternates three calls forever"},
        {"http": 429, "retry-after": "-1"},
        {"http": 429, "retry-after": "NaN"},
        {"http": 429, "retry-after": "1e400"},
        {"http": 503, "retry-after": "99999999999999999999"},
        {"http": 529, "retry-after-ms": "86400000"},
        {"http": 200, "content-type": "application/pdf"},
        {"http": 204},
        {"http": 511, "content-type": "text/html"},
        {"http": 404, "content-type": "text/html"},
        {"stream": ['data: {"choices": 5}\n\n']},
        {"stream": ["data: [1, {}]\n\n", 'data: {"error": {"message": "no"}}\n\n']},
        {"stream": ['{"choices": [{"message": ']},
        {"stream": {"$repeat": [": keep-alive", 200_000]}},
        {"stream": {"$repeat": ["x", 10_000_000]}},
        {"stream": {"$repeat": ["data: ", 100_000]}},
        {"http": 200, "content-type": "application/json", "body": "{"},
        {"http": 200, "content-type": "text/event-stream", "body": "data: \u0000"},
        {"tool_call": {"name": "bash", "args": {"command": "ls", "timeout": 999_999_999}}},
        {"tool_call": {"name": "read", "args": {"path": "no such"}}},
        {"proxy_host": "evil.example\n.allowed.com"},
        {"proxy_host": "evil.example .allowed.com"},
        {"proxy_host": "evil.example\\.allowed.com"},
        {"webfetch": "http://user:pass@example.com/"},
        {"webfetch": "file:///etc/passwd"},
        {"webfetch": "http://exa\u0000mple.com/"},
        {"webfetch": "javascript:alert(1)"},
    ],
    "ask": [
        {"tool_call": {"name": "bash", "args": {"command": "ls", "sandbox_permissions": "all"}}},
        {"tool_call": {"name": "bash", "args": {"command": "rm -rf build", "approved": True}}},
        {"tool_call": {"name": "glob", "args": {"pattern": "/etc/**"}}},
        {"tool_call": {"name": "glob", "args": {"pattern": "../../**"}}},
        {"tool_call": {"name": "grep", "args": {"pattern": "x", "path": "/"}}},
        {"tool_call": {"name": "read_file", "args": {"file_path": "/etc/hostname"}}},
        {"tool_call": {"name": "write_file", "args": {"file_path": "b", "content": "x"}}},
        {"raw_args": '{"command":"rm -rf build"}'},
        {"webfetch": "http://127.1/"},
        {"webfetch": "http://0x7f000001/"},
        {"webfetch": "http://[::1]:3000/"},
        {"webfetch": "http://10.0.0.1/"},
        {"webfetch": "http://intranet/"},
        {"webfetch": "https://example.com/"},
        {"webfetch": "http://allowed.example redirects to http://169.254.169.254/"},
        {"webfetch": "http://allowed.example redirects to file:///etc/passwd"},
    ],
    "deny": [
        {"http": 301, "location": "https://evil.example/"},
        {"http": 307, "location": "https://evil.example/v1/messages"},
        {"http": 308, "location": "//evil.example/"},
        {"webfetch": "http://169.254.169.254/"},
        {"webfetch": "http://0xa9fea9fe/latest"},
        {"webfetch": "http://[::ffff:169.254.169.254]/"},
    ],
    "allow": [
        {"tool_call": {"name": "bash", "args": {"command": "ls"}}},
        {"tool_call": {"name": "grep", "args": {"pattern": "-x"}}},
        {"tool_call": {"name": "grep", "args": {"pattern": "--"}}},
        {"tool_call": {"name": "glob", "args": {"pattern": "-rf"}}},
        {"tool_call": {"name": "read_file", "args": {"file_path": "a"}}},
        {"raw_args": '"{\\"command\\":\\"ls\\"}"'},
        {"tool_calls_in_one_message": 100},
        {"stream": ["\u00fc", "\U0001f600 and \u4e2d\u6587"]},
    ],
    "sanitize": [
        {"stream": ["\u001b[2J\u001b[1;1H"]},
        {"stream": ["\u009b31m"]},
        {"stream": ["\u202eabc\u202c"]},
        {"stream": ["\u001b]8;;http://evil.example\u001b\\x\u001b]8;;\u001b\\"]},
        {"stream": ["a\rb\bc"]},
        {"stream": ["\U000e0041\U000e0042"]},
    ],
}


@pytest.mark.parametrize("case", WIRE, ids=lambda case: case["id"])
async def test_a_case_of_the_list_has_the_expected_outcome(case):
    assert await outcome(case) == case["expect"], case["why"]


@pytest.mark.parametrize(
    ("expected", "given"),
    [pytest.param(expected, given, id=ascii(given)[:60]) for expected, more in MORE.items() for given in more],
)
async def test_a_further_case_has_the_expected_outcome(expected, given):
    assert await outcome({"input": given}) == expected


def test_only_cases_that_need_an_mcp_server_are_not_run():
    waiting = [case["id"] for case in scoring.cases("wire") if scoring.is_waiting(case)]
    assert waiting == ["wi-053", "wi-055", "wi-056", "wi-057", "wi-058"]
