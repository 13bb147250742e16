"""The tool `read_file`: text, images, PDF documents, notebooks, folders and large files."""

import json
import os
import re
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.messages import Image
from bradawl.tools.bash import Bash
from bradawl.tools.edit_file import EditFile
from bradawl.tools.read_file import ReadFile
from bradawl.tools.reading.images import media_type_of
from bradawl.tools.reading.notebook import notebook_page
from bradawl.tools.reading.paging import Span

READ, EDIT = ReadFile(), EditFile()


async def test_lines_are_shown_as_they_are_and_the_file_counts_as_seen(place, tmp_path):
    (tmp_path / "f").write_bytes(b"a\r\nb\x0c\xe2\x80\xa8c\n\nlast")
    assert await place.text(READ, file_path="f") == "a\nb\x0c\u2028c\n\nlast"
    assert list(place.seen) == [f"{place.cwd}/f"]


async def test_a_part_begins_with_its_lines(place, tmp_path):
    (tmp_path / 'q"f').write_text("".join(f"{n}\n" for n in range(1, 11)))
    assert await place.text(READ, file_path='q"f', offset=3, limit=2) == "[lines 3-4 of 10]\n3\n4"
    assert await place.text(READ, file_path='q"f', offset=10) == "[line 10 of 10]\n10"
    assert await place.text(READ, file_path='q"f', offset=0, limit=1) == "[line 1 of 10]\n1"


async def test_a_result_with_less_than_was_asked_for_names_the_call_that_shows_the_rest(place, tmp_path):
    (tmp_path / 'q"f').write_text("".join(f"{n}\n" for n in range(1, 2_101)))
    text = await place.text(READ, file_path='q"f')
    assert text.startswith("[lines 1-2000 of 2100]\n1\n2\n")
    assert text.endswith('\n2000\n[read_file(file_path="q\\"f", offset=2001) shows what follows]')
    (tmp_path / "wide").write_text(("y" * 999 + "\n") * 300)
    text = await place.text(READ, file_path="wide", offset=101, limit=100)
    assert text.startswith("[lines 101-150 of 300]\n")
    assert text.endswith('\n[read_file(file_path="wide", offset=151, limit=100) shows what follows]')


async def test_long_lines_and_long_files_are_cut_and_say_so(place, tmp_path):
    (tmp_path / "wide").write_text("x" * 2_000_000)
    text = await place.text(READ, file_path="wide")
    assert text.startswith("x" * 2_000 + " [... line cut: 2000000 characters, the first 2000 are shown; bash: ")
    (tmp_path / "long").write_text(("y" * 99 + "\n") * 1_000)
    text = await place.text(READ, file_path="long")
    assert len(text) < 51_000
    last = text.count("\n") - 1
    assert text.startswith(f"[lines 1-{last} of 1000]\nyyy")
    assert text.endswith(f'y\n[read_file(file_path="long", offset={last + 1}) shows what follows]')


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "exactly one"),
        ({"file_path": "f", "file_paths": ("f",)}, "exactly one"),
        ({"file_path": "f", "offset": -1}, "offset"),
        ({"file_path": "f", "limit": -1}, "limit"),
        ({"file_path": "f", "offset": 3}, "f has 2 lines"),
        ({"file_path": "none"}, "^none does not exist; in that folder: f, junk, png$"),
        ({"file_path": "../none"}, r"^\.\./none does not exist"),
        ({"file_path": "no/where/x"}, "^no/where/x does not exist, nor does its folder"),
        ({"file_path": "f/x"}, "^f/x: a part of this path is a file"),
        ({"file_path": "png"}, "a PNG image, 12 bytes"),
        ({"file_path": "junk"}, "binary data"),
    ],
)
async def test_an_unreadable_file_is_an_error(place, tmp_path, arguments, message):
    (tmp_path / "f").write_text("a\nb\n")
    (tmp_path / "png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\0")
    (tmp_path / "junk").write_bytes(bytes(range(1, 32)))
    with pytest.raises(ToolError, match=message):
        await place.call(READ, **arguments)
    assert not place.seen


async def test_the_named_command_shows_the_rest_of_a_cut_line(place, tmp_path):
    (tmp_path / "it's -x").write_text("short\n" + "a" * 2_000 + "b" * 500 + "\n")
    (tmp_path / "-x").write_text("a" * 2_000 + "b" * 500 + "\n")
    for path in ("it's -x", "-x"):
        (cut,) = (line for line in (await place.text(READ, file_path=path)).splitlines() if "[..." in line)
        command = cut.partition("; bash: ")[2].removesuffix("]")
        assert await place.text(Bash(), command=command) == "b" * 500 + "\n[exit code 0]"


async def test_a_missing_file_is_an_error_with_similar_names(place, tmp_path):
    grow(place, "src/pkg/calc.py", "old/calc.py", "calcs.py", "lib/pkg/deep/x.py")
    for arguments, message in (
        ({"file_path": "calc.py"}, "calc.py does not exist; did you mean old/calc.py, src/pkg/calc.py?"),
        ({"file_path": "pkg/calc.py"}, "pkg/calc.py does not exist, nor does its folder; did you mean src/pkg/calc.py"),
        ({"file_path": "deep"}, "deep does not exist; did you mean lib/pkg/deep?"),
        ({"file_path": "calc.p"}, "calc.p does not exist; did you mean old/calc.py, src/pkg/calc.py?"),
        ({"file_path": "CALCS.PY"}, "CALCS.PY does not exist; did you mean calcs.py?"),
        ({"file_path": "calsc.py"}, "calsc.py does not exist; did you mean calcs.py"),
        ({"file_path": "calcs.ts"}, "calcs.ts does not exist; did you mean calcs.py"),
        ({"file_path": "scr/pkg"}, "scr/pkg does not exist, nor does its folder; did you mean"),
        ({"file_path": "srcc"}, "srcc does not exist; did you mean src?"),
        ({"file_path": "zz"}, "zz does not exist; in that folder: calcs.py, lib, old, src"),
    ):
        with pytest.raises(ToolError, match=f"^{re.escape(message)}"):
            await place.call(READ, **arguments)
    with pytest.raises(ToolError, match=r"^\./x\.py does not exist; did you mean lib/pkg/deep/x\.py\?"):
        await place.call(EDIT, file_path="./x.py", old_string="a", new_string="b")


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"", "(f is empty)"),
        (b"\xef\xbb\xbfa", "a"),
        ("\ufeffa\u00e9\n".encode("utf-16-le"), "a\u00e9\n(UTF-16-LE)"),
        ("\ufeffa\u00e9\n".encode("utf-16-be"), "a\u00e9\n(UTF-16-BE)"),
        (b"caf\xe9", "caf\u00e9\n(not valid UTF-8, read as Latin-1)"),
        (b"\xef\xbb\xbf", "(f is empty but for a byte order mark)"),
    ],
)
async def test_encodings_are_read_and_named(place, tmp_path, data, shown):
    (tmp_path / "f").write_bytes(data)
    assert await place.text(READ, file_path="f") == shown


async def test_a_folder_is_listed(place, tmp_path):
    (tmp_path / "d" / "sub").mkdir(parents=True)
    assert (await place.text(READ, file_path="d")).endswith("(no files, apart from what git ignores)")
    (tmp_path / "d" / "sub" / "x").write_text("")
    (tmp_path / "d" / "a").write_text("")
    assert await place.text(READ, file_path="d") == "d is a folder:\na\nsub/"


async def test_one_of_several_files_may_fail(place, tmp_path):
    (tmp_path / "a").write_text("1\n")
    (tmp_path / "b").write_text("2\n")
    output = await place.call(READ, file_paths=("a", "none", "b"))
    text = output.parts[0].text
    assert text.startswith("==> a <==\n1\n\n==> none <==\nError: ")
    assert text.endswith("\n\n==> b <==\n2")
    assert (output.is_error, output.has_failed_part) == (False, True)
    output = await place.call(READ, file_paths=("x", "y"))
    assert (output.is_error, output.has_failed_part) == (True, False)
    assert not (await place.call(READ, file_paths=("a", "b"))).has_failed_part


def test_effects_name_resolved_paths(place, tmp_path):
    (tmp_path / "link").symlink_to("real")
    context = place.context()
    assert READ.effects(READ.params(file_path="link"), context) == Effects(reads=(f"{place.cwd}/real",))
    both = READ.params(file_paths=("link", "real", "x"))
    assert READ.effects(both, context) == Effects(reads=(f"{place.cwd}/real", f"{place.cwd}/x"))


def grow(place, *names: str) -> None:
    for name in names:
        path = Path(place.cwd, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


# ------------------------------------------------------------------ images


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int = 3, height: int = 2) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IEND", b"")


JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0" + b"\0" * 9 + b"\xff\xc0\0\x11\x08\0\x02\0\x03" + b"\0" * 20
GIF = b"GIF89a\x03\0\x02\0" + b"\0" * 10
WEBP = {
    b"VP8X": b"VP8X\x0a\0\0\0\0\0\0\0\x02\0\0\x01\0\0",
    b"VP8L": b"VP8L\x0a\0\0\0\x2f" + ((3 - 1) | (2 - 1) << 14).to_bytes(4, "little") + b"\0" * 5,
    b"VP8 ": b"VP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a\x03\0\x02\0",
}


@pytest.mark.parametrize(
    ("data", "media_type", "name"),
    [
        (png(), "image/png", "PNG"),
        (JPEG, "image/jpeg", "JPEG"),
        (GIF, "image/gif", "GIF"),
        *((b"RIFF\0\0\0\0WEBP" + body, "image/webp", "WebP") for body in WEBP.values()),
    ],
)
async def test_an_image_is_recognised_by_its_content(place, tmp_path, data, media_type, name):
    (tmp_path / "pic.txt").write_bytes(data)
    output = await place.call(READ, file_path="pic.txt")
    assert output.parts[1] == Image(media_type, data)
    assert output.parts[0].text == f"pic.txt is a {name} image, {len(data)} bytes, 3x2 pixels:"
    again = await place.call(READ, file_path="pic.txt")
    assert again.parts[0].text == "(pic.txt has not changed: the earlier answer with the image still holds)"
    assert len(again.parts) == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (png() + b"\0" * 3_750_000, "more than the 3,750,000 that can be shown; make a smaller copy"),
        (png(9_000, 2), "9000x2 pixels, more than the 8000 a side"),
        (png()[:20], "it is damaged"),
        (JPEG[:10], "it is damaged"),
        (b"\xff\xd8\xff\xe0\0\0" * 3, "it is damaged"),
        (b"RIFF\0\0\0\0WAVEfmt \0", "a RIFF media file"),
    ],
)
async def test_an_image_that_models_do_not_accept_is_refused(place, tmp_path, data, message):
    (tmp_path / "pic").write_bytes(data)
    with pytest.raises(ToolError, match=message):
        await place.call(READ, file_path="pic")
    assert not place.seen


async def test_images_and_text_are_read_in_one_call(place, tmp_path):
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "p.png").write_bytes(png())
    parts = (await place.call(READ, file_paths=("a.txt", "p.png", "a.txt"))).parts
    assert [type(part).__name__ for part in parts] == ["Text", "Image", "Text"]
    assert parts[0].text.startswith("==> a.txt <==\na\n\n==> p.png <==\np.png is a PNG image")
    for number in range(11):
        (tmp_path / f"{number}.png").write_bytes(png(number + 1))
    output = await place.call(READ, file_paths=tuple(f"{number}.png" for number in range(11)))
    assert sum(isinstance(part, Image) for part in output.parts) == 10
    assert "10.png is one image too many for one answer; read it by itself" in output.parts[-1].text
    assert isinstance((await place.call(READ, file_path="10.png")).parts[1], Image)


@given(st.binary(max_size=60), st.sampled_from([png()[:16], JPEG[:4], GIF[:6], b"RIFF\0\0\0\0WEBPVP8 "]))
def test_no_broken_image_makes_the_reader_fail(data, head):
    from bradawl.tools.reading.images import image_page

    data = head + data
    try:
        page = image_page(data, media_type_of(data), "x")
    except ToolError as error:
        assert "x is a" in str(error)
    else:
        assert page.parts[1].data == data


# ------------------------------------------------------------------ PDF


def pdf(*pages: str, password: bool = False) -> bytes:
    """A document with a line of text on each page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids: list[str] = []
    for text in pages:
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        font = "<< /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
        content = f"/Contents {len(objects)} 0 R /Resources << /Font {font} >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {content} >>")
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    out = "%PDF-1.4\n"
    places: list[int] = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    lock = "/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O (x) /U (y) >> /ID [(a) (a)]" if password else ""
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R {lock} >>\nstartxref\n{len(out)}\n%%EOF\n"
    return f"{out}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode()


async def test_the_text_of_a_pdf_is_shown_by_pages(place, tmp_path):
    (tmp_path / "d.pdf").write_bytes(pdf("first words", "second", "third"))
    assert await place.text(READ, file_path="d.pdf") == (
        "--- page 1 of 3 ---\nfirst words\n--- page 2 of 3 ---\nsecond\n--- page 3 of 3 ---\nthird"
    )
    follows = 'read_file(file_path="d.pdf", offset=3, limit=1) shows what follows'
    text = await place.text(READ, file_path="d.pdf", offset=2, limit=1)
    assert text == f"--- page 2 of 3 ---\nsecond\n[pages 2-2 of 3; {follows}]"
    assert "answer with pages 1-3 still holds" in await place.text(READ, file_path="d.pdf")


@pytest.mark.parametrize(
    ("data", "arguments", "message"),
    [
        (pdf("a"), {"offset": 2}, "d.pdf has 1 page; offset=2 is past its end"),
        (b"%PDF-1.4\nnothing", {}, "d.pdf is a PDF document, but it can't be read: "),
        (b"%PDF-", {}, "is a PDF document, but"),
        (pdf("a", password=True), {}, "it is encrypted"),
    ],
)
async def test_an_unreadable_pdf_is_an_error(place, tmp_path, data, arguments, message):
    (tmp_path / "d.pdf").write_bytes(data)
    with pytest.raises(ToolError, match=re.escape(message)):
        await place.call(READ, file_path="d.pdf", **arguments)
    assert not place.seen


async def test_a_scanned_pdf_says_that_it_has_no_text(place, tmp_path):
    (tmp_path / "d.pdf").write_bytes(pdf("", ""))
    text = await place.text(READ, file_path="d.pdf")
    assert text.startswith("--- page 1 of 2 ---\n(no text on this page)\n")
    assert "probably scanned images; use bash" in text


async def test_a_long_pdf_is_cut_between_pages(place, tmp_path):
    (tmp_path / "d.pdf").write_bytes(pdf(*("word " * 4_000,) * 4))
    text = await place.text(READ, file_path="d.pdf")
    assert len(text) < 51_000
    assert text.endswith('[pages 1-2 of 4; read_file(file_path="d.pdf", offset=3) shows what follows]')


# ------------------------------------------------------------------ notebooks


def notebook(*cells: dict[str, object]) -> str:
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


CODE = {
    "cell_type": "code",
    "execution_count": 7,
    "metadata": {},
    "source": ["import x\n", 'print("1")'],
    "outputs": [
        {"output_type": "stream", "name": "stdout", "text": ["1\n", "\x1b[31mred\x1b[0m 10%\r 99%\n"]},
        {"output_type": "display_data", "data": {"image/png": "iVBO", "text/plain": "<Figure>"}, "metadata": {}},
        {"output_type": "execute_result", "data": {"text/plain": ["[1,\n", " 2]"], "text/html": "<p>"}},
        {"output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": ["..."]},
    ],
}
WORDS = {"cell_type": "markdown", "metadata": {}, "source": "# Title\n\nwords\n"}


async def test_a_notebook_is_shown_as_cells(place, tmp_path):
    (tmp_path / "n.ipynb").write_text(notebook(WORDS, CODE))
    assert (await place.text(READ, file_path="n.ipynb")).splitlines() == [
        "n.ipynb is a notebook; an edit has to match its JSON source, not what is shown here:",
        *("--- cell 1, markdown ---", "# Title", "", "words"),
        *("--- cell 2, code [7] ---", "import x", 'print("1")'),
        *("--- output ---", "1", " 99%", "[image/png]", "[1,", " 2]", "ValueError: bad"),
    ]
    text = await place.text(READ, file_path="n.ipynb", limit=1)
    assert text.endswith('[cells 1-1 of 2; read_file(file_path="n.ipynb", offset=2, limit=1) shows what follows]')
    assert "--- cell 2" in await place.text(READ, file_path="n.ipynb", offset=2)
    assert "answer with cells 1-2 still holds" in await place.text(READ, file_path="n.ipynb")
    with pytest.raises(ToolError, match=r"n\.ipynb has 2 cells; offset=3"):
        await place.call(READ, file_path="n.ipynb", offset=3)


async def test_long_outputs_and_long_notebooks_are_cut(place, tmp_path):
    noisy = {**CODE, "outputs": [{"output_type": "stream", "text": "y" * 5_000}]}
    (tmp_path / "n.ipynb").write_text(notebook(*[noisy] * 100))
    text = await place.text(READ, file_path="n.ipynb")
    assert "y\n[... 3,000 more characters of output]\n" in text
    assert len(text) < 51_000
    last = text.count("--- cell ")
    assert text.endswith(
        f'[cells 1-{last} of 100; read_file(file_path="n.ipynb", offset={last + 1}) shows what follows]'
    )


@pytest.mark.parametrize(
    "source", ["{", '{"cells": 1}', '{"worksheets": []}', "[]", "plain", '{"cells":[{}],"nbformat":4}']
)
async def test_an_invalid_notebook_is_shown_as_text(place, tmp_path, source):
    (tmp_path / "n.ipynb").write_text(source)
    assert await place.text(READ, file_path="n.ipynb") == f"{source}"


async def test_a_notebook_without_cells_says_so(place, tmp_path):
    (tmp_path / "n.ipynb").write_text(notebook())
    assert await place.text(READ, file_path="n.ipynb") == "(n.ipynb is a notebook without cells)"


@given(st.recursive(st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=3)))
def test_no_output_makes_a_notebook_fail(value):
    cell = {
        "cell_type": "code",
        "source": "x",
        "outputs": [{"output_type": "display_data", "data": {"text/plain": value}}],
    }
    page = notebook_page(notebook(cell).encode(), Span("n", 1, 10, 1_000))
    assert page is not None
    assert "--- cell 1, code ---\nx" in page.text


# ------------------------------------------------------------------ large files, folders


async def test_lines_of_a_file_too_large_to_load_are_shown(place, tmp_path):
    with (tmp_path / "big.log").open("wb") as file:
        file.write(b"first\r\nsecond\n" + b"z" * 70_000_000 + b"\n")
        file.writelines(b"line %d\n" % number for number in range(4, 101))
        size = file.tell()
    text = await place.text(READ, file_path="big.log", limit=2)
    follows = 'read_file(file_path="big.log", offset=3, limit=2) shows what follows'
    assert text == f"[lines 1-2 of a file of {size:,} bytes]\nfirst\nsecond\n[{follows}]"
    text = await place.text(READ, file_path="big.log", offset=3, limit=2)
    assert text.startswith(
        f"[lines 3-4 of a file of {size:,} bytes]\n"
        + "z" * 1_800
        + " [... line cut; bash: sed -n '3p' big.log | cut -c2001-4000]\nline 4\n"
    )
    assert await place.text(READ, file_path="big.log", offset=99) == (
        f"[lines 99-100 of a file of {size:,} bytes]\nline 99\nline 100\n[line 100 is the last]"
    )
    with pytest.raises(ToolError, match=r"offset=102 is past its end"):
        await place.call(READ, file_path="big.log", offset=102)
    assert not place.seen


async def test_a_file_of_ten_gigabytes_is_not_loaded(place, tmp_path):
    with (tmp_path / "huge").open("wb") as file:
        file.write(b"a\nb\n")
        file.truncate(10_000_000_000)
    with pytest.raises(ToolError, match=r"huge is not text: .*, 10,000,000,000 bytes"):
        await place.call(READ, file_path="huge")
    with (tmp_path / "huge").open("r+b") as file:
        file.write(b"a\nb\n" * 3_000)
    beginning = await place.text(READ, file_path="huge", limit=2)
    assert beginning.startswith("[lines 1-2 of a file of 10,000,000,000 bytes]\na\nb\n")


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"\xef\xbb\xbfa\n", "a\n"),
        (b"caf\xe9\n", "caf\u00e9\n"),
    ],
)
async def test_encodings_of_large_files_are_detected_too(place, tmp_path, data, shown):
    (tmp_path / "f").write_bytes(data + b"x\n" * 26_000_000)
    head, _, text = (await place.text(READ, file_path="f", limit=1)).partition("\n")
    assert head.startswith("[line 1 of a file of ") and text.startswith(shown)


async def test_of_a_large_text_16_kb_are_shown_or_as_many_lines_as_are_asked_for(place, tmp_path):
    (tmp_path / "blob").write_text("".join(f"{'w' * 70} {number}\n" for number in range(2_000)))
    output = await place.call(READ, file_path="blob")
    assert output.limit is None
    text = output.parts[0].text
    assert 15_900 < len(text) < 16_100
    assert text.endswith('\n[read_file(file_path="blob", offset=215) shows what follows]')
    assert text.startswith("[lines 1-214 of 2000]\nwww")
    more = await place.text(READ, file_path="blob", offset=215)
    assert more.startswith("[lines 215-427 of 2000]\nwww") and len(more) < 16_100
    assert 45_000 < len(await place.text(READ, file_path="blob", offset=428, limit=1_000)) < 51_000


async def test_a_folder_is_listed_without_ignored_entries(place, tmp_path):
    grow(place, "d/.hidden", "d/b/x", "d/secret/key", "d/build/out", "d/new\nline")
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / ".bradawlignore").write_text("secret/\n")
    assert await place.text(READ, file_path="d") == "d is a folder:\n.hidden\nb/\nnew\\nline"
    assert (await place.text(READ, file_path=".")).splitlines()[0] == ". is a folder:"


async def test_a_folder_found_late_in_the_listing_is_shown(place):
    grow(place, *(f"d/a/{number}" for number in range(2_500)), "d/z/deep/er/x")
    assert await place.text(READ, file_path="d") == "d is a folder:\na/\nz/"


@pytest.mark.skipif(os.name != "posix", reason="needs named pipes")
async def test_a_pipe_or_a_circular_link_is_refused_at_once(place, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ToolError, match="pipe is not a regular file"):
        await place.call(READ, file_path="pipe")
    with pytest.raises(ToolError, match="loop"):
        await place.call(READ, file_path="loop")
