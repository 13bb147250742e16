"""Runs bradawl with `--output-format stream-json` in a `World`, and checks its lines against the schema."""

import json
from pathlib import Path

import jsonschema_rs

SCHEMA = jsonschema_rs.validator_for(
    json.loads((Path(__file__).parents[2] / "docs" / "stream-json.schema.json").read_text())
)
STREAM = ("--output-format", "stream-json")
BOTH = ("--input-format", "stream-json", *STREAM)


def user(content, **more):
    """A message for stdin."""
    return {"type": "user", "message": {"role": "user", "content": content}, **more}


def control(subtype, request_id="r1", **more):
    """A request for stdin."""
    return {"type": "control_request", "request_id": request_id, "request": {"subtype": subtype, **more}}


def lines_of(text):
    """The lines of a stream: each is one JSON object that fits the schema."""
    assert text == "" or text.endswith("\n")
    found = [json.loads(line) for line in text.split("\n")[:-1]]
    for line in found:
        SCHEMA.validate(line)
    return found


def kinds(lines):
    """Type and subtype of each line."""
    return [f"{line['type']}/{line['subtype']}" if line["type"] == "system" else line["type"] for line in lines]


def run_stream(world, *messages, argv=BOTH, build=None):
    """Run with messages on stdin; returns the exit code and the lines. The last line must agree with the code."""
    texts = (each if isinstance(each, str) else json.dumps(each) for each in messages)
    code = world.run(*argv, stdin="".join(f"{text}\n" for text in texts), build=build)
    lines = lines_of(world.out)
    assert agrees(lines[-1], code), (lines[-1], code)
    return code, lines


def agrees(result, code):
    """Whether a line is a result that gives the verdict of the exit code."""
    verdict = (result["type"], result["exit_code"], result["is_error"], result["subtype"] != "success")
    return verdict == ("result", code, code != 0, code != 0)
