"""`fitted` shortens a result that exceeds its tool's limit, and keeps the whole."""

from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.messages import Image, Text
from bradawl.core.ports import ToolOutput
from bradawl.shaping.preview import cut_middle, fitted

LINES = "".join(f"line {number}\n" for number in range(1, 1_001))


def test_a_result_within_the_limit_is_unchanged():
    output = ToolOutput((Text("a"), Text("b")), limit=2)
    assert fitted(output) == (output.parts, None)


def test_the_longest_text_is_cut_in_the_middle_at_line_breaks_and_short_texts_stay():
    parts, full = fitted(ToolOutput((Text(LINES), Text("[exit code 0]")), limit=200))
    body, notes = parts
    assert notes == Text("[exit code 0]") and full == f"{LINES}[exit code 0]".encode()
    head, _, tail = body.text.partition("\n[... lines ")
    assert LINES.startswith(f"{head}\n") and tail.endswith("line 1000\n")
    first, last = tail.partition(" of 1,000 cut ...]\n")[0].split("-")
    assert int(first) == head.count("\n") + 2 and f"cut ...]\nline {int(last) + 1}\n" in body.text


def test_one_long_line_is_cut_by_characters():
    text = cut_middle("a" * 50_000 + "b" * 50_000, 1_000)
    assert text == "a" * 333 + "\n[... characters 334-99,334 of 100,000, lines 1-1 of 1 cut ...]\n" + "b" * 666


def test_results_without_a_limit_and_images_are_never_cut():
    picture = Image("image/png", b"x" * 100)
    assert fitted(ToolOutput((Text(LINES),), limit=None)) == ((Text(LINES),), None)
    assert fitted(ToolOutput((picture, Text("a" * 100)), limit=10))[0][0] == picture


def test_the_full_text_that_a_tool_supplies_is_kept():
    assert fitted(ToolOutput((Text(LINES),), b"all of it", limit=100))[1] == b"all of it"


@given(st.text(alphabet="ab\n", max_size=400), st.integers(20, 200))
def test_a_cut_text_shows_beginning_and_end_with_correct_line_numbers(text: str, most: int):
    shown = cut_middle(text, most)
    if len(text) <= most:
        assert shown == text
        return
    head, _, rest = shown.partition("\n[... ")
    missing, _, tail = rest.partition(" cut ...]\n")
    assert text.startswith(head) and text.endswith(tail)
    if missing.startswith("lines"):
        first, last = (int(number) for number in missing.split()[1].split("-"))
        lines = text.split("\n")
        assert lines[: first - 1] == head.split("\n") and lines[last:] == tail.split("\n")
    assert int(missing.split(" of ")[-1]) == text.count("\n") + (not text.endswith("\n"))


@given(st.lists(st.integers(0, 3_000), max_size=40), st.integers(200, 5_000))
def test_all_texts_of_a_result_together_stay_within_the_limit(lengths: list[int], limit: int):
    texts = tuple(Text("x" * length) for length in lengths)
    parts, full = fitted(ToolOutput(texts, limit=limit))
    assert sum(len(part.text) for part in parts) <= limit + 8 * 80
    assert (full is not None) == (sum(lengths) > limit) and full in (None, b"x" * sum(lengths))
