"""Options and operands of programs that write files, by the options of each program that take a value."""

import pytest

from bradawl.safety.shell.deny.protected_targets import ProtectedTargets
from bradawl.safety.shell.deny.scanner import scan
from bradawl.safety.shell.program_options import copy_operands, program_arguments
from bradawl.workspace.files import LocalFiles

HOME, WS = "/home/u", "/ws"
PROTECTED = ProtectedTargets(HOME, (WS,), LocalFiles(HOME).resolve)


@pytest.mark.parametrize(
    ("line", "operands"),
    [
        ("touch -m -d now a", "a"),
        ("touch -rref a", "a"),
        ("xyz -o a b", "a b"),
        ("tar xfC a.tar d b", "b"),
        ("gtar -x -f a.tar b", "b"),
        ("sed -ie s/a/b/ x", "s/a/b/ x"),
    ],
)
def test_operands_of_a_program_exclude_the_values_of_its_options(line: str, operands: str) -> None:
    assert program_arguments(tuple(line.split())).operands == tuple(operands.split())


@pytest.mark.parametrize(
    ("line", "sources", "target"),
    [
        ("cp a b d", "a b", "d"),
        ("cp -rt d a b", "a b", "d"),
        ("mv --target-directory=d a", "a", "d"),
        ("ln -s ../a", "../a", "."),
        ("gln -s ../a", "../a", "."),
        ("rsync -t a d", "a", "d"),
        ("install -m 755 a d", "a", "d"),
        ("cp a", "", "a"),
        ("cp", "", ""),
    ],
)
def test_a_copying_program_has_sources_and_a_target(line: str, sources: str, target: str) -> None:
    copied = copy_operands(tuple(line.split()))
    assert (copied.sources, copied.target) == (tuple(sources.split()), target)


@pytest.mark.parametrize(
    "line",
    [
        "curl -sSLo ~/.bashrc https://example.com/x",
        "tar xfC a.tar ~/.ssh",
        "tar -xC ~/.ssh -f a.tar",
        "ed -s .git/config",
        "touch -m ~/.bashrc",
        "rsync -t a ~/.bashrc",
        "7z x a.7z -o.git/hooks -aoa",
        "sort -ro ~/.bashrc a",
        "git clean -fdxe n ~",
        "setfacl -R -m u::rwx ~",
    ],
)
def test_a_protected_path_is_found_behind_any_spelling_of_an_option(line: str) -> None:
    assert scan(line, cwd=WS, protected=PROTECTED).danger
