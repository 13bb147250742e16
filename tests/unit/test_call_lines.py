"""Lines of calls in the progress: words, symbols, times and widths."""

import io
import json
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from printed_events import envelope, progress
from tool_specs import OWN_TOOLS

from bradawl.app.progress import Progress
from bradawl.app.text_layout import cells
from bradawl.core.effects import Effects
from bradawl.core.events import CallPrepared, PermissionDecided, ToolFinished, ToolStarted
from bradawl.core.messages import Text

PRINTS_WHAT_IS_LOADED = """
import io, sys
from bradawl.app.progress import Progress
from bradawl.core.effects import Effects
from bradawl.core.events import CallPrepared, Envelope, ToolFinished
from bradawl.core.messages import Text

def print_loaded():
    print(*(name for name in ("bradawl.app.call_lines", "bradawl.app.tui", "wcwidth") if name in sys.modules))

shown = Progress(io.StringIO(), is_watched=True, width=30)
print_loaded()
for name in ("x" * 50, "\u00e9"):
    argument = '{"path": "%s"}' % ("y" * 50)
    begun = [CallPrepared(call, 1, name, argument, Effects()) for call in "ab"]
    for event in (*begun, *(ToolFinished(call, "error", (Text("z" * 50),)) for call in "ab")):
        shown.emit(Envelope(0, None, 0, "main", event))
    print_loaded()
"""


def prepared(call_id, name="bash", raw='{"command": "python main.py"}'):
    return envelope(CallPrepared(call_id, 1, name, raw, Effects()))


def finished(call_id, outcome="ok", text=""):
    return envelope(ToolFinished(call_id, outcome, (Text(text),)))


@pytest.mark.parametrize(
    ("name", "raw", "outcome", "text", "line"),
    [
        (
            "read_file",
            '{"file_paths": ["app.py", "test_app.py"]}',
            "ok",
            "x\n" * 11,
            "✓ Read   app.py, test_app.py  11 lines",
        ),
        ("edit_file", '{"file_path": "app.py"}', "ok", "Edited app.py: +1 -1\n-x\n+y", "✓ Edit   app.py  +1 -1"),
        ("grep", '{"pattern": "total", "path": "shop"}', "ok", "a.py\n1: x", "✓ Search total in shop  1 match"),
        ("bash", '{"command": "true"}', "ok", "(no output)\n[exit code 0]", "✓ Run    true"),
        (
            "bash",
            '{"command": "pytest -q"}',
            "error",
            "1 failed\n[exit code 1]",
            "✗ Run    pytest -q  exit code 1: 1 failed",
        ),
        (
            "bash",
            '{"command": "git push"}',
            "refused",
            "bash was not run: no",
            "⊘ Run    git push  refused: no",
        ),
        ("bash", '{"command": "x"}', "cancelled", "It was ended.", "■ Run    x  cancelled: It was ended."),
        ("mcp__github__issue", '{"title": "Bug"}', "ok", "", "✓ mcp__github__issue Bug"),
        ("read_file", "not JSON \x1b[2J\nat all", "error", "No.", "✗ Read   not JSON at all  No."),
    ],
)
def test_a_line_says_what_a_call_did_to_what_and_with_which_result(name, raw, outcome, text, line):
    assert progress(prepared("a", name, raw), finished("a", outcome, text)) == f"{line}\n"


@pytest.mark.parametrize(
    ("name", "text", "end"),
    [
        ("bash", "3 failed\n[exit code 0] (pipeline: 1 0)", "! Run    a part failed: exit code 1"),
        ("bash", "x\n[exit code 0] (pipeline: 141 2 0) (3.0 s)", "! Run    a part failed: exit code 2"),
        ("bash", "x\n[exit code 0] (a command before it failed: 127)", "! Run    a part failed: exit code 127"),
        ("bash", "x\n[exit code 0] (earlier pipelines: 0 4 0; 5 0)", "! Run    a part failed: exit code 4"),
        ("bash", "(pipeline: 7 0)\n[exit code 0] (pipeline: 1 0)", "! Run    a part failed: exit code 1"),
        ("bash", "(pipeline: 7 0)\n[exit code 0]", "! Run    a part failed"),
        (
            "bash",
            "(no output yet)\n[still running after 9 s, in the background as job-1; bash_output shows more]",
            "✓ Run    in the background as job-1",
        ),
        ("bash_output", "x\n[job-1 is running, for 3 s so far]", "✓ Output still running"),
        ("bash_output", "x\n[job-1 has ended with exit code 2 after 3.0 s]", "! Output ended with exit code 2"),
    ],
)
def test_a_call_in_which_a_part_failed_says_so(name, text, end):
    """Defect: `pytest | tail` that failed had the line of one that passed."""
    done = envelope(ToolFinished("a", "ok", (Text(text),), has_failed_part=True))
    assert progress(prepared("a", name, "{}"), done).split() == end.split()


def test_a_call_that_read_some_of_its_files_says_how_many():
    """Defect: it had a check mark and a number of lines."""
    raw = '{"file_paths": ["tox.ini", "CHANGELOG", "nosuch"]}'
    text = "==> tox.ini <==\na\n\n==> CHANGELOG <==\nb\n\n==> nosuch <==\nError: nosuch does not exist"
    done = envelope(ToolFinished("a", "ok", (Text(text),), has_failed_part=True))
    line = "! Read   tox.ini, CHANGELOG, nosuch  2 of 3 files\n"
    assert progress(prepared("a", "read_file", raw), done) == line


def test_a_final_answer_after_which_nothing_is_known_of_the_parts_is_no_failure():
    text = "(no output)\n[exit code 0]"
    done = envelope(ToolFinished("a", "ok", (Text(text),), has_failed_part=True))
    raw = '{"command": "serve & check", "answer_if_ok": "It works."}'
    assert progress(prepared("a", "bash", raw), done) == "✓ Run    serve & check\n"


class Clock:
    """Seconds that a test sets."""

    now = 0.0

    def __call__(self):
        return self.now


def timed(*steps, **options):
    """What is printed for events, each a number of seconds after the one before."""
    stream, clock = io.StringIO(), Clock()
    shown = Progress(stream, clock=clock, **options)
    shown.learn(OWN_TOOLS)
    for seconds, event in steps:
        clock.now += seconds
        shown.emit(event)
    return stream.getvalue()


def test_at_a_terminal_the_end_of_a_call_has_its_time():
    failed = finished("a", "error", "1 failed\n[exit code 1]")
    steps = [(1, prepared("a")), (0, prepared("b")), (4, finished("b")), (71, failed)]
    shown = timed(*steps, is_watched=True).splitlines()
    assert shown[2:] == ["  ✓ 4.0s", "✗ Run    python main.py  exit code 1: 1 failed · 1m 15s"]
    assert timed((0, prepared("a")), (0.09, finished("a")), is_watched=True).endswith("\n  ✓\n")
    assert timed(*steps) == "✓ Run    python main.py\n✗ Run    python main.py  exit code 1: 1 failed\n"


@pytest.mark.parametrize("start", [PermissionDecided("a", "allow", "user"), ToolStarted("a")])
def test_the_time_of_a_call_is_without_the_wait_for_a_permission_or_for_other_calls(start):
    shown = timed((0, prepared("a")), (60, envelope(start)), (2, finished("a")), is_watched=True)
    assert shown == "› Run    python main.py\n  ✓ 2.0s\n"
    assert timed((0, envelope(start)), is_watched=True) == "", "a call that began in an earlier run"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8", "UTF8", "utf_8_sig"])
def test_symbols_are_those_that_the_encoding_of_the_stream_has(encoding):
    long = prepared("a", raw='{"command": "' + "x" * 200 + '"}')
    refused, failed = finished("b", "refused", "No."), finished("a", "error", "y")
    data = io.BytesIO()
    stream = io.TextIOWrapper(data, encoding=encoding)
    shown = Progress(stream, is_watched=True, width=30, clock=lambda: 0.0)
    shown.learn(OWN_TOOLS)
    for event in (long, prepared("b", "look", "{}"), refused, failed):
        shown.emit(event)
    lines = data.getvalue().decode(encoding).splitlines()
    if encoding.lower().startswith("utf"):
        assert lines == [f"› Run    {'x' * 20}…", "› look", "  ⊘ refused: No.", f"✗ Run    {'x' * 17}…  y"]
    else:
        assert lines == [f"> Run    {'x' * 18}...", "> look", "  / refused: No.", f"x Run    {'x' * 15}...  y"]


TEXTS = st.text(max_size=200) | st.sampled_from(["日本語" * 40, "x" * 300, "👩‍👩‍👧 " * 30, "a\tb\n\x1b[31mc"])


@given(
    raw=st.dictionaries(st.sampled_from(["command", "file_path", "pattern"]), TEXTS).map(json.dumps) | TEXTS,
    name=st.sampled_from(["bash", "read_file", "edit_file", "mcp__a_server__" + "tool" * 12]),
    outcome=st.sampled_from(["ok", "error", "refused", "cancelled", "interrupted"]),
    text=TEXTS,
    width=st.sampled_from([20, 40, 100]),
)
def test_no_line_at_a_terminal_is_wider_than_it_in_cells(raw, name, outcome, text, width):
    call, other, end = prepared("a", name, raw), prepared("b", name, raw), finished("a", outcome, text)
    steps = ([call, end], [call, other, end])
    for events in steps:
        shown = timed(*((3, event) for event in events), is_watched=True, width=width)
        assert all(cells(line) <= width for line in shown.splitlines())
        assert len(shown.splitlines()) == len(events), "each event is one line"


def test_in_a_log_an_argument_and_a_reason_are_cut_apart():
    raw = json.dumps({"command": "x" * 300})
    shown = progress(prepared("a", raw=raw), finished("a", "refused", "y" * 300))
    assert re.fullmatch("⊘ Run    x{90}…  refused: y{99}…\n", shown)


def test_only_calls_load_the_modules_of_their_lines_and_ascii_loads_no_tables_of_widths():
    done = subprocess.run(
        [sys.executable, "-c", PRINTS_WHAT_IS_LOADED], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == ["", "bradawl.app.call_lines", "bradawl.app.call_lines wcwidth"]
