"""What is said before a write is what the write itself says."""

import pytest
from without_root_rights import modes_hold

from bradawl.core.errors import ToolError
from bradawl.workspace.atomic_write import create_file
from bradawl.workspace.write_checks import check_writable


@pytest.mark.parametrize("name", ["file/below", "closed/new", "closed/folder/new"])
def test_a_file_that_can_not_be_created_is_refused_with_the_error_of_the_write(tmp_path, name):
    (tmp_path / "file").touch()
    (tmp_path / "closed").mkdir(mode=0o555)
    path = str(tmp_path / name)
    errors = []
    with modes_hold():
        for attempt in (lambda: check_writable(path), lambda: create_file(path, b"x")):
            with pytest.raises(ToolError) as caught:
                attempt()
            errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_a_read_only_file_is_refused(tmp_path):
    (tmp_path / "f").touch(0o444)
    with modes_hold(), pytest.raises(ToolError, match="is read-only"):
        check_writable(str(tmp_path / "f"))


@pytest.mark.parametrize("name", ["f", "new", "a/b/new"])
def test_what_can_be_written_is_accepted(tmp_path, name):
    (tmp_path / "f").touch()
    check_writable(str(tmp_path / name))
