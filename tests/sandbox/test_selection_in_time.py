"""Selecting a sandbox takes bounded time with blocking programs and file systems, and reports the reason."""

import subprocess
import threading
from pathlib import Path

import pytest
from bwrap import BWRAP, needs_bwrap

from bradawl.sandbox import bubblewrap_bundled as bundled
from bradawl.sandbox import landlock, probe
from bradawl.sandbox import selection as choice
from bradawl.sandbox.backend import SandboxLayout
from bradawl.sandbox.bubblewrap import BubblewrapBackend, BubblewrapFeatures
from bradawl.sandbox.selection import SandboxSelection
from patience import no_wait

BOUND_S = 60


@pytest.mark.parametrize(
    "line",
    [
        "while :; do printf x; done",
        "echo tried; while :; do echo more; done",
        "setsid bash -c 'for i in {1..30000}; do echo more; done; sleep 3' & echo tried; exit 0",
        "kill -STOP $$",
        "trap '' TERM HUP; sleep 120",
        "exec 1>&- 2>&-; sleep 120",
    ],
)
def test_a_launcher_that_does_not_end_is_abandoned(tmp_path: Path, line: str) -> None:
    program = tmp_path / "bwrap"
    program.write_text(f"#!/bin/bash\n{line}\n")
    program.chmod(0o755)
    with no_wait():
        found = probe.probe(
            lambda layout: BubblewrapBackend(layout, BubblewrapFeatures(str(program))), str(tmp_path), 0.5
        )
        assert found.problem or line.startswith(("echo tried", "setsid"))


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch):
    """Makes starts of bubblewrap block, as on a file system whose server is gone."""
    real, released = subprocess.Popen, threading.Event()

    def start(argv, *others, **options):
        if Path(argv[0]).name == "bwrap":
            released.wait(BOUND_S)
            raise OSError("released")
        return real(argv, *others, **options)

    monkeypatch.setattr(probe.subprocess, "Popen", start)
    monkeypatch.setattr(choice, "_PROBE_LIMIT_S", 0.5)
    monkeypatch.setattr(bundled, "why_not_examined", lambda _: "not in this test")
    yield released
    released.set()


@needs_bwrap
def test_a_blocked_start_leaves_time_for_the_next_candidate(layout: SandboxLayout, blocked: threading.Event) -> None:
    if why := landlock.why_unavailable(layout):
        pytest.skip(why)
    chosen = SandboxSelection(layout, {"PATH": str(Path(BWRAP).parent)})
    with no_wait(BOUND_S):
        why = chosen.report
        chosen.close()
    blocked.set()
    assert any("bubblewrap: it did not answer within" in line for line in why), why
    for thread in threading.enumerate():
        if thread.name == "bubblewrap":
            thread.join(5)


def test_a_blocked_check_results_in_no_sandbox_and_a_reason(
    layout: SandboxLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()
    monkeypatch.setattr(choice, "_PROBE_LIMIT_S", 0.1)
    monkeypatch.setattr(choice, "_MARGIN_S", 0.1)
    for name in ("_bubblewrap", "_landlock"):

        def wait(_self, _deadline):
            released.wait(BOUND_S)

        wait.__name__ = name
        monkeypatch.setattr(SandboxSelection, name, wait)
    chosen = SandboxSelection(layout, {"PATH": "/usr/bin"})
    with no_wait(BOUND_S):
        assert chosen.sandbox.name == ""
        report = chosen.report
        chosen.close()
    assert [line.partition(":")[0] for line in report[:2]] == ["bubblewrap", "landlock"]
    released.set()
    for thread in threading.enumerate():
        if thread.name in ("bubblewrap", "landlock"):
            thread.join(5)
