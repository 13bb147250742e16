"""Fixtures that several unit tests share. A test module may replace one by its own of the same name."""

import os

import pytest
from cli_world import World
from git_plants import Trap
from settings_files import settings_loader
from shell_house import judge_in, plant
from tool_calls import workspace

from bradawl.workspace.processes import LocalProcesses


@pytest.fixture
def place(tmp_path):
    """A workspace in which tools run on real files and processes."""
    with workspace(tmp_path) as made:
        yield made


@pytest.fixture
def processes():
    """Real processes with the environment of the tests."""
    made = LocalProcesses(os.environ)
    yield made
    made.close()


@pytest.fixture
def home(tmp_path):
    """An empty home folder."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path):
    """An empty project folder."""
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def load(tmp_path):
    """Loads the settings of a user with one file in a project with another."""
    return settings_loader(tmp_path)


@pytest.fixture
def world(tmp_path):
    """The command line with a model that says `Done.`"""
    return World(tmp_path, [{"text": "Done."}])


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """A repository that `trap` copies."""
    return Trap(tmp_path_factory.mktemp("template"))


@pytest.fixture
def trap(tmp_path, template):
    """A repository that a test may make hostile."""
    return Trap(tmp_path, template.top)


@pytest.fixture
def ws(tmp_path):
    """A workspace with links inside and out."""
    return plant(tmp_path)


@pytest.fixture
def judge(ws):
    """Determines the effects of a line of bash in `ws`."""
    return judge_in(ws)
