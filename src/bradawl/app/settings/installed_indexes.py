"""Finds a tool's default package index in the files of the installed tool, which are read and never run.

bradawl itself names no package index.
"""

import contextlib
import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bradawl.app.settings.index_urls import url_domain
from bradawl.app.settings.tool_settings import ToolSettings

_PIP_FILE: Final = "pip/_internal/models/index.py"
_PIP_INDEX: Final = re.compile(
    r"""^PyPI\s*=\s*PackageIndex\(\s*["']([^"'\n]+)["'],\s*file_storage_domain=["']([\w.-]+)["']""", re.MULTILINE
)
"""Address of the Python Package Index, and the host of its files (pip 10 to 26, read 2026-11-23)."""
_NPM_FILE: Final = "@npmcli/config/lib/definitions/definitions.js"
_NPM_INDEX: Final = re.compile(
    r"""^\s*registry: new Definition\('registry', \{\s*default: ["']([^"'\n]+)["']""", re.MULTILINE
)
"""Address of npm's registry (npm 7 to 12, read 2026-11-23)."""
_PACKAGES: Final = ("lib*/python3*/*-packages", "local/lib/python3*/*-packages")
_WHEELS: Final = ("lib*/python3*/ensurepip/_bundled/pip-*.whl", "share/python-wheels/pip-*.whl")
"""The pip that `python -m venv` installs; the second is Debian's."""
_PYTHONS: Final = ("pip", "pip3", "python3", "python")
_MOST_INSTALLATIONS: Final = 50


def pip_hosts(tools: ToolSettings) -> tuple[str, ...] | None:
    """The host of the Python Package Index and that of its files, as an installed pip names them."""
    installed = (tools.installed_text(path / _PIP_FILE) for path in _below_prefixes(tools, *_PACKAGES))
    in_wheels = (tools.archived_text(path, _PIP_FILE) for path in _below_prefixes(tools, *_WHEELS))
    for text in itertools.chain(installed, in_wheels):
        if found := _PIP_INDEX.search(text):
            return _domains(found[1], f"https://{found[2]}")
    return None


def _below_prefixes(tools: ToolSettings, *patterns: str) -> Iterator[Path]:
    """Files and folders of installations of Python, in the order of PATH."""
    for prefix in pip_prefixes(tools):
        for pattern in patterns:
            with contextlib.suppress(OSError, ValueError):
                yield from sorted(itertools.islice(prefix.glob(pattern), _MOST_INSTALLATIONS))


def pip_prefixes(tools: ToolSettings) -> Iterator[Path]:
    """Folders in which Python may be installed: those of PATH, then that of bradawl's own Python."""
    return tools.prefixes(*_PYTHONS)


def npm_hosts(tools: ToolSettings) -> tuple[str, ...] | None:
    """The host of npm's default registry, as an installed npm names it."""
    for folder in npm_folders(tools):
        # Debian installs npm's dependencies beside npm.
        for path in (folder / "node_modules" / _NPM_FILE, folder.parent / _NPM_FILE):
            if found := _NPM_INDEX.search(tools.installed_text(path)):
                return _domains(found[1])
    return None


def npm_folders(tools: ToolSettings) -> Iterator[Path]:
    """Folders of installed versions of npm, in the order of PATH: npm/bin/npm-cli.js is the program."""
    return iter(dict.fromkeys(Path(os.path.realpath(path)).parent.parent for path in tools.programs("npm")))


def go_files(tools: ToolSettings) -> Iterator[Path]:
    """The file with the defaults of each installed Go, since Go 1.21."""
    roots = (Path(os.path.realpath(path)).parent.parent for path in tools.programs("go"))
    named = tools.environment.get("GOROOT", "")
    if named.startswith("/"):
        yield Path(named, "go.env")
    yield from (root / "go.env" for root in dict.fromkeys(roots))


def _domains(*urls: str) -> tuple[str, ...] | None:
    try:
        return tuple(dict.fromkeys(map(url_domain, urls)))
    except ValueError:
        return None
