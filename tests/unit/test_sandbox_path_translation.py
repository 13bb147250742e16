"""The search path inside a sandbox: which folders with shims of version managers are visible."""

import os
from pathlib import Path

from bradawl.sandbox.backend import SandboxLayout
from bradawl.sandbox.path_translation import reexposed_paths


def test_shims_of_a_version_manager_are_visible_with_their_programs_but_never_the_whole_home(tmp_path):
    home = f"{os.path.realpath(tmp_path)}/other"
    for name in ("bin", ".pyenv/shims", ".local/bin"):
        Path(home, name).mkdir(parents=True)
    path = f"{home}/bin:{home}/.pyenv/shims:{home}/.local/bin:relative:"
    found = reexposed_paths(SandboxLayout(roots=(), home=""), path, (home,))
    assert {f"{home}/bin", f"{home}/.pyenv", f"{home}/.local"} <= set(found)
    assert home not in found
