"""`TrustStore` keeps trust and refusals by real path and content, in a file that only the user can write."""

import json
import os
import threading
from pathlib import Path

import pytest

from bradawl.core.errors import SettingsError
from bradawl.safety.trust.store import TrustStore, digest


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "home" / "project" / "sub").mkdir(parents=True)
    return tmp_path / "home" / "project"


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    return TrustStore(tmp_path / "data", str(tmp_path / "home"))


def reopened(store: TrustStore) -> TrustStore:
    """The same store, opened again as by another process."""
    return TrustStore(store.path.parent, store._home)


def names_beside(store: TrustStore) -> list[str]:
    return sorted(path.name for path in store.path.parent.iterdir())


def test_nothing_is_trusted_by_default(store, project):
    assert not store.is_trusted(str(project))
    assert store.changed(str(project), "hooks", "d")
    assert not store.path.exists()
    store.trust(str(project), {"hooks": "d"})
    for one in (store, reopened(store)):
        assert one.is_trusted(str(project))
        assert not one.changed(str(project), "hooks", "d")
        assert one.changed(str(project), "hooks", "other")
        assert one.changed(str(project), "mcp", "d")
        assert not one.is_trusted(str(project.parent / "project2"))


def test_only_the_user_can_read_the_file(store, project):
    store.trust(str(project), {})
    assert store.path.stat().st_mode & 0o777 == 0o600
    assert store.path.parent.stat().st_mode & 0o777 == 0o700
    assert names_beside(store) == ["trust.json", "trust.lock"]


def test_trust_depends_on_the_real_path_and_not_on_contents_of_a_checkout(store, project, tmp_path):
    store.trust(str(project), {})
    link = tmp_path / "link"
    link.symlink_to(project)
    assert store.is_trusted(str(link))
    evil = tmp_path / "evil"
    (evil / ".git").mkdir(parents=True)
    (evil / ".git" / "commondir").write_text(str(project / ".git"))
    assert not store.is_trusted(str(evil))
    link.unlink()
    link.symlink_to(evil)
    assert not store.is_trusted(str(link))


def test_a_subfolder_is_trusted_only_if_requested(store, project):
    sub = str(project / "sub")
    store.trust(str(project), {"hooks": "d"})
    assert not store.is_trusted(sub)
    store.trust(str(project), {"hooks": "d"}, below=True)
    assert store.is_trusted(sub)
    assert not store.is_trusted(str(project) + "2")
    assert store.changed(sub, "hooks", "d")
    store.decline(sub, {})
    assert not store.is_trusted(sub)


def test_folders_that_contain_everything_can_not_be_trusted(store, project, tmp_path):
    for folder in ("/", str(tmp_path), str(tmp_path / "home")):
        with pytest.raises(SettingsError, match="can't be trusted as a whole"):
            store.trust(folder, {})
    store.trust(str(project), {})
    content = json.loads(store.path.read_text())
    content["folders"] = {"/": {"is_trusted": True, "below": True}}
    store.path.write_text(json.dumps(content))
    assert not reopened(store).is_trusted("/")


def test_removing_trust_forgets_the_folder(store, project):
    assert not store.distrust(str(project))
    store.trust(str(project), {"a": "b"})
    assert store.distrust(str(project))
    assert not reopened(store).is_trusted(str(project))
    assert reopened(store).trusted() == ()


def test_a_refusal_is_remembered_for_the_same_question(store, project):
    store.decline(str(project), {"a": "1"})
    fresh = reopened(store)
    assert not fresh.is_trusted(str(project))
    assert fresh.is_answered(str(project), {"a": "1"})
    assert not fresh.is_answered(str(project), {"a": "2"})
    assert not fresh.is_answered(str(project), {"a": "1", "b": "1"})


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_a_file_that_others_can_write_is_ignored(store, project, mode):
    store.trust(str(project), {})
    store.path.chmod(mode)
    fresh = reopened(store)
    assert not fresh.is_trusted(str(project))
    with pytest.raises(SettingsError, match="can be written by others"):
        fresh.trust(str(project), {})


@pytest.mark.parametrize("text", ["", "{", "[]", '{"folders": {"/x": 1}}', "[" * 100_000, "\x00", '{"folders": null}'])
def test_a_damaged_file_trusts_nothing_and_is_not_overwritten(store, project, text):
    store.trust(str(project), {})
    store.path.write_text(text)
    fresh = reopened(store)
    assert not fresh.is_trusted(str(project))
    with pytest.raises(SettingsError, match="remove it"):
        fresh.trust(str(project), {})
    assert store.path.read_text() == text


def test_a_link_or_a_pipe_in_its_place_is_ignored(store, project, tmp_path):
    store.trust(str(project), {})
    store.path.rename(tmp_path / "elsewhere.json")
    store.path.symlink_to(tmp_path / "elsewhere.json")
    assert not reopened(store).is_trusted(str(project))
    store.path.unlink()
    os.mkfifo(store.path)
    assert not reopened(store).is_trusted(str(project))


def test_a_failed_write_leaves_only_the_old_file(store, project):
    store.trust(str(project), {})
    before = store.path.read_bytes()
    with pytest.raises(SettingsError, match="can't be written"):
        store.trust(str(project), {"a": "\ud800"})
    assert store.path.read_bytes() == before
    assert names_beside(store) == ["trust.json", "trust.lock"]
    assert reopened(store).is_trusted(str(project))


def test_concurrent_writers_lose_nothing(store, tmp_path):
    folders = [str(tmp_path / "home" / f"p{number}") for number in range(20)]
    threads = [threading.Thread(target=reopened(store).trust, args=(folder, {})) for folder in folders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path for path, _ in reopened(store).trusted()] == sorted(folders)


def test_a_folder_whose_name_is_not_utf8_can_be_queried(store, tmp_path):
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/home/caf\xe9")
    Path(folder).mkdir(parents=True)
    assert not store.is_trusted(folder)
    with pytest.raises(SettingsError, match="can't be written"):
        store.trust(folder, {})


# ------------------------------------------------------------------ digests


def test_a_digest_covers_the_value_and_the_scripts_it_names(project):
    (project / "bin").mkdir()
    script = project / "bin" / "server"
    script.write_text("one")
    entry = {"command": "./bin/server", "args": ["--fast"], "env": {"A": "1"}, "cwd": "."}
    first = digest(entry, str(project))
    assert digest(dict(reversed(entry.items())), str(project)) == first
    for other in ({"args": ["--slow"]}, {"env": {"A": "2"}}, {"cwd": "bin"}, {"command": "bin/server"}):
        assert digest({**entry, **other}, str(project)) != first
    script.write_text("two")
    assert digest(entry, str(project)) != first


@pytest.mark.parametrize(
    "value",
    [
        "sh bin/server",
        "python -c x --config=bin/server",
        ["sh", "-c", "'bin/server' --x"],
        {"x": [{"y": "bin/server"}]},
    ],
)
def test_a_script_named_anywhere_in_a_value_is_found(project, value):
    (project / "bin").mkdir()
    script = project / "bin" / "server"
    before = digest(value, str(project))
    script.write_text("one")
    assert digest(value, str(project)) != before


def test_the_path_of_a_script_is_relative_to_the_folder_of_its_entry(project):
    entry = {"command": "./server", "cwd": "sub"}
    before = digest(entry, str(project))
    (project / "sub" / "server").write_text("one")
    assert digest(entry, str(project)) != before


def test_a_digest_reads_no_files_outside_the_project_and_no_pipes(project, tmp_path):
    (tmp_path / "secret").write_text("one")
    os.mkfifo(project / "pipe")
    value = f"{tmp_path}/secret ../../secret pipe /dev/zero {'x' * 5000} \ud800"
    before = digest(value, str(project))
    (tmp_path / "secret").write_text("two")
    assert digest(value, str(project)) == before
