"""A session of thousands of steps in a small window: cost of a step, memory, disk, resume, and what is kept.

python benchmarks/compaction.py [--steps N] [--window N] [--turns N]    (--help for the rest)

The model is scripted and in this process; tools, files, log and undo are real. The time of a step is compared with
that of the same calls without an agent, made in between: so a busy machine affects both.
"""

import argparse
import asyncio
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean, median

import long_session
from long_session import EVERY_FACT, Request, SteppingModel
from processes import memory_of

from bradawl import Session, Settings, build_agent, load_settings
from bradawl.core.events import Compacted, Envelope, Live
from bradawl.core.messages import Message, User, text_of
from bradawl.shaping.compaction.summary import body_of
from bradawl.shaping.tokens import estimate

_LOOKED_AT = (1, 5, 20, 100)
"""Summaries whose facts are counted."""
_MARKS = 10
_MB = 1e6
_MERGED = r"\[request-(\d+)(?: to request-(\d+))?: (\S+) lines (\d+)-(\d+)\]"


@dataclass(slots=True)
class Mark:
    """The state after some steps; sizes are bytes."""

    steps: int
    rss: int
    log: int
    blobs: int
    blob_count: int
    undo: int


@dataclass(slots=True)
class Summary:
    """A summary, and which facts it still has."""

    number: int
    steps: int
    tokens: int
    lines: int
    repeated: int
    """Lines that differ from another one in numbers only."""
    facts: list[int]
    """Steps that stated the facts which it names."""
    stated: int
    """Facts stated until then."""


@dataclass(slots=True)
class Found:
    """All that was measured in one session."""

    window: int
    requests: list[Request] = field(default_factory=list)
    overflows: int = 0
    tiers: dict[str, int] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)
    summaries: list[Summary] = field(default_factory=list)
    most_pins: int = 0
    """Tokens of the pins in a request, restored files left out; the maximum."""
    not_whole: list[int] = field(default_factory=list)
    """Requests of the model without the newest prompt word for word."""
    lost: list[int] = field(default_factory=list)
    """Prompts that are neither in the last request nor at the places it refers to."""
    most_files: int = 0
    """Files that lead to a prompt; the maximum."""
    resume_s: float = 0.0
    resume_rss: int = 0
    entries: int = 0


def prompt_of(turn: int) -> str:
    """The n-th prompt, from 1."""
    return (
        f"Task {turn}: go on with the modules, and make report {turn * 13}. You must not touch folder legacy_{turn}. "
        f"Call it done only when check {turn * 17} has passed; the ticket is K-{turn:04}."
    )


class Observer:
    """Sees the events and requests of a session, and measures between its steps."""

    def __init__(
        self, session: Session, home: Path, model: SteppingModel, found: Found, options: argparse.Namespace
    ) -> None:
        self._session, self._home, self._model, self._found = session, home, model, found
        self._every, self._shows = max(1, options.steps // _MARKS), options.show
        self.prompt = ""

    def emit(self, item: Envelope | Live) -> None:
        """Count compactions, and look at some summaries."""
        event = item.event if isinstance(item, Envelope) else None
        if not isinstance(event, Compacted):
            return
        tiers = self._found.tiers
        tiers[event.tier] = tiers.get(event.tier, 0) + 1
        number = tiers.get("summarise", 0) + tiers.get("collapse", 0)
        if event.summary and number in _LOOKED_AT:
            body = body_of(event.summary)
            self._found.summaries.append(_summary(number, self._model.next_step, body))
            if self._shows:
                print(f"----- summary {number}, step {self._model.next_step}\n{body}\n-----")

    def look(self, messages: list[Message]) -> None:
        """Check the messages of a request, and take a mark every so many steps."""
        found, steps = self._found, self._model.next_step
        pins = sum(estimate(pin.text) for pin in self._session.transcript.pins if pin.kind != "restored")
        found.most_pins = max(found.most_pins, round(pins * self._session.prefix.factor))
        if not any(isinstance(each, User) and self.prompt in text_of(each.parts) for each in messages):
            found.not_whole.append(len(self._model.requests))
        if steps % self._every == 0 and (not found.marks or found.marks[-1].steps != steps):
            gc.collect()
            found.marks.append(_mark(self._home, steps))


def _summary(number: int, steps: int, body: str) -> Summary:
    stated = range(0, steps, EVERY_FACT)
    shapes = Counter(re.sub(r"\d+", "0", line) for line in body.splitlines())
    facts = [each for each in stated if long_session.fact(each) in body]
    lines = sum(shapes.values())
    return Summary(number, steps, estimate(body), lines, lines - len(shapes), facts, len(stated))


def _mark(home: Path, steps: int) -> Mark:
    stored = (*home.glob("projects/*/blobs/*"), *home.glob("projects/*/records/*/*"))
    blobs = [path.stat().st_size for path in stored]
    log = sum(path.stat().st_size for path in home.glob("projects/*/sessions/*.jsonl"))
    everything = 0
    for folder, _, names in os.walk(home):
        for name in names:
            try:
                everything += os.lstat(Path(folder, name)).st_size
            except OSError:  # removed meanwhile
                continue
    return Mark(steps, memory_of(os.getpid()).rss, log, sum(blobs), len(blobs), everything - log - sum(blobs))


# ------------------------------------------------------------------ a session


def measure(root: Path, options: argparse.Namespace) -> Found:
    """Let the model work through all steps, and open the session again in another process."""
    for name in ("project", "bare"):
        long_session.prepare(root / name)
    model = SteppingModel(options.window, -(-options.steps // options.turns), root / "bare", lambda _: None)
    found = Found(options.window, model.requests)
    session_id = asyncio.run(_run_session(root, options, model, found))
    if not long_session.is_done(root / "project", model.next_step):
        raise SystemExit("The files are not right.")
    resumed = subprocess.run(
        [sys.executable, __file__, "--resume", session_id, "--root", str(root)], stdout=subprocess.PIPE, check=True
    )
    found.resume_s, found.resume_rss, found.entries = json.loads(resumed.stdout)
    return found


async def _run_session(root: Path, options: argparse.Namespace, model: SteppingModel, found: Found) -> str:
    async with aclosing(build_agent(_settings(root, undo=options.undo), model=model)) as agent, agent.open() as session:
        observer = Observer(session, root / "home", model, found, options)
        model.look = observer.look
        for turn in range(1, options.turns + 1):
            observer.prompt = prompt_of(turn)
            model.begin_turn()
            result = await session.run(observer.prompt, observer.emit)
            if result.reason != "completed":
                raise SystemExit(f"Turn {turn} ended as {result.reason}: {result.failure}")
        found.overflows = model.overflows
        found.lost, found.most_files = _lost(session, options.turns)
        return session.id


def _settings(root: Path, *, undo: bool) -> Settings:
    environment = {**os.environ, "OPENAI_API_KEY": "none", "BRADAWL_HOME": str(root / "home")}
    options = {"model": "openai/gpt-5.5", "yolo": True, "undo": undo}
    return load_settings(options, environment, str(root / "project"))


async def resume(root: Path, session_id: str) -> tuple[float, int, int]:
    """Open the session again: seconds, bytes of memory that it then has more, and entries of its log."""
    model = SteppingModel(1, 1, root, lambda _: None)
    async with aclosing(build_agent(_settings(root, undo=False), model=model)) as agent:
        began_s, before = time.perf_counter(), memory_of(os.getpid()).rss
        async with agent.open(session_id) as session:
            seconds = time.perf_counter() - began_s
            gc.collect()
            rss = memory_of(os.getpid()).rss - before
            return seconds, rss, len(session.conversation.entries())


# ------------------------------------------------------------------ prompts


def _lost(session: Session, turns: int) -> tuple[list[int], int]:
    """The prompts that can't be found, and how many files lead to one of the others at most."""
    shown = "\n".join(text_of(each.parts) for each in session.transcript.messages if isinstance(each, User))
    files = {turn: _files_to(turn, shown) for turn in range(1, turns + 1)}
    return [turn for turn, count in files.items() if count is None], max(filter(None, files.values()), default=0)


def _files_to(turn: int, text: str) -> int | None:
    """The number of files that lead from a text to a prompt, by the places that the texts name; None if none does."""
    count, seen = 0, set[tuple[str, int]]()
    while prompt_of(turn) not in text:
        place = next((each for each in _places_of(turn, text) if each[:2] not in seen), None)
        if place is None:
            return None
        file, first, last = place
        seen.add((file, first))
        text = "\n".join(Path(file).read_text().splitlines()[first - 1 : last])
        count += 1
    return count


def _places_of(turn: int, text: str) -> list[tuple[str, int, int]]:
    """The places with more of a prompt than the text has."""
    own = re.findall(rf'<request id="request-{turn}"[^>]*? whole: (\S+) lines (\d+)-(\d+)>', text)
    merged = re.findall(_MERGED, text)
    within = [each[2:] for each in merged if int(each[0]) <= turn <= int(each[1] or each[0])]
    return [(file, int(first), int(last)) for file, first, last in (*own, *within)]


# ------------------------------------------------------------------ the report


def report(found: Found) -> str:
    """The figures as Markdown."""
    steps = found.requests[-1].step
    lines = [
        f"## {steps:,} steps, window of {found.window:,} tokens",
        "",
        f"- compactions: {found.tiers}; requests that were too long: {found.overflows}; longest request: "
        f"{max(each.tokens for each in found.requests):,} tokens",
        *_cost(found, steps),
        *_growth(found),
        f"- resume: {found.resume_s:.2f} s for {found.entries:,} entries, {found.resume_rss / _MB:.1f} MB of memory",
        f"- pins: {found.most_pins:,} tokens at most, {found.most_pins / found.window:.1%} of the window; requests "
        f"without the newest prompt: {len(found.not_whole)}; prompts that can't be found: {len(found.lost)}; files "
        f"that lead to one: {found.most_files} at most",
        *(_facts(each) for each in found.summaries),
        "",
        "| steps | RSS, MB | log, MB | blobs, MB | blobs | undo, MB |",
        "|---|---|---|---|---|---|",
        *(
            f"| {each.steps:,} | {each.rss / _MB:.1f} | {each.log / _MB:.2f} | {each.blobs / _MB:.2f} "
            f"| {each.blob_count} | {each.undo / _MB:.2f} |"
            for each in found.marks
        ),
    ]
    return "\n".join(lines)


def _cost(found: Found, steps: int) -> list[str]:
    width = max(1, min(100, steps // 5))
    early = [each for each in found.requests if width <= each.step < 2 * width and each.gap_s]
    late = [each for each in found.requests if steps - width <= each.step < steps and each.gap_s]
    lines: list[str] = []
    for name, middle in (("median", median), ("mean", mean)):
        shown = (
            f"{label} {_pair(*(middle(getattr(each, key) for each in some) for some in (early, late)))}"
            for label, key in (("elapsed", "gap_s"), ("processor", "cpu_s"), ("the calls without an agent", "bare_s"))
        )
        lines.append(f"- a step, {name}, steps {width:,} to {2 * width:,} and the last {width:,}: {'; '.join(shown)}")
    return lines


def _pair(early_s: float, late_s: float) -> str:
    return f"{early_s * 1e3:.2f} and {late_s * 1e3:.2f} ms (ratio {late_s / early_s:.2f})"


def _growth(found: Found) -> list[str]:
    first, last = found.marks[1 if len(found.marks) > 2 else 0], found.marks[-1]
    thousands = max(1, last.steps - first.steps) / 1_000
    grown = {name: (getattr(last, name) - getattr(first, name)) / _MB / thousands for name in ("rss", "log", "blobs")}
    shown = ", ".join(f"{name} {value:.2f} MB" for name, value in grown.items())
    return [f"- growth for each 1,000 steps, from step {first.steps:,} to {last.steps:,}: {shown}"]


def _facts(each: Summary) -> str:
    kept = f"{len(each.facts)} of {each.stated} facts"
    oldest = f", the oldest of step {min(each.facts)}" if each.facts else ""
    return (
        f"- summary {each.number}, at step {each.steps:,}: {each.tokens:,} tokens, {each.lines} lines of which "
        f"{each.repeated} repeat another but for numbers; {kept}{oldest}"
    )


def main() -> None:
    """Measure as the arguments say and print the figures."""
    parser = argparse.ArgumentParser(description="Measure a long session in a small window, on a scripted model.")
    parser.add_argument("--steps", type=int, default=5_000, help="steps of the session (%(default)s)")
    parser.add_argument("--window", type=int, default=32_000, help="tokens (%(default)s)")
    parser.add_argument("--turns", type=int, default=1, help="prompts that share the steps (%(default)s)")
    parser.add_argument("--undo", action="store_true", help="save changes for undo, as usual")
    parser.add_argument("--show", action="store_true", help="print the summaries")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    parser.add_argument("--resume", metavar="ID", help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.resume:
        print(json.dumps(asyncio.run(resume(options.root, options.resume))))
        return
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder).resolve(), options)
    print(json.dumps(asdict(found)) if options.json else report(found))


if __name__ == "__main__":
    main()
