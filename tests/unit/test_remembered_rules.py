"""`RememberedRules`: a project's saved rules in the user's folder, reread on changes, never written over if broken."""

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bradawl.app.remembered_rules import RememberedRules
from bradawl.core.effects import Effects
from bradawl.core.errors import SettingsError
from bradawl.core.permissions import Request

RULE, OTHER = "Bash(npm run test:*)", "Edit(src/**)"


@pytest.fixture
def place(tmp_path):
    for name in ("data", "project", "home"):
        (tmp_path / name).mkdir()
    return tmp_path


def memory(place, project="project", data="data"):
    return RememberedRules(str(place / data), str(place / project), str(place / "home"))


def edit(remembered, text):
    """Changes the file in place, as some editors do."""
    Path(remembered.path).write_text(text)
    os.utime(remembered.path, ns=(time.time_ns(), time.time_ns() + len(text)))


def test_reading_an_empty_store_creates_no_file(place):
    remembered = memory(place)
    assert (remembered.rules(), remembered.texts, remembered.problems) == ((), (), ())
    assert list((place / "data").iterdir()) == []


def test_an_added_rule_applies_at_once_and_after_a_restart(place):
    remembered, open_elsewhere = memory(place), memory(place)
    assert open_elsewhere.rules() == ()
    assert remembered.add([RULE]) == remembered.path
    assert [rule.text for rule in remembered.rules()] == [RULE]
    for later in (open_elsewhere, memory(place)):
        assert later.rules() == remembered.rules() and later.texts == (RULE,)


def test_the_file_is_private_and_readable_toml(place):
    remembered = memory(place)
    remembered.add([RULE])
    remembered.add([OTHER, RULE])
    path = Path(remembered.path)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    text = path.read_text()
    assert text.startswith("# What bradawl may do") and f'folder = "{place}/project"' in text
    assert text.endswith(f'\n[[rule]]\nallow = "{RULE}"\n\n[[rule]]\nallow = "{OTHER}"\n')
    assert [entry.name for entry in path.parent.iterdir() if entry.suffix == ".new"] == []


def test_each_project_has_its_own_rules_by_its_real_path(place):
    (place / "project2").mkdir()
    memory(place).add([RULE])
    assert memory(place, "project2").rules() == ()
    assert memory(place).path != memory(place, "project2").path


def test_text_that_the_user_wrote_into_the_file_stays(place):
    remembered = memory(place)
    remembered.add([RULE])
    text = Path(remembered.path).read_text().replace("[[rule]]", "# mine\n[[rule]]  # first")
    edit(remembered, text)
    remembered.add([OTHER])
    assert Path(remembered.path).read_text().startswith(text.rstrip("\n"))
    assert remembered.texts == (RULE, OTHER)


def test_a_rule_removed_from_the_file_no_longer_applies(place):
    remembered = memory(place)
    remembered.add([RULE])
    assert remembered.rules()
    edit(remembered, "")
    assert remembered.rules() == ()
    remembered.add([OTHER])
    Path(remembered.path).unlink()
    assert remembered.rules() == ()


@pytest.mark.parametrize(
    "text",
    [
        "[[rule]\n",
        "rule = 5\n",
        'rule = ["Bash"]\n',
        '[rule]\nallow = "Bash"\n',
        '[[rule]]\nallow = "Bash"\ndeny = "x"\n',
        '[[rule]]\ndeny = "Bash"\n',
        "[[rule]]\nallow = 5\n",
        '[permissions]\nallow = ["Bash"]\n',
        'folder = "/elsewhere"\n[[rule]]\nallow = "Bash"\n',
        'folder = ["/elsewhere"]\n',
        "x" * 1_100_000,
        "a = " + "[" * 100_000,
    ],
)
def test_a_broken_file_allows_nothing_is_reported_and_is_not_changed(place, text):
    remembered = memory(place)
    remembered.add([RULE])
    edit(remembered, text)
    assert remembered.rules() == ()
    [problem] = remembered.problems
    assert remembered.path in problem
    with pytest.raises(SettingsError):
        remembered.add([OTHER])
    assert Path(remembered.path).read_text() == text


def test_a_file_that_is_not_utf8_is_broken_too(place):
    remembered = memory(place)
    remembered.add([RULE])
    Path(remembered.path).write_bytes(b"\xff\xfe\x00")
    assert remembered.rules() == () and "UTF-8" in remembered.problems[0]


def test_an_invalid_rule_does_not_disable_the_others(place):
    remembered = memory(place)
    remembered.add([RULE])
    edit(remembered, Path(remembered.path).read_text() + '\n[[rule]]\nallow = "Bash(a && b)"\n')
    assert [rule.text for rule in remembered.rules()] == [RULE]
    assert "one rule per command" in remembered.problems[0]


def test_an_inline_list_is_read_but_not_extended(place):
    remembered = memory(place)
    remembered.add([RULE])
    edit(remembered, f'rule = [{{allow = "{RULE}"}}]\n')
    assert remembered.texts == (RULE,)
    with pytest.raises(SettingsError):
        remembered.add([OTHER])
    assert remembered.texts == (RULE,)


def test_a_file_that_others_can_change_is_ignored(place):
    remembered = memory(place)
    remembered.add([RULE])
    Path(remembered.path).chmod(0o622)
    edit(remembered, Path(remembered.path).read_text() + "\n")
    assert remembered.rules() == () and "chmod 600" in remembered.problems[0]
    Path(remembered.path).parent.chmod(0o777)
    with pytest.raises(SettingsError, match="chmod 700"):
        remembered.add([OTHER])


def test_a_link_a_folder_or_a_pipe_in_place_of_the_file_is_ignored(place):
    remembered = memory(place)
    path = Path(remembered.path)
    path.parent.mkdir(mode=0o700)
    (place / "project" / "planted.toml").write_text('[[rule]]\nallow = "Bash"\n')
    for make in (lambda: path.symlink_to(place / "project" / "planted.toml"), path.mkdir, lambda: os.mkfifo(path)):
        make()
        assert remembered.rules() == () and remembered.problems
        with pytest.raises(SettingsError):
            remembered.add([RULE])
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


@pytest.mark.parametrize("data", ["project", "project/.bradawl", "link"])
def test_nothing_is_saved_inside_the_workspace(place, data):
    (place / "project" / "inside").mkdir()
    (place / "link").symlink_to(place / "project" / "inside")
    remembered = memory(place, data=data)
    path = Path(remembered.path)
    path.parent.mkdir(parents=True)
    path.write_text('[[rule]]\nallow = "Bash"\n')
    path.chmod(0o600)
    assert remembered.rules() == ()
    assert remembered.proposals(Request("write_file", "", Effects(writes=(f"{place}/project/src/a",)))) == ()
    with pytest.raises(SettingsError, match="BRADAWL_HOME"):
        remembered.add([RULE])


def test_an_invalid_rule_is_not_saved(place):
    remembered = memory(place)
    with pytest.raises(SettingsError, match="did you mean Bash"):
        remembered.add([RULE, "Bsah(x)"])
    assert not Path(remembered.path).exists()


def test_a_folder_that_can_not_be_created_is_an_error(place):
    (place / "data" / "permissions").write_text("a file")
    with pytest.raises(SettingsError, match="can't be written"):
        memory(place).add([RULE])


def test_an_unfinished_file_of_a_killed_process_does_no_harm(place):
    remembered = memory(place)
    remembered.add([RULE])
    (Path(remembered.path).parent / f".bradawl-{os.getpid()}-0.new").write_text("half of a fi")
    remembered.add([OTHER])
    assert remembered.texts == (RULE, OTHER)
    assert stat.S_IMODE(Path(remembered.path).stat().st_mode) == 0o600


def test_a_data_folder_behind_a_link_is_read(place):
    (place / "linked").symlink_to(place / "data")
    remembered = RememberedRules(str(place / "linked"), str(place / "project"), str(place))
    remembered.add([RULE])
    assert (remembered.texts, remembered.problems) == ((RULE,), ())


ADDING = """
import sys
from bradawl.app.remembered_rules import RememberedRules
data, project, number = sys.argv[1:]
memory = RememberedRules(data, project, "/home/u")
for i in range(15):
    memory.add([f"Bash(tool{number} part{i})"])
"""


def test_processes_that_add_at_the_same_time_lose_nothing(place):
    argv = [sys.executable, "-c", ADDING, str(place / "data"), str(place / "project")]
    running = [subprocess.Popen([*argv, str(number)]) for number in range(3)]
    assert [process.wait(40) for process in running] == [0, 0, 0]
    expected = {f"Bash(tool{number} part{i})" for number in range(3) for i in range(15)}
    remembered = memory(place)
    assert set(remembered.texts) == expected and len(remembered.texts) == 45


def test_an_unchanged_file_is_not_read_again(place):
    remembered = memory(place)
    remembered.add([RULE])
    assert remembered.rules() is remembered.rules()


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_valid_rule_is_loaded_as_it_was_saved(place, text):
    remembered = memory(place)
    rule = f"Read({text})"
    try:
        remembered.add([rule])
    except SettingsError:
        return
    assert rule in memory(place).texts


def test_a_folder_whose_name_is_not_utf8_has_its_own_rules(place):
    odd = os.fsdecode(os.fsencode(str(place)) + b"/\xff\"'")
    Path(odd).mkdir()
    remembered = RememberedRules(str(place / "data"), odd, str(place / "home"))
    remembered.add([RULE])
    assert RememberedRules(str(place / "data"), odd, str(place / "home")).texts == (RULE,)


# ------------------------------------------------------------------ rules that cover a call


def test_new_rules_cover_a_call_alone_or_together_with_existing_ones(place):
    remembered = memory(place)
    both = Request("bash", "", Effects(unknown=True, commands=(("npm", "test"), ("git", "add", ".")), seal="s"))
    assert remembered.proposals(both) == ("Bash(npm test)", "Bash(git add:*)")
    assert "does not cover" in remembered.why_not_allowed(both, ["Bash(npm test)"])
    remembered.add(["Bash(git *)"])
    assert remembered.why_not_allowed(both, ["Bash(npm test)"]) == ""
    assert "did you mean" in remembered.why_not_allowed(both, ["Bsah(npm test)"])
    assert remembered.why_not_allowed(both, []) != ""


def test_additional_folders_count_as_inside_the_workspace(place):
    other = RememberedRules(str(place / "data"), "/ws", "/home/u", ("/more",))
    reading = Request("probe", "", Effects(reads=("/ws/a", "/more/b"), writes=("/more/c/d",)))
    assert other.proposals(reading) == ("Edit(//more/c/**)",)
    inside = RememberedRules(str(place / "data"), "/ws", "/home/u", (str(place),))
    with pytest.raises(SettingsError, match="BRADAWL_HOME"):
        inside.add([RULE])
