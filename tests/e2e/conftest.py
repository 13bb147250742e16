"""Fixtures for programs at a live terminal."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_terminal import LiveTerminal
from paced_server import PacedServer, paced_server


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder in which programs at live terminals work; the one above it is their home folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def live(project: Path) -> Iterator[Callable[..., LiveTerminal]]:
    """Starts programs at terminals, and ends them."""
    opened: list[LiveTerminal] = []

    def start(script: Any = (), *argv: str, **options: Any) -> LiveTerminal:
        opened.append(LiveTerminal(options.pop("folder", project), argv, script=script, **options))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


@pytest.fixture
def server() -> Iterator[PacedServer]:
    """A model whose answers the test writes piece by piece."""
    with paced_server() as paced:
        yield paced


@pytest.fixture
def ask(live: Callable[..., LiveTerminal]) -> Callable[..., LiveTerminal]:
    """Starts a program that asks about everything, and gives it a prompt."""

    def start(*script: Any, **options: Any) -> LiveTerminal:
        talk = live(list(script), "--permission-mode", "default", **options)
        talk.wait_idle()
        talk.send("go")
        return talk

    return start
