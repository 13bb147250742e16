"""Files of a workspace to which links in the home folder lead."""

import os
import re
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
