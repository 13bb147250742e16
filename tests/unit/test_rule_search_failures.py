"""A path that can't be examined does not count as one that no permission rule matches."""

import errno
import os
from pathlib import Path

import pytest
from failing_calls import failing

from bradawl.core.errors import ToolError
from bradawl.core.rules import Rule
from bradawl.safety.permissions.path_globs import Bases
from bradawl.safety.permissions.rule_syntax import parse_rule
from bradawl.safety.permissions.rule_targets import RuleMatcher, UnreadablePath
from bradawl.sandbox.mounts.rule_mounts import ProgramView, RuleMounts

ERRORS = (errno.EMFILE, errno.ENFILE, errno.EIO, errno.ENOMEM)


def rules(root: Path, *texts: str) -> tuple[Rule, ...]:
    bases = Bases(str(root / ".bradawl"), str(root.parent), str(root))
    return tuple(rule for text in texts for rule in parse_rule(text, "deny", "test", bases))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner/k.pem").write_text("KEY")
    return folder


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize(("name", "at"), [("scandir", "inner"), ("lstat", "inner"), ("lstat", "inner/k.pem")])
def test_a_path_that_can_not_be_examined_stops_the_search(root, monkeypatch, name, at, number):
    text = "Read(inner/k.pem)" if at == "inner/k.pem" else "Read(**/*.pem)"
    matcher = RuleMatcher(rules(root, text), (str(root),))
    mounts = RuleMounts((str(root),))
    mounts.set_rules(rules(root, text))
    view = ProgramView((str(root),), str(root))
    with monkeypatch.context() as patched:
        patched.setattr(os, name, failing(getattr(os, name), root / at, number))
        with pytest.raises(UnreadablePath, match=f"{root / at} could not be examined"):
            list(matcher.matches())
        with pytest.raises(ToolError, match="what permission rules refuse can't be found"):
            mounts.mounts(view)
    assert [match.path for match in matcher.matches()] == [f"{root}/inner/k.pem"]
    assert {mount.path: mount.kind for mount in mounts.mounts(view)}[f"{root}/inner/k.pem"] == "unreadable"


def test_new_files_that_can_not_be_looked_for_are_not_taken_for_none(root, monkeypatch):
    mounts = RuleMounts((str(root),))
    mounts.set_rules(rules(root, "Edit(**/*.lock)"))
    assert list(mounts.watched_paths()) == []
    (root / "inner/x.lock").write_text("made")
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", failing(os.scandir, root / "inner", errno.EMFILE))
        with pytest.raises(ToolError, match="could not be examined"):
            list(mounts.new_paths())
    assert list(mounts.new_paths()) == [(str(root), "inner/x.lock")]


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ENAMETOOLONG])
def test_what_is_gone_or_closed_hinders_nothing(root, monkeypatch, number):
    matcher = RuleMatcher(rules(root, "Read(**/*.pem)"), (str(root),))
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", failing(os.scandir, root / "inner", number))
        assert list(matcher.matches()) == []
