"""The tool `todo_write` replaces the whole list, in which at most one todo is in progress."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_calls import FakeSession

from bradawl.core.errors import ToolError
from bradawl.core.events import Todo, TodosSet
from bradawl.shaping.tool_schema import schema_of
from bradawl.tools.todo_write import TodoWrite

STATUSES = ("pending", "in_progress", "completed")


def todo(content, status="pending"):
    return {"content": content, "status": status}


async def test_the_list_is_replaced_as_a_whole():
    session = FakeSession()
    text = await session.text(TodoWrite(), todos=[todo("look", "completed"), todo("mend", "in_progress"), todo("test")])
    assert session.changes == [TodosSet((Todo("look", "completed"), Todo("mend", "in_progress"), Todo("test")))]
    assert text == "1 of 3 todos completed; in progress: mend"
    assert await session.text(TodoWrite(), todos=[todo("look", "completed")]) == "1 of 1 todos completed."
    assert await session.text(TodoWrite(), todos=[]) == "The list of todos is empty now."
    assert session.changes[-1] == TodosSet(())


async def test_two_in_progress_are_refused_and_both_are_named():
    session = FakeSession()
    with pytest.raises(ToolError, match=r"2 todos are in_progress: 'a', 'b'\. At most one may be"):
        await session.call(TodoWrite(), todos=[todo("a", "in_progress"), todo("b", "in_progress"), todo("c")])
    assert session.changes == []


async def test_open_todos_without_one_in_progress_give_a_hint():
    assert "none is in_progress" in await FakeSession().text(TodoWrite(), todos=[todo("a"), todo("b")])


@pytest.mark.parametrize("content", ["", "  ", "\n\t"])
async def test_a_todo_without_content_is_refused_by_its_number(content):
    with pytest.raises(ToolError, match="todo 2 has no content"):
        await FakeSession().call(TodoWrite(), todos=[todo("a"), todo(content)])


async def test_too_many_todos_are_refused():
    with pytest.raises(ToolError, match="101 todos are too many"):
        await FakeSession().call(TodoWrite(), todos=[todo(str(number)) for number in range(101)])


async def test_a_todo_is_one_line_and_unknown_fields_are_ignored():
    session = FakeSession()
    extra = {**todo("Write\n  the tests "), "activeForm": "Writing", "id": 3, "priority": "high"}
    await session.call(TodoWrite(), todos=[extra])
    assert session.changes == [TodosSet((Todo("Write the tests"),))]


async def test_an_unknown_status_is_an_error_that_names_it():
    with pytest.raises(msgspec.ValidationError, match="done"):
        await FakeSession().call(TodoWrite(), todos=[todo("a", "done")])


def test_its_schema_has_no_union_types_and_requires_only_content():
    schema = json.loads(bytes(schema_of(TodoWrite()).parameters))
    assert "anyOf" not in json.dumps(schema)
    assert schema["properties"]["todos"]["items"]["required"] == ["content"]
    assert sorted(schema["properties"]["todos"]["items"]["properties"]["status"]["enum"]) == sorted(STATUSES)


def test_it_declares_a_change_of_the_todos_and_nothing_else():
    session = FakeSession()
    effects = TodoWrite().effects(TodoWrite().params([]), session.context)
    assert effects.session == ("todos",) and not effects.is_read_only
    assert not (effects.writes or effects.reads or effects.spends or effects.unknown)


@given(st.lists(st.tuples(st.text(), st.sampled_from(STATUSES)), max_size=110))
async def test_the_list_is_stored_whole_or_not_at_all(items):
    session = FakeSession()
    try:
        await session.call(TodoWrite(), todos=[todo(*item) for item in items])
    except ToolError:
        assert session.changes == []
    else:
        (change,) = session.changes
        assert [item.status for item in change.todos] == [status for _, status in items]
        assert sum(item.status == "in_progress" for item in change.todos) <= 1
        assert all(item.content and "\n" not in item.content for item in change.todos)
