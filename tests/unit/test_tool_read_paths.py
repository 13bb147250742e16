"""The parameters `file_path` and `file_paths` of `read_file`: exactly one of them must name files."""

import pytest

from bradawl.core.errors import ToolError
from bradawl.tools.read_file import ReadFile

READ = ReadFile()


async def test_an_empty_name_beside_others_is_ignored(place, tmp_path):
    (tmp_path / "a").write_text("1" * 300)
    assert await place.text(READ, file_path="a", file_paths=("",)) == "1" * 300
    assert (await place.text(READ, file_paths=("", "a"), offset=1, limit=5)).startswith("(a has not changed")
    with pytest.raises(ToolError, match="exactly one of the two"):
        await place.call(READ, file_paths=("", ""))


@pytest.mark.parametrize(
    "arguments", [{}, {"file_path": "a", "file_paths": ("b",)}, {"file_path": "a", "file_paths": ("", "b")}]
)
def test_neither_or_both_are_refused_before_anything_is_read(place, arguments):
    with pytest.raises(ToolError, match="give either file_path or file_paths, exactly one of the two"):
        READ.effects(READ.params(**arguments), place.context())


async def test_files_that_do_not_fit_into_the_answer_are_named_and_not_shown(place, tmp_path):
    names = [f"{number}.txt" for number in range(300)]
    for name in names:
        (tmp_path / name).write_text("x" * 3_000)
    text = await place.text(READ, file_paths=tuple(names))
    assert len(text) < 60_000
    shown = text.count("==> ")
    assert shown > 20
    rest = (
        f"[not shown, because this answer is full: {', '.join(names[shown : shown + 20])}, ... ({300 - shown} in all)"
    )
    assert f"\n\n{rest}; read them in another call]" in text
    assert len(place.seen) == shown
    assert (await place.text(READ, file_paths=tuple(names[shown:]))).startswith(f"==> {names[shown]} <==\nxxx")


@pytest.mark.parametrize(
    ("wanted", "guess"),
    [
        ("tests/nope.py", ""),
        ("calc/nope.py", ""),
        ("nope.py", ""),
        ("a.py", ""),
        ("lib/core.py", "; did you mean calc/core.py?"),
        ("calc/croe.py", "; did you mean calc/core.py?"),
        ("calc/core.ts", "; did you mean calc/core.py?"),
        ("calc/CORE.py", "; did you mean calc/core.py?"),
        ("calc/parsre_input.py", "; did you mean calc/parser_input.py?"),
    ],
)
async def test_only_the_same_name_or_a_close_spelling_is_suggested(place, tmp_path, wanted, guess):
    for name in ("calc/core.py", "calc/parser_input.py", "tests/b.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    with pytest.raises(ToolError) as caught:
        await place.call(READ, file_path=wanted)
    assert f"; did you mean {str(caught.value).partition('did you mean ')[2]}" == (guess or "; did you mean ")
