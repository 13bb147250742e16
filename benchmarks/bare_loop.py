"""A minimal coding agent for comparison: a loop over http.client with four tools and nothing else.

OPENAI_BASE_URL=... python benchmarks/bare_loop.py PROMPT

The difference to bradawl's time is the cost of bradawl's features.
"""

import http.client
import json
import os
import subprocess
import sys
import urllib.parse
from pathlib import Path


def tool(name: str, *parameters: str) -> dict[str, object]:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": schema}}


TOOLS = [
    tool("read_file", "file_path"),
    tool("edit_file", "file_path", "old_string", "new_string"),
    tool("bash", "command"),
    tool("grep", "pattern", "path"),
]


def read_file(file_path: str) -> str:
    return Path(file_path).read_text()


def edit_file(file_path: str, old_string: str, new_string: str) -> str:
    text = Path(file_path).read_text()
    if text.count(old_string) != 1:
        return "error: old_string must occur once"
    Path(file_path).write_text(text.replace(old_string, new_string))
    return "ok"


def run(*command: str) -> str:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return f"{done.stdout.decode(errors='replace')}\n[exit {done.returncode}]"


def call(name: str, given: dict[str, str]) -> str:
    match name:
        case "read_file":
            return read_file(**given)
        case "edit_file":
            return edit_file(**given)
        case "bash":
            return run("sh", "-c", given["command"])
        case _:
            return run("grep", "-rn", given["pattern"], given["path"])


def reply_of(response: http.client.HTTPResponse) -> dict[str, object]:
    text: list[str] = []
    calls: dict[int, dict[str, str]] = {}
    for line in response:
        if not line.startswith(b"data: {"):
            continue
        for choice in json.loads(line[6:])["choices"]:
            text.append(choice["delta"].get("content") or "")
            for delta in choice["delta"].get("tool_calls") or ():
                known = calls.setdefault(delta["index"], {"id": delta.get("id", ""), "name": "", "arguments": ""})
                for key in ("name", "arguments"):
                    known[key] += delta["function"].get(key) or ""
    message: dict[str, object] = {"role": "assistant", "content": "".join(text)}
    if calls:
        message["tool_calls"] = [
            {"id": known.pop("id"), "type": "function", "function": known} for known in calls.values()
        ]
    return message


def main() -> None:
    url = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])
    messages: list[dict[str, object]] = [
        {"role": "system", "content": "You are a coding agent."},
        {"role": "user", "content": sys.argv[1]},
    ]
    connection = http.client.HTTPConnection(url.hostname or "", url.port)
    while True:
        body = json.dumps({"model": "scripted", "stream": True, "messages": messages, "tools": TOOLS})
        connection.request("POST", f"{url.path}/chat/completions", body, {"Content-Type": "application/json"})
        messages.append(reply_of(connection.getresponse()))
        calls = messages[-1].get("tool_calls")
        if not isinstance(calls, list):
            print(messages[-1]["content"])
            return
        for made in calls:
            shown = call(made["function"]["name"], json.loads(made["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": made["id"], "content": shown})


if __name__ == "__main__":
    main()
