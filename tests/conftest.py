"""Applies to every test: no network but loopback, nothing left behind, one hypothesis profile."""

import compileall
import os
import signal
from pathlib import Path

import pytest

import bradawl
import profiles

pytest_plugins = ["bradawl.testing.pytest_plugin"]
profiles.load()


def pytest_configure(config):
    _compile_once(config)
    _restore_signal_handlers()
    for name in [
        name for name in os.environ if name.startswith("GIT_")
    ]:  # git sets GIT_DIR and others when it runs the tests from a hook
        del os.environ[name]


def _compile_once(config):
    """Compile the package before a test limits the size of files.

    What Python writes under such a limit is cut without an error, and no later import of the module succeeds. For
    the same reason programs that the tests start write no bytecode.
    """
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(Path(bradawl.__file__).parent, quiet=2)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def _restore_signal_handlers():
    """Restore default signal handlers, so that programs started by tests react to signals under nohup too."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


@pytest.fixture(autouse=True)
def _rules_for_every_test(loopback_only, no_leaks):
    yield
