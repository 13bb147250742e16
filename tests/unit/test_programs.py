"""`TrustedPrograms` finds programs only in folders that projects and commands can't write to."""

import os
from pathlib import Path

import pytest

from bradawl.safety.path_walk import followed
from bradawl.safety.trusted_programs import TrustedPrograms


def program(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_followed_lists_every_link_on_a_path_and_its_target(tmp_path):
    top = Path(os.path.realpath(tmp_path))
    (top / "a/b").mkdir(parents=True)
    (top / "link").symlink_to("a/b")
    (top / "second").symlink_to(top / "link")
    (top / "a/real").write_text("")
    places = followed(f"{top}/second/../real")
    assert places == (f"{top}/second", f"{top}/link", f"{top}/a/real")


def test_a_loop_of_links_is_an_error(tmp_path):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(OSError, match="symbolic links"):
        followed(f"{tmp_path}/one")


def test_programs_of_the_workspace_or_a_temporary_folder_are_not_trusted(tmp_path):
    program(tmp_path / "ws/bin", "sh")
    program(tmp_path / "other", "sh")
    found = TrustedPrograms(f"{tmp_path}/ws/bin:{tmp_path}/other:ws/bin::/usr/bin:/bin", (f"{tmp_path}/ws",))
    path = found.find("sh")
    assert path is not None
    assert not path.startswith(str(tmp_path))
    assert [each.path for each in found.rejected("sh")] == [f"{tmp_path}/ws/bin/sh", f"{tmp_path}/other/sh"]
    assert "commands can write" in found.rejected("sh")[0].reason
    assert str(tmp_path) not in found.search_path


def test_a_program_reached_through_a_link_in_the_workspace_is_not_trusted():
    # Outside temporary folders, so that only the workspace decides.
    real = Path("/usr/bin/env")
    workspace = str(real.parent)
    assert TrustedPrograms("/usr/bin", (workspace,)).why_untrusted(str(real))
    assert not TrustedPrograms("/usr/bin").why_untrusted(str(real))


def test_a_program_that_was_found_is_remembered(tmp_path, monkeypatch):
    found = TrustedPrograms("/usr/bin:/bin")
    first = found.find("sh")
    monkeypatch.setenv("PATH", str(program(tmp_path, "sh").parent))
    assert found.find("sh") == first


def test_programs_of_the_running_environment_are_trusted_inside_the_workspace(tmp_path):
    top = os.path.realpath(tmp_path)
    path = program(tmp_path / "ws/.venv/bin", "rg")
    found = TrustedPrograms(f"{top}/ws/.venv/bin", (f"{top}/ws",), f"{top}/ws/.venv")
    assert found.find("rg") == str(path.resolve())
    assert found.beside("rg") == str(path.resolve())
    assert TrustedPrograms(f"{top}/ws/.venv/bin", (f"{top}/ws",)).find("rg") != str(path)
