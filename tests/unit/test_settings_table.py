"""The table of settings: a new plain setting is one row."""

import re
from pathlib import Path

import msgspec
import pytest
from settings_files import needs_root

from bradawl.app.cli import UsageError, main_parser, parse
from bradawl.app.settings.load import load_settings
from bradawl.app.settings.readme_table import readme_table
from bradawl.app.settings.settings import Settings
from bradawl.app.settings.table import ROWS, SETTINGS, Setting
from bradawl.app.settings.table_check import INTERNAL_FIELDS, table_problems
from bradawl.app.settings.values import COUNT, SWITCH, TEXT, count_up_to, one_of
from bradawl.core.errors import SettingsError
from bradawl.safety.trust.settings_review import findings

ROW = Setting(
    "colour",
    one_of("red", "green"),
    "the colour of the answer",
    flags=("--colour",),
    metavar="NAME",
    default="red",
    is_in_managed_file=True,
    project_may_set="yes",
)
TABLE = SETTINGS.with_rows(ROW)


@pytest.fixture
def load(tmp_path):
    """Loads settings by the table with the new row; `user`, `project` and `managed` are contents of files."""
    home, cwd, etc = tmp_path / "home", tmp_path / "project", tmp_path / "etc"
    (home / ".config" / "bradawl").mkdir(parents=True)
    (cwd / ".bradawl").mkdir(parents=True)
    etc.mkdir(mode=0o755)

    def load(options=None, user="", project="", managed="", *, table=TABLE, **environ) -> Settings:
        (home / ".config" / "bradawl" / "config.toml").write_text(user)
        (cwd / ".bradawl" / "config.toml").write_text(project)
        (etc / "managed.toml").write_text(managed)
        environ = {"HOME": str(home), "OPENAI_API_KEY": "k", "BRADAWL_MODEL": "openai/m", **environ}
        return load_settings(options or {}, environ, str(cwd), etc / "managed.toml", table)

    return load


def test_a_row_is_a_flag_of_the_command_line(load):
    assert parse(["--colour", "green"], TABLE)["colour"] == "green"
    assert parse([], TABLE)["colour"] is None
    with pytest.raises(UsageError):
        parse(["--colour", "green"])
    assert load({"colour": "green"}).values["colour"] == "green"


def test_a_row_is_an_environment_variable(load):
    settings = load(BRADAWL_COLOUR="green")
    assert (settings.values["colour"], settings.warnings) == ("green", ())
    settings = load(BRADAWL_COLOUR="green", table=SETTINGS)
    assert "colour" not in settings.values
    assert "BRADAWL_COLOUR is not a setting" in settings.warnings[0]


def test_a_row_is_a_key_of_the_users_file(load):
    assert load(user="colour = 'green'").values["colour"] == "green"
    with pytest.raises(SettingsError, match="colour is no setting"):
        load(user="colour = 'green'", table=SETTINGS)


def test_a_row_has_a_default_and_the_strongest_source_wins(load):
    assert load().values["colour"] == "red"
    assert load({"colour": "red"}, "colour = 'green'", BRADAWL_COLOUR="green").values["colour"] == "red"


@pytest.mark.parametrize(
    ("options", "environ", "user", "place"),
    [
        ({"colour": "blue"}, {}, "", "--colour"),
        ({}, {"BRADAWL_COLOUR": "blue"}, "", "BRADAWL_COLOUR"),
        ({}, {}, "colour = 'blue'", r"config\.toml:1: colour"),
    ],
)
def test_a_wrong_value_is_an_error_that_names_its_place(load, options, environ, user, place):
    with pytest.raises(SettingsError, match=f"{place} must be one of red, green, not 'blue'"):
        load(options, user, **environ)


def test_a_row_says_whether_a_projects_file_may_set_it(load):
    assert load(project="colour = 'green'").values["colour"] == "green"
    wrong = load(project="colour = 'blue'")
    assert wrong.values["colour"] == "red"
    assert "`colour` is ignored: it must be one of red, green." in wrong.warnings[0]
    forbidden = load(project="colour = 'green'", table=SETTINGS.with_rows(ROW._replace(project_may_set="no")))
    assert forbidden.values["colour"] == "red"
    assert "`colour` is ignored: it is not a setting that a project's file may have" in forbidden.warnings[0]


def test_a_row_may_be_limited_to_trusted_projects(load):
    table = SETTINGS.with_rows(ROW._replace(project_may_set="if trusted"))
    untrusted = load(project="colour = 'green'", table=table)
    assert (untrusted.values["colour"], len(untrusted.warnings)) == ("red", 1)
    assert load({"trust": True}, project="colour = 'green'", table=table).values["colour"] == "green"


@needs_root
def test_a_row_says_whether_the_managed_file_may_fix_it(load):
    assert load(managed="colour = 'green'").values["colour"] == "green"
    ignored = load(user="colour = 'red'", managed="colour = 'green'")
    assert ignored.values["colour"] == "green"
    assert "colour is ignored" in ignored.warnings[0]
    with pytest.raises(SettingsError, match="--colour can't be used here"):
        load({"colour": "red"}, managed="colour = 'green'")
    with pytest.raises(SettingsError, match="colour can't be set in this file"):
        load(managed="colour = 'green'", table=SETTINGS.with_rows(ROW._replace(is_in_managed_file=False)))


def test_a_row_only_for_the_managed_file_is_no_option_of_a_run(load):
    with pytest.raises(SettingsError, match="`forbid_bypass` is not a setting"):
        load({"forbid_bypass": True})


def test_a_row_is_in_the_help_and_in_the_readme():
    assert "--colour NAME         the colour of the answer" in main_parser(TABLE).format_help()
    assert "| `--colour` `NAME` | `BRADAWL_COLOUR` | `colour` | yes | the colour of the answer |\n" in readme_table(
        TABLE
    )
    assert "--colour" not in main_parser().format_help()
    assert "--colour" not in readme_table(SETTINGS)


def test_a_switch_that_is_on_by_default_has_a_flag_that_turns_it_off():
    on, off = (
        Setting("on", SWITCH, "on", flags=("--not-on",), default=True, flag_help="off"),
        Setting("off", SWITCH, "off", flags=("--off",)),
    )
    options = parse(["--not-on", "--off"], SETTINGS.with_rows(on, off))
    assert (options["on"], options["off"]) == (False, True)


@pytest.mark.parametrize(
    ("kind", "value", "is_allowed"),
    [
        (COUNT, 3, True),
        (COUNT, "3", False),
        (COUNT, True, False),
        (SWITCH, True, True),
        (SWITCH, "yes", False),
        (TEXT, "x", True),
        (TEXT, 3, False),
        (TEXT, "\x07", False),
        (TEXT, ["x"], False),
    ],
)
def test_a_projects_value_has_the_type_of_its_setting(kind, value, is_allowed):
    allowed = SETTINGS.with_rows(Setting("new", kind, "new", project_may_set="yes")).project_settings
    [found] = findings({"new": value}, allowed)
    assert found.verdict == ("allow" if is_allowed else "error")


def test_a_field_of_the_settings_has_the_default_of_its_row():
    fields = {field.name: field.default for field in msgspec.structs.fields(Settings)}
    plain = {row.name: row.default for row in SETTINGS.rows.values() if row.is_plain and row.name in fields}
    assert plain == {name: fields[name] for name in plain}, "give the field of `Settings` the default of the row"


def test_the_rows_have_no_mistakes():
    assert table_problems((*ROWS, ROW)) == (), "mend these rows in app/settings/table.py"


def test_each_field_of_the_settings_is_a_row_or_internal():
    fields = {field.name for field in msgspec.structs.fields(Settings)}
    unknown = fields - {row.name for row in ROWS} - INTERNAL_FIELDS
    assert not unknown, f"add rows for these fields, or their names to INTERNAL_FIELDS in table_check.py: {unknown}"
    assert fields > INTERNAL_FIELDS


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"flags": ("--model",)}, "the flag --model is given twice; choose another one"),
        ({"flags": ("--colour", "-p")}, "the flag -p is given twice"),
        ({"name": "max_steps"}, "the name max_steps is given twice"),
        ({"flags": ("-X",)}, "colour: it has only short flags; add a long one"),
        ({"flags": "--x"}, "colour: flags is '--x'; it is a tuple: ('--x',)"),
        ({"flags": ("colour", "--colour")}, "the flag 'colour' is neither like -x nor like --long-name"),
        ({"name": "home"}, "home: bradawl uses this name for something else"),
        ({"name": "environment"}, "environment: bradawl uses this name for something else"),
        ({"name": "prompt"}, "prompt: bradawl uses this name for something else"),
        ({"name": "My Colour"}, "My Colour: a name has a-z, 0-9 and _"),
        ({"name": "table.colour"}, "table.colour: the key of a table has no variable"),
        ({"project_may_set": "trusted"}, """project_may_set is 'trusted'; it is "no", "yes" or "if trusted\""""),
        ({"default": "blue"}, "colour: its default must be one of red, green, not 'blue'"),
        ({"default": 3}, "colour: its default must be a text, not 3"),
        ({"kind": COUNT, "default": "3"}, "colour: its default must be 3"),
        ({"kind": COUNT, "default": 0}, "colour: its default must be a whole number of at least 1, not 0"),
        ({"kind": SWITCH, "default": "yes", "metavar": ""}, "colour: its default must be True"),
        ({"kind": SWITCH, "default": False}, "a flag with a value has a metavar, and a switch has none"),
        ({"metavar": ""}, "a flag with a value has a metavar"),
        ({"help": ""}, "colour: it has no help"),
        ({"help": "The colour."}, "colour: its help is no sentence"),
        ({"help": "x" * 181}, "colour: its help has more than 180 characters"),
        (
            {"kind": SWITCH, "default": True, "metavar": ""},
            "colour: its flag switches it off, and flag_help does not say that",
        ),
        ({"kind": "text"}, "colour: its kind is 'text'; use a ValueKind"),
    ],
)
def test_a_wrong_row_is_reported_with_what_to_do(changes, said):
    problems = table_problems([*ROWS, ROW._replace(**changes)])
    assert said in "; ".join(problems)


def test_a_variable_can_not_have_two_meanings():
    (problem,) = table_problems([ROW._replace(name="call", flags=())])
    assert problem == "the variable BRADAWL_CALL is given twice; choose another one"


def test_a_number_may_have_an_upper_limit(load):
    table = SETTINGS.with_rows(Setting("width", count_up_to(80), "columns", flags=("--width",), metavar="N"))
    assert load(table=table, BRADAWL_WIDTH="80").values["width"] == 80
    with pytest.raises(SettingsError, match="BRADAWL_WIDTH must be a whole number from 1 to 80, not 81"):
        load(table=table, BRADAWL_WIDTH="81")


def test_a_flag_that_is_misspelt_is_answered_with_the_nearest_one():
    with pytest.raises(UsageError, match=r"--colou=green \(did you mean --colour\?\); see `bradawl --help`"):
        parse(["--colou=green"], TABLE)
    with pytest.raises(UsageError, match=r"unrecognized arguments: --nonsense; see"):
        parse(["--nonsense"], TABLE)


def test_the_page_on_trust_names_every_setting_that_a_project_may_set():
    page = (Path(__file__).parents[2] / "docs" / "trust.md").read_text()
    allowed = SETTINGS.project_settings
    rows = {line.split("|")[1]: line.split("|")[2:4] for line in page.splitlines() if line.startswith("| `")}
    named = {name: states for cell, states in rows.items() for name in re.findall(r"`([a-z_.]+)`", cell)}
    states = {name: re.findall(r"^ (\w+)", "\n".join(texts), re.MULTILINE) for name, texts in named.items()}
    for name in {*allowed.untrusted, *allowed.trusted} - {"allowed_tools", "permissions.add_dirs"}:
        expected = ["counts" if name in allowed.untrusted else "ignored", "counts"]
        row = f"| `{name}` | {' | '.join(expected)} |"
        assert states.get(name) == expected, f"docs/trust.md needs a row that begins `{row}`: projects may set {name}"
