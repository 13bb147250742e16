"""bradawl beside programs and libraries that nobody here wrote: `make peers`.

They live in an environment of their own (`scripts/peers`), so `make test` leaves this folder out. Nothing here may
be skipped when a peer is missing: then the test fails, because then nothing was compared.
"""

import json

import pytest

from peers.aimock import Peer


@pytest.fixture
def aimock(tmp_path):
    """Starts aimock with fixtures and flags; it ends with the test."""
    started = []

    def start(fixtures, *flags):
        path = tmp_path / f"fixtures{len(started)}.json"
        path.write_text(json.dumps({"fixtures": fixtures}))
        started.append(Peer(path, flags))
        return started[-1]

    yield start
    for peer in started:
        peer.end()
