"""Fixtures that several unit tests share. A test module may override one with its own of the same name.

Imports are local to the fixtures, so that a run of a single module loads only what it needs.
"""

import os

import pytest


@pytest.fixture
def place(tmp_path):
    """A workspace in which tools run on real files and processes."""
    from tool_calls import workspace

    with workspace(tmp_path) as made:
        yield made


@pytest.fixture
def processes():
    """Real processes with the environment of the tests."""
    from bradawl.workspace.processes import LocalProcesses

    made = LocalProcesses(os.environ)
    yield made
    made.close()


@pytest.fixture
def home(tmp_path):
    """An empty home folder."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def user_home(tmp_path):
    """A home folder with an empty configuration folder."""
    (tmp_path / ".config" / "bradawl").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def project(tmp_path):
    """An empty project folder."""
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def load(tmp_path):
    """Loads the settings of a user with one file in a project with another."""
    from settings_files import settings_loader

    return settings_loader(tmp_path)


@pytest.fixture
def world(tmp_path):
    """The command line with a model that replies `Done.`"""
    from cli_world import World

    return World(tmp_path, [{"text": "Done."}])


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """A repository that `trap` copies."""
    from git_plants import Trap

    return Trap(tmp_path_factory.mktemp("template"))


@pytest.fixture
def trap(tmp_path, template):
    """A repository that a test may change so that git reads files elsewhere."""
    from git_plants import Trap

    return Trap(tmp_path, template.top)


@pytest.fixture
def ws(tmp_path):
    """A workspace with links inside and out."""
    from shell_workspace import create_workspace

    return create_workspace(tmp_path)


@pytest.fixture
def judge(ws):
    """Determines the effects of a line of bash in `ws`."""
    from shell_workspace import judge_in

    return judge_in(ws)
