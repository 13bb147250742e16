"""With too many files in a protected folder no command starts, and the error names the folder."""

from pathlib import Path

import pytest
from sandboxed_session import SandboxedSession

from bradawl.core.errors import ToolError
from bradawl.sandbox.restore import snapshot as protected
from bradawl.sandbox.restore.git_history import GitHistory, RepositoryLocation, WorkspaceWatch
from bradawl.sandbox.restore.protected_files import ProtectedFiles

MOST = 500


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(protected, "_MOST_ENTRIES", MOST)


def _fill(folder: Path, number: int = MOST + 10) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for each in range(number):
        (folder / f"f{each}").touch()


def _watches(root: Path) -> WorkspaceWatch:
    files = ProtectedFiles(lambda: [(str(root), ".vscode")], str(root / "../kept"))
    return WorkspaceWatch(
        files, GitHistory(lambda: [RepositoryLocation(f"{root}/.git", str(root))], str(root / "../history"))
    )


@pytest.mark.parametrize("folder", [".vscode", ".vscode/a/b", ".git/refs/heads", ".git/logs/refs"])
def test_too_many_files_to_check_are_an_error_that_names_the_folder(tmp_path: Path, folder: str) -> None:
    root = tmp_path / "ws"
    (root / ".git/refs").mkdir(parents=True)
    (root / ".git/HEAD").write_text("ref: refs/heads/main\n")
    _fill(root / folder)
    watches = _watches(root)
    for _ in range(2):
        with pytest.raises(ToolError, match=f"{root}/{'/'.join(folder.split('/')[:2])}".removesuffix("/a")):
            watches.begin()
    for path in sorted((root / folder).iterdir()):
        path.unlink()
    watches.begin()
    assert watches.end() == ()


@pytest.mark.parametrize("folder", [".vscode", ".vscode/a/b"])
def test_a_folder_that_a_program_filled_is_moved_away(tmp_path: Path, folder: str) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    watches = _watches(root)
    watches.begin()
    _fill(root / folder)
    assert watches.end() == (f"{root}/.vscode",)
    assert not (root / ".vscode").exists()


def test_a_head_file_replaced_by_a_full_folder_is_restored(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    for name in ("refs/heads", "objects"):
        (root / ".git" / name).mkdir(parents=True)
    head = root / ".git/HEAD"
    head.write_text("ref: refs/heads/main\n")
    watches = _watches(root)
    watches.begin()
    head.unlink()
    _fill(head)
    assert str(head) in watches.end()
    assert head.read_text() == "ref: refs/heads/main\n"


def test_a_sandboxed_command_reports_it(either_way: SandboxedSession) -> None:
    if either_way.grant.outside_sandbox:
        pytest.skip("nothing is looked at without a sandbox")
    either_way.git_init()
    either_way.run("true")
    _fill(either_way.root / ".git/refs/heads/many")
    with pytest.raises(ToolError, match="pack-refs"):
        either_way.run("true")
