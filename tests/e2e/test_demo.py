"""The demo, whole. That it leaves no temporary folder behind is checked after every test."""

import asyncio
import io
import tempfile

import pytest

from bradawl.app.demo.run import run_demo
from bradawl.core.errors import SettingsError

EDIT = {"file_path": "main.py", "old_string": "halper", "new_string": "helper", "replace_all": True}


def demo(script=None):
    out = io.StringIO()
    return asyncio.run(run_demo(out, script)), out.getvalue()


def test_the_demo_shows_the_failure_the_repair_and_the_proof():
    code, shown = demo()
    assert code == 0, shown
    places = [
        shown.index(text)
        for text in (
            "ImportError: cannot import name 'halper'",
            "> read_file(main.py)",
            "> read_file(utils.py)",
            "> edit_file(main.py)",
            "+from utils import helper",
            "> bash(python3 main.py)",
            "    Hello, bradawl!",
            "4 steps",
            "Proved, not claimed",
        )
    ]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("script", "reasons"),
    [
        ([{"text": "It is fixed, believe me."}], ["main.py does not hold what it should", "the program still fails"]),
        (
            [{"tool_calls": [{"name": "edit_file", "arguments": EDIT}]}],
            ["the model's script did not foresee this", "the turn ended with error"],
        ),
        (
            [
                {"tool_calls": [{"name": "edit_file", "arguments": EDIT}]},
                {"tool_calls": [{"name": "bash", "arguments": {"command": "echo 'helper = len' > utils.py"}}]},
                {"text": "Done."},
            ],
            ["utils.py does not hold what it should", "the program still fails: 7"],
        ),
        ([{"text": "no", "faults": {"status": 401}}], ["the turn ended with error"]),
    ],
)
def test_a_model_that_only_claims_the_repair_does_not_get_through(script, reasons):
    code, shown = demo(script)
    assert code == 1
    assert "The demo failed" in shown
    assert "Proved" not in shown
    for reason in reasons:
        assert reason in shown


def test_a_reader_who_goes_away_does_not_stop_the_demo():
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    assert asyncio.run(run_demo(Gone())) == 0


def test_without_a_place_for_temporary_files_the_user_is_told_what_to_do(tmp_path):
    before, tempfile.tempdir = tempfile.tempdir, str(tmp_path / "missing")
    try:
        with pytest.raises(SettingsError, match="TMPDIR"):
            demo()
    finally:
        tempfile.tempdir = before
