"""What a prompt names below `/tmp` is the machine's: existing files are shown, and what is missing is written there."""

import os
import socket
from pathlib import Path

import pytest
from bwrap import needs_bwrap
from named_tmp import machine_tmp, unused_name
from scratch_world import ScratchProject, bash, read, write

from bradawl.sandbox.named_paths import MOST_NAMED, named_in_tmp


@pytest.fixture
def name():
    with unused_name() as path:
        yield path


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("look at /tmp/build.log", ["/tmp/build.log"]),
        ("write to /tmp/report.md.", ["/tmp/report.md"]),
        ("(see `/tmp/a b.txt`), and '/tmp/c'!", ["/tmp/a b.txt", "/tmp/a", "/tmp/c"]),
        ("error at /tmp/x.py:12:3: bad", ["/tmp/x.py"]),
        ("file:///tmp/x and /tmp//y/./z/", ["/tmp/x", "/tmp/y/z"]),
        ("/var/tmp/x ./tmp/y a/tmp/z ~/tmp/w $X/tmp/v /tmp /tmp/ /tmp/*.log /tmp/../etc/passwd", []),
    ],
)
def test_paths_in_a_prompt(text, first):
    assert [readings[0] for readings in named_in_tmp(text)] == first


def test_paths_are_taken_in_the_order_of_the_text_and_names_that_no_file_can_have_are_left_out():
    text = " ".join([f"/tmp/{'a' * 256} /tmp/report.md", *(f"'/tmp/{number}'" for number in range(2_000))])
    found = [readings[0] for readings in named_in_tmp(text)]
    assert found[:2] == ["/tmp/report.md", "/tmp/0"] and len(found) == MOST_NAMED + 1


# ------------------------------------------------------------------ reading

_APPEND = 'import sys; open("/tmp/" + sys.argv[1], "a")'


@needs_bwrap
def test_commands_and_file_tools_see_the_file_that_the_prompt_names(project_of, name):
    Path(name).write_text("the real one\n")
    project = project_of()
    project.run(bash(f"cat {name}; python3 -c '{_APPEND}' {name[5:]}"), read(name), prompt=f"look at {name}.")
    assert project.results[0].startswith("the real one\n")
    assert "Read-only file system" in project.results[0]
    assert "the real one" in project.results[1]
    assert Path(name).read_text() == "the real one\n"


@needs_bwrap
def test_a_file_that_no_prompt_names_is_not_shown_and_the_result_says_so(project_of, name):
    Path(name).write_text("the real one\n")
    project = project_of()
    project.run(bash(f"cat {name}"), read(name))
    assert "the real one" not in "".join(project.results)
    assert project.results[1] == (
        f"{name} does not exist: /tmp here is the session's own folder. The machine's {name} is shown only if a "
        "prompt of the user names it"
    )


@needs_bwrap
def test_a_file_named_by_an_earlier_prompt_is_shown_when_the_session_goes_on(project_of, name):
    Path(name).write_text("the real one\n")
    project = project_of()
    first = project.run(prompt=f"look at {name}")
    project.run(bash(f"cat {name}"), prompt="go on", session=first.session_id)
    assert project.results[0].startswith("the real one\n")


@needs_bwrap
def test_a_folder_is_shown_as_a_whole(project_of, name):
    Path(name, "a").mkdir(parents=True)
    Path(name, "a/log").write_text("deep\n")
    project = project_of()
    project.run(bash(f"cat {name}/a/log"), read(f"{name}/a/log"), prompt=f"What is in {name}/?")
    assert project.results[0].startswith("deep\n") and "deep" in project.results[1]


@needs_bwrap
@pytest.mark.parametrize("kind", ["link", "socket", "fifo", "key"])
def test_links_special_files_and_keys_are_not_shown(project_of, name, kind):
    project = project_of()
    (project.place / "secret").write_text("SECRET")
    if kind == "link":
        Path(name).symlink_to(project.place / "secret")
    elif kind == "fifo":
        os.mkfifo(name)
    elif kind == "key":
        Path(name).mkdir()
        name += "/id_rsa"
        Path(name).write_text("SECRET")
    else:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(name)
    project.run(bash(f"timeout 2 cat {name}"), prompt=f"look at {name}")
    assert "SECRET" not in project.results[0] and "No such file" in project.results[0]


# ------------------------------------------------------------------ writing


@needs_bwrap
@pytest.mark.parametrize("by", [bash("echo found > {}"), write("{}", "found\n")])
def test_a_file_that_the_prompt_asks_for_is_in_the_machines_tmp_at_the_end(project_of, name, by):
    project = project_of()
    given = tuple({**each, "arguments": {k: v.format(name) for k, v in each["arguments"].items()}} for each in by)
    project.run(given, prompt=f"write the report to {name}")
    assert Path(name).read_text() == "found\n"
    assert project.notices == [f"written to the machine's /tmp: {name}"]


@needs_bwrap
def test_the_result_says_that_a_named_file_will_be_in_the_machines_tmp(project_of, name):
    project = project_of()
    project.run(write(name), prompt=f"write it to {name}")
    assert project.results == [f"Wrote 1 line to {name} (it is in the machine's /tmp when the turn ends)"]
    assert Path(name).is_file()


@needs_bwrap
def test_a_file_of_this_session_is_written_again_and_one_that_was_changed_is_not(project_of, name):
    project = project_of()
    first = project.run(bash(f"echo 1 > {name}"), prompt=f"write {name}")
    project.run(bash(f"echo 2 > {name}"), prompt="correct it", session=first.session_id)
    assert Path(name).read_text() == "2\n"
    Path(name).unlink()
    project.run(bash("true"), prompt="go on", session=first.session_id)
    assert not Path(name).exists()
    project.run(bash(f"echo 3 > {name}"), prompt="again", session=first.session_id)
    assert Path(name).read_text() == "3\n"
    Path(name).write_text("the user's, longer\n")
    project.run(bash(f"cat {name}"), prompt=f"I changed {name}", session=first.session_id)
    assert project.results[0].startswith("the user's, longer\n")
    assert Path(name).read_text() == "the user's, longer\n"


@needs_bwrap
def test_a_file_that_others_made_meanwhile_is_not_replaced(project_of, name):
    project = project_of()
    made = Path(name)

    class Meanwhile:
        name = "meanwhile"

        async def before_call(self, call):
            made.write_text("not yours")
            return call

        async def after_call(self, call, result):
            return result

    turn = project.run(bash(f"echo mine > {name}"), prompt=f"write {name}", hooks=(Meanwhile(),))
    assert made.read_text() == "not yours"
    own = project.scratch / turn.session_id / made.name
    assert project.notices == [
        f"{name} was not written to the machine's /tmp: there is a file of that name that this session did not make. "
        f"The session's version is {own}"
    ]


@needs_bwrap
def test_a_folder_is_copied_without_links_and_special_files(project_of, name):
    project = project_of()
    lines = f"mkdir -p {name}/a; echo 1 > {name}/a/one; ln -s /etc/hostname {name}/link; mkfifo {name}/pipe"
    project.run(bash(f"{lines}; chmod +x {name}/a/one"), prompt=f"put it into {name}/")
    assert Path(name, "a/one").read_text() == "1\n" and os.access(f"{name}/a/one", os.X_OK)
    assert not os.path.lexists(f"{name}/link") and not os.path.lexists(f"{name}/pipe")
    assert any("there is a link in the way" in each for each in project.notices)
    assert any("it is not a regular file" in each for each in project.notices)


def test_no_link_is_followed_on_the_way_to_the_target(tmp_path, name):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"write {name}/report",))
    folder = own / Path(name).name
    folder.mkdir()
    (folder / "report").write_text("x")
    (tmp_path / "elsewhere").mkdir()
    Path(name).symlink_to(tmp_path / "elsewhere")
    assert [text.partition(". ")[0] for text in machine.end_turn().failures] == [
        f"{name}/report was not written to the machine's /tmp: there is a link in the way"
    ]
    assert not (tmp_path / "elsewhere/report").exists()


def test_no_link_is_followed_on_the_way_to_the_source(tmp_path, name):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"write {name}/report and {name}-2",))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/report").write_text("SECRET")
    (own / Path(name).name).symlink_to(tmp_path / "elsewhere")
    (own / f"{Path(name).name}-2").symlink_to(tmp_path / "elsewhere/report")
    assert len(machine.end_turn().failures) == 2
    assert not Path(name).exists() and not Path(f"{name}-2").exists()


def test_what_is_too_large_is_not_copied(tmp_path, name):
    machine, own = machine_tmp(tmp_path)
    machine.begin_turn((f"write {name}",))
    with (own / Path(name).name).open("wb") as file:
        file.truncate(100_000_001)
    assert "100,000,000 bytes are not copied" in machine.end_turn().failures[0]
    assert not Path(name).exists()


def test_paths_of_the_workspace_are_left_to_their_own_rules(tmp_path):
    machine, _ = machine_tmp(tmp_path)
    (tmp_path / "file").write_text("")
    machine.begin_turn((f"write {tmp_path}/new, read {tmp_path}/file, {tmp_path.parent}",))
    assert (machine.shown(), machine.writable(), machine.end_turn()) == ((), (), ((), ()))


@pytest.fixture
def project_of(tmp_path):
    return lambda: ScratchProject(tmp_path)
