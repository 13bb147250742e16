"""Compares bradawl with independent programs and libraries: `make peers`.

They are installed in an environment of their own (`scripts/peers`), so `make test` leaves this folder out. No test
is skipped if a peer is missing: it fails, because nothing was compared.
"""

import json

import pytest

from peers.aimock import Peer


@pytest.fixture
def aimock(tmp_path):
    """Starts aimock with fixtures and flags. It is stopped at the end of the test."""
    started = []

    def start(fixtures, *flags):
        path = tmp_path / f"fixtures{len(started)}.json"
        path.write_text(json.dumps({"fixtures": fixtures}))
        started.append(Peer(path, flags))
        return started[-1]

    yield start
    for peer in started:
        peer.end()
