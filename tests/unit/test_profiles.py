"""Profiles: tables of the user's file that one name switches on, and `--settings`."""

import json

import pytest
from settings_files import settings_loader

from bradawl.core.errors import SettingsError

FILE = """\
model = "openai/usual"
max_steps = 10
effort = "low"
[permissions]
allow = ["Read"]
[providers.openai]
base_url = "https://usual.example/v1"
[profiles.work]
model = "lab/worker"
max_steps = 20
[profiles.work.permissions]
allow = ["Edit"]
[profiles.work.providers.lab]
base_url = "http://127.0.0.1:9/v1"
[profiles.work.providers.openai]
api_key_env = "OTHER_KEY"
[profiles.home]
effort = "high"
"""


@pytest.fixture
def load(tmp_path):
    return settings_loader(tmp_path)


def test_without_a_profile_its_settings_have_no_effect(load):
    settings = load({}, FILE)
    assert (settings.model.name, settings.max_steps, settings.effort) == ("usual", 10, "low")


@pytest.mark.parametrize("how", ["flag", "variable", "file"])
def test_a_profile_is_chosen_by_a_flag_a_variable_or_the_file(load, how):
    options = {"profile": "work"} if how == "flag" else {}
    environ = {"BRADAWL_PROFILE": "work"} if how == "variable" else {}
    settings = load(options, 'profile = "work"\n' + FILE if how == "file" else FILE, **environ)
    assert (settings.model.provider, settings.model.name, settings.max_steps) == ("lab", "worker", 20)
    assert settings.effort == "low", "what the profile does not say is as in the rest of the file"
    assert [rule.text for rule in settings.rules] == ["Edit", "Read"], "lists of both count"


def test_the_strongest_choice_of_a_profile_counts(load):
    text = 'profile = "home"\n' + FILE
    assert load({}, text).effort == "high"
    assert load({}, text, BRADAWL_PROFILE="work").effort == "low"
    assert load({"profile": "home"}, text, BRADAWL_PROFILE="work").effort == "high"


def test_a_profile_is_weaker_than_flags_and_variables_and_stronger_than_files(load):
    project = "max_steps = 15\n"
    options = {"profile": "work"}
    assert load({}, FILE, project).max_steps == 15
    assert load(options, FILE, project).max_steps == 20
    assert load(options, FILE, project, BRADAWL_MAX_STEPS="30").max_steps == 30
    assert load({**options, "max_steps": 40}, FILE, project, BRADAWL_MAX_STEPS="30").max_steps == 40


def test_a_profile_changes_single_keys_of_a_provider(load):
    settings = load({"profile": "work", "model": "openai/m"}, FILE, OTHER_KEY="mine")
    assert (settings.model.base_url, settings.model.api_key) == ("https://usual.example/v1", "mine")


def test_an_unknown_profile_is_an_error_that_lists_those_there_are(load):
    with pytest.raises(
        SettingsError, match=r"--profile: there is no profile 'wrk'; there are: work, home\. Did you mean work\?"
    ):
        load({"profile": "wrk"}, FILE)
    with pytest.raises(SettingsError, match=r"BRADAWL_PROFILE: .*defines none. A profile is a table \[profiles\.x\]"):
        load({}, "", BRADAWL_PROFILE="x")
    with pytest.raises(SettingsError, match=r"config\.toml:1: profile: there is no profile 'x'; there are: work, home"):
        load({}, "profile = 'x'\n" + FILE)


def test_a_place_in_a_profile_has_its_line(load):
    (rule, _) = load({"profile": "work"}, FILE).rules
    assert rule.source == "~/.config/bradawl/config.toml:12: permissions.allow"


@pytest.mark.parametrize("project", ["profile = 'work'\n", "[profiles.work]\nmax_steps = 99\n"])
def test_a_project_can_neither_choose_nor_define_a_profile(load, project):
    settings = load({}, FILE, project)
    assert settings.max_steps == 10
    assert "`profile" in settings.warnings[0] and "is ignored" in settings.warnings[0]
    assert load({"profile": "work"}, FILE, project).max_steps == 20


# ------------------------------------------------------------------ --settings


@pytest.mark.parametrize("kind", ["json text", "json file", "toml file"])
def test_settings_of_a_flag_are_as_strong_as_a_flag(load, tmp_path, kind):
    values = {"max_steps": 7, "permissions": {"deny": ["Bash"]}}
    given = json.dumps(values)
    if kind == "json file":
        (tmp_path / "project" / "my.json").write_text(given)
        given = "my.json"
    elif kind == "toml file":
        given = str(tmp_path / "my.toml")
        (tmp_path / "my.toml").write_text("max_steps = 7\n[permissions]\ndeny = ['Bash']\n")
    settings = load({"settings": given}, FILE, "max_steps = 15\n", BRADAWL_MAX_STEPS="30")
    assert settings.max_steps == 7
    assert [rule.text for rule in settings.rules] == ["Bash", "Read"]
    assert load({"settings": given, "max_steps": 3}, FILE).max_steps == 3


def test_settings_of_a_flag_may_hold_providers_and_choose_and_define_profiles(load):
    given = json.dumps(
        {
            "profile": "trip",
            "profiles": {"trip": {"model": "lab/m"}},
            "providers": {"lab": {"base_url": "http://127.0.0.1:9/v1"}},
        }
    )
    assert load({"settings": given}, FILE).model.base_url == "http://127.0.0.1:9/v1"


def test_paths_in_a_settings_file_of_a_flag_start_at_its_folder(load, tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "rules.md").write_text("Be brief.")
    (tmp_path / "far" / "my.toml").write_text("append_system_prompt_file = 'rules.md'")
    assert (
        load({"settings": str(tmp_path / "far" / "my.toml"), "model": "openai/m"}).append_system_prompt == "Be brief."
    )


def test_a_settings_file_of_a_flag_that_is_not_there_is_an_error(load):
    with pytest.raises(SettingsError, match=r"--settings names a file that is not there: no\.toml"):
        load({"settings": "no.toml"})
