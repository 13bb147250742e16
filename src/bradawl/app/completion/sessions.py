"""Sessions as candidates for a completion."""

from collections.abc import Iterator, Mapping
from typing import Final

from bradawl.app.settings.homes import homes
from bradawl.session.summaries import latest_summaries

_MOST: Final = 50


def sessions(environ: Mapping[str, str], cwd: str) -> Iterator[tuple[str, str]]:
    """The ids of the latest sessions of the folder, the last one first, with their first prompts."""
    for summary in latest_summaries(homes(environ, cwd).data, cwd, _MOST):
        yield summary.id, summary.preview
