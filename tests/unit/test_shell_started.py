"""`scan` finds commands inside words of other commands: options, variables, subscripts, unknown programs' arguments."""

import pytest
from shell_workspace import scanned


@pytest.mark.parametrize(
    ("line", "inner"),
    [
        ("/???/r[m] x", ("/bin/rm", "x")),
        ("rm${X} x", ("rm", "x")),
        ("coproc X { rm x; }", ("rm", "x")),
        ("awk 'BEGIN{\"rm x\"|getline}'", ("rm", "x")),
        ("linux64 rm x", ("rm", "x")),
        ("choom -n 1 -- rm x", ("rm", "x")),
        ("runuser -u root rm x", ("rm", "x")),
        ("bwrap --bind / / rm x", ("rm", "x")),
        ("/lib64/ld-linux-x86-64.so.2 /bin/rm x", ("/bin/rm", "x")),
        ("mapfile -C 'rm x #' -c 1 < a.txt", ("rm", "x")),
        ("compgen -C 'rm x' z", ("rm", "x")),
        ("git filter-branch --tree-filter 'rm x' HEAD", ("rm", "x")),
        ("sed '1e rm x' a.txt", ("rm", "x")),
        ("make --eval='$(shell rm x)'", ("rm", "x")),
        ("make -f - <<< $'x:\\n\\trm x'", ("rm", "x")),
        ("ed -s <<< '!rm x'", ("rm", "x")),
        ("vim -es -c '!rm x'", ("rm", "x")),
        ("gdb -batch -ex 'shell rm x'", ("rm", "x")),
        ("split --filter='rm x' f", ("rm", "x")),
        ("ssh -o ProxyCommand='rm x' h", ("rm", "x")),
        ("capsh -- -c 'rm x'", ("rm", "x")),
        ("git grep -O'rm x' be", ("rm", "x")),
        ("[[ -v 'a[$(rm x)]' ]]", ("rm", "x")),
        ("PAGER='rm x' git log", ("rm", "x")),
    ],
)
def test_nested_commands_are_listed(line: str, inner: tuple[str, ...]) -> None:
    assert inner in scanned(line).argvs
