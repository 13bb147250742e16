"""The tool `grep` omits files with keys unless they are named, and private files of other users."""

import pytest
from tool_calls import RG

from bradawl.tools.grep import Grep, without_keys
from bradawl.tools.searching.search import Query

KEYS = (".env", "sub/.env.production", "deep/a/b/c/d/.env", "sub/id_rsa", "server.pem", "auth.json", "home/.aws/config")


@pytest.mark.parametrize("mode", ["content", "files", "count"])
async def test_a_search_of_a_folder_omits_files_with_keys(place, tmp_path, mode):
    for name in (*KEYS, ".env.example", "src/main.py", "own/projects/x/log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("needle\n")
    home, own = str(tmp_path / "home"), (str(tmp_path / "own"),)
    grep = Grep(RG, home=home, own=own)
    text = await place.text(grep, pattern="needle", output_mode=mode)
    assert ".env.example" in text
    assert "main.py" in text
    assert not any(name in text.replace(".env.example", "") for name in (*KEYS, "log"))


@pytest.mark.parametrize("path", [".env", "home/.ssh"])
async def test_a_permitted_search_of_a_named_file_or_folder_of_keys_shows_matches(place, tmp_path, path):
    (tmp_path / "home/.ssh").mkdir(parents=True)
    (tmp_path / "home/.ssh/config").write_text("needle\n")
    (tmp_path / ".env").write_text("needle\n")
    grep = Grep(RG, home=str(tmp_path / "home"))
    assert "1: needle" in await place.text(grep, pattern="needle", path=path)


@pytest.mark.parametrize(
    ("root", "path", "is_left_out"),
    [
        ("/", "/home/alice/notes", True),
        ("/home", "/home/u/notes", False),
        ("/home/alice", "/home/alice/notes", False),
        ("/home/alice", "/home/alice/.ssh/id_rsa", True),
    ],
)
def test_files_of_other_users_are_shown_only_if_their_folder_is_searched(root, path, is_left_out):
    query = Query("needle", root, False, "content", 9, 0, False, "", "", 9.0)
    assert without_keys(query, "/home/u", ()).leaves_out(path) == is_left_out
