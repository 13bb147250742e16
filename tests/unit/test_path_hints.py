"""Hints in the message about a missing path: where it may be, in the project only."""

import pytest
from tool_calls import workspace

from bradawl.core.errors import ToolError
from bradawl.tools.read_file import ReadFile


async def test_a_path_relative_to_the_folder_before_a_cd_gets_a_hint(tmp_path):
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "a.py").write_text("a\n")
    with workspace(tmp_path) as place:
        place.cwd = f"{place.cwd}/src/deep"
        message = r"^src/a.py does not exist: the working directory is .*/src/deep; \.\./\.\./src/a.py exists$"
        with pytest.raises(ToolError, match=message):
            await place.call(ReadFile(), file_path="src/a.py")


async def test_no_hint_names_what_is_above_the_project(tmp_path):
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "a.py").write_text("a\n")
    with workspace(tmp_path / "project") as place:
        for folder in (place.project, f"{place.project}/src"):
            place.cwd = folder
            with pytest.raises(ToolError, match=r"^a.py does not exist") as caught:
                await place.call(ReadFile(), file_path="a.py")
            assert ".." not in str(caught.value)
