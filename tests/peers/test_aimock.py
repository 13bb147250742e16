"""The program `bradawl` against aimock, in all three wire formats, with faults."""

import json
import os
import subprocess
import sys

import pytest

from peers.aimock import KEY

APIS = ("openai_chat", "openai_responses", "anthropic_messages")
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
}


@pytest.fixture(params=APIS)
def api(request):
    return request.param


@pytest.fixture
def bradawl(tmp_path, api):
    """Runs `bradawl -p PROMPT` in a folder of its own, with the peer as its provider."""
    home, folder = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    folder.mkdir()

    def run(peer, prompt, *arguments, key=KEY):
        base_url = peer.base_url if api == "anthropic_messages" else f"{peer.base_url}/v1"
        (home / "config.toml").write_text(
            f'[providers.peer]\napi = "{api}"\nbase_url = "{base_url}"\n[models."peer/mock"]\ncontext_window = 100000\n'
        )
        environ = {"PATH": os.environ["PATH"], "HOME": str(home), "BRADAWL_HOME": str(home), "PEER_API_KEY": key}
        environ["TMPDIR"] = os.environ["TMPDIR"]
        command = [sys.executable, "-m", "bradawl", "-m", "peer/mock", "--yolo", *arguments, "-p", prompt]
        return subprocess.run(
            command, env=environ, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50
        )

    run.folder = folder
    return run


def text_of(message):
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return content or ""


def answered(entries, status=200):
    return [entry for entry in entries if entry["response"]["status"] == status]


# ------------------------------------------------------------------ replies


def test_an_answer_is_printed_and_the_peer_understands_the_request(aimock, bradawl, api):
    peer = aimock([{"match": {"userMessage": "say the magic word"}, "response": {"content": "Abracadabra, twice."}}])
    ended = bradawl(peer, "Please say the magic word.")
    assert (ended.returncode, ended.stdout) == (0, "Abracadabra, twice.\n"), ended.stderr
    (entry,) = peer.journal()
    assert (entry["path"], entry["method"]) == (PATHS[api], "POST")
    assert entry["body"]["model"] == "mock"
    assert "say the magic word" in text_of(entry["body"]["messages"][-1])
    assert {tool["function"]["name"] for tool in entry["body"]["tools"]} >= {"bash", "read_file", "write_file"}


def test_tools_change_real_files_and_their_results_go_back(aimock, bradawl):
    peer = aimock(
        [
            {
                "match": {"userMessage": "greeting file", "turnIndex": 0},
                "response": {
                    "content": "I write it.",
                    "toolCalls": [
                        {"name": "write_file", "arguments": {"file_path": "greeting.txt", "content": "hello peer\n"}}
                    ],
                },
            },
            {
                "match": {"userMessage": "greeting file", "turnIndex": 1},
                "response": {
                    "toolCalls": [
                        {
                            "name": "bash",
                            "arguments": {"command": "tr a-z A-Z < greeting.txt > loud.txt; cat loud.txt"},
                        },
                        {"name": "read_file", "arguments": {"file_path": "greeting.txt"}},
                    ]
                },
            },
            {
                "match": {"userMessage": "greeting file", "turnIndex": 2, "toolResultContains": "hello peer"},
                "response": {"content": "Both files are there."},
            },
        ]
    )
    ended = bradawl(peer, "Make the greeting file.")
    assert (ended.returncode, ended.stdout) == (0, "Both files are there.\n"), ended.stderr
    assert (bradawl.folder / "greeting.txt").read_text() == "hello peer\n"
    assert (bradawl.folder / "loud.txt").read_text() == "HELLO PEER\n"
    last = peer.journal()[-1]["body"]["messages"]
    calls = [call["id"] for message in last for call in message.get("tool_calls") or ()]
    results = {message["tool_call_id"]: text_of(message) for message in last if message["role"] == "tool"}
    assert len(calls) == 3 and set(results) == set(calls)
    assert "HELLO PEER" in results[calls[1]] and "hello peer" in results[calls[2]]


def test_a_call_after_reasoning_runs(aimock, bradawl):
    peer = aimock(
        [
            {
                "match": {"userMessage": "think first", "turnIndex": 0},
                "response": {
                    "reasoning": "I should look at the folder.",
                    "content": "Looking.",
                    "toolCalls": [{"name": "bash", "arguments": {"command": "echo seen > seen.txt"}}],
                },
            },
            {"match": {"userMessage": "think first", "turnIndex": 1}, "response": {"content": "Seen."}},
        ]
    )
    ended = bradawl(peer, "Please think first.")
    assert (ended.returncode, ended.stdout) == (0, "Seen.\n"), ended.stderr
    assert (bradawl.folder / "seen.txt").read_text() == "seen\n"


def test_a_session_continues_in_a_second_process(aimock, bradawl):
    peer = aimock(
        [
            {"match": {"userMessage": "and what came before", "turnIndex": 1}, "response": {"content": "Your one."}},
            {"match": {"userMessage": "number one", "turnIndex": 0}, "response": {"content": "Noted."}},
        ]
    )
    assert bradawl(peer, "This is number one.").returncode == 0
    ended = bradawl(peer, "Tell me, and what came before?", "-c")
    assert (ended.returncode, ended.stdout) == (0, "Your one.\n"), ended.stderr
    first, second = (entry["body"]["messages"] for entry in peer.journal())
    assert second[: len(first)] == first, "sent messages are never changed"


def test_usage_equals_the_peers_report(aimock, bradawl, api):
    names = ("prompt_tokens", "completion_tokens") if api == "openai_chat" else ("input_tokens", "output_tokens")
    usage = dict(zip(names, (111, 22), strict=True))
    peer = aimock([{"match": {"userMessage": "count"}, "response": {"content": "Counted.", "usage": usage}}])
    ended = bradawl(peer, "Please count.", "--output-format", "json")
    result = json.loads(ended.stdout)
    assert (result["result"], result["is_error"]) == ("Counted.", False)
    assert (result["usage"]["input_tokens"], result["usage"]["output_tokens"]) == (111, 22)


# ------------------------------------------------------------------ refusals


def test_a_rate_limit_is_retried_after_the_requested_time(aimock, bradawl):
    limit = {
        "error": {"message": "Rate limited, slow down", "type": "rate_limit_error"},
        "status": 429,
        "retryAfter": 1,
    }
    peer = aimock(
        [
            {"match": {"userMessage": "patience", "sequenceIndex": 0}, "response": limit},
            {"match": {"userMessage": "patience", "sequenceIndex": 1}, "response": {"content": "There you are."}},
        ]
    )
    ended = bradawl(peer, "Have patience.")
    assert (ended.returncode, ended.stdout) == (0, "There you are.\n"), ended.stderr
    first, second = peer.journal()
    assert (first["response"]["status"], second["response"]["status"]) == (429, 200)
    assert 1.0 <= (second["timestamp"] - first["timestamp"]) / 1000 < 5
    assert first["body"] == second["body"]


def test_a_wrong_key_is_reported_and_not_printed(aimock, bradawl):
    peer = aimock([{"match": {"userMessage": "x"}, "response": {"content": "x"}}])
    ended = bradawl(peer, "Never mind x.", key="sk-wrong-key-of-somebody-else")
    assert ended.returncode == 1
    assert "PEER_API_KEY" in ended.stderr
    assert "sk-wrong-key" not in ended.stderr + ended.stdout


def test_a_context_overflow_is_reported_and_not_retried(aimock, bradawl):
    message = "prompt is too long: 213462 tokens > 200000 maximum"
    error = {"error": {"message": message, "type": "invalid_request_error"}, "status": 400}
    peer = aimock([{"match": {"userMessage": "overflow"}, "response": error}])
    ended = bradawl(peer, "Please overflow.")
    assert ended.returncode == 1
    assert "213462" in ended.stderr
    assert len(peer.journal()) == 1


# ------------------------------------------------------------------ faults


def test_a_connection_dropped_before_the_answer_is_retried(aimock, bradawl):
    peer = aimock(
        [
            {
                "match": {"userMessage": "shaky line", "sequenceIndex": 0},
                "response": {"content": "never"},
                "chaos": {"disconnectRate": 1},
            },
            {"match": {"userMessage": "shaky line", "sequenceIndex": 1}, "response": {"content": "Got through."}},
        ]
    )
    ended = bradawl(peer, "A shaky line.")
    assert (ended.returncode, ended.stdout) == (0, "Got through.\n"), ended.stderr
    assert len(peer.journal()) == 2


def test_a_stream_that_breaks_in_a_call_is_retried_and_the_call_not_run(aimock, bradawl):
    command = "echo once >> log.txt; : a long command, so that its arguments come in many pieces and break off"
    reply = {"content": "Now.", "toolCalls": [{"name": "bash", "arguments": {"command": command}}]}
    peer = aimock(
        [
            {
                "match": {"userMessage": "break it", "turnIndex": 0, "sequenceIndex": 0},
                "response": reply,
                "chunkSize": 5,
                "truncateAfterChunks": 9,
            },
            {"match": {"userMessage": "break it", "turnIndex": 0, "sequenceIndex": 1}, "response": reply},
            {"match": {"userMessage": "break it", "turnIndex": 1}, "response": {"content": "Logged."}},
        ]
    )
    ended = bradawl(peer, "Please break it.")
    assert (ended.returncode, ended.stdout) == (0, "Logged.\n"), ended.stderr
    assert (bradawl.folder / "log.txt").read_text() == "once\n"
    assert [entry["response"].get("interrupted", False) for entry in peer.journal()] == [True, False, False]


def test_text_of_a_broken_stream_is_withdrawn_and_printed_once(aimock, bradawl):
    reply = {"content": "One two three four five six seven eight nine ten."}
    peer = aimock(
        [
            {
                "match": {"userMessage": "count to ten", "sequenceIndex": 0},
                "response": reply,
                "chunkSize": 5,
                "truncateAfterChunks": 6,
            },
            {"match": {"userMessage": "count to ten", "sequenceIndex": 1}, "response": reply},
        ]
    )
    ended = bradawl(peer, "Please count to ten.")
    assert (ended.returncode, ended.stdout) == (0, reply["content"] + "\n"), ended.stderr
    assert [entry["response"].get("interrupted", False) for entry in peer.journal()] == [True, False]


def test_a_malformed_body_is_retried(aimock, bradawl):
    peer = aimock(
        [
            {
                "match": {"userMessage": "garbled", "sequenceIndex": 0},
                "response": {"content": "never"},
                "chaos": {"malformedRate": 1},
            },
            {"match": {"userMessage": "garbled", "sequenceIndex": 1}, "response": {"content": "Clear now."}},
        ]
    )
    ended = bradawl(peer, "Something garbled.")
    assert (ended.returncode, ended.stdout) == (0, "Clear now.\n"), ended.stderr


def test_a_call_with_invalid_json_gets_an_error_result(aimock, bradawl):
    bad = {"toolCalls": [{"name": "bash", "arguments": '{"command": "touch never.txt"'}]}
    peer = aimock(
        [
            {"match": {"userMessage": "bad json", "turnIndex": 0}, "response": bad},
            {"match": {"userMessage": "bad json", "turnIndex": 1}, "response": {"content": "I see."}},
        ]
    )
    ended = bradawl(peer, "Send bad json.")
    assert (ended.returncode, ended.stdout) == (0, "I see.\n"), ended.stderr
    assert not (bradawl.folder / "never.txt").exists()


def test_a_server_that_always_fails_ends_the_run_with_a_retryable_error(aimock, bradawl):
    peer = aimock([{"match": {"userMessage": "hopeless"}, "response": {"content": "x"}}], "--chaos-ratelimit", "1")
    ended = bradawl(peer, "It is hopeless.")
    assert (ended.returncode, ended.stdout) == (75, ""), ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(answered(peer.journal(), 429)) == 6


def test_a_run_completes_with_a_peer_that_drops_a_fifth_of_all_requests(aimock, bradawl):
    steps = [
        {
            "match": {"userMessage": "long way", "turnIndex": step},
            "response": {"toolCalls": [{"name": "bash", "arguments": {"command": f"echo {step} >> way.txt"}}]},
        }
        for step in range(6)
    ]
    end = {"match": {"userMessage": "long way", "turnIndex": 6}, "response": {"content": "Arrived."}}
    peer = aimock([*steps, end], "--chaos-disconnect", "0.2")
    ended = bradawl(peer, "Go the long way.")
    assert (ended.returncode, ended.stdout) == (0, "Arrived.\n"), ended.stderr
    assert (bradawl.folder / "way.txt").read_text().split() == [str(step) for step in range(6)]
