"""If bubblewrap can't set up the sandbox, its message is replaced by an explanation and advice."""

import pytest
from bwrap import HAS_BWRAP
from sandboxed_session import SandboxedSession, sandboxed_session

from bradawl.core.permissions import Grant
from bradawl.sandbox import bubblewrap
from bradawl.sandbox.bubblewrap_errors import explain_setup_error

SAID = {
    b"bwrap: Can't create file at /newroot/w/.git/config: Read-only file system\n": ("/w/.git/config", "Read-only"),
    b"bwrap: Can't bind mount /oldroot/a b on /newroot/w/c d: Permission denied\n": ("/w/c d", "Permission denied"),
    b"bwrap: Can't find source path /w/gone: No such file or directory\n": ("/w/gone", "No such file"),
    b"bwrap: Can't mkdir /newroot/w/x: Read-only file system\nmore\n": ("/w/x", "Read-only"),
    b"bwrap: Can't chdir to /w/gone: No such file or directory\n": ("working directory /w/gone", "cd elsewhere"),
    b"bwrap: execvp /w/bash: No such file or directory\n": ("/w/bash", "use another"),
    b"bwrap: Creating new namespace failed: Resource temporarily unavailable\n": ("no more namespaces", "End other"),
    b"bwrap: setting up uid map: Permission denied\n": ("setting up uid map", "bradawl doctor"),
    b"bwrap: \xff\xfe\n": ("xff", "bradawl doctor"),
    b"bwrap: ": ("was not run", "bradawl doctor"),
}


@pytest.mark.parametrize(("said", "told"), SAID.items(), ids=lambda each: str(each)[:40])
def test_a_message_of_bubblewrap_is_explained(said: bytes, told: tuple[str, str]) -> None:
    text = explain_setup_error(said)
    assert all(part in text for part in told)
    assert not any(word in text for word in ("bwrap", "oldroot", "newroot", "\n"))


def test_messages_of_other_programs_are_unchanged() -> None:
    assert explain_setup_error(b"bash: bwrap: command not found\n") == ""


@pytest.fixture
def made(tmp_path):
    if not HAS_BWRAP:
        pytest.skip("bubblewrap does not work here")
    with sandboxed_session(tmp_path) as built:
        yield built


@pytest.mark.parametrize("is_writable", [True, False])
def test_a_command_that_was_not_run_reports_the_reason(
    made: SandboxedSession, monkeypatch: pytest.MonkeyPatch, is_writable: bool
) -> None:
    monkeypatch.setattr(bubblewrap, "emptied_folders", lambda: ("/not-there",))
    result = made.run("touch canary", None if is_writable else Grant())
    assert (result.exit_code, result.stdout) == (1, b"")
    assert b"/not-there could not be shown, hidden or protected" in result.stderr
    assert b"bwrap" not in result.stderr
    assert not (made.root / "canary").exists()


def test_the_same_message_printed_by_a_program_is_unchanged(made: SandboxedSession) -> None:
    assert made.run("echo 'bwrap: Can not do it: really' >&2; exit 1").stderr == b"bwrap: Can not do it: really\n"
