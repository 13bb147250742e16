"""A file whose name differs only in case is not removed where the file system takes both names for one."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from restored_workspace import Workspace

from bradawl.checkpoints.restore import apply


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path.resolve()) as made:
        yield made


def test_what_was_renamed_to_another_case_stays(work: Workspace) -> None:
    upper, lower = work.top / "Docs", work.top / "docs"
    upper.mkdir()
    (upper / "text").write_text("text")
    work.start()
    upper.rename(lower)
    work.changed()
    upper.mkdir()
    if subprocess.run(["mount", "--bind", str(lower), str(upper)], capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a file system")
    try:
        made = work.plan()
        assert dict(made.impossible).keys() == {os.fsencode(lower), os.fsencode(lower / "text")}
        assert "another spelling" in made.impossible[0][1]
        apply(made, work.store)
        assert (lower / "text").read_text() == "text"
    finally:
        subprocess.run(["umount", str(upper)], check=True)


def test_two_names_that_differ_only_in_case_are_two_files_elsewhere(work: Workspace) -> None:
    (work.top / "A").write_text("A")
    work.start()
    (work.top / "a").write_text("a")
    (work.top / "b").write_text("b")
    (work.top / "B").hardlink_to(work.top / "b")
    work.changed()
    apply(work.plan(), work.store)
    assert work.scan() == work.trees[0]
