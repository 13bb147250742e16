"""Writes the generated parts of docs/architecture.md: the tables of rooms and imports, and the picture.

`python scripts/architecture.py` rewrites docs/architecture.md between its markers, and docs/architecture.svg.
`--check` writes nothing and exits with 1 if either is out of date.
"""

import ast
import sys
import textwrap
from collections.abc import Iterator
from html import escape
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "src" / "bradawl"
PAGE = REPOSITORY / "docs" / "architecture.md"
PICTURE = REPOSITORY / "docs" / "architecture.svg"
LAYERS = (
    {"app": (0, 7)},
    {"testing": (4, 7)},
    {
        "agent": (0, 1),
        "tools": (1, 2),
        "workspace": (2, 3),
        "checkpoints": (3, 4),
        "extensions": (4, 5),
        "providers": (5, 6),
        "session": (6, 7),
    },
    {"sandbox": (2, 3)},
    {"folds": (0, 1), "shaping": (1, 2), "safety": (2, 4)},
    {"core": (0, 7)},
)
"""Rooms from top to bottom, as the import contracts in pyproject.toml order them, with the columns of their boxes."""

# ------------------------------------------------------------------ facts from the code


def summary(path: Path, sentences: int | None = None) -> str:
    """The first paragraph of a module's docstring, or its first sentences, without the final full stop."""
    paragraph = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n\n", 1)[0]
    return ". ".join(" ".join(paragraph.split()).split(". ")[:sentences]).removesuffix(".")


def packages(room: str) -> Iterator[tuple[str, str]]:
    """(path inside the package, summary) of a room and of every package inside it."""
    for init in sorted((PACKAGE / room).rglob("__init__.py")):
        yield init.parent.relative_to(PACKAGE).as_posix() + "/", summary(init)


def imported_rooms(room: str) -> set[str]:
    """Other rooms that any module of this room imports."""
    found: set[str] = set()
    for path in (PACKAGE / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found |= {name.split(".")[1] for name in names if name.startswith("bradawl.")}
    return {name for name in found if (PACKAGE / name).is_dir()} - {room}


# ------------------------------------------------------------------ the page


def rooms_table() -> str:
    """The table of rooms and packages with their summaries."""
    lines = ["| folder | what is in it |", "|---|---|"]
    for layer in LAYERS:
        for room in layer:
            lines += [f"| `{path}` | {text} |" for path, text in packages(room)]
    return "\n".join(lines)


def imports_table() -> str:
    """The table of rooms and the rooms that each one imports."""
    order = [room for layer in LAYERS for room in layer]
    lines = ["| room | imports |", "|---|---|"]
    for room in order:
        names = sorted(imported_rooms(room), key=order.index)
        lines.append(f"| `{room}` | {', '.join(f'`{name}`' for name in names) or 'nothing of bradawl'} |")
    return "\n".join(lines)


def replaced(page: str, name: str, text: str) -> str:
    """The page with the text between the markers of this name replaced. Raises: ValueError if a marker is missing."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"docs/architecture.md lacks the markers {begin} and {end}")
    return f"{before}{begin}\n{text}\n{end}{after}"


# ------------------------------------------------------------------ the picture

_COLUMN, _ROW, _BOX, _GAP = 184, 108, 64, 14
_STYLE = """\
text { font-family: ui-sans-serif, system-ui, sans-serif; fill: #1f2328 }
.name { font-size: 15px; font-weight: 600 } .what { font-size: 11px; fill: #57606a }
.room { fill: #f6f8fa; stroke: #8c959f; rx: 6 }
.import { fill: none; stroke: #57606a; stroke-width: 1.2; marker-end: url(#tip) }
"""
_HEAD = """\
<title>The rooms of bradawl</title>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 1 L7 4 L0 7" fill="none" stroke="#57606a"/></marker></defs>
<rect width="100%" height="100%" fill="#fff"/>"""
_NOTE = "An arrow leads from a room to one that it imports. Left out: app imports every room, every room imports core."

Box = tuple[float, float, float]
"""Left, top and width in pixels."""


def _boxes() -> dict[str, Box]:
    return {
        room: (_GAP + begin * _COLUMN, 14 + row * _ROW, (end - begin) * _COLUMN - _GAP)
        for row, layer in enumerate(LAYERS)
        for room, (begin, end) in layer.items()
    }


def _arrow(source: Box, target: Box) -> str:
    """An arrow from a lower edge to an upper edge, as vertical as the widths of the boxes allow."""
    middle = source[0] + source[2] / 2
    x1, y1, y2 = middle, source[1] + _BOX, target[1] - 2
    x2 = min(max(middle, target[0] + 24), target[0] + target[2] - 24)
    bend = (y2 - y1) * 0.6
    curve = f"M{x1:.0f} {y1:.0f} C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"
    return f'<path class="import" d="{curve}"/>'


def _room(room: str, box: Box) -> Iterator[str]:
    left, top, width = box
    yield f'<rect class="room" x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{_BOX}"/>'
    yield f'<text class="name" x="{left + 10:.0f}" y="{top + 19:.0f}">{room}/</text>'
    for number, line in enumerate(_wrapped(summary(PACKAGE / room / "__init__.py", sentences=1), width - 16)):
        yield f'<text class="what" x="{left + 10:.0f}" y="{top + 35 + 14 * number:.0f}">{escape(line)}</text>'


def _wrapped(text: str, width: float) -> list[str]:
    """The text in at most two lines of this width in pixels."""
    lines = textwrap.wrap(text, int(width / 6))
    return (
        lines if len(lines) <= 2 else [lines[0], textwrap.shorten(" ".join(lines[1:]), int(width / 6), placeholder="…")]
    )


def picture() -> str:
    """An SVG with a box for each room and an arrow for each import of one room by another."""
    boxes = _boxes()
    parts = [_HEAD, f"<style>\n{_STYLE}</style>"]
    for room in boxes:
        for name in sorted(imported_rooms(room) - {"core"}) if room != "app" else ():
            parts.append(_arrow(boxes[room], boxes[name]))
    for room, box in boxes.items():
        parts += _room(room, box)
    width, height = _GAP + 6 * _COLUMN, _ROW * len(LAYERS)
    parts.append(f'<text class="what" x="{_GAP}" y="{height - 8}">{_NOTE}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    return "\n".join([head, *parts, "</svg>", ""])


def main(check: bool) -> int:
    """Write both files, or with `--check` print which are out of date."""
    page = PAGE.read_text("utf-8")
    page = replaced(replaced(page, "rooms", rooms_table()), "imports", imports_table())
    stale = [path for path, text in ((PAGE, page), (PICTURE, picture())) if not _is(path, text)]
    for path, text in ((PAGE, page), (PICTURE, picture())):
        if path in stale and not check:
            path.write_text(text, "utf-8")
    for path in stale:
        print(f"{path.relative_to(REPOSITORY)} {'is out of date: make architecture' if check else 'written'}")
    return 1 if check and stale else 0


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text("utf-8") == text


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
