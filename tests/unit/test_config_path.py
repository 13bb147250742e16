"""`bradawl config path --all`: every source of settings, whether it is there, and whether it is trusted."""

import io
import re

import pytest
from config_world import ConfigWorld

from bradawl.app.cli import run
from bradawl.app.console import Console
from bradawl.app.text_layout import cells


@pytest.fixture
def world(tmp_path):
    return ConfigWorld(tmp_path)


def states(world, *words, **environ):
    """What `path --all` says of each source."""
    lines = world.run("path", "--all", *words, **environ)[1].splitlines()
    assert lines[0].split() == ["path", "what", "it", "is", "state"]
    rows = [re.split(r"  +", line) for line in lines[1:]]
    return {name: state for name, _, state in rows}


def test_path_all_lists_every_source_of_settings_where_none_is_there(world):
    found = states(world)
    project = str(world.project)
    assert list(found) == [
        *("/etc/bradawl/managed.toml", "--settings", "the environment", "profiles"),
        *(f"{project}/.bradawl/config.local.toml", f"{project}/.bradawl/config.toml"),
        *(f"{project}/.bradawl/settings.json", f"{project}/pyproject.toml"),
        *("~/.config/bradawl/config.toml", "~/.config/bradawl/credentials.toml", "~/.config/bradawl/keys.toml"),
    ]
    assert set(found.values()) == {"not given", "none is set", "none", "not there"}


def test_path_all_says_what_is_there_and_trusted(world):
    world.write('profile = "home"\n[profiles.home]\n[profiles.work]\n')
    world.write("", world.project / ".bradawl" / "config.toml")
    (world.project / "pyproject.toml").symlink_to(world.file)
    shared = f"{world.project}/.bradawl/config.toml"
    found = states(world, BRADAWL_EFFORT="low")
    assert (found["[profiles.home]"], found["[profiles.work]"]) == ("in force", "not chosen")
    assert found["the environment"] == "BRADAWL_EFFORT"
    assert found[shared].startswith("there, not trusted") and found["~/.config/bradawl/config.toml"] == "there"
    assert found[f"{world.project}/pyproject.toml"] == "ignored: it is a link that leads out of the project"
    world.file.chmod(0o666)
    found = states(world, "--settings", "none.toml")
    assert found["none.toml"] == "not there" and "not there: none.toml" in found["profiles"]
    found = states(world, "--profile", "work")
    assert "no profile 'work'" in found["profiles"]
    assert found["~/.config/bradawl/config.toml"] == "there, but not trusted: it can be written by others"
    assert (
        run(["trust", str(world.project)], world.environ, Console(io.StringIO(), io.StringIO(), io.StringIO(), {})) == 0
    )
    assert states(world)[shared] == "there, trusted"


def test_path_all_needs_no_valid_file(world):
    world.write("= nonsense")
    found = states(world)
    assert "config.toml:1" in found["profiles"] and found["~/.config/bradawl/config.toml"] == "there"


@pytest.mark.parametrize("width", [24, 40, 80])
def test_path_all_fits_the_terminal(world, width):
    out = world.run("path", "--all", COLUMNS=str(width))[1]
    assert max(map(cells, out.splitlines())) <= width and "not given" in out
