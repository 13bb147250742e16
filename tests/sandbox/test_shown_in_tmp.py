"""What a prompt names below `/tmp` is shown to commands without its keys, and never by way of a link."""

import os
import secrets
import shutil
import socket
import subprocess
import time
from pathlib import Path

import msgspec
import pytest
from bwrap import BINDS_DESCRIPTORS, BWRAP, needs_bwrap
from landlock_programs import SandboxedPrograms, landlock_programs, needs_whole_landlock
from sandboxed_session import sandboxed_session
from scratch_world import ScratchProject, bash, read

from bradawl.app.build.session_tmp import SessionTmp
from bradawl.app.policies import Policies
from bradawl.app.settings.permission_values import RuleText
from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Allow, Grant, Policy, Request, Sandbox, decide
from bradawl.sandbox.backend import Program
from bradawl.sandbox.bubblewrap import BubblewrapBackend, BubblewrapFeatures
from bradawl.sandbox.discovery import tmp_survey
from bradawl.sandbox.discovery.tmp_survey import NotSearched, TmpSurvey, holds_keys_by_name
from bradawl.sandbox.landlock import LandlockBackend
from bradawl.sandbox.machine_tmp import MachineTmp
from bradawl.sandbox.path_translation import TEMPORARY
from bradawl.sandbox.scratch import SessionScratch
from bradawl.sandbox.shown_in_tmp import NotShown, check_named, open_named

needs_descriptors = pytest.mark.skipif(not BINDS_DESCRIPTORS, reason="this bubblewrap can't mount open files")


@pytest.fixture
def name():
    """A path in the machine's /tmp where nothing exists; removed with all that begins like it."""
    path = Path(TEMPORARY, f"bradawl-shown-{secrets.token_hex(6)}")
    yield str(path)
    for each in path.parent.glob(f"{path.name}*"):
        shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()


@pytest.fixture
def project(tmp_path):
    return ScratchProject(tmp_path)


def rules(*denied: str) -> dict[str, tuple[RuleText, ...]]:
    return {"rules": tuple(RuleText("deny", text, "a test", "/") for text in denied)}


# ------------------------------------------------------------------ links


@pytest.mark.parametrize("linked", ["", "/a", "/a/b"])
def test_no_link_is_followed_on_the_way_to_a_named_path(tmp_path, name, linked):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b").write_text("SECRET")
    if linked:
        Path(name).mkdir()
    if linked == "/a/b":
        Path(name, "a").mkdir()
    Path(f"{name}{linked}").symlink_to(f"{tmp_path}{linked}")
    with pytest.raises(OSError):
        open_named(f"{name}/a/b")
    with pytest.raises(NotShown, match="a link is in the way"):
        check_named(f"{name}/a/b", str(tmp_path / "scratch"))


@needs_bwrap
@needs_descriptors
@pytest.mark.parametrize("named", ["", "/config"])
def test_a_link_that_takes_the_place_of_a_named_path_before_bubblewrap_starts_is_not_followed(tmp_path, name, named):
    Path(name).mkdir()
    Path(name, "config").write_text("fine")
    with sandboxed_session(tmp_path, shown_in_tmp=lambda: (name + named,)) as session:
        (session.home / ".ssh/config").write_text("SECRET")
        program = Program(("/bin/cat", f"{name}/config"), session.cwd, session.environment)
        launch = session.backend.launch(program, Grant())
        Path(name).rename(f"{name}-moved")
        Path(name).symlink_to(session.home / ".ssh")
        started = subprocess.run(launch.argv, pass_fds=launch.inherited, capture_output=True, timeout=60, check=False)
        for each in (*launch.close_after_start, launch.info_fd):
            os.close(each)
        if launch.on_end:
            launch.on_end()
    assert started.stdout == b"fine"


def shown_by_landlock(programs: SandboxedPrograms, name: str) -> None:
    programs.backend.close()
    programs.backend = LandlockBackend(msgspec.structs.replace(programs.layout, shown_in_tmp=lambda: (name,)))


@needs_whole_landlock
@pytest.mark.parametrize("named", ["", "/config"])
def test_with_landlock_no_link_is_followed_to_a_named_path(tmp_path, name, named):
    (tmp_path / "config").write_text("SECRET")
    Path(name).mkdir()
    Path(name, "config").write_text("fine")

    def swap() -> None:
        Path(name).rename(f"{name}-moved")
        Path(name).symlink_to(tmp_path)

    with landlock_programs("me") as programs:
        shown_by_landlock(programs, name + named)
        assert programs.sh(f"cat {name}/config").out == "fine"
        programs.give_away = swap  # between the preparation and the start
        assert programs.sh(f"cat {name}/config").out == ""
        programs.give_away = lambda: None
        assert programs.sh(f"cat {name}/config").out == ""


@needs_whole_landlock
def test_with_landlock_a_named_missing_file_is_written_once_it_exists_and_no_link_is_followed(tmp_path, name):
    Path(name).mkdir()
    (tmp_path / "report").write_text("the user's\n")

    def swap() -> None:
        Path(name).rename(f"{name}-moved")
        Path(name).symlink_to(tmp_path)

    with landlock_programs("me") as programs:
        grant = Grant(writable=(*programs.layout.roots, f"{name}/report"))
        with pytest.raises(ToolError, match="TMPDIR"):
            programs.sh("true", grant=grant)
        Path(name, "report").touch()  # as write_file does
        programs.sh(f"echo one > {name}/report; echo two > {name}/beside", grant=grant)
        assert Path(name, "report").read_text() == "one\n" and not Path(name, "beside").exists()
        programs.give_away = swap  # between the preparation and the start
        programs.sh(f"echo three > {name}/report", grant=grant)
    assert (tmp_path / "report").read_text() == "the user's\n"


def test_where_tmp_is_the_machines_a_rule_allows_file_tools_the_named_missing_file_alone(project, name):
    class Selected:
        """What is selected where only Landlock works."""

        sandbox = Sandbox("landlock", ("private_tmp",))

    settings = project.settings(())
    tmp = SessionTmp(settings, str(project.place / "tmp"), (str(project.root),))
    tmp.sandboxed_by(Selected())
    tmp.begin_turn((f"write {name}/report",), Policy)
    policy = Policies(settings, (str(project.root),), (), "", lambda: Selected.sandbox, tmp=tmp)()

    def is_allowed(path: str) -> bool:
        return isinstance(decide(policy, Request("write_file", "d", Effects(writes=(path,)))), Allow)

    named = [f"{name}/report", f"{name}/report/x", f"{name}/other", name, f"{name}/reports"]
    assert [is_allowed(path) for path in named] == [True, False, False, False, False]


@needs_bwrap
def test_without_mounts_of_open_files_nothing_is_shown_and_the_result_says_so(tmp_path, name):
    Path(name).write_text("the real one")
    with sandboxed_session(tmp_path, shown_in_tmp=lambda: (name,)) as session:
        session.backend = BubblewrapBackend(session.layout, BubblewrapFeatures(BWRAP, binds_descriptors=False))
        result = session.run(f"cat {name}")
        again = session.run(f"cat {name}")
    assert b"the real one" not in result.stdout
    assert [note.partition(" (")[0] for note in result.notes] == [
        f"{name} of the machine's /tmp is not shown to commands: this bubblewrap can't mount an open file"
    ]
    assert again.notes == ()


# ------------------------------------------------------------------ keys and special files


def fill(folder: Path) -> None:
    """A folder with keys, a named pipe and a socket."""
    (folder / "deep/.aws").mkdir(parents=True)
    for each in ("id_rsa", ".env", "deep/.aws/credentials"):
        (folder / each).write_text("SECRET")
    (folder / "deep/log").write_text("fine\n")
    os.mkfifo(folder / "deep/pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / "deep/s"))


def hidden_names(folder: str) -> list[str]:
    return [f"{folder}/{each}" for each in (".env", "deep/.aws", "deep/pipe", "deep/s", "id_rsa")]


def test_the_search_finds_keys_and_special_files_at_any_depth(name):
    fill(Path(name))
    survey = TmpSurvey()
    assert sorted(survey.hidden_in(name)) == sorted(hidden_names(name))
    Path(name, "deep/new").mkdir()
    Path(name, "deep/new/id_rsa").write_text("SECRET")
    assert f"{name}/deep/new/id_rsa" in survey.hidden_in(name)


@needs_bwrap
@needs_descriptors
def test_keys_and_special_files_in_a_shown_folder_are_hidden(project, name):
    fill(Path(name))
    (project.root / "look.py").write_text(
        "import os, sys\n"
        "for path in sys.argv[1:]:\n"
        "    for mode in (os.O_RDONLY, os.O_WRONLY):\n"
        "        try:\n"
        "            opened = os.open(path, mode | os.O_NONBLOCK)\n"
        "            print('OPEN' if mode else os.read(opened, 99))\n"
        "        except OSError as error: print(error)\n"
    )
    given = " ".join((*hidden_names(name), f"{name}/deep/.aws/credentials", f"{name}/deep/log"))
    (project.root / "look.sh").write_text(f"python3 look.py {given}\n")
    reading = os.open(f"{name}/deep/pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        project.run(bash("sh look.sh"), prompt=f"look at {name}")
    finally:
        os.close(reading)
    assert "SECRET" not in project.results[0] and "b'fine\\n'" in project.results[0]
    assert project.results[0].count("OPEN") == 0


@needs_whole_landlock
def test_with_landlock_keys_and_pipes_in_a_shown_folder_are_hidden(name):
    fill(Path(name))
    with landlock_programs("me") as programs:
        shown_by_landlock(programs, name)
        ended = programs.sh(f"cat {name}/deep/log {name}/id_rsa {name}/.env {name}/deep/.aws/credentials")
        assert "SECRET" not in ended.out and "fine" in ended.out
        assert "Permission denied" in programs.sh(f"echo x > {name}/deep/pipe").err


@pytest.mark.parametrize("named", [".aws", ".aws/config", ".env/x", "a/id_rsa", ".config/gcloud/x"])
def test_a_path_in_a_folder_of_keys_is_not_shown(tmp_path, name, named):
    Path(name, named).parent.mkdir(parents=True)
    Path(name, named).write_text("SECRET")
    assert holds_keys_by_name(f"{name}/{named}")
    with pytest.raises(NotShown, match="its name is one of files with keys"):
        check_named(f"{name}/{named}", str(tmp_path))


def test_a_folder_too_large_to_be_searched_is_not_shown(name):
    Path(name, "a/b").mkdir(parents=True)
    for survey in (TmpSurvey(most_entries=2), TmpSurvey(within_s=-1)):
        with pytest.raises(NotSearched, match="more files than could be searched"):
            survey.hidden_in(name)
    assert TmpSurvey(most_entries=5).hidden_in(name) == ()


def test_a_folder_with_more_keys_than_can_be_covered_is_not_shown(name, monkeypatch):
    monkeypatch.setattr(tmp_survey, "_MOST_FOUND", 1)
    fill(Path(name))
    with pytest.raises(NotSearched, match="more keys"):
        TmpSurvey().hidden_in(name)


@pytest.mark.parametrize("mode", [0o757, 0o777])
def test_a_folder_in_which_others_could_exchange_a_key_is_not_shown(name, mode):
    Path(name, "a").mkdir(parents=True)
    Path(name, "a/.env").write_text("SECRET")
    Path(name, "a").chmod(mode)
    with pytest.raises(NotSearched, match="where other users may change files"):
        TmpSurvey().hidden_in(name)
    Path(name, "a/.env").unlink()
    assert TmpSurvey().hidden_in(name) == ()


@needs_bwrap
@needs_descriptors
def test_a_key_in_tmp_to_which_a_link_of_the_home_folder_leads_is_hidden(tmp_path, name):
    Path(name).mkdir()
    Path(name, "data").write_text("SECRET")
    with sandboxed_session(tmp_path, shown_in_tmp=lambda: (name,)) as session:
        (session.home / ".ssh/id_x").symlink_to(f"{name}/data")
        assert "SECRET" not in session.out(f"cat {name}/data; ls {name}")


# ------------------------------------------------------------------ rules


@needs_bwrap
@needs_descriptors
@pytest.mark.parametrize("rule", ["Read(//tmp/{}/s)", "Read(//tmp/{}/**)", "Read(//tmp/{})"])
def test_a_rule_that_refuses_a_named_path_does_not_stop_other_commands(project, name, rule):
    Path(name).mkdir()
    Path(name, "s").write_text("SECRET")
    denied = rule.format(Path(name).name)
    project.run(bash(f"cat {name}/s*; echo hi"), prompt=f"see {name}/s", **rules(denied))
    assert "SECRET" not in project.results[0]
    project.run(bash("echo hi"), prompt=f"see {name}/s", **rules(denied))
    assert project.results[0].startswith("hi")
    assert f"{name}/s of the machine's /tmp is not shown to commands: a permission rule refuses" in project.results[0]


@needs_bwrap
@needs_descriptors
def test_what_a_rule_refuses_in_a_shown_folder_is_hidden(project, name):
    Path(name).mkdir()
    Path(name, "s").write_text("SECRET")
    Path(name, "log").write_text("fine\n")
    (project.root / "look.sh").write_text(f"cat {name}/*\n")
    project.run(bash("sh look.sh"), prompt=f"see {name}", **rules(f"Read(//tmp/{Path(name).name}/s)"))
    assert "SECRET" not in project.results[0] and "fine" in project.results[0]


# ------------------------------------------------------------------ what commands put in the way


@needs_bwrap
@needs_descriptors
@pytest.mark.parametrize(
    "made", ["ln -s /usr {}", "echo x > {}", "mkdir {0} && ln -s /usr {0}/app", "mkdir -p {0}/app/l && touch {0}/x"]
)
def test_what_a_command_put_in_the_way_of_a_named_path_stops_no_command(project, name, made):
    Path(name, "app").mkdir(parents=True)
    Path(name, "app/l").write_text("the real one")
    (project.root / "clean.sh").write_text(f"cat {name}/app/l; rm -r {name}; echo hi\n")
    first = project.run(bash(made.format(name)))
    project.run(
        bash("sh clean.sh"),
        read(f"{name}/app/l"),
        prompt=f"look at {name}/app/l",
        session=first.session_id,
    )
    assert "hi" in project.results[0] and "the real one" not in project.results[0]
    assert (
        f"{name}/app/l of the machine's /tmp is not shown to commands: a command made something" in project.results[0]
    )
    project.run(bash(f"cat {name}/app/l"), prompt=f"look at {name}/app/l", session=first.session_id)
    assert project.results[0].startswith("the real one")


# ------------------------------------------------------------------ what is swapped meanwhile


def test_a_path_that_is_swapped_while_the_prompt_is_read_ends_no_turn(tmp_path, name):
    scratch = SessionScratch(str(tmp_path / "tmp"), str(tmp_path))
    scratch.choose("01M85F1K59CFJ6BRCX1SEN8T2P")
    machine = MachineTmp(scratch, (str(tmp_path),), lambda: True)
    swapping = subprocess.Popen(
        ["sh", "-c", f"while :; do mkdir {name}; rmdir {name}; ln -s x {name}; rm {name}; done"]
    )
    try:
        until = time.monotonic() + 1
        while time.monotonic() < until:
            machine.begin_turn((f"look at {name} and {name}/x",))
    finally:
        swapping.kill()
        swapping.wait()


def test_a_path_that_was_replaced_after_it_was_examined_is_not_opened(tmp_path, name):
    from bradawl.sandbox.shown_in_tmp import OpenedPaths, ShownPath

    Path(name).write_text("one")
    status = Path(name).stat()
    shown, opened = ShownPath(name, (status.st_dev, status.st_ino)), OpenedPaths()
    assert opened.open(shown)
    os.fstat(opened.descriptor(name))
    opened.close()
    Path(name).rename(f"{name}-moved")
    Path(name).write_text("another")
    assert not opened.open(shown) and opened.take() == ()
    Path(name).unlink()
    assert not opened.open(shown) and opened.take() == ()
