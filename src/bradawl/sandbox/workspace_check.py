"""Checks whether a sandbox can protect a workspace at all."""

import os
from pathlib import Path

from bradawl.core.effects import is_within
from bradawl.sandbox.backend import SandboxLayout
from bradawl.sandbox.path_translation import RUNTIME_FOLDERS, TEMPORARY


def why_unsuitable(layout: SandboxLayout) -> str:
    """Why no sandbox can protect this workspace; empty if one can."""
    for root in layout.roots:
        if os.path.realpath(root) != root or not Path(root).is_dir():
            return f"the workspace {root} is not a folder by its real path"
        if root == "/":
            return "the workspace is the whole machine, /; start in a folder of it"
        if is_within(layout.home, root):
            return f"the workspace {root} holds your home folder; start in a folder of it"
        if held := next((own for own in (*layout.own, layout.state) if own and is_within(own, root)), ""):
            return f"the workspace {root} holds bradawl's own folder {held}; start elsewhere"
        if is_within(TEMPORARY, root) or root in RUNTIME_FOLDERS:
            return f"the workspace {root} is for everybody's temporary files; start in a folder of it"
    return ""
