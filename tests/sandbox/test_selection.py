"""The sandbox is selected by a probe of its behaviour; no file of the project influences the selection."""

import ast
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from bwrap import BWRAP, needs_bwrap
from sandboxed_session import SYSTEM_PATH

from bradawl.sandbox import probe as probe_module
from bradawl.sandbox.backend import Launch, SandboxLayout
from bradawl.sandbox.bubblewrap import BubblewrapBackend, BubblewrapFeatures
from bradawl.sandbox.probe import probe
from bradawl.sandbox.selection import SandboxSelection
from patience import no_wait

pytestmark = needs_bwrap


def choose(layout: SandboxLayout, path: str = SYSTEM_PATH):
    choice = SandboxSelection(layout, {"PATH": path})
    choice.start()
    try:
        return choice.sandbox, choice.report
    finally:
        choice.close()


def test_bubblewrap_is_selected_where_every_guarantee_holds(layout):
    sandbox, why = choose(layout)
    assert (sandbox.name, sandbox.lacks) == ("bubblewrap", ())
    assert why == (f"{BWRAP}: holds everything",)
    assert not Path(layout.scratch).exists()
    assert {path.name for path in Path(layout.state).iterdir()} <= {"empty", "spare"}


def test_a_selection_that_is_not_used_starts_nothing(layout):
    SandboxSelection(layout, {}).close()
    assert not Path(layout.state).exists()


@pytest.mark.parametrize(
    "roots", [("/",), ("{place}",), ("{place}/home",), ("/tmp",), ("{place}/missing",), ("{place}/link",)]
)
def test_a_workspace_that_is_missing_a_link_or_too_wide_gets_no_sandbox(layout, roots):
    place = str(Path(layout.home).parent)
    Path(place, "link").symlink_to("ws")
    import msgspec

    wide = msgspec.structs.replace(layout, roots=tuple(root.format(place=place) for root in roots))
    sandbox, why = choose(wide)
    assert not sandbox.name and why


# Guarantee to the change of bubblewrap's arguments that breaks it: arguments and their replacement,
# or None to leave out the seccomp filter.
HOLES = {
    "write_outside": (("--ro-bind", "/", "/"), ("--bind", "/", "/")),
    "tcp": (("--cap-drop", "ALL"), ("--cap-drop", "ALL", "--share-net")),
    "protected_file": (("--ro-bind", "{ws}/.git/config", "{ws}/.git/config"), ()),
    "new_protected_file": (
        ("--ro-bind", "{empty}/gap", "{ws}/.mcp.json", "--ro-bind", "{empty}/ignore", "{ws}/.mcp.json/.gitignore"),
        (),
    ),
    "rename_protected": (("--bind", "{ws}/.git", "{ws}/.git"), ()),
    "symlinked_git": (("--ro-bind", "{linked}", "{linked}"), ("--bind", "{linked}", "{linked}")),
    "credentials": (("--ro-bind", "{empty}/folder", "{home}/.ssh"), ()),
    # A process whose root is the system's. Some Python installations find their library through the link.
    "proc_root": (
        ("--proc", "/proc"),
        (
            *("--tmpfs", "/proc", "--dir", "/proc/77", "--ro-bind", "/", "/proc/77/root"),
            *("--dir", "/proc/self", "--symlink", "{python}", "/proc/self/exe"),
        ),
    ),
    "ptrace": (("--seccomp",), None),
    "unix_sockets": (("--seccomp",), None),
    "netlink": (("--seccomp",), None),
    "remount": (("--cap-drop", "ALL"), None),
}


class _BrokenBackend(BubblewrapBackend):
    """A backend with one wrong argument."""

    def __init__(self, layout: SandboxLayout, hole: tuple) -> None:
        super().__init__(layout, BubblewrapFeatures(BWRAP, disables_namespaces=hole[1] is not None))
        self.hole = hole

    def _launch(self, program, grant, arguments, on_end) -> Launch:
        old, new = self.hole
        words = {"ws": self._layout.roots[0], "linked": self._layout.roots[1], "home": self._layout.home}
        words["python"] = os.path.realpath(sys.executable)
        words["empty"] = f"{self._layout.state}/empty"
        old = [each.format(**words) for each in old]
        if new is None:
            arguments = [each for each in arguments if each not in old or each == "--seccomp"]
            return self._without_filter(super()._launch(program, grant, arguments, on_end))
        text = "\0".join(arguments)
        assert "\0".join(old) in text
        made = text.replace("\0".join(old), "\0".join(each.format(**words) for each in new), 1)
        return super()._launch(program, grant, [each for each in made.split("\0") if each], on_end)

    @staticmethod
    def _without_filter(launch: Launch) -> Launch:
        """A seccomp filter that permits everything."""
        os.ftruncate(launch.inherited[0], 0)
        os.pwrite(launch.inherited[0], bytes.fromhex("060000000000ff7f"), 0)
        return launch


@pytest.fixture
def outside_tmp():
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="bradawl-probe-") as place:
        yield place


@pytest.mark.parametrize("line", HOLES)
def test_the_probe_finds_a_missing_guarantee(outside_tmp, line):
    if os.geteuid() != 0 and line == "remount":
        pytest.skip("capabilities are no use to others")
    found = probe(lambda layout: _BrokenBackend(layout, HOLES[line]), outside_tmp, 5.0)
    assert line in found.lacks, found


def test_missing_guarantees_are_reported_where_bubblewrap_has_fewer_features(layout, tmp_path):
    """With a bubblewrap that can't mount /proc, as inside many containers."""
    found = []
    for own_proc in (True, False):
        features = BubblewrapFeatures(_program(tmp_path, 'case " $* " in *--proc*) exit 1;; esac'), own_proc)
        found.append(probe(lambda each, features=features: BubblewrapBackend(each, features), str(tmp_path), 5.0))
    assert found[0].problem or not found[0].lacks
    assert not found[1].problem


def _program(folder: Path, line: str) -> str:
    """A program that is used in place of bubblewrap."""
    made = folder / "bwrap"
    made.write_text(f'#!/bin/bash\n{line}\nexec {shlex.quote(BWRAP)} "$@"\n')
    made.chmod(0o755)
    return str(made)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("echo no luck; exit 1", "no luck"),
        ("exit 0", "it started nothing in time"),
        ("sleep 300", "it started nothing"),
        ("exec yes", "y y"),
        ("echo tried works", "can't write to their workspace"),
        ("kill -9 $$", "nothing"),
    ],
)
def test_a_program_that_does_not_end_is_abandoned(tmp_path, line, said):
    with no_wait():
        found = probe(
            lambda layout: BubblewrapBackend(layout, BubblewrapFeatures(_program(tmp_path, line))), str(tmp_path), 0.5
        )
        assert said in found.problem
    assert [path.name for path in tmp_path.iterdir()] == ["bwrap"]


def test_a_program_in_the_workspace_or_that_others_may_write_is_never_started(layout, tmp_path):
    inside = Path(layout.roots[0], "bin")
    inside.mkdir()
    _program(inside, "touch ../ran")
    shared = tmp_path / "shared"
    shared.mkdir()
    Path(_program(shared, "touch ../ran")).chmod(0o777)
    path = f"{inside}:{shared}:relative:."
    sandbox, report = choose(layout, path)
    assert not (tmp_path / "ran").exists() and not Path(layout.roots[0], "../ran").exists()
    used = {line.partition(":")[0] for line in report if ": holds everything" in line}
    assert (sandbox.name, used) == ("bubblewrap", {os.path.realpath(BWRAP)})


NESTED = """
import sys
from bradawl.sandbox.selection import SandboxSelection
from bradawl.sandbox.backend import SandboxLayout
place = sys.argv[1]
layout = SandboxLayout((place + "/ws",), place + "/home", state=place + "/state")
choice = SandboxSelection(layout, {"PATH": "/usr/bin"})
print(choice.sandbox.name, *choice.report, sep="\\n")
choice.close()
"""


PROBED = """
import sys
from bradawl.sandbox.bubblewrap import BubblewrapBackend, BubblewrapFeatures
from bradawl.sandbox import probe as probe_module
from bradawl.sandbox.probe import probe
print(probe(lambda layout: BubblewrapBackend(layout, BubblewrapFeatures(sys.argv[1])), sys.argv[2], 5.0))
"""


@pytest.mark.parametrize(
    "line", ['exec "$@"', '"$@"; true', '(true); "$@"; true', '(true); (true); (true); "$@"; true']
)
def test_a_sandboxed_process_with_the_pid_of_the_agent_is_not_mistaken_for_it(tmp_path, line):
    """In a container the agent often has PID 1 or 2, and so have processes in the sandbox."""
    around = ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--mount-proc", "--kill-child"]
    command = ["sh", "-c", line, "sh", sys.executable, "-c", PROBED, BWRAP, str(tmp_path)]
    if (tried := subprocess.run([*around, "true"], capture_output=True, text=True, timeout=60)).returncode:
        pytest.skip(f"no namespace for processes can be made: {tried.stderr.strip()}")
    ended = subprocess.run([*around, *command], capture_output=True, text=True, timeout=60)
    assert ended.stdout.strip() == "ProbeResult(lacks=(), problem='')", ended.stderr


def test_inside_a_sandbox_another_kind_is_selected_and_the_reason_reported(layout):
    place = str(Path(layout.home).parent)
    around = "--unshare-all --unshare-user --disable-userns --cap-drop ALL --bind / / --dev /dev --proc /proc"
    ended = subprocess.run(
        [BWRAP, *around.split(), sys.executable, "-c", NESTED, place],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    name, *why = ended.stdout.splitlines()
    assert name != "bubblewrap", ended
    # Inside only the user who created the namespace is mapped: files of root belong to nobody there.
    # To the user nobody they seem their own, because all unmapped users are shown as nobody.
    is_own = os.geteuid() in (Path(BWRAP).stat().st_uid, 65534)
    assert (f"{BWRAP}: bwrap: " if is_own else f"{BWRAP} is not used: ") in why[0]


def test_what_a_probe_starts_ends_by_itself_if_its_agent_is_killed():
    text = Path(probe_module.__file__).with_name("probe_inside.py").read_text("utf-8")
    (escapes,) = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == "escapes")
    program = f"import os, signal\n_LONGEST_S = 1\n{ast.get_source_segment(text, escapes)}\nescapes()"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert ended.returncode == 0  # and the daemon has closed the output
