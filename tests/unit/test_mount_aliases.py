"""Other paths of a file in a file system that is mounted twice."""

from pathlib import Path

from bradawl.sandbox.discovery.mount_aliases import MountAliases


def table(tmp_path: Path, *mounts: tuple[str, str, str]) -> MountAliases:
    """The mount table of these devices, roots and places."""
    lines = (f"1 2 {device} {root} {path} rw - ext4 /dev/x rw\n" for device, root, path in mounts)
    (tmp_path / "table").write_text("".join(lines))
    return MountAliases(str(tmp_path / "table"))


def same(first: Path, *others: Path) -> None:
    """Files that are one, as those of a bound folder are."""
    for path in (first, *others):
        path.parent.mkdir(parents=True, exist_ok=True)
    first.write_text("key")
    for path in others:
        path.hardlink_to(first)


def test_a_bound_folder_shows_a_file_at_a_second_path(tmp_path):
    home, bound, top = tmp_path / "home/u", tmp_path / "data\\u", tmp_path / "volume"
    same(home / ".ssh", bound / ".ssh", top / "@home/u/.ssh")
    escaped = str(bound).replace("\\", "\\134")
    mounts = (
        ("8:1", "/", "/"),
        ("8:2", "/@home", str(home.parent)),
        ("8:2", "/@home/u", escaped),
        ("8:2", "/", str(top)),
    )
    aliases = table(tmp_path, *mounts)
    assert set(aliases.of([f"{home}/.ssh"])) == {f"{bound}/.ssh", f"{top}/@home/u/.ssh"}
    assert aliases.of([f"{home}/.ssh"], (str(top),)) == (f"{bound}/.ssh",)
    assert aliases.of([f"{top}/@home/u/.ssh"], (str(bound),)) == (f"{home}/.ssh",)
    assert aliases.of([f"{home}/.ssh", str(bound), str(top)]) == ()
    assert aliases.of(["/etc/passwd", f"{home}/missing"]) == ()


def test_a_part_of_a_hidden_folder_that_is_bound_elsewhere_is_found(tmp_path):
    same(tmp_path / "home/.ssh/keys/id", tmp_path / "keys/id")
    (tmp_path / "keys/id").unlink()
    same(tmp_path / "home/.ssh/id", tmp_path / "one")
    aliases = table(tmp_path, ("8:2", "/", str(tmp_path / "home")), ("8:2", "/.ssh/id", str(tmp_path / "one")))
    assert aliases.of([f"{tmp_path}/home/.ssh"]) == (f"{tmp_path}/one",)
    assert aliases.of([f"{tmp_path}/home/.ssh/id"]) == (f"{tmp_path}/one",)


def test_a_path_below_another_mount_is_not_the_file(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "bound").mkdir()
    (tmp_path / "home/.netrc").write_text("key")
    (tmp_path / "bound/.netrc").write_text("other")
    aliases = table(tmp_path, ("8:2", "/", str(tmp_path / "home")), ("8:2", "/", str(tmp_path / "bound")))
    assert aliases.of([f"{tmp_path}/home/.netrc"]) == ()


def test_the_table_is_read_again_and_may_be_missing_or_odd(tmp_path):
    same(tmp_path / "home/k", tmp_path / "bound/k")
    aliases = table(tmp_path, ("8:2", "/", str(tmp_path / "home")))
    assert aliases.of([f"{tmp_path}/home/k"]) == ()
    table(tmp_path, ("8:2", "/", str(tmp_path / "home")), ("8:2", "/", str(tmp_path / "bound")))
    assert aliases.of([f"{tmp_path}/home/k"]) == (f"{tmp_path}/bound/k",)
    (tmp_path / "table").write_text("short line\n\n")
    assert aliases.of([f"{tmp_path}/home/k"]) == ()
    (tmp_path / "table").unlink()
    assert aliases.of([f"{tmp_path}/home/k"]) == ()
