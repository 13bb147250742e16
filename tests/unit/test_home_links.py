"""Files of a workspace to which links in the home folder lead."""

import os
import re
import sys
from pathlib import Path

import pytest

from bradawl.safety.home_links import HomeLinks
from bradawl.safety.permissions.protected_paths import linked_from_home_rules


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "home"
    (folder / ".config").mkdir(parents=True)
    (folder / "dotfiles/v1").mkdir(parents=True)
    return folder


def _found(links: HomeLinks, root: Path) -> set[str]:
    found = (*links.at_login(str(root)), *links.of_programs(str(root)))
    return {os.path.relpath(path, root) for path in found}


def test_the_targets_of_links_and_links_on_the_way_are_found(home: Path):
    root = home / "dotfiles"
    (root / "now").symlink_to("v1")
    (home / ".bashrc").symlink_to("dotfiles/now/bashrc")
    (home / ".config/nvim").symlink_to(root / "nvim")
    (home / ".config/git").mkdir()
    (home / ".config/git/ignore").symlink_to("../../dotfiles/ignore")
    (home / ".vim/pack/a").mkdir(parents=True)
    (home / ".vim/pack/a/x.vim").symlink_to(root / "x.vim")
    links = HomeLinks(str(home))
    assert _found(links, root) == {"now", "v1/bashrc", "nvim", "ignore", "x.vim"}
    assert {Path(path).name for path in links.of_programs(str(root))} == {"nvim", "x.vim"}
    assert _found(links, home / "other") == set()


def test_a_link_for_the_folder_of_all_settings_leads_to_each_of_them(home: Path):
    (home / ".config").rmdir()
    (home / ".config").symlink_to("dotfiles/config")
    found = _found(HomeLinks(str(home)), home / "dotfiles")
    assert {"config/git", "config/git/config", "config/fish", "config/nvim"} <= found


def test_files_that_no_link_leads_to_and_programs_under_development_are_left_out(home: Path):
    (home / ".bashrc").write_text("")
    (home / ".local/bin").mkdir(parents=True)
    (home / ".local/bin/tool").symlink_to(home / "dotfiles/tool.py")
    (home / ".config/nvim").symlink_to(home / "dotfiles")
    assert _found(HomeLinks(str(home)), home / "dotfiles") == set()


def test_links_made_later_are_found_and_removed_ones_forgotten(home: Path):
    root, links = home / "dotfiles", HomeLinks(str(home))
    assert _found(links, root) == set()
    (home / ".zshrc").symlink_to("dotfiles/zshrc")
    (home / ".config/fish").mkdir()
    assert _found(links, root) == {"zshrc"}
    (home / ".config/fish/config.fish").symlink_to(root / "fish")
    assert _found(links, root) == {"zshrc", "fish"}
    (home / ".zshrc").unlink()
    assert _found(links, root) == {"fish"}


def test_an_odd_home_folder_is_no_obstacle(home: Path):
    (home / ".bashrc").symlink_to(".bashrc")
    (home / ".zshrc").symlink_to(os.fsdecode(b"dotfiles/\xff"))
    os.mkfifo(home / ".profile")
    (home / ".vim").mkdir()
    for number in range(500):
        (home / f".vim/{number}").symlink_to("/nowhere")
    (home / ".config/fish").mkdir(mode=0)
    assert _found(HomeLinks(str(home)), home / "dotfiles") == {os.fsdecode(b"\xff")}
    assert _found(HomeLinks(""), home) == _found(HomeLinks(f"{home}/missing"), home) == set()


def test_rules_cover_what_is_found_as_the_links_themselves():
    denied, asked = linked_from_home_rules(("/w/bashrc",), ("/w/nvim",))
    assert (denied.verdict, denied.on, asked.verdict, asked.on) == ("deny", "write", "ask", "write")
    assert re.fullmatch(denied.pattern, "/w/bashrc")
    assert re.fullmatch(asked.pattern, "/w/nvim/init.lua")
    assert not re.fullmatch(denied.pattern, "/w/bashrc2")
    assert linked_from_home_rules((), ()) == ()


def test_a_home_folder_that_is_unknown_is_not_the_current_folder(home: Path, monkeypatch: pytest.MonkeyPatch):
    (home / ".bashrc").symlink_to("dotfiles/bashrc")
    monkeypatch.chdir(home)
    assert _found(HomeLinks(""), home) == set()
    assert _found(HomeLinks(f"{home}/"), home) == {"dotfiles/bashrc"}


def test_all_links_are_those_of_logins_and_of_programs(home: Path):
    (home / ".bashrc").symlink_to("dotfiles/bashrc")
    (home / ".config/nvim").symlink_to("../dotfiles/nvim")
    links, root = HomeLinks(str(home)), str(home / "dotfiles")
    assert links.all(root) == (f"{root}/bashrc", f"{root}/nvim")
    assert HomeLinks(str(home)).at_login(root) == links.at_login(root) == (f"{root}/bashrc",)
    assert HomeLinks(str(home)).of_programs(root) == links.of_programs(root) == (f"{root}/nvim",)
    assert links.all(str(home / "other")) == ()


@pytest.mark.parametrize(
    "name",
    [".gnupg", ".vscode-server", ".cargo", ".m2", ".gradle", ".sbt", ".local/bin", "bin", "go/bin", ".local/lib"],
)
def test_a_folder_of_caches_or_programs_is_followed_as_a_whole_only(name: str, home: Path):
    folder = home / name
    folder.mkdir(parents=True)
    (folder / "x").symlink_to(home / "dotfiles/x")
    assert _found(HomeLinks(str(home)), home / "dotfiles") == set()
    (folder / "x").unlink()
    folder.rmdir()
    folder.symlink_to(home / "dotfiles/whole")
    found = _found(HomeLinks(str(home)), home / "dotfiles")
    assert found == {"whole"} or all(each.startswith("whole/") for each in found)


def test_the_search_of_one_folder_is_limited(home: Path):
    for folder in ("a", "b"):
        (home / ".vim" / folder).mkdir(parents=True)
        for number in range(300):
            (home / f".vim/{folder}/{number}").symlink_to(home / f"dotfiles/{folder}{number}")
    found = _found(HomeLinks(str(home)), home / "dotfiles")
    assert {f"a{number}" for number in range(300)} < found
    assert len(found) == 398
    for number in range(20):
        (home / f".config/fish/{number:02}").mkdir(parents=True)
        (home / f".config/fish/{number:02}/x").symlink_to(home / f"dotfiles/fish{number:02}")
    found = _found(HomeLinks(str(home)), home / "dotfiles")
    assert {each for each in found if each.startswith("fish")} == {f"fish{number:02}" for number in range(7)}


def test_a_home_folder_that_has_not_changed_is_not_listed_again(home: Path):
    (home / ".vim").mkdir()
    (home / ".vim/x").symlink_to(home / "dotfiles/x")
    links, listed = HomeLinks(str(home)), []

    def note(_frame: object, event: str, called: object) -> None:
        if event == "c_call" and called is os.scandir:
            listed.append(called)

    counts: list[int] = []
    for _ in range(2):
        sys.setprofile(note)
        try:
            found = links.of_programs(str(home / "dotfiles"))
        finally:
            sys.setprofile(None)
        assert found == (f"{home}/dotfiles/x",)
        counts.append(len(listed))
    assert counts[0] > 0
    assert counts == [counts[0]] * 2
