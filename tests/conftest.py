"""Applies to every test: no network but loopback, nothing left behind, one hypothesis profile."""

import os
import signal

import pytest

import profiles

pytest_plugins = ["bradawl.testing.pytest_plugin"]
profiles.load()


def pytest_configure():
    """Restore default signal handlers, so that programs started by tests react to signals under nohup too."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for name in [
        name for name in os.environ if name.startswith("GIT_")
    ]:  # git sets GIT_DIR and others when it runs the tests from a hook
        del os.environ[name]


@pytest.fixture(autouse=True)
def _rules_for_every_test(loopback_only, no_leaks):
    yield
