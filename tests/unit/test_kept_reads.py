"""Commands that read keys of bradawl or of other users are refused in mode bypass and without a sandbox."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from shell_workspace import lines
from tool_specs import request

from bradawl.core.effects import Effects
from bradawl.core.permissions import Allow, Ask, Decision, Deny, Mode, Policy, Request, decide
from bradawl.safety.permissions.protected_paths import built_in_rules
from bradawl.safety.shell.analysis import ShellContext, line_effects
from bradawl.workspace.files import LocalFiles


def decision_on(line: str, home: str, ws: str, mode: Mode = "bypass", own: tuple[str, ...] = ()) -> Decision:
    context = ShellContext(LocalFiles(home).resolve, home, (ws,), own=own)
    policy = Policy(mode, rules=built_in_rules((ws,), home, own), roots=(ws,))
    return decide(policy, Request("bash", "digest", line_effects(line, ws, {}, context)))


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = Path(os.path.realpath(tmp_path))
    for name in ("house/.config/bradawl/credentials.toml", "house/project/a", "house/.gitconfig", "ws/src/a"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("api_key = 1\n")
    (top / "ws" / "near").symlink_to(top / "house")
    return top


READS_OF_OWN_KEYS = lines(r"""
    cat ~/.config/bradawl/credentials.toml
    cat "$HOME/.config/bradawl/credentials.toml"
    cat ${HOME}/.config/bradawl/credentials.toml
    cat $HOME/.config/bradawl/cred*
    cat < $HOME/.config/bradawl/credentials.toml
    X=$HOME/.config; cat $X/bradawl/credentials.toml
    H=~; cat $H/.config/bradawl/credentials.toml
    cat $(echo ~)/.config/bradawl/credentials.toml
    cat "$(cd; pwd)/.config/bradawl/credentials.toml"
    cat $UNTOLD/bradawl/credentials.toml
    cd ~/.config; cat bradawl/credentials.toml
    cd ~/.config/bradawl && cat *
    cat ~/.config/*/credentials.toml
    cat near/.config/bradawl/credentials.toml
    cat near/.c*/*/cred*
    env -C ~/.config/bradawl cat credentials.toml
    git -C ~ diff --no-index /dev/null .config/bradawl/credentials.toml
    git diff --no-index /dev/null ~/.config/bradawl/credentials.toml
    cp -r ~/.config c; cat c/bradawl/cred*
    cp ~/.config/bradawl/credentials.toml c; cat c
    cp -r ~ ../copy
    mv ~/.config ../moved
    ln -s ~/.config lc; cat lc/bradawl/credentials.toml
    ln -s ../../house/.config src/lc; cat src/lc/bradawl/credentials.toml
    ln ~/.config/bradawl/credentials.toml l; cat l
    tar cO ~/.config/bradawl
    tar c -C ~ .
    tar czf x.tgz ~
    zip -r x.zip ~/.config
    rsync -a ~/ ../copy/
    grep -r api_key ~/.config
    grep -rn api_key ~
    rg --hidden api_key ~ | cat
    cd ~ && rg -uuu api_key | cat
    find ~/.config -name "cred*" -exec cat {} +
    find ~ -type f | xargs cat
    find ~ -name credentials.toml | while read f; do cat "$f"; done
    for d in ~/.config/*; do cat $d/credentials.toml; done
    f() { cat "$1"/bradawl/credentials.toml; }; f ~/.config
    bash -c 'cat ~/.config/bradawl/credentials.toml'
    eval 'cat $HOME/.config/bradawl/credentials.toml'
    read x < ~/.config/bradawl/credentials.toml; echo $x
    echo "$(<~/.config/bradawl/credentials.toml)"
    curl -s file://$HOME/.config/bradawl/credentials.toml
    base64 ~/.config/bradawl/credentials.toml | cat
    python3 -c "import os; print(open(os.path.expanduser('~/.config/bradawl/credentials.toml')).read())"
    cat /proc/$PPID/environ
    cat /proc/self/../$PPID/environ
    cat /proc/1/environ
    cat /proc/[0-9]*/environ
    env -C /proc/$PPID cat environ
    cd /proc/$PPID; cat environ
    X=$PPID; strings /proc/$X/environ
    xargs -0 -n1 < /proc/$PPID/environ
    tr '\0' '\n' < /proc/$PPID/environ
    dd if=/proc/$PPID/mem bs=1 count=9 | cat
    grep -r KEY /proc | cat
    ps eww -p $PPID
    gdb -p $PPID --batch
""")
READS_OF_OTHER_USERS_KEYS = lines(r"""
    cat /home/alice/.ssh/id_rsa
    X=/home/alice; cat $X/.ssh/id_rsa
    cd /home/alice && cat .ssh/id_rsa
    cd /home/alice/.ssh; cat id_rsa
    env -C /home/alice cat .ssh/id_rsa
    cat "$HOME/../../../../../../../../../../../../home/alice/.ssh/id_rsa"
    cat $(echo /home/alice/.ssh/id_rsa)
    cp /home/alice/.netrc n; cat n
    mv /home/alice/.netrc n; cat n
    mv /home/alice/.aws a
    rm -f /home/alice/.netrc; grep -r SECK src
    install /home/alice/.netrc n; cat n
    ln -s /home/alice/.ssh/id_rsa l; cat l
    git -C /home/alice diff --no-index /dev/null .netrc
    cat /proc/self/root/home/alice/.ssh/id_rsa
    cat /proc/$PPID/root/home/alice/.ssh/id_rsa
    read x < /home/alice/.netrc; echo $x
    echo $(</home/alice/.netrc)
    curl -s file:///home/alice/.netrc
    python3 -c "print(open('/home/alice/.netrc').read())"
    python3 - <<< "print(open('/home/alice/.netrc').read())"
""")
READS_OF_EXISTING_KEYS = lines(r"""
    cat /home/*/.ssh/id_rsa
    cat < "/home/ali"*/.ssh/id_rsa
    for u in /home/*; do cat $u/.ssh/id_rsa; done
    tar cO /home/alice
    tar c /home
    cp -r /home/alice ../x
    cp -r /home/alice/. ../x
    grep -r . /home
    grep -r . /home | cat
    find /home -name id_rsa -exec cat {} +
    find /home/alice -type f | xargs cat
    diff -r /home/alice src
""")
ALLOWED = lines(r"""
    cat "$F"
    cat ~/.gitconfig | head
    cat src/a | head
    ls ~; rg foo | head
    ls / ; rg foo | head
    rg foo ~ | head
    find / -name x 2>/dev/null | head; rg foo | head
    find ~ -type f | head
    find ~ -name '*.py' | xargs grep foo
    find ~ -size +100M -exec ls -lh {} +
    grep -rn "/proc/1/environ" src | head
    git commit -m "see /proc/1/environ and ~/.config/bradawl/credentials.toml"
    echo "cat /proc/$PPID/environ" >> notes
    ps aux | cat
    ps -ef | cat
    ps -e -o pid,cmd | cat
    cat /proc/self/environ
    cat /proc/cpuinfo | head
    ls /proc/$PPID/fd | wc -l
    tar czf x.tgz ~/project | cat
    tar czf x.tgz . | cat
    cp -r ~/project x | cat
    cp -r . ../x | cat
    diff <(sort src/a) <(sort -r src/a)
    rsync -a --exclude .config ~/ ../x/ | cat
    grep -r foo ~/project | head
    docker run -v $PWD:/x alpine ls | cat
    python3 -c "import os; print(os.environ)"
    python3 -m pytest -q | tail -3
    cat /home/alice/notes.txt | head
    ls /home | xargs -n1 echo
    cat ~/.ssh/id_rsa.pub | cat
""")


@pytest.mark.parametrize("line", [*READS_OF_OWN_KEYS, *READS_OF_OTHER_USERS_KEYS])
def test_a_command_that_shows_keys_of_bradawl_or_of_other_users_is_refused(top: Path, line: str) -> None:
    decision = decision_on(line, str(top / "house"), str(top / "ws"))
    assert isinstance(decision, Deny), decision


@pytest.mark.parametrize("line", ["cat $B/credentials.toml", "cat own/credentials.toml | cat", "cp -r own x"])
def test_keys_in_a_configured_folder_of_bradawl_are_protected_too(top: Path, line: str) -> None:
    own = top / "ws" / "own"
    own.mkdir()
    (own / "credentials.toml").write_text("")
    decision = decision_on(f"B={own}; {line}", str(top / "house"), str(top / "ws"), own=(str(own),))
    assert isinstance(decision, Deny), decision


@pytest.mark.parametrize("line", ALLOWED)
def test_an_ordinary_command_that_reads_no_keys_is_allowed(top: Path, line: str) -> None:
    decision = decision_on(line, str(top / "house"), str(top / "ws"))
    assert isinstance(decision, Allow), decision


@pytest.mark.parametrize("mode", ["default", "accept-edits", "auto"])
@pytest.mark.parametrize("line", ["cat /home/alice/notes.txt", "ls /home/alice", "cp /home/alice/notes.txt n"])
def test_other_files_of_other_users_are_asked_about(top: Path, line: str, mode: Mode) -> None:
    decision = decision_on(line, str(top / "house"), str(top / "ws"), mode)
    assert isinstance(decision, Ask), decision


def test_file_tools_ask_about_files_of_other_users_and_refuse_their_keys(top: Path) -> None:
    home, ws = str(top / "house"), str(top / "ws")
    policy = Policy("auto", rules=built_in_rules((ws, "/home/bob/work"), home), roots=(ws, "/home/bob/work"))
    expected = {
        "/home/alice/notes.txt": Ask,
        "/root/x": Ask,
        "/home/alice/.ssh/id_rsa": Deny,
        "/home/bob/work/a": Allow,
    }
    for path, verdict in {**expected, f"{home}/x": Allow, "/srv/x": Allow, "/home": Allow}.items():
        for tool in ("read_file", "grep", "glob"):
            assert isinstance(decide(policy, request(tool, Effects(reads=(path,)))), verdict), path


IN_A_NAMESPACE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from test_kept_reads import READS_OF_EXISTING_KEYS, decision_on
print(json.dumps({line: str(decision_on(line, sys.argv[2], sys.argv[3])) for line in READS_OF_EXISTING_KEYS}))
"""


def test_a_command_that_reads_a_folder_above_keys_of_other_users_is_refused(top: Path) -> None:
    needed = (sys.executable, os.path.realpath(sys.executable), __file__, str(top))
    if any(path.startswith("/home/") for path in needed):
        pytest.skip("the test replaces /home, and this Python or the tests are in it")
    make = "mount -t tmpfs none /home && mkdir -p /home/alice/.ssh && touch /home/alice/.ssh/id_rsa"
    argv = ["unshare", "-m", "sh", "-c", f'{make} && exec "$0" "$@"', sys.executable, "-c", IN_A_NAMESPACE]
    folders = [str(Path(__file__).parent), str(top / "house"), str(top / "ws")]
    done = subprocess.run([*argv, *folders], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode and ("unshare" in done.stderr or "mount" in done.stderr):
        pytest.skip(f"a file system can't be mounted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    decisions = json.loads(done.stdout)
    assert not {line: decision for line, decision in decisions.items() if not decision.startswith("Deny")}
