"""What holds for every test: no network but loopback, nothing left behind, one search depth."""

import os
import signal

import pytest

import profiles

pytest_plugins = ["bradawl.testing.pytest_plugin"]
profiles.load()


def pytest_configure():
    """Programs that the tests start react to signals also where the tests run under nohup or in the background."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for name in [name for name in os.environ if name.startswith("GIT_")]:  # a hook of git has GIT_DIR and more
        del os.environ[name]


@pytest.fixture(autouse=True)
def _house_rules(loopback_only, no_leaks):
    yield
