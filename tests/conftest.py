"""What holds for every test: no network but loopback, nothing left behind, one search depth."""

import pytest

import profiles

pytest_plugins = ["bradawl.testing.pytest_plugin"]
profiles.load()


@pytest.fixture(autouse=True)
def _house_rules(loopback_only, no_leaks):
    yield
