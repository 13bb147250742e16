"""`bradawl config`: what is shown, and what happens to the files."""

import io
import json
import os
import stat
import subprocess
import sys
import tomllib

import pytest
from cli_world import Terminal
from config_world import ConfigWorld

from bradawl.app.cli import UsageError, parse, run
from bradawl.app.config.command import ConfigRun
from bradawl.app.config.editor import edit_file, editor_words
from bradawl.app.config.keys import key_path, key_text
from bradawl.app.config.target import Target
from bradawl.app.console import Console
from bradawl.app.settings.table import SETTINGS
from bradawl.app.text_layout import cells
from bradawl.core.errors import SettingsError


@pytest.fixture
def world(tmp_path):
    return ConfigWorld(tmp_path)


# ------------------------------------------------------------------ show and get


FILE = """\
model = "openai/m"
proxy = "http://me:hidden-word@proxy.example:3128"
[permissions]
allow = ["Edit"]
[providers.lab]
base_url = "http://127.0.0.1:9/v1"
api_key_command = "echo hidden-word"
headers = { X-Account = "hidden-word" }
[profiles.work]
effort = "high"
"""


def test_show_lists_what_is_not_at_its_default_with_its_source(world):
    world.write(FILE)
    world.write("max_steps = 7\n[permissions]\ndeny = ['Bash']\n", world.project / ".bradawl" / "config.toml")
    code, out, err = world.run("show", "--profile", "work", BRADAWL_KEEP_TOOL_RESULTS="4", COLUMNS="400")
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines()[2:]}
    project = str(world.project / ".bradawl" / "config.toml")
    assert (code, err) == (0, "")
    assert out.startswith("The profile work is in force.\n")
    assert rows == {
        "setting": "value from",
        "model": "openai/m ~/.config/bradawl/config.toml:1",
        "effort": "high profile work, ~/.config/bradawl/config.toml:10",
        "cwd": f"{world.project} flag -C/--cd",
        "profile": "work flag --profile",
        "max_steps": f"7 {project}:1",
        "keep_tool_results": "4 variable BRADAWL_KEEP_TOOL_RESULTS",
        "permissions.allow": "Edit ~/.config/bradawl/config.toml:4",
        "permissions.deny": f"Bash {project}:3",
        "proxy": "http://***@proxy.example:3128 ~/.config/bradawl/config.toml:2",
        "providers.lab.base_url": "http://127.0.0.1:9/v1 ~/.config/bradawl/config.toml:6",
        "providers.lab.api_key_command": "*** ~/.config/bradawl/config.toml:7",
        "providers.lab.headers": "*** ~/.config/bradawl/config.toml:8",
    }


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("is_all", [True, False])
def test_no_line_is_wider_than_the_terminal(world, width, is_all):
    world.write(FILE + 'append_system_prompt = "' + "wide 日本 words " * 30 + '"\n')
    world.write(FILE.replace("[profiles.work]", "[profiles.w]"))
    _, out, _ = world.run("show", *(["--all"] if is_all else []), COLUMNS=str(width))
    assert max(map(cells, out.splitlines())) <= width
    assert ("not set" in out) == is_all


def test_secrets_are_shown_nowhere(world):
    world.write(FILE)
    for words in (
        ["show"],
        ["show", "--json"],
        ["get", "proxy"],
        ["get", "providers"],
        ["get", "providers.lab.headers"],
    ):
        code, out, err = world.run(*words)
        assert code == 0 and "hidden-word" not in out + err, words
    _, out, _ = world.run("set", "providers.lab.headers.X-Other", "hidden-word")
    assert "hidden-word" not in out


def test_show_as_json(world):
    world.write(FILE)
    shown = json.loads(world.run("show", "--json", "--profile", "work")[1])
    assert shown["profile"] == "work"
    settings = {each["name"]: each for each in shown["settings"]}
    assert settings["permissions.allow"] == {
        "name": "permissions.allow",
        "value": ["Edit"],
        "kind": "user",
        "source": "~/.config/bradawl/config.toml:4",
    }
    assert settings["effort"]["kind"] == "profile"
    everything = json.loads(world.run("show", "--json", "--all")[1])["settings"]
    assert {"name": "undo", "value": True, "kind": "default", "source": "default"} in everything


def test_without_any_setting_show_says_so(world):
    out, err = io.StringIO(), io.StringIO()
    environ = world.environ
    assert run(["config", "show"], environ, Console(io.StringIO(), out, err, environ)) == 0
    assert out.getvalue().startswith("Every setting is at its default")


def test_a_projects_model_that_can_not_be_used_is_not_shown_as_the_model(world):
    world.write('model = "openai/mine"\n')
    world.write('model = "groq/theirs"\n', world.project / ".bradawl" / "config.toml")
    _, out, _ = world.run("show", OPENAI_API_KEY="k")
    assert "openai/mine" in out and "groq/theirs" not in out


def test_the_administrators_settings_are_shown(world, tmp_path):
    if os.geteuid():
        pytest.skip("managed settings count only if root owns them: needs root")
    managed = tmp_path / "etc" / "managed.toml"
    world.write('\nsandbox = "required"\n', managed)
    managed.parent.chmod(0o755)
    world.write('sandbox = "off"\n')
    out = io.StringIO()
    options = parse(["config", "show"])
    console = Console(io.StringIO(), out, io.StringIO(), world.environ)
    assert ConfigRun(options, world.environ, console, str(world.project), lambda _: None, managed).run() == 0
    shown = " ".join(out.getvalue().split())
    assert "required" in shown and f"{managed}:2, by the administrator" in shown
    assert "config.toml:1" not in shown


@pytest.mark.parametrize(
    ("key", "printed"),
    [
        ("model", "openai/m\n"),
        ("permissions.allow", "Edit\nRead\n"),
        ("providers.lab.base_url", "http://127.0.0.1:9/v1\n"),
        ("undo", "true\n"),
        ("compact_at", "50\n70\n90\n"),
    ],
)
def test_get_prints_the_value_alone(world, key, printed):
    world.write(FILE.replace('"Edit"', '"Edit", "Read"'))
    assert world.run("get", key) == (0, printed, "")


def test_get_of_what_is_not_set_has_an_exit_code_of_its_own(world):
    assert world.run("get", "max_steps") == (1, "", "bradawl: max_steps is not set.\n")
    code, out, err = world.run("get", "max_stpes")
    assert (code, out) == (2, "") and "max_stpes is no setting; did you mean max_steps?" in err


# ------------------------------------------------------------------ set and unset


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["max_steps", "5"], "max_steps = 5\n"),
        (["max-steps", "5"], "max_steps = 5\n"),
        (["undo", "off"], "undo = false\n"),
        (["model", "openai/m"], 'model = "openai/m"\n'),
        (["append_system_prompt", "3"], 'append_system_prompt = "3"\n'),
        (["permissions.deny", "Edit", "Bash(rm *)"], '[permissions]\ndeny = ["Edit", "Bash(rm *)"]\n'),
        (["permissions.deny", '["Edit", "Read"]'], '[permissions]\ndeny = ["Edit", "Read"]\n'),
        (["permissions.deny", "--add", "Edit"], '[permissions]\ndeny = ["Edit"]\n'),
        (["compact_at", "40,50,60"], 'compact_at = "40,50,60"\n'),
        (["models.openai/gpt-5.5.price.input", "0.5"], '[models."openai/gpt-5.5".price]\ninput = 0.5\n'),
        (["providers.lab.compat.stream_options", "no"], "[providers.lab.compat]\nstream_options = false\n"),
        (["effort", "high", "--profile", "work"], '[profiles.work]\neffort = "high"\n'),
        (["kept_variables", "--json", '["A", "B"]'], 'kept_variables = ["A", "B"]\n'),
    ],
)
def test_set_writes_a_value_of_the_right_type(world, words, text):
    code, out, err = world.run("set", *words)
    assert (code, world.file.read_text()) == (0, text), err
    assert out.startswith("~/.config/bradawl/config.toml:")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["max_steps", "0"], "max_steps must be a whole number of at least 1"),
        (["effort", "hihg"], "effort must be one of"),
        (["modle", "x"], "modle is no setting; did you mean model?"),
        (["model", "openai/"], "model names no model"),
        (["base_url", "nope"], "base_url must be an http or https URL"),
        (["permissions.allow", "Bash(ls"], "a parenthesis is never closed"),
        (["network", "https://x.example"], "it is a URL"),
        (["permissions", "x"], "permissions is a table; name a key in it"),
        (["providers.lab.bas_url", "x"], "did you mean providers.lab.base_url?"),
        (["providers.lab.headers.Authorization", "x"], "keys don't belong in this file"),
        (["profile", "nope"], "there is no profile 'nope'"),
        (["api_key", "x"], "keys don't belong in this file"),
        (["cwd", "/"], "cwd can't be set in a settings file; use the flag -C/--cd"),
        (["ca_file", "/no/such.pem"], "there is no file /no/such.pem"),
        (["add_dirs", "/no/such"], "there is no folder /no/such"),
        (["model", "a", "b"], "model has one value, not 2"),
        (["max_steps", "--add", "5"], "max_steps is no list"),
        (["permissions.allow", "--remove", "Edit"], "does not have Edit; nothing is in it"),
        (["max_steps", "--json", "{"], "is not valid JSON"),
        (["yolo", "true", "--project"], "A project's file may not set yolo; it may set add_dirs"),
    ],
)
def test_a_value_that_would_not_load_is_refused_and_nothing_changes(world, words, said):
    world.write("# mine\n")
    code, out, err = world.run("set", *words)
    assert (code, out) == (2, "") and said in err
    assert world.file.read_text() == "# mine\n"
    assert not (world.project / ".bradawl" / "config.toml").exists()


def test_old_mistakes_do_not_stop_a_change_and_can_be_removed(world):
    world.write("max_stpes = 3\nmodel = 'x'\n")
    code, _, err = world.run("set", "model", "openai/y")
    assert code == 0 and "max_stpes is no setting" in err
    assert world.run("unset", "max_stpes")[0] == 0
    assert world.file.read_text() == 'model = "openai/y"\n'


def test_a_file_that_is_not_toml_is_told_and_stays(world):
    world.write("model = x\n")
    code, _, err = world.run("set", "model", "y")
    assert code == 2 and "  1 | model = x\n    |         ^" in err
    assert world.file.read_text() == "model = x\n"


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_the_permissions_of_a_file_stay_and_a_new_one_is_private(world, mode):
    world.run("set", "max_steps", "1")
    assert stat.S_IMODE(world.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(world.file.parent.stat().st_mode) == 0o700
    world.file.chmod(mode)
    world.run("set", "max_steps", "2")
    assert stat.S_IMODE(world.file.stat().st_mode) == mode
    assert list(world.file.parent.iterdir()) == [world.file], "no temporary file is left"


def test_a_link_to_a_file_elsewhere_stays_a_link(world, tmp_path):
    own = tmp_path / "dotfiles.toml"
    world.write("a = 1\n", own)
    world.file.parent.mkdir(parents=True)
    world.file.symlink_to(own)
    own.write_text("max_steps = 1\n")
    assert world.run("set", "max_steps", "2")[0] == 0
    assert world.file.is_symlink() and own.read_text() == "max_steps = 2\n"


def test_line_ends_and_comments_stay(world):
    world.write("")
    world.file.write_bytes(b"# mine\r\nmax_steps = 1 # few\r\n")
    world.run("set", "max_steps", "2")
    world.run("set", "effort", "low")
    assert world.file.read_bytes() == b'# mine\r\nmax_steps = 2 # few\r\neffort = "low"\r\n'


def test_changes_at_the_same_time_are_all_kept(world):
    names = [f"models.openai/m{number}.context_window" for number in range(6)]
    program = "import sys; from bradawl.app.cli import main; sys.exit(main())"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, "config", "set", name, "7"], env=world.environ, cwd=world.project
        )
        for name in names
    ]
    assert [each.wait(60) for each in running] == [0] * len(names)
    assert len(tomllib.loads(world.file.read_text())["models"]) == len(names)


def test_set_says_where_a_stronger_source_wins(world):
    _, _, err = world.run("set", "max_steps", "2", BRADAWL_MAX_STEPS="9")
    assert "variable BRADAWL_MAX_STEPS sets max_steps too, and wins" in err
    world.write("max_steps = 7\n", world.project / ".bradawl" / "config.toml")
    _, _, err = world.run("set", "max_steps", "3")
    assert f"{world.project}/.bradawl/config.toml:1 sets max_steps too, and wins" in err
    assert world.run("set", "max_steps", "4", "--project")[2] == ""
    assert "takes effect with --profile work" in world.run("set", "max_steps", "5", "--profile", "work")[2]
    _, out, err = world.run("unset", "max_steps")
    assert "max_steps is removed" in out and f"max_steps is still set by {world.project}" in err


def test_set_in_a_project_says_when_trust_is_needed(world):
    path = world.project / ".bradawl" / "config.toml"
    code, _, err = world.run("set", "permissions.allow", "--add", "Edit", "--project")
    assert (code, path.read_text()) == (0, '[permissions]\nallow = ["Edit"]\n')
    assert "takes effect once you trust the folder" in err
    assert world.run("set", "max_steps", "3", "--local")[0] == 0
    assert (world.project / ".bradawl" / "config.local.toml").read_text() == "max_steps = 3\n"


def test_a_projects_file_that_leads_out_of_the_project_is_not_written(world, tmp_path):
    (world.project / ".bradawl").mkdir()
    (tmp_path / "far.toml").write_text("")
    (world.project / ".bradawl" / "config.toml").symlink_to(tmp_path / "far.toml")
    code, _, err = world.run("set", "max_steps", "3", "--project")
    assert code == 2 and "a link that leads out of the project" in err


def test_unset_of_what_is_not_set_is_an_error(world):
    code, _, err = world.run("unset", "max_steps")
    assert code == 2 and "~/.config/bradawl/config.toml does not set max_steps." in err


@pytest.mark.parametrize(
    ("typed", "path"),
    [
        ("max_steps", ("max_steps",)),
        ("permissions.allow", ("permissions", "allow")),
        ('models."a/b.c".effort', ("models", "a/b.c", "effort")),
        ("models.a/b.c.effort", ("models", "a/b.c", "effort")),
        ("models.a/b.c", ("models", "a/b.c")),
        ("profiles.w.models.a/b.c.price.input", ("profiles", "w", "models", "a/b.c", "price", "input")),
    ],
)
def test_a_key_is_typed_as_in_the_file(typed, path):
    assert key_path(typed) == path
    assert key_path(key_text(path)) == path


@pytest.mark.parametrize("typed", ["", " ", "a b", "a = 3", "a..b", "a\nb = 3", "[a]", '"a'])
def test_what_is_no_key_is_an_error(typed):
    with pytest.raises(SettingsError, match="is no key; write it as in config"):
        key_path(typed)


# ------------------------------------------------------------------ edit, path, schema


def editing(world, contents, answers="", is_terminal=True, name="config.toml"):
    """Runs `edit` with an editor that writes one content after the other."""
    path = world.file.parent / name
    stdin, out, err = (Terminal if is_terminal else io.StringIO)(answers), io.StringIO(), io.StringIO()
    waiting = list(contents)

    def editor(words):
        assert words == ["my", "editor", str(path)]
        text = waiting.pop(0)
        if text is not None:
            path.write_text(text)
        return 0

    environ = {**world.environ, "EDITOR": "my editor"}
    console = Console(stdin, out, err, environ)
    code = edit_file(Target(path, "config.toml", "user"), SETTINGS, environ, console, 80, editor)
    assert not waiting
    return code, err.getvalue()


def test_edit_checks_the_file_and_offers_to_edit_again(world):
    code, err = editing(world, ["max_stpes = 3\n", "max_steps = 3\n"], "\n")
    assert code == 0
    assert err.splitlines() == [
        "config.toml:1: max_stpes is no setting; did you mean max_steps?",
        "  1 | max_stpes = 3",
        "    | ^^^^^^^^^",
        "Edit again? [Y/n]",
        "config.toml has no mistakes.",
    ]


@pytest.mark.parametrize(("answers", "is_terminal"), [("n\n", True), ("", True), ("y\n", False)])
def test_edit_ends_with_an_error_if_the_mistakes_stay(world, answers, is_terminal):
    code, err = editing(world, ["model = x\n"], answers, is_terminal)
    assert code == 2 and "this is not valid TOML" in err
    assert ("Edit again?" in err) == is_terminal


def test_edit_begins_a_new_file_with_a_comment_and_removes_it_untouched(world):
    assert editing(world, [None])[0] == 0
    assert not world.file.exists()
    assert editing(world, ["max_steps = 3\n"])[0] == 0
    assert stat.S_IMODE(world.file.stat().st_mode) == 0o600


def test_the_editor_comes_from_the_environment(tmp_path):
    assert editor_words({"VISUAL": "code --wait", "EDITOR": "vi"}) == ["code", "--wait"]
    assert editor_words({"EDITOR": "'my ed' -x"}) == ["my ed", "-x"]
    with pytest.raises(SettingsError, match="set the variable EDITOR"):
        editor_words({"PATH": str(tmp_path)})
    with pytest.raises(SettingsError, match=r"\$EDITOR can't be used"):
        editor_words({"EDITOR": "'x"})


@pytest.mark.parametrize(("editor", "said"), [("false", "ended with exit code 1"), ("/no/editor", "can't be started")])
def test_an_editor_that_fails_is_an_error(world, editor, said):
    code, _, err = world.run("edit", EDITOR=editor)
    assert code == 2 and said in err


def test_edit_of_a_projects_file_tells_what_would_be_ignored(world):
    path = world.project / ".bradawl" / "config.toml"
    world.write("max_steps = 3\nyolo = true\n[permissions]\nallow = ['Edit']\n", path)
    code, _, err = world.run("edit", "--project", EDITOR="true")
    assert code == 2 and ":2: yolo: no file of a project may set" in err and "  2 | yolo = true" in err
    assert "permissions" not in err


def test_path_prints_paths(world):
    assert world.run("path") == (0, f"{world.file}\n", "")
    assert world.run("path", "--project")[1] == f"{world.project}/.bradawl/config.toml\n"


@pytest.mark.parametrize(
    ("flags", "title"), [([], "config.toml"), (["--project"], "project's"), (["--managed"], "managed")]
)
def test_schema_prints_the_schema(tmp_path, flags, title):
    out = io.StringIO()
    assert (
        run(["config", "schema", *flags], {"HOME": str(tmp_path)}, Console(io.StringIO(), out, io.StringIO(), {})) == 0
    )
    assert title in json.loads(out.getvalue())["title"]


# ------------------------------------------------------------------ the command line


def test_a_sentence_is_a_prompt_and_a_mistyped_action_an_error():
    assert parse(["config", "files", "are", "broken"])["prompt"] == "config files are broken"
    with pytest.raises(UsageError, match=r"not 'shwo' \(did you mean show\?\)"):
        parse(["config", "shwo"])
    with pytest.raises(UsageError, match="takes a VALUE"):
        parse(["config", "set", "model"])


@pytest.mark.parametrize("words", [[], ["--help"], *([action, "--help"] for action in ("show", "get", "set", "edit"))])
def test_help_fits_into_80_columns(words):
    text = str(parse(["config", *words])["help_text"])
    assert max(map(len, text.splitlines())) <= 80
