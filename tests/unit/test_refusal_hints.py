"""Hints on how a refused shell line could be written."""

import json

import pytest

from bradawl.shaping.refusal_hints import after_uncertain_cd

OUTSIDE = "it writes outside the workspace: /work/py/o.txt"


@pytest.mark.parametrize(
    ("command", "reason", "hint"),
    [
        (
            "cd ../js; rm -f o.txt",
            OUTSIDE,
            "If the cd failed, the rest would run in /work/py: write `cd ../js && rm -f o.txt`.",
        ),
        (
            "ls\ncd ../js\nrm -f o.txt\nls",
            OUTSIDE,
            "If the cd failed, the rest would run in /work/py: write `cd ../js && rm -f o.txt`.",
        ),
        ("cd ../js && rm -f o.txt", OUTSIDE, ""),
        ("cd ../js; rm -f o.txt", "it writes outside the workspace: /work/js/o.txt", ""),
        ("rm -f o.txt", OUTSIDE, ""),
    ],
)
def test_a_line_that_is_refused_for_the_failure_of_its_cd_comes_with_another(command, reason, hint):
    assert after_uncertain_cd(json.dumps({"command": command}), reason, "/work/py") == hint
