"""Another size of the terminal while an answer streams: nothing is lost, doubled or left behind."""

import json
import os
import shlex
import subprocess
import sys
import time

import pytest
from live_terminal import bash
from test_live_streaming import LONG, pieces

PROGRAM = "import sys; from bradawl.app.cli import main; sys.exit(main())"


def words_of(text):
    """Numbered words that the answer has in this order, each once."""
    return [word for word in text.split() if word.startswith("w") and word[1:].isdigit()]


def has_frame(rows, columns):
    """Whether a frame has its whole upper border in the rows."""
    return any(len(row) == columns and row[0] + row[-1] == "╭╮" for row in rows if row)


def answer(count):
    """Paragraphs of numbered words."""
    return [f"{'' if number % 40 else chr(10) * 2}w{number} " for number in range(count)]


def short_lines(count):
    """Items of a few words: a terminal that does not break lines anew cuts no printed one off."""
    return [f"{'' if number % 3 else chr(10) + '- '}w{number} " for number in range(count)]


@pytest.mark.parametrize(
    "sizes",
    [
        [(24, 120)],
        [(24, 50)],
        [(24, 40), (24, 80)],
        [(10, 80), (40, 80)],
        [(12, 40), (50, 150), (24, 80)],
    ],
    ids=str,
)
def test_a_resize_while_the_answer_streams(live, server, sizes):
    talk = live((), "-y", environ=server.environ)
    talk.wait_idle()
    talk.send("go")
    request = server.request()
    parts = short_lines(900)
    step = len(parts) // (len(sizes) + 1)
    for number, part in enumerate(parts):
        request.text(part)
        if number % step == step - 1 and sizes:
            talk.wait_for_whole(f"w{number}")
            rows, columns = sizes.pop(0)
            talk.resize(rows, columns)
            talk.until(
                lambda columns=columns, rows=rows: (
                    len(talk.box[:1] and talk.box[0]) == columns and len(talk.lines) <= rows
                ),
                f"a region of {columns} columns",
            )
            assert len(talk.box) == 3
    request.end()
    talk.wait_turns(1)
    assert words_of(talk.whole_text) == [f"w{number}" for number in range(900)]
    assert talk.whole_text.count("esc stops") == 0
    frames = [line for line in talk.whole if line.startswith(("╭", "╰"))]
    assert len(frames) == 2, "no part of an old region is left"
    talk.leave()


@pytest.mark.parametrize("size", [(20, 5), (5, 20), (3, 10), (2, 3), (1, 1)], ids=str)
def test_a_tiny_terminal_is_no_error_and_loses_nothing(live, server, size):
    talk = live((), "-y", environ=server.environ)
    talk.wait_idle()
    talk.send("go")
    request = server.request()
    request.text("Before. ")
    talk.wait_for("Before.")
    talk.resize(*size)
    for piece in pieces(LONG, 50):
        request.text(piece)
    talk.type("typed")
    talk.resize(24, 80)
    request.text("\n\nAfter.")
    request.end()
    talk.wait_turns(1)
    assert "After." in talk.whole_text and talk.typed == "typed"
    talk.press("ctrl+c")
    talk.leave()


@pytest.mark.parametrize("size", [(20, 5), (3, 10), (1, 1), (500, 1), (200, 400)], ids=str)
def test_a_start_in_a_terminal_of_any_size(live, size):
    talk = live([{"text": "Here I am."}], "-y", size=size)
    talk.wait_for_output(b"bypass"[:1])
    talk.type("hello\r")
    talk.wait_for_output(b"H")
    talk.until(lambda: "am." in "".join(talk.whole).replace(" ", "") or size[1] < 4, "the answer")
    talk.resize(24, 80)
    talk.wait_idle()
    talk.leave()


def test_a_question_survives_another_size(live, project):
    talk = live([bash("touch t-1"), {"text": "Done."}], "--permission-mode", "default")
    talk.wait_idle()
    talk.send("go")
    talk.wait_for_question("touch t-1")
    for rows, columns in ((12, 40), (8, 30), (40, 130), (24, 80)):
        talk.resize(rows, columns)
        talk.until(
            lambda columns=columns: any(
                (len(line) == columns and line.startswith("╭ Run")) or line.startswith("Run this command? ·")
                for line in talk.lines
            ),
            f"a question of {columns} columns",
        )
        assert "y" in talk.text
    talk.press("y")
    talk.wait_for("Done.")
    talk.wait_turns(1)
    assert (project / "t-1").exists()
    talk.leave()


def test_a_text_of_several_rows_survives_another_size(live):
    talk = live([], "-y")
    talk.wait_idle()
    text = " ".join(f"word{number}" for number in range(40))
    talk.type(text)
    talk.until(lambda: "word39" in talk.typed, "the text")
    for rows, columns in ((24, 40), (24, 120), (10, 60), (24, 80)):
        talk.resize(rows, columns)
        talk.until(lambda columns=columns: talk.box_columns == columns, f"a region of {columns} columns")
        assert "word39" in talk.typed
    assert "".join(talk.typed.split()) == text.replace(" ", "")
    talk.press("ctrl+c")
    talk.leave()


# ------------------------------------------------------------------ a terminal that breaks lines anew


class Tmux:
    """A tmux server with one window, in which the program runs: tmux breaks its lines anew at another width."""

    def __init__(self, folder, environ, *flags):
        self.socket = str(folder / "tmux")
        self.environ = environ
        command = shlex.join([sys.executable, "-c", PROGRAM, *flags])
        self.run("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-c", str(folder), command)
        self.run("set-option", "-g", "history-limit", "10000")

    def run(self, *argv):
        done = subprocess.run(
            ["tmux", "-S", self.socket, *argv], env=self.environ, capture_output=True, text=True, timeout=60, check=True
        )
        return done.stdout

    def text(self):
        """The scrollback and the screen, with wrapped lines joined."""
        return self.run("capture-pane", "-p", "-J", "-S", "-")

    def rows(self):
        return self.run("capture-pane", "-p").split("\n")

    def shows_question(self, columns, rows):
        """The question is drawn for a size, without a frame only where there are few rows."""
        shown = [row for row in self.rows() if "Run this command?" in row]
        return len(shown) == 1 and (
            (shown[0].startswith("Run") and rows <= 10)
            or (shown[0][0] + shown[0][-1] == "╭─" and len(shown[0]) == columns)
        )

    def until(self, holds, what):
        end = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < end, f"never saw {what} in:\n{self.text()}"


@pytest.fixture
def tmux_with(project):
    """Starts the program in tmux."""
    try:
        subprocess.run(["tmux", "-V"], capture_output=True, check=True)
    except OSError:
        pytest.skip("tmux is not installed")
    started = []

    def start(environ, *flags):
        own = {"HOME": str(project.parent), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        started.append(Tmux(project, {**own, **environ}, *flags))
        return started[-1]

    yield start
    for each in started:
        each.run("kill-server")


@pytest.fixture
def tmux(tmux_with, server):
    return tmux_with(server.environ, "-y")


def test_narrower_and_wider_in_tmux(tmux, server):
    tmux.until(lambda: " bypass" in tmux.text(), "the status line")
    tmux.run("send-keys", "go", "Enter")
    request = server.request()
    parts = answer(600)
    for number, part in enumerate(parts):
        request.text(part)
        if number in (150, 300, 450):
            tmux.until(lambda number=number: f"w{number}" in tmux.text(), f"w{number}")
            columns = {150: 50, 300: 100, 450: 70}[number]
            tmux.run("resize-window", "-x", str(columns), "-y", "24")
            tmux.until(
                lambda columns=columns: any(
                    len(row) == columns and row[0] + row[-1] == "╭╮" for row in tmux.rows() if row
                ),
                f"a region of {columns} columns",
            )
    request.end()
    tmux.until(lambda: " · 1 step" in tmux.text() and "esc stops" not in tmux.rows(), "the end")
    assert words_of(tmux.text()) == [f"w{number}" for number in range(600)]
    frames = [line for line in tmux.text().split("\n") if line.startswith("╭")]
    assert len(frames) == 1
    tmux.run("send-keys", "C-d")


@pytest.mark.parametrize(
    "sizes",
    [
        [(80, 24), (40, 24), (80, 24)],
        [(80, 24), (80, 10), (80, 24)],
        [(80, 24), (40, 10), (80, 24)],
        [(40, 24), (80, 24)],
        [(80, 10), (80, 24), (40, 24)],
    ],
    ids=str,
)
def test_a_question_in_tmux_leaves_nothing_behind(tmux_with, project, sizes):
    command = "touch t-1 && echo some more words so that it needs several rows where the terminal is narrow"
    script = [{"text": "Some words. " * 40}, bash(command), {"text": "Done."}]
    (project / "script.json").write_text(json.dumps(script))
    tmux = tmux_with({"BRADAWL_MODEL": "scripted/script.json"}, "--permission-mode", "default")
    (columns, rows), *later = sizes
    tmux.run("resize-window", "-x", str(columns), "-y", str(rows))
    tmux.until(lambda: " default" in tmux.text(), "the status line")
    tmux.run("send-keys", "hi", "Enter")
    tmux.until(lambda: " · 1 step" in tmux.text(), "the first turn")
    tmux.run("send-keys", "go", "Enter")
    tmux.until(lambda: tmux.run("display-message", "-p", "#{cursor_flag}").strip() == "0", "the question")
    for columns, rows in later:
        tmux.run("resize-window", "-x", str(columns), "-y", str(rows))
        tmux.until(lambda size=(columns, rows): tmux.shows_question(*size), f"a question of {columns} columns")
        # Where there are few rows the question alone has room.
        tmux.until(lambda rows=rows: rows <= 10 or tmux.text().count("› Run") == 1, "the call")
        text = tmux.text()
        assert (text.count("Run this command?"), text.count("touch t-1 &")) == (1, 1 + text.count("› Run")), text
        assert "\n\n\n›" not in text
    tmux.run("send-keys", "y")
    tmux.until(lambda: "Done." in tmux.text(), "the end")
    assert "Run this command?" not in tmux.text()
    tmux.run("send-keys", "C-d")
