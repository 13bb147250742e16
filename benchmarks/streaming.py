"""How much a streamed answer costs at the terminal: `python benchmarks/streaming.py [--json]`.

One Markdown answer of 360 lines arrives in 500 updates, 3 to 5 in each frame, on a screen of 80 by 24 cells. For each
way to draw it: processor time for an update, the slowest frames, the bytes that are written, and the lines that are in
the scrollback twice or not at all. `everything` renders the whole answer in each frame; `rich` is `rich.live.Live`, if
rich is installed.
"""

import io
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pyte

from bradawl.app.tui.render.markdown import MarkdownStream
from bradawl.app.tui.render.theme import theme_named

WIDTH, HEIGHT, TAIL = 80, 24, 14
UPDATES = 500
THEME = theme_named("dark", "256")
Draw = Callable[[list[str]], Iterator[str]]
"""Draws the pieces of each frame, and the end of the answer; each item is what one frame writes."""


def answer() -> str:
    """An answer with each kind of block, whose lines all differ."""
    parts = []
    for number in range(12):
        code = "".join(f"    value_{number}_{line} = call({line})  # part {number}\n" for line in range(6))
        rows = "".join(f"| row {number}.{line} | `name_{line}` | {number * line} |\n" for line in range(4))
        parts.append(
            f"## Part {number}: what was found\n\n"
            f"Paragraph {number} says with **some emphasis** that `function_{number}` calls another, *which* is long "
            f"enough to be wrapped at the edge of the screen, see [the page](https://example.com/{number}).\n\n"
            f"- item {number}.1 with `code`\n- item {number}.2\n  - nested {number}.2.1\n  - nested {number}.2.2\n\n"
            f"```python\ndef function_{number}():\n    '''Text {number}\n    of the function.'''\n{code}```\n\n"
            f"| heading {number} | name | size |\n|---|---|--:|\n{rows}\n> quoted in part {number}\n"
        )
    return "\n".join(parts)


def frames(text: str) -> list[list[str]]:
    """The pieces of the answer, those of a frame together."""
    sizes = itertools.cycle((3, 5, 4))
    size = -(-len(text) // UPDATES)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    found: list[list[str]] = []
    while pieces:
        count = next(sizes)
        found.append(pieces[:count])
        del pieces[:count]
    return found


def stream(pieces: list[list[str]]) -> Iterator[str]:
    """The renderer, with the shortest painter: erase the tail, write finished lines, write the tail."""
    renderer = MarkdownStream(THEME, WIDTH)
    rows = 0
    for each in pieces:
        for piece in each:
            renderer.feed(piece)
        frame = renderer.frame(TAIL)
        yield repaint(rows, frame.committed, frame.tail)
        rows = len(frame.tail)
    yield repaint(rows, renderer.finish(), [])


def everything(pieces: list[list[str]]) -> Iterator[str]:
    """Renders the whole answer in each frame, and writes the lines that changed."""
    text = ""
    before: list[str] = []
    for each in pieces:
        text += "".join(each)
        renderer = MarkdownStream(THEME, WIDTH)
        renderer.feed(text)
        lines = renderer.finish()
        same = next((at for at, pair in enumerate(zip(before, lines, strict=False)) if pair[0] != pair[1]), len(before))
        yield repaint(len(before) - min(same, len(lines)), [], lines[same:])
        before = lines
    yield "\r\n"


def with_rich(pieces: list[list[str]]) -> Iterator[str]:
    """`rich.live.Live` with the whole answer."""
    from rich.console import Console
    from rich.live import Live
    from rich.markdown import Markdown

    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=WIDTH, height=HEIGHT, color_system="256")
    text = ""
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        for each in pieces:
            text += "".join(each)
            live.update(Markdown(text), refresh=True)
            yield taken(written)
    yield taken(written)


def taken(written: io.StringIO) -> str:
    """What was written since the last time."""
    text = written.getvalue().replace("\n", "\r\n")
    written.seek(0)
    written.truncate()
    return text


def repaint(rows: int, committed: list[str], tail: list[str]) -> str:
    """Replaces the last `rows` rows of the screen."""
    up = f"\x1b[{rows}A" if rows else ""
    return f"\r{up}\x1b[J" + "".join(f"{line}\r\n" for line in (*committed, *tail))


def screen_lines(output: str) -> Counter[str]:
    """How often each line is in the scrollback and on the screen; lines of a few characters are left out."""
    screen = pyte.HistoryScreen(WIDTH, HEIGHT, history=100_000, ratio=0.5)
    pyte.Stream(screen).feed(output)
    rows = [*screen.history.top, *(screen.buffer[row] for row in range(HEIGHT))]
    texts = ("".join(row[column].data for column in range(WIDTH)).rstrip() for row in rows)
    return Counter(text for text in texts if len(text.strip(" ─┼")) > 5)


def measured(draw: Draw, pieces: list[list[str]]) -> dict[str, float | int]:
    """The figures of one way to draw."""
    times: list[float] = []
    written: list[str] = []
    drawing = draw(pieces)
    while True:
        begin = time.process_time()
        frame = next(drawing, None)
        times.append(time.process_time() - begin)
        if frame is None:
            break
        written.append(frame)
    output = "".join(written)
    seen = screen_lines(output)
    text = "".join(piece for each in pieces for piece in each)
    expected = screen_lines("".join(draw([[text]])))
    slow = sorted(times)
    return {
        "ms per update": round(1e3 * sum(times) / UPDATES, 3),
        "ms of a frame, p95": round(1e3 * slow[int(0.95 * len(slow))], 2),
        "ms of a frame, most": round(1e3 * slow[-1], 2),
        "bytes": len(output.encode()),
        "lines twice": sum((seen - expected).values()),
        "lines lost": sum((expected - seen).values()),
    }


def main() -> None:
    """Measure each way after a run that loads what is needed."""
    text = answer()
    pieces = frames(text)
    ways: dict[str, Draw] = {"stream": stream, "everything": everything}
    try:
        import rich  # noqa: F401 only whether it is there
    except ModuleNotFoundError:
        print("rich is not installed; it is left out", file=sys.stderr)
    else:
        ways["rich"] = with_rich
    figures: dict[str, dict[str, float | int]] = {}
    for name, draw in ways.items():
        "".join(draw(pieces[:20]))
        figures[name] = measured(draw, pieces)
    found = {"lines": text.count("\n"), "updates": UPDATES, "frames": len(pieces), "figures": figures}
    if "--json" in sys.argv:
        print(json.dumps(found))
        return
    print(f"{found['lines']} lines, {UPDATES} updates, {len(pieces)} frames")
    for name, values in figures.items():
        print(f"{name}: " + ", ".join(f"{what} {value}" for what, value in values.items()))
    for name in list(figures)[1:]:
        ratio = figures[name]["ms per update"] / figures["stream"]["ms per update"]
        print(f"{name} takes {ratio:.0f} times the time of stream")


if __name__ == "__main__":
    main()
