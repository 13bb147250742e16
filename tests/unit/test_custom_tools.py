"""Functions as tools: their schema, effects, results and errors."""

import asyncio
import enum
import json
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from first_result import first_result

from bradawl import (
    CallContext,
    Effects,
    Image,
    ModelSettings,
    Settings,
    Text,
    ToolError,
    ToolOutput,
    build_agent,
    build_tools,
    tool,
)
from bradawl.core.effects import UNKNOWN
from bradawl.core.errors import SettingsError
from bradawl.core.messages import text_of
from bradawl.shaping.tool_list import check_tools
from patience import no_wait

PAGE = (Path(__file__).parents[2] / "docs" / "custom-tools.md").read_text()


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Box(msgspec.Struct):
    name: str


def properties(made) -> dict[str, Any]:
    """JSON Schemas of the parameters, by name."""
    schema = msgspec.json.schema(made.params)
    return schema["$defs"][made.params.__name__]["properties"]


# ------------------------------------------------------------------ the schema


def test_name_description_parameters_and_defaults_are_those_of_the_function():
    @tool
    def look_up(word: Annotated[str, "What to find."], limit: int = 5, *, exact: bool = False) -> str:
        """Look a word up.

        In the dictionary.
        """
        return f"{word} {limit} {exact}"

    assert look_up.spec.name == "look_up"
    assert look_up.params.__doc__ == "Look a word up.\n\nIn the dictionary."
    assert properties(look_up) == {
        "word": {"type": "string", "description": "What to find."},
        "limit": {"type": "integer", "default": 5},
        "exact": {"type": "boolean", "default": False},
    }
    assert look_up("a", exact=True) == "a 5 True"


async def test_parameters_of_every_kind_arrive_as_they_were_annotated(place):
    @tool
    def take(
        text: str,
        color: Color,
        point: Point,
        box: Box,
        numbers: list[float],
        table: dict[str, int],
        *,
        mode: Literal["a", "b"] = "a",
        maybe: int | None = None,
        point_or_not: Point | None = None,
        names: tuple[str, ...] = ("x",),
        anything: Any = None,
    ) -> str:
        """Take all."""
        return repr((text, color, point, box, numbers, table, mode, maybe, point_or_not, names, anything))

    given = '{"text":"t","color":"red","point":{"x":1},"box":{"name":"n"},"numbers":[1,2.5],"table":{"k":1}}'
    params = msgspec.json.decode(given, type=take.params)
    said = text_of((await take.run(params, place.context())).parts)
    assert said == repr(("t", Color.RED, Point(1), Box("n"), [1.0, 2.5], {"k": 1}, "a", None, None, ("x",), None))
    more = msgspec.convert({**json.loads(given), "maybe": 3, "point_or_not": {"x": 2}, "names": []}, take.params)
    assert text_of((await take.run(more, place.context())).parts).endswith("3, Point(x=2, y=0), (), None)")
    assert "anyOf" not in json.dumps(msgspec.json.schema(take.params))


async def test_a_parameter_that_may_be_none_is_optional(place):
    @tool
    def take(first: str | None, second: str | None = "x") -> dict:
        """Take."""
        return {"first": first, "second": second}

    assert await place.text(take) == '{"first":null,"second":"x"}'


async def test_the_decorator_can_name_the_tool_and_a_parameter_with_a_default_may_be_left_out(place):
    @tool(name="adds")
    def add(item: str, to: list[str] | None = None) -> list[str]:
        """Add."""
        return [*(to or []), item]

    assert add.spec.name == "adds"
    assert [await place.text(add, item="a"), await place.text(add, item="b", to=["a"])] == ['["a"]', '["a","b"]']


def no_annotation(value):
    """Do."""


def star(*values: int):
    """Do."""


def named(**values: int):
    """Do."""


def by_place(value: int, /):
    """Do."""


def no_docstring(value: int): ...


def a_path(value: Path):
    """Do."""


def two_types(value: int | str):
    """Do."""


def inner_none(value: list[int | None]):
    """Do."""


def unknown_name(value: "NoSuchType"):  # type: ignore[name-defined]  # noqa: F821 - unknown on purpose
    """Do."""


def yields(value: int):
    """Do."""
    yield value


def Capitals(value: int):
    """Do."""


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (no_annotation, "the parameter value has no annotation"),
        (star, "can't be given by its name"),
        (named, "can't be given by its name"),
        (by_place, "can't be given by its name"),
        (no_docstring, "no docstring"),
        (a_path, "the parameter value is a Path, which JSON can't hold"),
        (two_types, "the parameter value may be of several types"),
        (inner_none, "the parameter value may be of several types"),
        (unknown_name, "NoSuchType"),
        (yields, "returns one result"),
        (Capitals, "a-z, 0-9 and _"),
        (3, "takes a function"),
        (Point, "takes a function"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused_when_it_is_decorated(function, said):
    with pytest.raises(TypeError, match="can't be a tool") as refusal:
        tool(function)
    assert said in str(refusal.value)


async def waits(value: str) -> Effects:
    return Effects()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"reads": "other"}, "none named 'other'"),
        ({"writes": ["value", "other"]}, "none named 'other'"),
        ({"read_only": True, "writes": "value"}, "both"),
        ({"effects": lambda value: Effects(), "reads": "value"}, "leave reads"),
        ({"effects": lambda other: Effects()}, "takes other"),
        ({"effects": waits}, "without waiting"),
    ],
)
def test_contradictory_effects_are_refused_when_the_tool_is_defined(options, said):
    def act(value: str) -> None:
        """Act."""

    with pytest.raises(TypeError, match=re.escape(said)):
        tool(**options)(act)


@pytest.mark.parametrize("annotation", [int, bool, float, Color, Point, bytes, dict, list[int], list[Color]], ids=str)
@pytest.mark.parametrize("option", ["reads", "writes"])
def test_a_parameter_that_holds_no_path_is_refused_where_it_is_declared(annotation, option):
    def act(value) -> None:
        """Act."""

    act.__annotations__["value"] = annotation
    with pytest.raises(TypeError, match="parameters with a path or a list of paths, and value is neither"):
        tool(**{option: "value"})(act)


@pytest.mark.parametrize(
    "annotation",
    [str, str | None, Literal["a", "b"], Annotated[str, "A file."], list[str], tuple[str, ...] | None, list, Any],
    ids=str,
)
def test_a_text_or_a_list_of_texts_can_hold_paths(place, annotation):
    def act(value=("a", "b")) -> None:
        """Act."""

    act.__annotations__["value"] = annotation
    here = place.cwd
    assert effects_of(place, tool(reads="value")(act)) == Effects(reads=(f"{here}/a", f"{here}/b"))


# ------------------------------------------------------------------ effects


def effects_of(place, made, **arguments) -> Effects:
    return made.effects(made.params(**arguments), place.context())


def test_without_a_declaration_the_effects_are_unknown(place):
    @tool
    def act(value: str) -> None:
        """Act."""

    assert effects_of(place, act, value="x") == UNKNOWN


def test_declared_paths_are_resolved_from_the_working_directory(place):
    @tool(reads=("source", "more"), writes="target")
    def copy(source: str, target: str | None = None, more: list[str] = ["d"]) -> None:  # noqa: B006 - a default that is never changed
        """Copy."""

    here = place.cwd
    assert effects_of(place, copy, source="a") == Effects(reads=(f"{here}/a", f"{here}/d"))
    assert effects_of(place, copy, source="a", target="/b", more=[]) == Effects(reads=(f"{here}/a",), writes=("/b",))


def test_effects_may_be_read_only_or_computed_by_a_function(place):
    @tool(read_only=True)
    def add(one: int, two: int) -> int:
        """Add."""
        return one + two

    @tool(effects=lambda city, context: Effects(hosts=(f"{city}.example",), reads=(context.cwd,)))
    def weather(city: str, day: int = 1) -> str:
        """Tell."""
        return city

    @tool(effects=lambda **all_of_them: Effects(hosts=(str(sorted(all_of_them)),)))
    def anything(one: int = 1) -> str:
        """Do."""
        return ""

    assert effects_of(place, add, one=1, two=2) == Effects()
    assert effects_of(place, weather, city="rome") == Effects(hosts=("rome.example",), reads=(place.cwd,))
    assert effects_of(place, anything) == Effects(hosts=("['context', 'one']",))


def test_links_in_declared_paths_are_followed(place):
    @tool(effects=lambda path: Effects(reads=(f"/{path}",), writes=(path,)))
    def put(path: str) -> None:
        """Put."""

    target = Path(place.cwd, "target")
    target.mkdir()
    link = Path(place.cwd, "link")
    link.symlink_to(target)
    assert effects_of(place, put, path=f"{link}/a") == Effects(reads=(f"{target}/a",), writes=(f"{target}/a",))


# ------------------------------------------------------------------ results and errors


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", "text"),
        (None, "(done; it gave nothing back)"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (Point(1), '{"x":1,"y":0}'),
        (Box("n"), '{"name":"n"}'),
        (7, "7"),
        ("broken \udcff", "broken \\udcff"),
        (Text("part"), "part"),
        (ToolOutput((Text("whole"),)), "whole"),
    ],
)
async def test_a_returned_value_becomes_text(place, value, expected):
    @tool
    def give() -> Any:
        """Give."""
        return value

    assert await place.text(give) == expected


async def test_a_returned_image_stays_an_image(place):
    @tool
    async def draw() -> Image:
        """Draw."""
        return Image("image/png", b"x")

    assert (await place.call(draw)).parts == (Image("image/png", b"x"),)


async def test_a_plain_function_runs_in_a_thread_and_an_async_one_in_the_loop(place):
    def where(*, context: CallContext) -> str:
        """Where."""
        context.progress("on the way")
        return threading.current_thread().name

    async def here(context: CallContext) -> str:
        """Here."""
        return f"{threading.current_thread().name} {context.cwd}"

    assert await place.text(tool(where)) == "tool"
    assert place.progress == ["on the way"]
    assert await place.text(tool(here)) == f"MainThread {place.cwd}"


async def test_cancelling_does_not_wait_for_a_thread(place):
    release, begun = threading.Event(), threading.Event()

    @tool
    def hang() -> str:
        """Hang."""
        begun.set()
        release.wait(60)
        return "late"

    call = asyncio.ensure_future(place.call(hang))
    try:
        await asyncio.to_thread(begun.wait, 20)
        with no_wait():
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
    finally:
        release.set()
    for thread in threading.enumerate():
        if thread.name == "tool":
            thread.join(5)
    assert not [thread for thread in threading.enumerate() if thread.name == "tool"]


def raising(error: BaseException, *, is_async: bool):
    @tool(read_only=True)
    def fail() -> str:
        """Fail."""
        raise error

    @tool(read_only=True, name="fail")
    async def fail_later() -> str:
        """Fail."""
        raise error

    return fail_later if is_async else fail


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    "error", [ValueError("odd"), StopIteration("odd"), SystemExit("odd"), KeyError("odd"), ToolError("odd")], ids=repr
)
def test_an_exception_of_a_tool_is_reported_to_the_model_and_the_turn_goes_on(tmp_path, capsys, error, is_async):
    said = result_text(tmp_path, raising(error, is_async=is_async), "fail", {})
    assert "odd" in said or "StopIteration" in said
    assert ("broke" in said) is not isinstance(error, ToolError)
    assert "Traceback" not in said + capsys.readouterr().err


def test_effects_of_a_wrong_type_are_reported_to_the_model_and_the_turn_goes_on(tmp_path):
    def no_effects(value: str) -> Effects:
        return f"reads {value}"  # type: ignore[return-value]  # wrong on purpose

    @tool(effects=no_effects)
    def act(value: str) -> str:
        """Act."""
        return value

    assert "act broke: TypeError: effects gave back str, not Effects" in result_text(
        tmp_path, act, "act", {"value": "x"}
    )


def test_a_result_that_cannot_be_encoded_is_an_error_of_the_tool(tmp_path):
    @tool(read_only=True)
    def give() -> object:
        """Give."""
        return object()

    assert "give broke: TypeError" in result_text(tmp_path, give, "give", {})


def result_text(tmp_path: Path, made, name: str, arguments: dict[str, object], **settings) -> str:
    """Text of the result when a whole agent calls the tool once."""
    script = tmp_path / "script.json"
    calls = [{"id": "c1", "name": name, "arguments": arguments}]
    script.write_text(json.dumps([{"tool_calls": calls}, {"text": "done"}]))
    home = str(tmp_path / "home")
    chosen = Settings(model=ModelSettings("scripted", str(script)), cwd=str(tmp_path), home=home, **settings)
    agent = build_agent(chosen, tools=[*build_tools(), made])
    result = agent.run_sync("go")
    assert result.reason == "completed", result
    return first_result(agent)


# ------------------------------------------------------------------ several tools, and docs/custom-tools.md


def test_two_tools_with_one_name_are_refused_with_both_their_origins():
    @tool
    def bash(command: str) -> str:
        """Mine."""
        return command

    with pytest.raises(SettingsError, match=r"named bash: bradawl\.tools\.bash\.Bash and .*test_custom_tools.*bash\."):
        check_tools([*build_tools(), bash])
    check_tools(build_tools())


def example(name: str) -> dict[str, Any]:
    """What an example of the page defines when it is run."""
    source = re.search(rf"<!-- example: {name} -->\n```python\n(.*?)```", PAGE, re.DOTALL)
    assert source
    namespace: dict[str, Any] = {"__name__": "example"}
    exec(compile(source[1], "custom-tools.md", "exec", dont_inherit=True), namespace)  # noqa: S102 - our own page
    return namespace


def test_the_example_of_the_page_runs_in_an_agent(tmp_path, monkeypatch):
    namespace = example("a function")
    (tmp_path / "notes.txt").write_text("one two\nthree\n")
    count = namespace["count"]
    assert result_text(tmp_path, count, "count", {"path": "notes.txt"}) == "2 lines in notes.txt"
    assert result_text(tmp_path, count, "count", {"path": "notes.txt", "what": "words"}) == "3 words in notes.txt"
    assert "is not a file" in result_text(tmp_path, count, "count", {"path": "none.txt"})
    assert "count was not run" in result_text(tmp_path, count, "count", {"path": "notes.txt", "what": "letters"})


def test_the_json_tool_of_the_page_runs_in_an_agent(tmp_path):
    namespace = example("a JSON tool")
    made = namespace["tool"]
    assert result_text(tmp_path, made, "close_issue", {"issue": 7}, permission_mode="bypass") == "Closed issue 7."
    assert "close_issue was not run" in result_text(
        tmp_path, made, "close_issue", {"issue": "x"}, permission_mode="bypass"
    )


def test_the_tool_of_the_page_with_effects_runs(tmp_path):
    namespace = example("effects")
    weather = namespace["weather"]
    shown = result_text(tmp_path, weather, "weather", {"city": "x"}, permission_mode="bypass")
    assert json.loads(shown) == {"celsius": 21.5}
