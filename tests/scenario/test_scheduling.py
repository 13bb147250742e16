"""Concurrent calls have the same results and effects as sequential calls."""

import asyncio
import posixpath

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from scripted_agent import build, results

from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.events import Cwd, Env
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.tools import ToolSpec


class StepParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Paths that a call reads and writes, and its changes to the session."""

    name: str
    reads: list[str] = []
    writes: list[str] = []
    cd: str = ""
    export: str = ""
    unknown: bool = False
    slow: int = 0
    """How often the call yields to other tasks before and after it acts."""


class Files:
    """Contents of files, in memory."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def act(self, step: StepParams, cwd: str, variable: str) -> str:
        """Return the contents that the call reads, then write its files."""
        seen = [f"{cwd} {variable}", *(self.files.get(path, "-") for path in places(step.reads, cwd))]
        for path in places(step.writes, cwd):
            self.files[path] = self.files.get(path, "") + step.name
        return " ".join(seen)


def places(paths: list[str], cwd: str) -> tuple[str, ...]:
    return tuple(posixpath.normpath(posixpath.join(cwd, path)) for path in paths)


class Step:
    """A tool whose calls suspend before and after they read and write."""

    spec = ToolSpec("step")
    params = StepParams

    def __init__(self) -> None:
        self.files = Files()

    def effects(self, params: StepParams, context: CallContext) -> Effects:
        """Effects that the arguments declare."""
        if params.unknown:
            return UNKNOWN
        session = (("cwd",) if params.cd else ()) + (("env",) if params.export else ())
        return Effects(places(params.reads, context.cwd), places(params.writes, context.cwd), session=session)

    async def run(self, params: StepParams, context: CallContext) -> ToolOutput:
        """Suspend, read and write, suspend, change the session."""
        for _ in range(params.slow):
            await asyncio.sleep(0)
        seen = self.files.act(params, context.cwd, str(context.env.get("V", "")))
        for _ in range(params.slow):
            await asyncio.sleep(0)
        if params.cd:
            context.change(Cwd(posixpath.normpath(posixpath.join(context.cwd, params.cd))))
        if params.export:
            context.change(Env({"V": params.export}))
        return ToolOutput((Text(seen),))


def one_after_the_other(steps: list[StepParams]) -> tuple[list[str], Files]:
    files, cwd, variable, seen = Files(), "/project", "", []
    for step in steps:
        seen.append(files.act(step, cwd, variable))
        cwd = posixpath.normpath(posixpath.join(cwd, step.cd))
        variable = step.export or variable
    return seen, files


PATHS = st.lists(st.sampled_from(["a", "b", "../a", "d/a"]), max_size=2)
STEPS = st.lists(
    st.builds(
        dict,
        reads=PATHS,
        writes=PATHS,
        cd=st.sampled_from(["", "", "", "d", ".."]),
        export=st.sampled_from(["", "", "", "1", "2"]),
        unknown=st.sampled_from([False, False, False, True]),
        slow=st.integers(0, 6),
    ),
    min_size=1,
    max_size=7,
)


@given(STEPS)
async def test_concurrent_calls_are_equivalent_to_sequential_calls(drawn: list[dict]) -> None:
    steps = [{"name": f"n{number}", **one} for number, one in enumerate(drawn)]
    calls = [{"id": f"id_{one['name']}", "name": "step", "arguments": one} for one in steps]
    tool = Step()
    agent, *_ = build([{"tool_calls": calls}, {"text": "ok"}], tools=(tool,))

    seen, files = one_after_the_other([StepParams(**one) for one in steps])
    async with agent.open() as session:
        await session.run("go")
        assert results(session.transcript.messages) == seen
    assert tool.files.files == files.files


async def run(calls: list[dict], tool: Step, *before: dict, **changes) -> list[str]:
    """Results of a turn whose reply has these calls. `before`: earlier entries of the script."""
    agent, *_ = build([*before, {"tool_calls": calls}, {"text": "ok"}], tools=(tool,), **changes)

    async with agent.open() as session:
        await session.run("go")
        return results(session.transcript.messages)


def calls_of(*steps: dict) -> list[dict]:
    named = [{"name": f"n{number}", **one} for number, one in enumerate(steps)]
    return [{"id": f"id_{one['name']}", "name": "step", "arguments": one} for one in named]


async def test_a_relative_path_resolved_after_a_wait_keeps_the_order_of_calls_on_that_file() -> None:
    tool = Step()
    calls = calls_of(
        {"reads": ["x"], "slow": 300},
        {"cd": "d", "slow": 50},
        {"writes": ["x"], "slow": 3},  # waits for the first call, after which this path is /project/d/x
        {"reads": ["/project/d/x"]},
    )
    assert (await run(calls, tool))[3] == "/project/d  n2"


class Linked(Step):
    """A tool whose call `n0` creates a link; effects are resolved through links."""

    def __init__(self) -> None:
        super().__init__()
        self.links: dict[str, str] = {}
        self.allowed: dict[str, tuple[str, ...]] = {}

    def effects(self, params: StepParams, context: CallContext) -> Effects:
        """Effects with the links that exist now resolved."""
        effects = super().effects(params, context)
        return msgspec.structs.replace(effects, writes=tuple(self.links.get(path, path) for path in effects.writes))

    async def run(self, params: StepParams, context: CallContext) -> ToolOutput:
        """Act, and create the link if this is `n0`."""
        self.allowed[params.name] = context.grant.writable if context.grant else ()
        output = await super().run(params, context)
        if params.name == "n0":
            self.links["/project/a"] = "/project/b"
        return output


async def test_effects_are_determined_again_after_waiting_for_a_call_that_may_change_them() -> None:
    tool = Linked()
    await run(calls_of({"unknown": True, "slow": 300}, {"writes": ["a"]}), tool)
    assert tool.allowed["n1"] == ("/project/b",)


async def test_a_result_from_a_withdrawn_reply_is_not_reused_after_a_change() -> None:
    read = {"name": "r", "reads": ["x"]}
    first = [{"id": "r", "name": "step", "arguments": read}, *calls_of({"reads": ["/long" * 60]})]
    broken = {"tool_calls": first, "faults": {"cut_at_byte": 100}}
    for change in ({"writes": ["x"]}, {"cd": "d"}, {"unknown": True, "writes": ["x"]}):
        tool = Step()
        again = {"id": "again", "name": "step", "arguments": read}
        told = await run([*calls_of({**change, "name": "w"}), again], tool, broken)
        assert told[1] in ("/project  w", "/project/d  -"), change
