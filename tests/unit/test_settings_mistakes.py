"""Mistakes in settings files: all are told, each with file, line, a suggestion, and a mark below the place."""

import io
import json
import os

import pytest
from settings_files import needs_root

from bradawl.app.cli import run
from bradawl.app.console import Console
from bradawl.app.settings.load import load_settings
from bradawl.app.settings.mistakes import FileMistakes
from bradawl.core.errors import SettingsError

SECRET = "sk-very-" + "secret0123456789abcdef"


@pytest.fixture
def load(tmp_path):
    """Loads settings; `user`, `project`, `json_of_project`, `pyproject` and `managed` are contents of files."""
    home, cwd, etc = tmp_path / "home", tmp_path / "project", tmp_path / "etc"
    (home / ".config" / "bradawl").mkdir(parents=True)
    (cwd / ".bradawl").mkdir(parents=True)
    etc.mkdir(mode=0o755)

    def load(user="", project="", json_of_project="", pyproject="", managed="", options=None):
        contents = {
            home / ".config" / "bradawl" / "config.toml": user,
            cwd / ".bradawl" / "config.toml": project,
            cwd / ".bradawl" / "settings.json": json_of_project,
            cwd / "pyproject.toml": pyproject,
            etc / "managed.toml": managed,
        }
        for path, text in contents.items():
            if text:
                path.write_text(text)
        given = {"model": "scripted/x", **(options or {})}
        return load_settings(given, {"HOME": str(home)}, str(cwd), etc / "managed.toml")

    return load


def report(load, width=80, **contents) -> str:
    with pytest.raises(FileMistakes) as caught:
        load(**contents)
    return caught.value.report(width)


def test_a_misspelt_key_is_told_with_its_line_a_suggestion_and_a_mark(load):
    text = "# my settings\n\nmax_stpes = 3\n"
    assert report(load, user=text) == (
        "~/.config/bradawl/config.toml:3: max_stpes is no setting; did you mean max_steps?\n"
        "  3 | max_stpes = 3\n"
        "    | ^^^^^^^^^"
    )


def test_all_mistakes_of_a_file_are_told_in_the_order_of_their_lines(load):
    text = """\
effort = "hihg"
max_stpes = 3
[permissions]
allow = ["Edit", "Bash(ls", 3]
[providers.x]
base_url = "nope"
headers = { A = 1, "B C" = "x" }
[models."openai/m"]
price = { input = -1, inptu = 2 }
[profiles.work]
max_steps = 0
"""
    lines = [line for line in report(load, user=text).splitlines() if not line.startswith(" ")]
    assert [line.partition("config.toml:")[2][:45] for line in lines] == [
        "1: effort must be one of none, minimal, low, ",
        "2: max_stpes is no setting; did you mean max_",
        "4: permissions.allow: a parenthesis is never ",
        "4: permissions.allow must be a list of rules,",
        "6: providers.x.base_url must be an http or ht",
        "7: providers.x.headers.A must be a text of pr",
        "7: providers.x.headers: 'B C' can't be the na",
        '9: models."openai/m".price.input must be a nu',
        '9: models."openai/m".price.inptu is no settin',
        "11: max_steps must be a whole number of at le",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("maxSteps = 3", "did you mean max_steps?"),
        ("allow = ['Edit']", "did you mean permissions.allow?"),
        ("[permissions]\nmodel = 'x'", "but model is one; write its line above the line [permissions]"),
        ("cwd = '/'", "cwd can't be set in this file; use the flag -C/--cd"),
        ("qqqq = 1", "`bradawl config show --all` lists all settings"),
        ("forbid_bypass = true", "forbid_bypass can't be set in this file."),
        ("[profiles.a]\nprofile = 'b'", "profile can't be set in a profile"),
        ("[profiles.'a b']\n", "the name of a profile has letters"),
        ("profiles = 3", "profiles must be a table"),
        ("model = 'openai/'", "model names no model"),
        ("proxy = 'socks5://x:1'", "proxy names a socks5 proxy"),
        ("network = ['https://x.example']", "it is a URL"),
        ("model = gpt-5", 'a text needs quotes: "gpt-5"'),
        ("model = 'x'\nmodel = 'y'", "this key or table is there twice"),
        ("model = 'x", "a quotation mark is missing at the end"),
        ("effort = 'low\nmax_steps = 3\n", "config.toml:1: this is not valid TOML"),
        ('effort = "low\nmax_steps = 3\n', "a quotation mark is missing at the end"),
        ("add_dirs = [\n'a',\n\n", "config.toml:1: this is not valid TOML: invalid value; its ] is missing"),
        ("yolo = True", "write true"),
        ("model = ", "the value is missing"),
        ("model 'x'", "a line is KEY = VALUE or a [table]"),
    ],
)
def test_a_message_says_what_to_do(load, text, said):
    assert said in report(load, user=text)


def test_a_line_is_shown_only_as_far_as_it_is_no_secret(load):
    text = f"""\
api_key = "{SECRET}"
max_steps = "{SECRET}"
proxy = "ftp://me:{SECRET}@h"
[providers.x]
headers = {{ Authorization = "{SECRET}" }}
"""
    for width in (20, 40, 200):
        excerpts = [line for line in report(load, width, user=text).splitlines() if line.startswith(" ")]
        assert len(excerpts) > 4
        assert not [line for line in excerpts if SECRET in line or "very" in line]


@pytest.mark.parametrize("width", [40, 60, 200])
def test_an_excerpt_is_not_wider_than_the_terminal_and_marks_the_right_place(load, width):
    text = "kept_variables = ['" + "', '".join(f"NAME_{number}" for number in range(40)) + "', 'A B', 'C']"
    message, excerpt, marks = report(load, width, user=text).splitlines()
    assert "can't be the name" in message
    assert max(len(excerpt), len(marks)) <= width
    start = marks.index("^")
    assert excerpt[start : start + 5] == "'A B'"


def test_wide_characters_before_the_mistake_move_the_mark_by_two_cells(load):
    _, excerpt, marks = report(load, user='add_dirs = ["日本", 3]').splitlines()
    assert (excerpt, marks.index("^")) == ('  1 | add_dirs = ["日本", 3]', len('  1 | add_dirs = ["xxxx", '))


def test_escape_sequences_of_a_file_are_spelled_out(load):
    shown = report(load, user="# x\n'a\u202eb' = 3")
    assert "\u202e" not in shown and "\\u202e" in shown


def test_many_mistakes_are_counted(load):
    shown = report(load, user="".join(f"qqqq{number} = 1\n" for number in range(30)))
    assert shown.endswith("There are 10 more mistakes.")


# ------------------------------------------------------------------ the other files


def test_the_mistakes_of_the_users_file_and_of_the_flag_settings_are_told_together(load):
    shown = report(load, user="efort = 'low'", options={"settings": '{"max_steps": "x", "a": 1}'})
    assert "config.toml:1: efort is no setting; did you mean effort?" in shown
    assert "--settings:1: max_steps must be a whole number" in shown
    assert "--settings:1: a is no setting" in shown


def test_json_that_is_not_valid_is_marked(load):
    shown = report(load, options={"settings": '{"max_steps": 3,}'})
    assert shown.splitlines()[1:] == ['  1 | {"max_steps": 3,}', "    |                 ^"]


@needs_root
def test_the_administrators_file_is_told_like_the_users(load):
    shown = report(load, managed='forbid_bypass = true\nsandboxx = "auto"\nsandbox = "never"\n')
    assert "managed.toml:2: sandboxx is no setting; did you mean sandbox?\n  2 | sandboxx" in shown
    assert "managed.toml:3: sandbox must be one of required, auto, off, not 'never'.\n  3 | sandbox" in shown


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        ({"project": "\nmax_stpes = 3"}, "config.toml:2: `max_stpes` is ignored: "),
        ({"project": "\nmax_stpes = 3"}, "did you mean max_steps?"),
        ({"project": "max_steps = 'x'"}, "config.toml:1: `max_steps` is ignored: it must be a whole number"),
        (
            {"json_of_project": '{\n "permissions": {\n "denny": []}}'},
            "settings.json:3: `permissions.denny` is ignored",
        ),
        ({"json_of_project": '{\n "maxSteps": "x"}'}, "settings.json:2: `maxSteps` is ignored"),
        ({"json_of_project": '{\n "max_steps": 3,}'}, "settings.json:2: this is not valid JSON"),
        ({"pyproject": "[project]\n[tool.bradawl]\nmodel = 3"}, "pyproject.toml:3: `model` is ignored"),
        ({"project": "\n\nmodel = x"}, "config.toml:3: this is not valid TOML"),
    ],
)
def test_a_mistake_in_a_projects_file_is_a_warning_with_its_line(load, contents, said):
    (warning,) = load(**contents).warnings
    assert said in warning


# ------------------------------------------------------------------ what a user sees


def test_the_command_line_shows_lines_and_marks_and_json_one_line(tmp_path):
    path = tmp_path / ".config" / "bradawl" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text("max_stpes = 3\nefort = 'low'\n")
    environ = {"HOME": str(tmp_path), "PATH": os.defpath}
    out, err = io.StringIO(), io.StringIO()
    code = run(
        ["-p", "hi", "-C", str(tmp_path), "--output-format", "json"],
        environ,
        Console(io.StringIO(), out, err, environ),
    )
    assert (code, json.loads(out.getvalue())["exit_code"]) == (2, 2)
    assert json.loads(out.getvalue())["errors"][0].count("\n") == 0
    assert err.getvalue().splitlines() == [
        "bradawl: ~/.config/bradawl/config.toml:1: max_stpes is no setting; did you mean max_steps?",
        "  1 | max_stpes = 3",
        "    | ^^^^^^^^^",
        "~/.config/bradawl/config.toml:2: efort is no setting; did you mean effort?",
        "  2 | efort = 'low'",
        "    | ^^^^^",
    ]


def test_a_file_that_others_can_write_counts_as_far_as_a_project_may(load, tmp_path):
    load(user="max_steps = 3\n")
    path = tmp_path / "home" / ".config" / "bradawl" / "config.toml"
    path.write_text("max_steps = 3\nbase_url = 'http://evil.example'\n[permissions]\ndeny = ['Bash']\n")
    path.chmod(0o666)
    settings = load()
    assert (settings.max_steps, [rule.text for rule in settings.rules]) == (3, ["Bash"])
    assert "base_url" in settings.warnings[0]
    with pytest.raises(SettingsError, match="can be changed by others, so its profiles do not count"):
        load(options={"profile": "work"})
