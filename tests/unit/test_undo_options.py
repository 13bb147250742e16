"""All pairs of options of `bradawl undo`: both are honoured, or they are refused by name."""

from itertools import combinations

import pytest

from bradawl.app.cli import UsageError, parse

OPTIONS = {
    "SESSION": ["01J9ZK"],
    "--to": ["--to", "3.2"],
    "--list": ["--list"],
    "--sessions": ["--sessions"],
    "--redo": ["--redo"],
    "--dry-run": ["--dry-run"],
    "--code-only": ["--code-only"],
    "--talk-only": ["--talk-only"],
    "--force": ["--force", "a.txt"],
    "--keep-conflicts": ["--keep-conflicts"],
    "--add-dir": ["--add-dir", "/tmp"],
    "-C": ["-C", "/tmp"],
}
REFUSED = {
    *(("--to", other) for other in ("--list", "--redo")),
    *(("--list", other) for other in ("--redo", "--dry-run", "--code-only", "--talk-only", "--force")),
    ("--list", "--keep-conflicts"),
    *((other, "--sessions") for other in ("SESSION", "--to", "--list")),
    *(("--sessions", other) for other in ("--redo", "--dry-run", "--code-only", "--talk-only", "--force")),
    ("--sessions", "--keep-conflicts"),
    *(("--redo", other) for other in ("--code-only", "--talk-only")),
    ("--code-only", "--talk-only"),
    ("--talk-only", "--force"),
    ("--talk-only", "--keep-conflicts"),
}
VALUES = {
    "SESSION": ("session", "01J9ZK"),
    "--to": ("to", "3.2"),
    "--force": ("force", ["a.txt"]),
    "--add-dir": ("add_dirs", ["/tmp"]),
    "-C": ("cwd", "/tmp"),
}


@pytest.mark.parametrize("pair", list(combinations(OPTIONS, 2)), ids="+".join)
def test_each_pair_of_options_is_honoured_or_refused_by_name(pair: tuple[str, str]) -> None:
    one, two = pair
    for first, second in ((one, two), (two, one)):
        line = ["undo", *OPTIONS[first], *OPTIONS[second]]
        if pair in REFUSED:
            with pytest.raises(UsageError) as error:
                parse(line)
            assert one in str(error.value) and two in str(error.value)
            assert "did you mean" not in str(error.value)
            continue
        options = parse(line)
        for each in pair:
            name, value = VALUES.get(each, (each.strip("-").replace("-", "_"), True))
            assert options[name] == value


@pytest.mark.parametrize("step", ["", "0", "-1", "abc", "3.", "3.0", "1e3", " 1", "\u0663"])
def test_what_names_no_step_is_wrong_usage(step: str) -> None:
    with pytest.raises(UsageError, match="a step is a number") as error:
        parse(["undo", f"--to={step}"])
    assert "did you mean" not in str(error.value)


def test_wrong_usage_names_the_help_of_undo() -> None:
    with pytest.raises(UsageError, match="see `bradawl undo --help`"):
        parse(["undo", "--redo", "--to", "1"])
    with pytest.raises(UsageError, match=r"did you mean --dry-run\?"):
        parse(["undo", "--dryrun"])


@pytest.mark.parametrize("line", [[""], [" "], ["--force="], ["--force", "a.txt", "--force", ""]])
def test_an_empty_session_or_path_is_no_wish_for_the_last_session_or_for_all_files(line: list[str]) -> None:
    with pytest.raises(UsageError, match="is empty"):
        parse(["undo", *line])
