"""A folder that can't be examined for files with keys counts as one that may hold some: nothing runs."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from failing_calls import failing

from bradawl.core.errors import ToolError
from bradawl.safety.shell.errors import UnsupportedSyntax
from bradawl.sandbox.discovery.workspace_survey import WorkspaceSurvey, secrets_below

ERRORS = (errno.EMFILE, errno.ENFILE, errno.EIO, errno.ENOMEM, errno.ESTALE)


@pytest.fixture
def inner(tmp_path: Path) -> Path:
    folder = tmp_path / "one/two"
    folder.mkdir(parents=True)
    (folder / ".env").write_text("KEY=1")
    return folder


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("name", ["scandir", "lstat"])
def test_a_folder_that_can_not_be_examined_is_no_empty_one(inner, tmp_path, monkeypatch, name, number):
    survey = WorkspaceSurvey(str(tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr(os, name, failing(getattr(os, name), inner, number))
        with pytest.raises(ToolError, match=rf"{inner} may hold keys and could not be examined"):
            survey.result()
        with pytest.raises(UnsupportedSyntax):
            secrets_below(str(tmp_path))
    assert survey.result().secrets == (f"{inner}/.env",)
    survey.close()


def test_a_file_that_can_not_be_examined_is_not_passed_over(inner, tmp_path, monkeypatch):
    survey = WorkspaceSurvey(str(tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr(os, "lstat", failing(os.lstat, inner / ".env", errno.EIO))
        with pytest.raises(ToolError, match="may hold keys"):
            survey.result()
    assert survey.result().secrets == (f"{inner}/.env",)
    survey.close()


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ENOTDIR])
def test_a_folder_that_is_gone_hinders_nothing(inner, tmp_path, monkeypatch, number):
    survey = WorkspaceSurvey(str(tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", failing(os.scandir, inner, number))
        assert survey.result().secrets == ()
    survey.close()


def test_further_folders_that_can_not_be_examined_are_searched_again(tmp_path, monkeypatch):
    for number in range(20):
        (tmp_path / f"{number:02}").mkdir()
    last = tmp_path / "19"
    (last / ".env").write_text("KEY=1")
    survey = WorkspaceSurvey(str(tmp_path), 5, follows=True)
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", failing(os.scandir, last, errno.EIO))
        assert survey.result().secrets == ()
        assert not survey.is_whole
    assert survey.result().secrets == (f"{last}/.env",)
    assert survey.is_whole
    survey.close()


def test_a_renamed_file_with_keys_is_not_given_up_because_a_folder_can_not_be_examined(inner, tmp_path, monkeypatch):
    survey = WorkspaceSurvey(str(tmp_path), follows=True)
    (inner / "other").hardlink_to(inner / ".env")
    assert survey.result().secrets == (f"{inner}/.env",)
    (inner / ".env").unlink()  # a program did it
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", failing_at_second(os.scandir, inner))
        with pytest.raises(ToolError, match=rf"{inner} may hold keys and could not be examined"):
            survey.result()
    assert survey.result().secrets == (f"{inner}/other",)
    survey.close()


def failing_at_second(call: Callable[..., object], path: Path) -> Callable[..., object]:
    """The survey itself lists the folder first."""
    calls: list[object] = []

    def fail(*arguments: object) -> object:
        if str(arguments[0]) == str(path):
            calls.append(path)
            if len(calls) == 2:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
        return call(*arguments)

    return fail
