"""Loads settings from files of a user and of a project, for tests of settings."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bradawl.app.settings.load import load_settings
from bradawl.app.settings.settings import Settings

SECRET = "sk-very-" + "secret-0123456789"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="managed settings count only if root owns them: needs root")


def settings_loader(folder: Path) -> Callable[..., Settings]:
    """Returns a function that loads the settings of a user with one file in a project with another.

    `folder` becomes the home folder. Three providers have keys unless `environ` changes them.
    """
    config = folder / ".config" / "bradawl"
    config.mkdir(parents=True)
    (folder / "project" / ".bradawl").mkdir(parents=True)

    def load(options, text="", project="", **environ):
        (config / "config.toml").write_text(text)
        (folder / "project" / ".bradawl" / "config.toml").write_text(project)
        keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "a", "GROQ_API_KEY": "g"}
        return load_settings(options, {"HOME": str(folder), **keys, **environ}, str(folder / "project"))

    return load
