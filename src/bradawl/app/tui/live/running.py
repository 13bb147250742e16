"""Calls and sub-agents that run now, in the order in which they began."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from bradawl.app.call_details import finished_detail, state_of
from bradawl.app.call_words import call_phrase
from bradawl.app.rendering import cut as cut_text
from bradawl.app.rendering import main_argument, one_line, usage_text
from bradawl.app.tui.render import blocks, calls
from bradawl.app.tui.render.cells import cut
from bradawl.app.tui.render.theme import Theme
from bradawl.core.arguments import parse_arguments
from bradawl.core.events import AgentEnded, ToolFinished
from bradawl.core.messages import Assistant, Text, calls_of
from bradawl.core.tools import ToolSpec
from bradawl.core.usage import Usage
from bradawl.safety.control_characters import clean

_FOLDED_LINES: Final = {"diff": 24, "output": 5}
"""Lines below a call that are shown unless the user opens it, by what a screen shows of its result."""
_REASON_LINES: Final = 4
_SHORT_S: Final = 0.1
"""Seconds up to which the time of a call is not worth telling."""
_KEPT_PROGRESS: Final = 4_000
_LABEL: Final = 40
_CALLS_SHOWN: Final = 8


class Call:
    """A call from its check to its end."""

    def __init__(self, spec: ToolSpec, raw_arguments: str) -> None:
        self.spec, self.raw_arguments = spec, raw_arguments
        self.finished: ToolFinished | None = None
        self.agent: RunningAgent | None = None
        """The sub-agent that the call started."""
        self.output = ""
        self.has_started = False
        """It runs, or has ended; until then it may wait for an answer or for another call."""
        self.began = time.monotonic()
        self.elapsed_s = 0.0

    def lines(self, theme: Theme, width: int, *, is_open: bool, output: str | None = None) -> list[str]:
        """The line of the call, and what is shown of its result, or of `output` in its place."""
        if (finished := self.finished) is None:
            detail = self.agent.progress(theme.symbols.dot) if self.agent else ""
            line = calls.call_line(self.spec, self.raw_arguments, theme, width, state="running", detail=detail)
            latest = self.agent.latest if self.agent else ""
            return [line, theme.paint(cut(f"    {latest}", width, theme.symbols.ellipsis), "dim")] if latest else [line]
        used = self.agent.used if self.agent else ""
        detail = used or finished_detail(self.spec, self.raw_arguments, finished)
        line = calls.call_line(
            self.spec,
            self.raw_arguments,
            theme,
            width,
            state=state_of(self.raw_arguments, finished),
            detail=detail,
            elapsed_s=self.elapsed_s if self.elapsed_s >= _SHORT_S else None,
        )
        below = calls.call_block(
            self.spec,
            self.raw_arguments,
            finished.shown if output is None else (Text(output),),
            finished.outcome,
            theme,
            width,
            limit=None if is_open else _FOLDED_LINES.get(self.spec.result, _REASON_LINES),
        )
        return [line, *below]


class RunningCalls:
    """The calls of the main agent that have begun and are not printed yet."""

    def __init__(self) -> None:
        self.specs: Mapping[str, ToolSpec] = {}
        self._calls: dict[str, Call] = {}

    @property
    def are_running(self) -> bool:
        """A call has not ended."""
        return any(call.finished is None for call in self._calls.values())

    @property
    def run_a_command(self) -> bool:
        """A command runs, which could go on in the background."""
        return any(call.finished is None and call.spec.result == "output" for call in self._calls.values())

    def begin(self, call_id: str, name: str, raw_arguments: str) -> None:
        """A call was checked; it waits for a permission, or runs."""
        spec = self.specs.get(name) or ToolSpec(name)
        self._calls[call_id] = Call(spec, raw_arguments)

    def label(self) -> str:
        """A few words for the calls that run now: what the first runs or reads, and the number of the others.

        Empty if none runs.
        """
        running = [call for call in self._calls.values() if call.has_started and call.finished is None]
        if not running:
            return ""
        arguments, _ = parse_arguments(running[0].raw_arguments)
        shown = one_line(main_argument(arguments or {}, running[0].spec.shows))
        others = f" +{len(running) - 1}" if len(running) > 1 else ""
        return cut_text(shown or running[0].spec.name, _LABEL) + others

    def progress(self, call_id: str, text: str) -> None:
        """Output of a running call."""
        if (call := self._calls.get(call_id)) is not None:
            call.output = (call.output + clean(text))[-_KEPT_PROGRESS:]

    def start(self, call_id: str, *, runs: bool) -> None:
        """A call may run from now on, or `runs`: until then it may have waited for an answer."""
        if (call := self._calls.get(call_id)) is not None:
            call.began, call.has_started = time.monotonic(), call.has_started or runs

    def finish(self, event: ToolFinished) -> None:
        """A call ended; one that did not begin here belongs to an earlier run."""
        call = self._calls.get(event.call_id)
        if call is None:
            call = self._calls[event.call_id] = Call(ToolSpec("earlier call"), "")
        call.finished, call.elapsed_s = event, time.monotonic() - call.began

    def attach(self, call_id: str, agent: "RunningAgent") -> None:
        """A running call started the sub-agent, and shows what it does."""
        if (call := self._calls.get(call_id)) is not None and call.finished is None:
            call.agent, agent.call = agent, call

    def take_finished(self) -> Iterator[Call]:
        """Remove and yield the ended calls up to the first that runs."""
        for call_id, call in tuple(self._calls.items()):
            if call.finished is None:
                return
            del self._calls[call_id]
            if call.spec.result != "state" or call.finished.outcome != "ok":
                yield call

    def running_lines(self, theme: Theme, width: int, rows: int) -> list[str]:
        """A line for each call, and the last lines that the latest one printed."""
        shown = list(self._calls.values())[-_CALLS_SHOWN:]
        lines: list[str] = []
        for call in shown:
            lines += call.lines(theme, width, is_open=False)[: 2 if call.agent and call.finished is None else 1]
            if call.finished is None and call.output:
                last = call.output.rstrip("\n").split("\n")[-rows:]
                lines += [theme.paint(cut(f"    {line.expandtabs(4)}", width), "dim") for line in last]
        return lines


class RunningAgents:
    """Sub-agents that run, with their latest call. One that a call shows has no lines of its own."""

    def __init__(self) -> None:
        self._agents: dict[str, RunningAgent] = {}

    def begin(self, name: str, kind: str, prompt: str) -> "RunningAgent":
        """A sub-agent began."""
        agent = self._agents[name] = RunningAgent(name, kind, one_line(prompt))
        return agent

    def replied(self, name: str, message: Assistant, specs: Mapping[str, ToolSpec]) -> None:
        """A sub-agent made a step."""
        agent = self._agents.setdefault(name, RunningAgent(name, "", ""))
        agent.steps += 1
        called = [(specs.get(each.name) or ToolSpec(each.name), each.raw_arguments) for each in calls_of(message)]
        agent.latest = ", ".join(call_phrase(spec, raw) for spec, raw in called)

    def ended(self, event: AgentEnded) -> Callable[[Theme, int], list[str]] | None:
        """Draws that a sub-agent ended; None if its call says it."""
        agent = self._agents.pop(event.spawned, RunningAgent(event.spawned, "", ""))
        if agent.is_shown_by_call:
            agent.used = usage_text(agent.steps, event.usage or Usage(), event.cost)
            agent.latest = ""
            return None
        return lambda theme, width: [
            blocks.agent_ended_line(event.spawned, event.reason, agent.steps, event.usage, event.cost, theme, width)
        ]

    def lines(self, theme: Theme, width: int) -> list[str]:
        """What each running sub-agent that no call shows is to do, and its latest calls."""
        lines: list[str] = []
        for name, each in self._agents.items():
            if each.is_shown_by_call:
                continue
            lines.append(blocks.agent_started_line(name, each.kind, each.prompt, theme, width))
            if each.latest:
                lines.append(blocks.agent_step_line(f"step {each.steps}", each.latest, theme, width))
        return lines


class RunningAgent:
    """A sub-agent from its start to its end."""

    def __init__(self, name: str, kind: str, prompt: str) -> None:
        self.name, self.kind, self.prompt = name, kind, prompt
        self.steps, self.latest, self.used = 0, "", ""
        self.call: Call | None = None

    @property
    def is_shown_by_call(self) -> bool:
        """The call that started it runs, and its line shows it."""
        return self.call is not None and self.call.finished is None

    def progress(self, dot: str) -> str:
        """`agent-1 · 3 steps`."""
        steps = f" {dot} {self.steps} step{'' if self.steps == 1 else 's'}" if self.steps else ""
        return f"{one_line(self.name)}{steps}"
