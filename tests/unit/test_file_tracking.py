"""Files with keys are found under the further names that they have got."""

import os
from pathlib import Path

import pytest

from bradawl.sandbox.discovery.file_tracking import FileTracker


def test_many_lost_files_are_searched_for_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tracker, inodes = FileTracker(str(tmp_path)), dict[str, tuple[int, int]]()
    (tmp_path / "plain").mkdir()
    for number in range(40):
        file = tmp_path / f"{number}.env"
        file.write_text("KEY=1")
        status = file.stat()
        tracker.track(str(file), (status.st_dev, status.st_ino))
        if number % 4:
            for name in ("a", "b")[: number % 3]:
                (tmp_path / f"plain/{number}{name}").hardlink_to(file)
                inodes[f"{tmp_path}/plain/{number}{name}"] = status.st_dev, status.st_ino
        file.unlink()
    listed: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(str(path)) or scandir(path))
    found = dict(tracker.moved(set()))
    assert found == inodes
    assert listed.count(f"{tmp_path}/plain") == 1
    assert {inode for _, inode in tracker.moved(set())} == set(inodes.values())
    tracker.close()
