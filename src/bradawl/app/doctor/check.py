"""The result of a check, and of all checks together."""

from typing import Literal

import msgspec

from bradawl.providers.local_servers import LocalServer

State = Literal["ok", "warning", "problem"]
"""`problem`: a run lacks something that it needs."""


class Check(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one check."""

    name: str
    state: State
    text: str
    hint: str = ""
    """What to do about a problem; lines that begin with two blanks are commands."""


class Diagnosis(msgspec.Struct, frozen=True):
    """The object that `--json` prints."""

    healthy: bool
    checks: tuple[Check, ...]
    local_servers: tuple[LocalServer, ...]
