"""docs/sandbox-details.md agrees with the program: its guarantees and its limits."""

import re
from pathlib import Path

import pytest

from bradawl.agent.calls import connections
from bradawl.safety.permissions import protected_paths
from bradawl.safety.permissions.rule_targets import MOST_FOLDERS
from bradawl.sandbox import process_limit, selection
from bradawl.sandbox.discovery import workspace_survey
from bradawl.sandbox.guarantees import GUARANTEES
from bradawl.sandbox.mounts import plan, rule_mounts
from bradawl.sandbox.network import connection_limit, dialing, host_permissions, listeners, proxy, relay, requests
from bradawl.sandbox.restore import git_indexes, git_objects, repositories, set_aside, snapshot
from bradawl.sandbox.running_covers import running_covers

DOCS = Path(__file__).parents[2] / "docs"
PAGE = " ".join((DOCS / "sandbox-details.md").read_text().split())
TABLES = (DOCS / "sandbox-details.md").read_text()


def test_the_page_lists_each_guarantee_as_doctor_does():
    table = TABLES.partition("| Guarantee | Meaning |")[2].partition("\n\n")[0]
    assert dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE)) == GUARANTEES


def test_what_landlock_lacks_are_guarantees():
    table = TABLES.partition("| Guarantee | What happens instead |")[2].partition("\n\n")[0]
    named = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert named and set(named) <= set(GUARANTEES)


MEGABYTE, GIGABYTE, DAY_S = 1_000_000, 1_000_000_000, 86_400
AFTER_ULIMIT = (1024 - proxy._OWN_FILES) // 2
"""Connections of a session that may open 1,024 files."""
NETWORK = (
    f"`127.0.0.1:{listeners.PORT}`",
    f"asked about at most {connections._MOST_QUESTIONS} hosts of a command",
    f"At most {host_permissions._MOST_REFUSALS} remarks",
    f"A head has at most {requests.LONGEST_HEAD // 1024} KB and {proxy._HEAD_LIMIT_S:g} seconds",
    f"idle for {relay.IDLE_LIMIT_S / 60:g} minutes",
    f"may have {proxy.MOST_CONNECTIONS:,} connections",
    f"({AFTER_ULIMIT} with `ulimit -n 1024`), and each command at least {connection_limit._FOR_EACH}",
    f"At most {dialing._MOST_LOOKUPS} names",
)
FILES = (
    f"may cover at most {rule_mounts._MOST} paths",
    f"searched in at most {MOST_FOLDERS:,} folders",
    f"in the first {workspace_survey._FOLDERS:,} folders",
    f"at most {plan._MOST_PINNED} covered paths",
    f"An index over {git_indexes._MOST_BYTES // MEGABYTE} MB",
    f"beyond {git_indexes._MOST_KEPT // MEGABYTE} MB of indexes",
    f"Files over {git_objects._COPIED_BYTES >> 20} MB",
    f"everything beyond {git_objects._COPIED_IN_ALL >> 20} MB in a session",
    f"copies of removed objects are kept for {git_objects._KEPT_S // DAY_S} days",
    f"more than {repositories._MOST_FOLDERS_OF_MODULES:,} folders in `.git/modules`",
    f"more than {set_aside.MOST_COPIED_BYTES // GIGABYTE} GB to copy",
    f"contain more than {snapshot._MOST_ENTRIES:,} files",
    f"paths are compared every {running_covers._POLL_S} s",
    f"**: {process_limit.PROCESSES:,} for all commands of a session",
)


@pytest.mark.parametrize("limit", NETWORK + FILES)
def test_each_limit_of_the_page_is_that_of_the_program(limit):
    assert limit in PAGE


def test_the_numbers_in_words_are_those_of_the_program():
    """Fails where a number changes: change the words, too."""
    assert "judged again five seconds later" in PAGE and host_permissions._REFUSED_FOR_S == 5.0
    assert "takes at most two seconds" in PAGE and selection._SEARCH_LIMIT_S == 2.0
    assert "up to three levels down (beyond twelve" in PAGE
    assert (workspace_survey._DEPTH, plan._MOST_REPOSITORIES) == (3, 12)


def test_bubblewrap_is_searched_where_the_page_says():
    assert "searched in " + ", ".join(f"`{folder}`" for folder in selection._SYSTEM[:2]) in PAGE
    assert f"and `{selection._SYSTEM[2]}`" in PAGE


def test_the_files_that_run_later_are_those_of_the_program():
    (named,) = re.findall(r"read-only if they exist in a root: (.*?)\. So is", PAGE)
    assert set(re.findall(r"`([^`]+)`", named)) == {
        *protected_paths._COVERED_LATER.split(),
        *(f"*{end}" for end in protected_paths._RUN_LATER_ENDINGS),
    }
