"""An undo asks before it completes a repository from parts, if git would run a program from it."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bradawl.app.undo_completed import with_completing_conflicts
from bradawl.checkpoints.record import FileState
from bradawl.checkpoints.restore import PlannedChange, RestorePlan
from bradawl.checkpoints.store import ContentStore

ARMED = '[core]\n\tfsmonitor = "touch x; false"\n'
PLAIN = "[core]\n\tbare = false\n"
HEAD = "ref: refs/heads/main\n"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ContentStore]:
    with ContentStore(tmp_path / "store") as made:
        yield made


def made(top: Path, parts: Mapping[str, str | None]) -> Path:
    """A folder with these files; None for a folder."""
    for name, text in parts.items():
        path = top / name
        (path if text is None else path.parent).mkdir(parents=True, exist_ok=True)
        if text is not None:
            path.write_text(text)
    return top


def asked(store: ContentStore, top: Path, wanted: Mapping[str, str | None], removed: tuple[str, ...] = ()) -> set[str]:
    """Names of the changes that are conflicts, in either part of a plan."""
    states = {
        name: FileState("folder", 0o755)
        if text is None
        else FileState("file", 0o644, store.add_bytes(text.encode()), len(text))
        for name, text in wanted.items()
    }
    changes = tuple(PlannedChange(os.fsencode(top / name), None, state) for name, state in states.items())
    changes += tuple(PlannedChange(os.fsencode(top / name), FileState("folder", 0o755), None) for name in removed)
    roots = (os.fsencode(top.parent),)
    found = with_completing_conflicts(RestorePlan(roots, changes, (), (), ()), store).changes
    also = with_completing_conflicts(RestorePlan(roots, (), changes, (), ()), store).git
    assert found == also
    return {os.fsdecode(each.path)[len(f"{top}/") :] for each in found if each.conflict}


@pytest.mark.parametrize(
    ("parts", "wanted", "removed", "conflicts"),
    [
        ({"config": ARMED, "refs/k": "", "objects/.cache/v": ""}, {"HEAD": HEAD}, ("objects",), {"HEAD"}),
        ({"config": ARMED, "refs": None, "objects": None, "HEAD": "garbage"}, {"HEAD": HEAD}, (), {"HEAD"}),
        ({"objects": None}, {"HEAD": HEAD, "refs": None, "refs/k": "", "config": ARMED}, (), {"HEAD"}),
        (
            {"HEAD": HEAD, "refs": None, "config": ARMED},
            {"objects": None, "objects/x": ""},
            (),
            {"objects", "objects/x"},
        ),
        ({"HEAD": HEAD, "objects": None, "hooks/pre-commit": ""}, {"refs": None}, (), {"refs"}),
        ({"config": ARMED, "refs": None}, {"objects": None}, (), {"objects"}),
        ({"config": PLAIN, "refs": None, "objects/info/alternates": "/x"}, {"HEAD": HEAD}, (), {"HEAD"}),
        ({"commondir": "../other\n"}, {"HEAD": HEAD}, (), {"HEAD"}),
        ({"HEAD": HEAD}, {"commondir": "../other\n"}, (), {"commondir"}),
        ({"config": PLAIN, "config.worktree": ARMED, "refs": None, "objects": None}, {"HEAD": HEAD}, (), {"HEAD"}),
        ({"refs": None, "objects": None}, {"HEAD": HEAD, "hooks/post-checkout": ""}, (), {"HEAD"}),
    ],
)
def test_a_part_that_completes_an_armed_repository_is_asked_about(store, tmp_path, parts, wanted, removed, conflicts):
    assert asked(store, made(tmp_path / "ws/d", parts), wanted, removed) == conflicts


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ({"config": PLAIN, "refs": None, "objects": None, "hooks/a.sample": ""}, {"HEAD": HEAD}),
        ({"HEAD": HEAD, "config": ARMED, "refs": None, "objects": None}, {"HEAD": HEAD, "refs/heads/x": "0" * 40}),
        ({"HEAD": "0" * 40 + "\n", "config": ARMED, "refs": None, "objects": None}, {"HEAD": HEAD}),
        ({"config": ARMED, "refs": None}, {"HEAD": HEAD}),
        ({"commondir": "../..\n", "gitdir": "x"}, {"HEAD": HEAD}),
        ({"config": ARMED}, {"refs.txt": "", "HEADER": "", "src/objects.py": ""}),
    ],
)
def test_other_parts_are_restored_without_a_question(store, tmp_path, parts, wanted):
    assert asked(store, made(tmp_path / "ws/d", parts), wanted) == set()


def test_links_and_files_that_cannot_be_read_count_as_armed(store, tmp_path):
    for number, name in enumerate(("config", "commondir", "objects/info/alternates")):
        top = made(tmp_path / f"ws/{number}", {"refs": None, "objects/info": None})
        (top / name).symlink_to("elsewhere")
        assert asked(store, top, {"HEAD": HEAD}) == {"HEAD"}
    top = made(tmp_path / "ws/pipe", {"refs": None, "objects": None})
    os.mkfifo(top / "HEAD")
    assert asked(store, top, {"HEAD": HEAD, "config": PLAIN}) == set()
    (top / "hooks").write_text("no folder")
    assert asked(store, top, {"HEAD": HEAD, "config": PLAIN}) == {"HEAD"}


def test_a_head_that_is_a_link_makes_a_repository(store, tmp_path):
    top = made(tmp_path / "ws/d", {"config": ARMED, "refs": None, "objects": None})
    (top / "HEAD").symlink_to("refs/heads/main")
    assert asked(store, top, {"HEAD": HEAD}) == set()
    (top / "HEAD").unlink()
    (top / "HEAD").symlink_to("elsewhere")
    assert asked(store, top, {"HEAD": HEAD}) == {"HEAD"}


def test_a_part_of_a_repository_counts_though_its_path_holds_such_names_further_down(store, tmp_path):
    top = made(tmp_path / "ws/d", {"HEAD": HEAD, "config": ARMED, "objects": None})
    assert asked(store, top, {"refs/remotes/origin/HEAD": HEAD}) == {"refs/remotes/origin/HEAD"}


def test_an_earlier_conflict_keeps_its_reason(store, tmp_path):
    top = made(tmp_path / "ws/d", {"config": ARMED, "refs": None, "objects": None})
    state = FileState("file", 0o644, store.add_bytes(HEAD.encode()), len(HEAD))
    change = PlannedChange(os.fsencode(top / "HEAD"), None, state, conflict="it was changed")
    plan = RestorePlan((os.fsencode(top),), (change,), (), (), ())
    assert with_completing_conflicts(plan, store).changes == (change,)
