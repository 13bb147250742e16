"""Arguments of bubblewrap for the folders above visible paths in `/tmp`."""

import pytest

from bradawl.core.errors import ToolError
from bradawl.sandbox.bubblewrap_arguments import bind_parents_in_tmp


def test_each_folder_above_a_visible_path_in_tmp_is_bound_once_outermost_first(tmp_path):
    seen = ("/tmp/a/b/ws", "/tmp/a/b/other/ws", "/usr/lib", "/tmp/alone")
    bound = tuple(bind_parents_in_tmp(seen, (), str(tmp_path)))
    folders = ("/tmp/a", "/tmp/a/b", "/tmp/a/b/other")
    assert bound == tuple(word for each in folders for word in ("--bind", f"{tmp_path}{each[4:]}", each))
    assert (tmp_path / "a" / "b" / "other").is_dir()


def test_folders_in_one_that_is_mounted_with_its_content_are_not_bound(tmp_path):
    seen = ("/tmp/home/data/kept", "/tmp/homes/x/ws", "/tmp/home")
    bound = tuple(bind_parents_in_tmp(seen, ("/tmp/home",), str(tmp_path)))
    assert bound[2::3] == ("/tmp/homes", "/tmp/homes/x")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("make", ["link", "file"])
def test_a_link_or_file_of_a_program_in_the_place_of_such_a_folder_is_not_bound(tmp_path, make):
    scratch, outside = tmp_path / "scratch", tmp_path / "outside"
    scratch.mkdir()
    outside.mkdir()
    if make == "link":
        (scratch / "a").symlink_to(outside)
    else:
        (scratch / "a").touch()
    with pytest.raises(ToolError, match="can't show /tmp/a: a command made a file or link of that name"):
        tuple(bind_parents_in_tmp(("/tmp/a/b/ws",), (), str(scratch)))
    assert not list(outside.iterdir())
