"""What a user reads who has neither a key nor a model server set up: what is missing, and what to do, in five lines."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from bradawl.app.local_models import best_first, command_for, server_name
from bradawl.app.rendering import one_line
from bradawl.app.text_layout import cells, pad, wrap
from bradawl.core.ports import Http
from bradawl.providers.local_servers import LocalServer

_MISSING: Final = "bradawl: No provider is set up. One of these starts it:"
_NOT_CHOSEN: Final = "bradawl: No model is chosen. One of these starts it:"
_VARIABLE: Final = "OPENAI_API_KEY=... bradawl"
_FIVE_LINES_FROM: Final = 80
_INDENT: Final = "  "
_GAP: Final = "  "
_COLUMN: Final = 28
"""Cells of the commands; a longer one has its remark behind it, if that fits."""


class _Row(NamedTuple):
    command: str
    remark: str
    is_remark_needed: bool = True
    """Without it the command would not be understood, so it may take a line of its own."""


def first_run_lines(servers: Sequence[LocalServer], width: int, note: str = "") -> list[str]:
    """At most five lines at a width of 80, wrapped by words where it is narrower.

    `note`: why a model that is named somewhere does not count; it comes first.
    """
    server = [line for row in _server_rows(servers) for line in _row_lines(row, width)]
    rows = [_Row("bradawl login", "store a key and choose a model"), _Row(_VARIABLE, "set a key for this run only")]
    if len(server) > 1 and width >= _FIVE_LINES_FROM:  # a long name of a model
        rows = [_Row("bradawl login", f"store a key, or: {_VARIABLE}")]
    is_usable = any(each.models and not each.problem for each in servers)
    first = [*(wrap(note, width) if note else ()), *wrap(_NOT_CHOSEN if is_usable else _MISSING, width)]
    setting_up = [line for row in rows for line in _row_lines(row, width)]
    return [*first, *setting_up, *server, *_row_lines(_Row("bradawl demo", "watch a whole run without a key"), width)]


async def find_first_run_lines(http: Http, environ: Mapping[str, str], width: int, note: str = "") -> list[str]:
    """`first_run_lines` with the servers that run on this machine. Takes a second at most. Closes `http`."""
    from bradawl.app.local_models import find_local
    from bradawl.app.settings.providers import PROVIDERS

    return first_run_lines(await find_local(http, PROVIDERS, environ), width, note)


def _server_rows(servers: Sequence[LocalServer]) -> list[_Row]:
    """One row for the server that can be used at once, which also says how many others there are."""
    if not servers:
        return []
    best = min(servers, key=lambda server: (bool(server.problem), not server.models))
    name, more = server_name(best), ""
    if len(servers) > 1:
        more = f"; {len(servers) - 1} more: bradawl models"
    if best.problem:
        return [_Row("bradawl doctor", f"{name} runs here; doctor says what it lacks{more}")]
    if not best.models:
        command = "ollama pull MODEL" if best.kind == "ollama" else "bradawl models"
        return [_Row(command, f"{name} runs here, but has no model yet{more}")]
    command = one_line(command_for(best, best_first(best.models)[0]))
    return [_Row(command, f"{name} runs here{more}", is_remark_needed=False)]


def _row_lines(row: _Row, width: int) -> list[str]:
    line = f"{_INDENT}{pad(row.command, _COLUMN)}{_GAP}{row.remark}"
    if cells(line) <= width:
        return [line]
    command = wrap(row.command, width, _INDENT, _INDENT * 2)
    return command + (wrap(row.remark, width, _INDENT * 2) if row.is_remark_needed else [])
