"""The measured work: a small project, and the model's replies step by step."""

import json
from dataclasses import dataclass
from pathlib import Path

KINDS = ("read", "edit", "bash", "grep")
"""Kinds of steps, which alternate."""
PROMPT = "Work through the modules in the folder pkg one by one."
_FILES = 10
_FUNCTIONS = 12
_SAID = "I look at the module, make the smallest change that is needed, and check it before I go on to the next."


@dataclass(frozen=True, slots=True)
class Step:
    """One reply of the model and the one call in it."""

    kind: str
    """One of `KINDS`."""
    text: str
    tool: str
    arguments: dict[str, str]


def steps(count: int) -> list[Step]:
    """The first `count` steps. Each group of four reads, edits, runs a command on and searches one file."""
    return [_step(number) for number in range(count)]


def _step(number: int) -> Step:
    place = number // len(KINDS)
    module, revision = place % _FILES, place // _FILES
    path = f"pkg/module_{module}.py"
    kind = KINDS[number % len(KINDS)]
    tool, arguments = {
        "read": ("read_file", {"file_path": path}),
        "edit": (
            "edit_file",
            {"file_path": path, "old_string": f"EDITS = {revision}\n", "new_string": f"EDITS = {revision + 1}\n"},
        ),
        "bash": ("bash", {"command": f"wc -l {path}; echo step {number}"}),
        "grep": ("grep", {"pattern": f"def scale_{module}_", "path": "pkg"}),
    }[kind]
    return Step(kind, f"Step {number}. {_SAID}", tool, arguments)


def prepare(folder: Path) -> None:
    """Write the project into an empty folder. Raises `OSError`."""
    package = folder / "pkg"
    package.mkdir()
    for module in range(_FILES):
        functions = (
            f'def scale_{module}_{factor}(x):\n    """Give {factor} times x."""\n    return x * {factor}\n\n\n'
            for factor in range(_FUNCTIONS)
        )
        (package / f"module_{module}.py").write_text("EDITS = 0\n\n\n" + "".join(functions))


def is_done(folder: Path, count: int) -> bool:
    """Whether every edit of the first `count` steps is in the files, once."""
    edits = [step.arguments for step in steps(count) if step.kind == "edit"]
    wanted = {f"pkg/module_{module}.py": "EDITS = 0\n" for module in range(_FILES)}
    wanted |= {edit["file_path"]: edit["new_string"] for edit in edits}
    return all((folder / path).read_text().startswith(line) for path, line in wanted.items())


def replies(count: int) -> list[bytes]:
    """The event streams of a whole run: one for each step, and a last one without a call."""
    streams = [_stream(step.text, number, step) for number, step in enumerate(steps(count))]
    return [*streams, _stream("All modules are done.", count, None)]


def _stream(text: str, number: int, step: Step | None) -> bytes:
    pieces = [text[at : at + 5] for at in range(0, len(text), 5)]
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": ""}]
    deltas.extend({"content": piece} for piece in pieces)
    if step is not None:
        deltas += _call_deltas(number, step)
    chunks = [_chunk(delta, None) for delta in deltas]
    chunks.append(_chunk({}, "stop" if step is None else "tool_calls"))
    usage = {"prompt_tokens": 100, "completion_tokens": 40, "total_tokens": 140}
    chunks.append({**_chunk({}, None), "choices": [], "usage": usage})
    events = [f"data: {json.dumps(chunk, separators=(',', ':'))}\n\n" for chunk in chunks]
    return "".join([*events, "data: [DONE]\n\n"]).encode()


def _call_deltas(number: int, step: Step) -> list[dict[str, object]]:
    function = {"name": step.tool, "arguments": ""}
    first: dict[str, object] = {"index": 0, "id": f"call_{number:05}", "type": "function", "function": function}
    text = json.dumps(step.arguments)
    pieces = [text[at : at + 20] for at in range(0, len(text), 20)]
    later: list[dict[str, object]] = [{"index": 0, "function": {"arguments": piece}} for piece in pieces]
    return [{"tool_calls": [piece]} for piece in (first, *later)]


def _chunk(delta: dict[str, object], finish: str | None) -> dict[str, object]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
        "choices": [choice],
    }
