"""The programs that shell commands find, and whether the agent may have replaced them."""

import os
from pathlib import Path

import pytest

from bradawl.safety.shell.allow.program_lookup import ProgramLookup


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder that only its owner can write to, with `first`, `second`, and the changeable folder `ws`."""
    top = Path(os.path.realpath(tmp_path)) / "place"
    for name in ("first", "second", "ws"):
        (top / name).mkdir(parents=True)
    return top


def program(path: Path, mode: int = 0o755) -> Path:
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def lookup(place: Path, *folders: str) -> ProgramLookup:
    return ProgramLookup(":".join(f"{place}/{folder}" for folder in folders), (f"{place}/ws", f"{place}/tmp"))


def test_a_program_outside_the_changeable_folders_is_trusted(place: Path):
    program(place / "first" / "tool")
    assert lookup(place, "first").is_trusted("tool")


def test_a_program_in_any_changeable_folder_is_not_trusted(place: Path):
    (place / "tmp").mkdir()
    program(place / "ws" / "tool")
    program(place / "tmp" / "tool")
    assert not lookup(place, "ws").is_trusted("tool")
    assert not lookup(place, "tmp").is_trusted("tool")


def test_the_first_executable_file_decides(place: Path):
    program(place / "first" / "tool")
    program(place / "ws" / "tool")
    assert lookup(place, "first", "ws").is_trusted("tool")
    assert not lookup(place, "ws", "first").is_trusted("tool")


def test_a_file_that_is_not_executable_and_a_folder_are_passed_over(place: Path):
    program(place / "first" / "tool", 0o644)
    (place / "second" / "tool").mkdir()
    assert lookup(place, "first", "second").is_trusted("tool")
    program(place / "ws" / "tool")
    assert not lookup(place, "first", "second", "ws").is_trusted("tool")


def test_a_missing_program_is_trusted_since_nothing_would_run(place: Path):
    assert lookup(place, "first", "ws").is_trusted("tool")


@pytest.mark.parametrize("relative", ["", ".", "bin"])
def test_a_relative_folder_of_the_search_path_ends_the_trust(place: Path, relative: str):
    program(place / "first" / "tool")
    before = ProgramLookup(f"{relative}:{place}/first", ())
    behind = ProgramLookup(f"{place}/first:{relative}", ())
    assert not before.is_trusted("tool")
    assert behind.is_trusted("tool") and not behind.is_trusted("other")


def test_a_link_is_trusted_only_if_every_place_it_leads_through_is(place: Path):
    (place / "first" / "plain").symlink_to(program(place / "second" / "tool"))
    (place / "first" / "changeable").symlink_to(program(place / "ws" / "tool"))
    (place / "ws" / "hop").symlink_to(place / "second" / "tool")
    (place / "first" / "through").symlink_to(place / "ws" / "hop")
    (place / "ws" / "link").symlink_to(place / "second" / "tool")
    assert lookup(place, "first").is_trusted("plain")
    assert not lookup(place, "first").is_trusted("changeable")
    assert not lookup(place, "first").is_trusted("through")
    assert not lookup(place, "ws").is_trusted("link")


def test_a_program_reached_by_the_spelling_of_a_changeable_folder_is_not_trusted(place: Path):
    program(place / "second" / "tool")
    (place / "alias").symlink_to(place / "second")
    assert not ProgramLookup(f"{place}/alias", (f"{place}/alias",)).is_trusted("tool")


def test_a_program_that_every_user_can_write_to_is_not_trusted(place: Path):
    program(place / "first" / "tool", 0o757)
    assert not lookup(place, "first").is_trusted("tool")


def test_a_program_whose_links_can_not_be_followed_is_not_trusted(place: Path):
    deep = place / "first" / "tool"
    program(place / "second" / "end")
    target = place / "second" / "end"
    for number in range(40):
        link = place / "second" / f"link{number}"
        link.symlink_to(target)
        target = link
    deep.symlink_to(target)
    # The kernel gives up after 40 links; is_file() is then False, and nothing runs.
    assert lookup(place, "first").is_trusted("tool")


# ------------------------------------------------------------------ writes


@pytest.mark.parametrize(
    ("written", "is_affected"),
    [("first", True), ("first/tool", True), ("", True), ("second", False), ("first2/tool", False), ("real/x", True)],
)
def test_a_write_to_a_folder_of_the_search_path_or_above_it_affects_programs(place: Path, written, is_affected: bool):
    (place / "real").mkdir()
    (place / "link").symlink_to(place / "real")
    search = ProgramLookup(f":{place}/first:{place}/link", ())
    assert search.is_affected_by_write(f"{place}/{written}".rstrip("/")) is is_affected


def test_an_empty_folder_of_the_search_path_does_not_name_the_working_directory(place: Path):
    assert not ProgramLookup(":", ()).is_affected_by_write(os.path.realpath("."))
