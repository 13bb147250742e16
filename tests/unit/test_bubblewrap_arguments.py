"""Arguments of bubblewrap for the folders above visible paths in `/tmp`."""

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
