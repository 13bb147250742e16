"""Sessions whose prompts name paths below /tmp: rules, the user's own changes, and what scripts and the model learn."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bwrap import needs_bwrap
from named_tmp import unused_name
from scratch_world import ScratchProject, bash, read, write

from bradawl.app.settings.permission_values import RuleText
from bradawl.core.events import NoteDelivered, NoteQueued
from bradawl.core.messages import Text


@pytest.fixture
def name():
    with unused_name() as path:
        yield path


@pytest.fixture
def project(tmp_path):
    return ScratchProject(tmp_path)


def making(project: ScratchProject, *paths: str) -> tuple[dict[str, object], ...]:
    """A call of a program that makes files; which can't be seen in its text."""
    lines = "import json, os\nfor path in json.load(open('files')):\n"
    lines += "    os.makedirs(os.path.dirname(path), exist_ok=True)\n    open(path, 'w').write('x')\n"
    (project.root / "make.py").write_text(lines)
    (project.root / "files").write_text(json.dumps(paths))
    return bash("python3 make.py")


PLANTED = (".git/config", ".envrc", ".vscode/tasks.json", ".mcp.json", ".bradawl/config.toml", "CLAUDE.md", ".env")


@needs_bwrap
@pytest.mark.parametrize("mode", ["auto", "bypass"])
def test_what_file_tools_may_not_write_unasked_is_not_copied(project, name, mode):
    files = (*PLANTED, "id_rsa", "sub/.git/hooks/pre-commit", "bare/HEAD", "page.html")
    turn = project.run(
        making(project, *(f"{name}/{each}" for each in files)), prompt=f"build {name}", permission_mode=mode
    )
    copied = sorted(str(each.relative_to(name)) for each in Path(name).rglob("*") if each.is_file())
    assert copied == ["page.html"]
    assert len(turn.unwritten) == 6 and "5 more entries were not written" in turn.unwritten[-1]
    assert any("git obeys what it finds there" in each for each in turn.unwritten)


@needs_bwrap
@pytest.mark.parametrize("verdict", ["deny", "ask"])
def test_rules_about_the_machines_tmp_hold_for_copies_and_for_file_tools(project, name, verdict):
    rules = tuple(RuleText(verdict, f"Edit(/{path})", "a test", "/") for path in (name, f"{name}-2/a", f"{name}-3"))
    turn = project.run(
        making(project, name, f"{name}-2/a", f"{name}-2/b"),
        write(f"{name}-3"),
        prompt=f"write {name}, {name}-2 and {name}-3",
        rules=rules,
    )
    assert [text.partition(". ")[0] for text in turn.unwritten] == [
        f"{path} was not written to the machine's /tmp: the rule Edit(/{path}) (a test) says {verdict}"
        for path in (name, f"{name}-2/a")
    ]
    assert f"the rule Edit(/{name}-3) (a test) says {verdict}" in project.results[1]
    assert [each.name for each in Path(f"{name}-2").iterdir()] == ["b"]
    assert not Path(name).exists() and not (project.scratch / turn.session_id / f"{name[5:]}-3").exists()


@needs_bwrap
def test_nothing_is_copied_in_plan_mode(project, name):
    first = project.run(bash(f"echo 1 > {name}"), prompt=f"write {name}")
    (project.scratch / first.session_id / name[5:]).write_text("22")
    turn = project.run(prompt="plan", session=first.session_id, permission_mode="plan")
    assert "nothing may change in plan mode" in turn.unwritten[0]
    assert Path(name).read_text() == "1\n"


@needs_bwrap
def test_a_file_that_the_user_changed_is_not_overwritten_by_file_tools(project, name):
    first = project.run(bash(f"echo draft > {name}"), prompt=f"write {name}")
    Path(name).write_text("the user's\n")
    project.run(read(name), write(name), prompt=f"I changed {name}", session=first.session_id)
    assert "it needs permission (it writes outside the workspace" in project.results[1]
    assert Path(name).read_text() == "the user's\n"


def test_without_a_sandbox_a_file_of_the_user_is_not_overwritten_either(project, name):
    first = project.run(prompt=f"write {name} later", sandbox="off")
    Path(name).write_text("the user's\n")
    project.run(read(name), write(name), prompt=f"see {name}", session=first.session_id, sandbox="off")
    assert "it needs permission" in project.results[1]
    assert Path(name).read_text() == "the user's\n"


def test_without_a_sandbox_the_sessions_own_file_may_be_written_again(project, name):
    edit = {"file_path": name, "edits": [{"old_string": "text", "new_string": "more"}]}
    project.run(
        write(name),
        ({"name": "multi_edit", "arguments": edit},),
        write(name, "last\n"),
        prompt=f"write {name}",
        sandbox="off",
        permission_mode="auto",
    )
    assert Path(name).read_text() == "last\n", project.results


@pytest.mark.parametrize("last", [".envrc", "id_rsa", "CLAUDE.md"])
def test_naming_a_file_that_is_asked_about_by_its_name_does_not_allow_it(project, name, last):
    project.run(write(f"{name}/{last}"), prompt=f"what is {name}/{last}?", sandbox="off", permission_mode="auto")
    assert "it needs permission" in project.results[0]
    assert not Path(name).exists()


@needs_bwrap
def test_a_folder_of_the_session_can_be_changed_after_a_prompt_named_it_again(project, name):
    first = project.run(bash(f"mkdir {name}; echo v1 > {name}/index.html"), prompt=f"build the site in {name}")
    Path(name, "logo").write_text("the user's")
    project.run(
        bash(f"sed -i s/v1/v2/ {name}/index.html; echo x > {name}/logo"),
        prompt=f"in {name} change index.html",
        session=first.session_id,
    )
    assert (Path(name, "index.html").read_text(), Path(name, "logo").read_text()) == ("v2\n", "the user's")


@needs_bwrap
def test_commands_and_file_tools_write_beside_files_that_a_prompt_names(project, name):
    Path(name).mkdir()
    Path(name, "log").write_text("one\n")
    project.run(
        bash(f"cat {name}/log > {name}/report"),
        bash(f"python3 -c 'import sys; open(sys.argv[1][3:], \"a\")' xx={name}/log"),
        write(f"{name}/summary"),
        prompt=f"sum up {name} in {name}/report and {name}/summary",
    )
    assert {each.name: each.read_text() for each in Path(name).iterdir()} == {
        "log": "one\n",
        "report": "one\n",
        "summary": "text\n",
    }


# ------------------------------------------------------------------ what scripts and the model learn


@needs_bwrap
def test_the_model_is_told_what_was_not_copied_when_the_session_goes_on(project, name):
    first = project.run(making(project, f"{name}/.envrc"), prompt=f"write {name}/.envrc")
    project.run(prompt="go on", session=first.session_id)
    log = project.scratch.with_name("sessions") / f"{first.session_id}.jsonl"
    assert f"{name}/.envrc was not written to the machine's /tmp" in first.unwritten[0]
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    notes = [each["note"]["text"] for each in events if each["type"] == NoteQueued.__name__]
    assert notes == [first.unwritten[0]]
    assert sum(each["type"] == NoteDelivered.__name__ for each in events) == 1


def run_program(project: ScratchProject, reply: tuple[dict[str, object], ...], *args: str, piped: str = ""):
    script = project.place / "script.json"
    script.write_text(json.dumps([{"tool_calls": list(reply)}, {"text": "done"}]))
    environment = {
        "HOME": str(project.place),
        "PATH": os.environ["PATH"],
        "TMPDIR": os.environ["TMPDIR"],
        "BRADAWL_MODEL": f"scripted/{script}",
    }
    command = [sys.executable, "-m", "bradawl", *args, "--output-format", "json"]
    return subprocess.run(
        command, cwd=project.root, env=environment, input=piped, capture_output=True, text=True, timeout=60
    )


@needs_bwrap
def test_a_script_learns_that_a_file_was_not_copied(project, name):
    ran = run_program(project, making(project, f"{name}/.envrc"), "-p", f"write {name}/.envrc")
    result = json.loads(ran.stdout)
    assert (ran.returncode, result["exit_code"], result["reason"], result["is_error"]) == (73, 73, "completed", True)
    assert result["errors"][0].startswith(f"{name}/.envrc was not written to the machine's /tmp")
    assert ran.stderr.count("was not written") == 1


@needs_bwrap
def test_what_is_piped_in_beside_a_prompt_names_nothing(project, name):
    Path(f"{name}-2").write_text("SECRET\n")
    reply = bash(f"cat {name}-2; echo x > {name}; echo x > {name}-3")
    ran = run_program(project, reply, "-p", f"write {name}-3", piped=f"log: {name} and {name}-2\n")
    assert ran.returncode == 0
    assert not Path(name).exists() and Path(f"{name}-3").exists()
    (log,) = project.place.glob(".local/share/bradawl/projects/*/sessions/*.jsonl")
    assert "SECRET" not in log.read_text()
    run_program(project, reply, "-c", "-p", "go on")  # nor when the session is continued
    assert "SECRET" not in log.read_text() and not Path(name).exists()


def test_of_a_prompt_in_parts_the_first_text_names_paths(project, name):
    Path(name).write_text("x")
    prompt = (Text("see"), Text(f"{name}-2"))
    project.run(write(f"{name}-2"), prompt=prompt, sandbox="off")
    assert "it needs permission" in project.results[0]
