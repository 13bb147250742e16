"""Properties of every edit of every file."""

import re
from unicodedata import normalize

from hypothesis import assume, example, given
from hypothesis import strategies as st

from bradawl.core.errors import ToolError
from bradawl.tools.editing.plan import Change, plan

BYTES = (
    b"a",
    b"b1",
    b"\n",
    b"\r\n",
    b"\r",
    b"\t",
    b"  ",
    b" ",
    b"\xc3\xa9",
    b"\xff",
    b"\xe2\x80\x9c",
    b"\xc2\xa0",
    b'"',
    b"-",
)
MORE = (b"'", b"e\xcc\x81", b"{", b"}", b"\xf0\x9f\x98\x80", b"\xef\xbb\xbf", b"\\n", b"1\t", b"one", b"two")
PIECES = st.lists(st.sampled_from(BYTES + MORE), max_size=14).map(b"".join)
STRINGS = ("one", "two", "a", "b1", "  ", "\t", "\n", "\n\n", '"', "'", "-", "\u201c", "\u00e9", " ", "\\n", "1\t")
WORDS = st.lists(st.sampled_from(STRINGS), max_size=10).map("".join)


@given(PIECES, PIECES, WORDS)
def test_an_exact_and_unique_match_is_replaced_and_nothing_else(head: bytes, tail: bytes, new: str) -> None:
    data = head + b"<needle\there>" + tail
    assume(b"\0" not in data)
    try:
        planned = plan(data, Change("<needle\there>", new), "f")
    except ToolError as error:
        assert "is not UTF-8" in str(error)
        return
    assert planned.data.startswith(head)
    assert planned.data.endswith(tail)
    middle = planned.data[len(head) : len(planned.data) - len(tail)].replace(b"\r\n", b"\n")
    assert middle in {new.encode(), new.encode("latin-1", "replace")}


@given(PIECES, PIECES, WORDS, st.sampled_from(["utf-8-sig", "utf-16-le", "utf-16-be"]))
def test_marked_encodings_are_written_as_they_were_read(head: bytes, tail: bytes, new: str, codec: str) -> None:
    before, after = (part.decode("utf-8", "replace").replace("\r", "") for part in (head, tail))
    mark = "" if codec == "utf-8-sig" else "\ufeff"
    data = f"{mark}{before}<needle>{after}".encode(codec)
    planned = plan(data, Change("<needle>", new), "f")
    assert planned.data == f"{mark}{before}{new}{after}".encode(codec)


@given(PIECES, WORDS, WORDS)
@example(b"", "1\t", "1\t1\t")
def test_up_to_ignored_differences_exactly_one_place_changes_from_old_to_new(data: bytes, old: str, new: str) -> None:
    assume(old and b"\0" not in data)
    try:
        planned = plan(data, Change(old, new), "f")
    except ToolError:
        return
    before, after = (_plain(planned.encoding.decode(part), planned.note) for part in (data, planned.data))
    wanted, given_new = _plain(old, planned.note), _plain(new, planned.note)
    places = [place for place in range(len(before) + 1) if before.startswith(wanted, place)]
    assert after in {before[:place] + given_new + before[place + len(wanted) :] for place in places}


@given(PIECES, PIECES, st.integers(0, 40), st.integers(1, 12), WORDS)
@example(b"a\r\nb1\r\n", b"", 0, 5, "one")
def test_text_that_occurs_twice_is_never_replaced(
    piece: bytes, between: bytes, start: int, length: int, new: str
) -> None:
    text, middle = (part.decode("utf-8", "ignore").replace("\r", "") for part in (piece, between))
    old = text[start % max(len(text), 1) :][:length]
    assume(old and old != new)
    data = f"top\n{text}{middle}{text}".encode()
    try:
        planned = plan(data, Change(old, new), "f")
    except ToolError as error:
        assert "matches" in str(error)
        return
    raise AssertionError(planned)


@given(st.lists(st.sampled_from(["one", "  two", "    six", "", "\tten"]), min_size=1, max_size=6), PIECES, WORDS)
def test_lines_that_both_strings_share_stay_byte_for_byte(lines: list[str], blanks: bytes, new: str) -> None:
    """The file has other line endings and trailing blanks; only the edited line changes."""
    noise = re.sub(rb"[^ \t]", b"", blanks)
    file = [line.encode() + noise + b"\r\n" for line in lines]
    data = b"start\n" + b"".join(file) + b"middle()" + noise + b"\r\nend"
    old = "\n".join([*lines, "middle()"])
    change = Change(old, "\n".join([*lines, "other()" + new.strip().replace("\n", "")]))
    try:
        planned = plan(data, change, "f")
    except ToolError:
        return
    assert planned.data.startswith(b"start\n" + b"".join(file))
    assert planned.data.endswith(b"\nend")


def _plain(text: str, note: str) -> str:
    """The text as it is compared: without a note up to line endings, otherwise by its letters and digits."""
    if not note:
        return text.replace("\r\n", "\n")
    if "line numbers" in note:
        text = re.sub(r"^ *\d+\t", "", text, flags=re.MULTILINE)
    if "backslashes" in note:
        text = text.replace("\\n", "\n").replace("\\", "")
    return re.sub(r"[^a-z0-9{}<>]", "", normalize("NFD", text))
