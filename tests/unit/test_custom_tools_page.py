"""docs/custom-tools.md names the folders that are loaded, and public names; `test_custom_tools` runs its examples."""

import sys
from pathlib import Path

import pytest

import bradawl
from bradawl.app.settings.load import load_settings
from bradawl.app.settings.settings import tools_folders

PAGE = (Path(__file__).parents[2] / "docs" / "custom-tools.md").read_text()


@pytest.mark.parametrize(
    ("environ", "config", "data"),
    [
        ({}, "~/.config/bradawl/tools/", "~/.local/share/bradawl/tools/"),
        ({"XDG_CONFIG_HOME": "/x/config"}, "$XDG_CONFIG_HOME/bradawl/tools/", "~/.local/share/bradawl/tools/"),
        ({"BRADAWL_HOME": "/x/home"}, "$BRADAWL_HOME/tools/", "$BRADAWL_HOME/tools/"),
    ],
)
def test_the_folders_of_the_page_are_those_that_are_loaded(tmp_path, environ, config, data):
    variables = {"HOME": str(tmp_path), "BRADAWL_MODEL": "scripted/none.json", **environ}
    folders = []
    for shown in (config, data):
        assert f"`{shown}`" in PAGE
        for name, value in variables.items():
            shown = shown.replace(f"${name}", value)
        folders.append(Path(shown.replace("~", str(tmp_path))))
    assert list(tools_folders(load_settings({}, variables, str(tmp_path)))) == list(dict.fromkeys(folders))


def test_the_names_that_the_page_imports_are_public():
    assert {"tool", "CallContext", "Effects", "Image", "Text", "ToolError", "ToolOutput", "ToolSpec"} <= set(
        bradawl.__all__
    )
    assert all(getattr(bradawl, name) is not None for name in bradawl.__all__)
    assert "bradawl.tools.custom" in sys.modules
