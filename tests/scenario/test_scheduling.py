"""Calls that run at the same time leave the world, and see it, as if they had run one after the other."""

import asyncio
import posixpath

import msgspec
from house import build, results
from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.events import Cwd, Env
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.tools import ToolSpec


class StepParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Reads, writes and moves."""

    name: str
    reads: list[str] = []
    writes: list[str] = []
    cd: str = ""
    export: str = ""
    unknown: bool = False
    slow: int = 0
    """How often it lets others go first."""


class World:
    """Files, a working directory and a variable."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def act(self, step: StepParams, cwd: str, variable: str) -> str:
        """What a call sees; then what it writes."""
        seen = [f"{cwd} {variable}", *(self.files.get(path, "-") for path in places(step.reads, cwd))]
        for path in places(step.writes, cwd):
            self.files[path] = self.files.get(path, "") + step.name
        return " ".join(seen)


def places(paths: list[str], cwd: str) -> tuple[str, ...]:
    return tuple(posixpath.normpath(posixpath.join(cwd, path)) for path in paths)


class Step:
    """A tool whose calls take their time in the middle."""

    spec = ToolSpec("step")
    params = StepParams

    def __init__(self) -> None:
        self.world = World()

    def effects(self, params: StepParams, context: CallContext) -> Effects:
        """As the arguments say."""
        if params.unknown:
            return UNKNOWN
        session = (("cwd",) if params.cd else ()) + (("env",) if params.export else ())
        return Effects(places(params.reads, context.cwd), places(params.writes, context.cwd), session=session)

    async def run(self, params: StepParams, context: CallContext) -> ToolOutput:
        """Wait, act, wait, move."""
        for _ in range(params.slow):
            await asyncio.sleep(0)
        seen = self.world.act(params, context.cwd, str(context.env.get("V", "")))
        for _ in range(params.slow):
            await asyncio.sleep(0)
        if params.cd:
            context.change(Cwd(posixpath.normpath(posixpath.join(context.cwd, params.cd))))
        if params.export:
            context.change(Env({"V": params.export}))
        return ToolOutput((Text(seen),))


def one_after_the_other(steps: list[StepParams]) -> tuple[list[str], World]:
    world, cwd, variable, seen = World(), "/project", "", []
    for step in steps:
        seen.append(world.act(step, cwd, variable))
        cwd = posixpath.normpath(posixpath.join(cwd, step.cd))
        variable = step.export or variable
    return seen, world


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
async def test_what_runs_at_once_is_as_if_it_had_run_in_order(drawn: list[dict]) -> None:
    steps = [{"name": f"n{number}", **one} for number, one in enumerate(drawn)]
    calls = [{"id": f"id_{one['name']}", "name": "step", "arguments": one} for one in steps]
    tool = Step()
    agent, *_ = build([{"tool_calls": calls}, {"text": "ok"}], tools=(tool,))

    seen, world = one_after_the_other([StepParams(**one) for one in steps])
    async with agent.open() as session:
        await session.run("go")
        assert results(session.transcript.messages) == seen
    assert tool.world.files == world.files


async def run(calls: list[dict], tool: Step, *before: dict, **changes) -> list[str]:
    """Results of a turn whose reply has these calls, after other entries of the script."""
    agent, *_ = build([*before, {"tool_calls": calls}, {"text": "ok"}], tools=(tool,), **changes)

    async with agent.open() as session:
        await session.run("go")
        return results(session.transcript.messages)


def calls_of(*steps: dict) -> list[dict]:
    named = [{"name": f"n{number}", **one} for number, one in enumerate(steps)]
    return [{"id": f"id_{one['name']}", "name": "step", "arguments": one} for one in named]


async def test_a_call_that_will_mean_another_file_when_it_can_begin_still_comes_before_the_next_one_there() -> None:
    tool = Step()
    calls = calls_of(
        {"reads": ["x"], "slow": 300},
        {"cd": "d", "slow": 50},
        {"writes": ["x"], "slow": 3},  # waits for the first; by then this is /project/d/x
        {"reads": ["/project/d/x"]},
    )
    assert (await run(calls, tool))[3] == "/project/d  n2"


class Linked(Step):
    """Some paths are links, which calls make."""

    def __init__(self) -> None:
        super().__init__()
        self.links: dict[str, str] = {}
        self.allowed: dict[str, tuple[str, ...]] = {}

    def effects(self, params: StepParams, context: CallContext) -> Effects:
        """With links followed, as they are now."""
        effects = super().effects(params, context)
        return msgspec.structs.replace(effects, writes=tuple(self.links.get(path, path) for path in effects.writes))

    async def run(self, params: StepParams, context: CallContext) -> ToolOutput:
        """`n0` makes a link."""
        self.allowed[params.name] = context.grant.writable if context.grant else ()
        output = await super().run(params, context)
        if params.name == "n0":
            self.links["/project/a"] = "/project/b"
        return output


async def test_what_a_call_would_touch_is_seen_anew_when_one_it_waited_for_may_have_changed_that() -> None:
    tool = Linked()
    await run(calls_of({"unknown": True, "slow": 300}, {"writes": ["a"]}), tool)
    assert tool.allowed["n1"] == ("/project/b",)


async def test_an_answer_of_a_withdrawn_reply_is_not_given_again_behind_a_change() -> None:
    read = {"name": "r", "reads": ["x"]}
    first = [{"id": "r", "name": "step", "arguments": read}, *calls_of({"reads": ["/long" * 60]})]
    broken = {"tool_calls": first, "faults": {"cut_at_byte": 100}}
    for change in ({"writes": ["x"]}, {"cd": "d"}, {"unknown": True, "writes": ["x"]}):
        tool = Step()
        again = {"id": "again", "name": "step", "arguments": read}
        told = await run([*calls_of({**change, "name": "w"}), again], tool, broken)
        assert told[1] in ("/project  w", "/project/d  -"), change
