"""Which files a call may change, so that their state before it is saved."""

from bradawl.agent.changes import files_it_may_change
from bradawl.core.effects import UNKNOWN, Effects

LINE = Effects(seal="a seal", commands=(("touch", "a"),), understood=True)


def test_a_tool_names_its_files():
    assert files_it_may_change(Effects(writes=("/ws/a",))) == ("/ws/a",)
    assert files_it_may_change(Effects(reads=("/ws/a",))) == ()


def test_a_line_that_only_reads_changes_nothing():
    assert files_it_may_change(LINE) == ()


def test_a_line_that_writes_may_change_any_file_because_its_words_may_lead_through_links_it_makes():
    writing = Effects(seal="a seal", commands=(("touch", "a"),), understood=True, writes=("/ws/a",))
    assert files_it_may_change(writing) is None
    assert files_it_may_change(Effects(writes=("/ws/a",), seal="a seal")) is None
    assert files_it_may_change(Effects(commands=(("make",),))) is None
    assert files_it_may_change(UNKNOWN) is None
