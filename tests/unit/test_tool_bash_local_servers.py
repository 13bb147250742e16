"""The tool `bash` says that servers of other commands are out of reach, also if a client says nothing."""

import pytest

from bradawl.core.messages import text_of
from bradawl.core.permissions import Grant
from bradawl.core.workspace import CommandResult
from bradawl.tools.shell.result import ending_of, output_of
from bradawl.tools.shell.sandbox_hints import notes_on

IN_WORKSPACE = Grant(writable=("/ws", "/tmp"))


@pytest.mark.parametrize(
    ("command", "codes", "is_told"),
    [
        ("curl -s 127.0.0.1:8766 | head -3", (7, 0), True),
        ("curl -s http://localhost:8766/x", (7,), True),
        ("wget -qO- http://127.0.0.1:8766 | head -3", (4, 0), True),
        ("curl -s 127.0.0.1:8766 | head -3", (22, 0), False),
        ("curl -s example.org | head -3", (7, 0), False),
        ("python3 serve.py & curl -s 127.0.0.1:8766 | head -3", (7, 0), False),
        ("echo 127.0.0.1 | ./x", (7, 0), False),
    ],
)
def test_a_silent_client_that_reached_no_local_server_gets_the_hint_too(command, codes, is_told):
    result = CommandResult(codes[-1], b"", b"", sandbox="bubblewrap", pipe_status=codes)
    for by_domain in (False, True):
        notes = notes_on(result, IN_WORKSPACE, user_is_there=False, command=command, by_domain=by_domain)
        assert [note.startswith("[bubblewrap sandbox: each command has a loopback network") for note in notes] == (
            [True] if is_told else []
        )


def test_programs_left_running_get_a_hint_on_separate_networks():
    result = CommandResult(0, b"", b"", sandbox="bubblewrap", ended_background=True)
    text = text_of(output_of("x &", result, ending_of(result, 10, 0), (), IN_WORKSPACE).parts)
    assert text.endswith(
        "\n[programs it had left running were ended; other commands can't connect to a server started here or in "
        "a job: start server and client in one command. What else is to go on belongs in a call with "
        "run_in_background, without &]"
    )
