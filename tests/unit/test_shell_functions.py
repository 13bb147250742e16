"""`scan` follows functions, parameters, arrays and other indirection in lines of bash."""

import pytest
from shell_workspace import scanned

DAMAGE = [
    line.strip()
    for line in r"""
    f() { rm -rf "$1"; }; f /
    function f { rm -rf "$@"; }; f build /
    f() { local d=$1; rm -rf "$d"; }; f ~
    f() { g "$1"; }; g() { rm -rf "${1}"; }; f "$HOME"
    f() { shift; rm -rf "$1"; }; f x /
    f() { rm -rf "${2:-/}"; }; f x
    f() { "$@"; }; f rm -rf /
    f() { "${@:2}"; }; f x rm -rf /
    f() { eval "$1"; }; f "rm -rf /"
    f() ( rm -rf "$1" ); f /
    f() { for d; do rm -rf "$d"; done; }; f build /
    f() { while [ $# -gt 0 ]; do rm -rf "$1"; shift; done; }; f /
    f() { rm -rf "$1"; }; for d in build /; do f "$d"; done
    f() { cd "$1"; }; f /; rm -rf *
    f() { rm -rf "$d"; }; d=build; f; d=/; f
    f() { f "$@"; rm -rf "$1"; }; f /
    f() { rm -rf "$1"; }; bash -c 'f /'
    set -- /; rm -rf "$1"
    set -e; set -- -rf /; rm "$@"
    set rm -rf /; $*
    set -- build /; shift; rm -rf "$1"
    a=(rm -rf /); "${a[@]}"
    a=(x /); rm -rf "${a[1]}"
    a=(); a+=(rm); a+=(-rf); a+=("/"); "${a[@]}"
    declare -a a=(rm -rf /); "${a[@]}"
    a[0]=rm; a[1]=-rf; a[2]=/; "${a[@]}"
    declare -A m=([d]=/); rm -rf "${m[d]}"
    a=(/etc /usr); for d in "${a[@]}"; do rm -rf "$d"; done
    printf -v d /; rm -rf "$d"
    read d <<< /; rm -rf "$d"
    echo / | while IFS= read -r d; do rm -rf "$d"; done
    mapfile -t a <<< /; rm -rf "${a[0]}"
    d=/; declare -n r=d; rm -rf "$r"
    d=/; n=d; rm -rf "${!n}"
    rm -rf "${HOME%/}"/
    d=x/etc; rm -rf "${d#x}"
    d=_; rm -rf "${d/_//}"
    d=/etc/x; rm -rf "${d%/*}"
    d=/homex; rm -rf "${d:0:5}"
    D=/ bash -c 'rm -rf "$D"'
    bash -c 'rm -rf "$1"' _ /
    sh -c 'rm -rf "$0"' /
    bash -s -- / <<< 'rm -rf "$1"'
    echo 'rm -rf "$1"' > x.sh; bash x.sh /
    echo 'rm -rf "$1"' > x.sh; bash x.sh build; bash x.sh /
    alias x='rm -rf'; x build; x /
    xargs -n1 sh -c 'rm -rf "$0"' <<< /
    echo / | xargs -I% sh -c 'rm -rf %'
    find / -maxdepth 0 -exec sh -c 'rm -rf "$1"' _ {} \;
    alias x='rm -rf'; x /
    hash -p /bin/rm x; x -rf /
    PS4='$(rm -rf /)'; set -x; ls
    echo 'rm -rf /' | tee x.sh; sh x.sh
    time -p rm -rf /
    echo 'rm -rf /' | at now
    systemd-run --user rm -rf /
    runuser -u u -- rm -rf /
    script -qc 'rm -rf /' /dev/null
    xterm -e 'rm -rf /'
    tmux new -d 'rm -rf /'
    screen -dm rm -rf /
    tar cf x.tar x --checkpoint=1 --checkpoint-action=exec='rm -rf /'
    fd . / -X rm -rf
    """.strip().split("\n")
]


@pytest.mark.parametrize("before", ["", "ls; ", "cat x | ", "( ", "true && ", "if a; then ", "f; "])
@pytest.mark.parametrize("line", DAMAGE)
def test_a_destructive_command_is_found_behind_indirection(line: str, before: str):
    assert scanned(before + line).danger


@pytest.mark.parametrize("calls", [3, 100, 1_000])
def test_a_function_with_many_calls_hides_no_command(calls: int):
    body = 'echo "$1"; ' * 20
    assert scanned(f"f() {{ {body}}}\n" + "f x\n" * calls + "rm -rf /").danger


def test_calls_of_functions_do_not_end_the_scan_early():
    body = "".join(f"echo {number}; " for number in range(60))
    text = f"f() {{ {body}}}; g() {{ f; f; f; }}; " + "".join(f"g {number}; " for number in range(15))
    assert scanned(text).is_whole
    assert scanned(text + "ls").argvs[-1] == ("ls",)
    assert scanned(text + 'd=/; rm -rf "$d"').danger


@pytest.mark.parametrize(
    "line", ["f() { g; }; g() { f; }; f", "f() { f; f; }; f", "alias a=b b=a; a", "f() { g|g& }; g(){ f; }; f"]
)
def test_recursive_functions_end(line: str):
    scanned(line)
