"""Fixtures that several unit tests share. A test module may replace one by its own of the same name."""

import pytest
from tool_calls import workspace


@pytest.fixture
def place(tmp_path):
    """A workspace in which tools run on real files and processes."""
    with workspace(tmp_path) as made:
        yield made
