"""Settings of mode, sandbox, rules and folders: the precedence of their sources, and the managed settings of root."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from settings_files import needs_root

from bradawl.app.launch import _message_and_exit_code
from bradawl.app.settings.load import load_settings
from bradawl.app.settings.settings import NoSandbox, Settings
from bradawl.app.settings.values import split_rules
from bradawl.core.errors import SettingsError

KEY = {"OPENAI_API_KEY": "k", "BRADAWL_MODEL": "openai/m"}


@pytest.fixture
def managed(tmp_path: Path) -> Path:
    (tmp_path / "etc").mkdir(mode=0o755)
    return tmp_path / "etc" / "managed.toml"


@pytest.fixture
def load(home, project, managed):
    """Loads the settings of a run in the project."""

    def load(options=None, **environ) -> Settings:
        return load_settings(options or {}, {"HOME": str(home), **KEY, **environ}, str(project), managed)

    return load


@pytest.fixture
def write_project(project):
    def write(text: str) -> None:
        (project / ".bradawl").mkdir()
        (project / ".bradawl" / "config.toml").write_text(text)

    return write


@pytest.fixture
def write_user(home):
    def write(text: str) -> Path:
        path = home / ".config" / "bradawl" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


# ------------------------------------------------------------------ mode and sandbox


@pytest.mark.parametrize(
    ("options", "environ", "user", "expected"),
    [
        ({}, {}, "", (None, "auto", False)),
        ({"permission_mode": "plan"}, {}, "", ("plan", "auto", False)),
        ({"permission_mode": "acceptEdits"}, {}, "", ("accept-edits", "auto", False)),
        ({"permission_mode": "bypassPermissions"}, {}, "", ("bypass", "auto", True)),
        ({}, {"BRADAWL_PERMISSION_MODE": "auto"}, "permission_mode = 'plan'", ("auto", "auto", False)),
        ({}, {}, "permission_mode = 'plan'\nsandbox = 'required'", ("plan", "required", False)),
        ({"yolo": True}, {}, "", ("bypass", "off", True)),
        ({"yolo": True, "sandbox": "auto"}, {}, "", ("bypass", "auto", True)),
        ({"yolo": True}, {"BRADAWL_SANDBOX": "required"}, "", ("bypass", "required", True)),
        ({"yolo": True, "permission_mode": "bypass"}, {}, "", ("bypass", "off", True)),
        ({"yolo": True}, {"BRADAWL_PERMISSION_MODE": "plan"}, "", ("bypass", "off", True)),
        ({"permission_mode": "plan"}, {"BRADAWL_YOLO": "1"}, "", ("plan", "auto", False)),
        ({}, {"BRADAWL_YOLO": "0"}, "yolo = true", (None, "auto", False)),
        ({}, {}, "yolo = true", ("bypass", "off", True)),
    ],
)
def test_the_strongest_source_chooses_mode_and_sandbox(load, write_user, options, environ, user, expected):
    write_user(user)
    settings = load(options, **environ)
    assert (settings.permission_mode, settings.sandbox, settings.yolo) == expected


@pytest.mark.parametrize(
    ("options", "environ", "user"),
    [
        ({"yolo": True, "permission_mode": "plan"}, {}, ""),
        ({}, {"BRADAWL_YOLO": "1", "BRADAWL_PERMISSION_MODE": "default"}, ""),
        ({}, {}, "yolo = true\npermission_mode = 'auto'"),
    ],
)
def test_one_source_can_not_set_yolo_and_another_mode(load, write_user, options, environ, user):
    write_user(user)
    with pytest.raises(SettingsError, match=r"means the mode bypass.*use one of them"):
        load(options, **environ)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"permission_mode": "yes"}, "--permission-mode must be one of default, accept-edits, plan, auto, bypass"),
        ({"permission_mode": ""}, "--permission-mode is empty"),
        ({"sandbox": "on"}, "--sandbox must be one of required, auto, off"),
        ({"add_dirs": ["/no/such/folder"]}, "--add-dir: /no/such/folder is not a folder"),
        ({"add_dirs": [""]}, "--add-dir is empty"),
        ({"add_dirs": ["a\0b"]}, "--add-dir"),
        ({"allowed_tools": ["Bash(git *"]}, "--allowed-tools: a parenthesis is never closed"),
        ({"allowed_tools": ["Bash)"]}, "--allowed-tools: a parenthesis"),
        ({"disallowed_tools": ['Bash(echo "x)']}, "--disallowed-tools: the quotation mark"),
    ],
)  # fmt: skip  one case on each line
def test_an_invalid_flag_is_named(load, options, message):
    with pytest.raises(SettingsError) as caught:
        load(options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("permissions = 3", "permissions must be a table"),
        ("[permissions]\nallowed = []", "permissions.allowed is no setting; did you mean permissions.allow"),
        ("[permissions]\nallow = 'a', 'b'", "not valid TOML"),
        ("[permissions]\ndeny = [1]", "permissions.deny must be a list of rules"),
        ("[permissions]\ndeny = 7", "permissions.deny must be a list of rules"),
        ("kept_variables = ['A B']", "can't be the name of an environment variable"),
        ("network_commands = 5", "network_commands must be a list"),
        (
            "allowed_tools = ['Bash']",
            "allowed_tools can't be set in this file; use the flag --allowed-tools, or permissions.allow",
        ),
    ],
)
def test_an_invalid_key_in_the_users_file_is_named(load, write_user, text, message):
    write_user(text)
    with pytest.raises(SettingsError, match=r"config\.toml") as caught:
        load()
    assert message in str(caught.value)


def test_a_missing_required_sandbox_has_its_own_exit_code():
    error = NoSandbox("no sandbox")
    assert _message_and_exit_code(error, error, {}) == ("no sandbox", 3)


# ------------------------------------------------------------------ rules


def test_rules_of_all_sources_are_combined_and_name_their_source(load, write_user, project):
    path = write_user(
        "network_commands = ['npm ci']\n[permissions]\nallow = ['Edit']\ndeny = ['Read(~/x)']\nask = ['Glob']\n"
    )
    settings = load(
        {"allowed_tools": ["Bash(git log, *) Edit", "Grep"], "disallowed_tools": ["WebFetch"]},
        BRADAWL_DISALLOWED_TOOLS="Bash(rm *),Write",
        BRADAWL_NETWORK_COMMANDS="pip install *, curl *",
    )
    cwd = str(project)
    assert [(rule.verdict, rule.text, rule.source, rule.folder) for rule in settings.rules] == [
        ("deny", "WebFetch", "--disallowed-tools", cwd),
        ("deny", "Bash(rm *)", "BRADAWL_DISALLOWED_TOOLS", cwd),
        ("deny", "Write", "BRADAWL_DISALLOWED_TOOLS", cwd),
        ("deny", "Read(~/x)", "~/.config/bradawl/config.toml:4: permissions.deny", str(path.parent)),
        ("ask", "Glob", "~/.config/bradawl/config.toml:5: permissions.ask", str(path.parent)),
        ("allow", "Bash(git log, *)", "--allowed-tools", cwd),
        ("allow", "Edit", "--allowed-tools", cwd),
        ("allow", "Grep", "--allowed-tools", cwd),
        ("allow", "Edit", "~/.config/bradawl/config.toml:3: permissions.allow", str(path.parent)),
        ("network", "pip install *", "BRADAWL_NETWORK_COMMANDS", cwd),
        ("network", "curl *", "BRADAWL_NETWORK_COMMANDS", cwd),
        ("network", "npm ci", "~/.config/bradawl/config.toml:1: network_commands", str(path.parent)),
    ]
    assert not any(rule.is_projects for rule in settings.rules)


def test_domains_of_flags_variables_and_the_users_file_are_combined(load, write_user):
    write_user("network = ['*.example.net', 'cargo']\n")
    settings = load({"network": ["example.org", "pip", "registry.corp:8443"]}, BRADAWL_NETWORK="npm, a.example")
    assert [(rule.verdict, rule.text, rule.source) for rule in settings.rules] == [
        ("domain", "example.org", "--network"),
        ("domain", "pip", "--network"),
        ("domain", "registry.corp:8443", "--network"),
        ("domain", "npm", "BRADAWL_NETWORK"),
        ("domain", "a.example", "BRADAWL_NETWORK"),
        ("domain", "*.example.net", "~/.config/bradawl/config.toml:1: network"),
        ("domain", "cargo", "~/.config/bradawl/config.toml:1: network"),
    ]


@pytest.mark.parametrize("text", ["https://x.org", "x.org/simple", "*", "10.0.0.1", "a b", "pipp"])
def test_an_invalid_domain_is_an_error_of_its_flag_and_its_file(load, write_user, text):
    with pytest.raises(SettingsError, match=r"^--network: "):
        load({"network": [text]})
    write_user(f"network = ['{text}']\n")
    with pytest.raises(SettingsError, match=r"config\.toml:1: network: "):
        load()


def test_domains_of_a_project_count_only_if_it_is_trusted(load, write_project):
    write_project("network = ['example.org', 'https://x.org']\n")
    untrusted, trusted = load(), load({"trust": True})
    assert untrusted.rules == () and any("network" in warning for warning in untrusted.warnings)
    assert [(rule.text, rule.is_projects) for rule in trusted.rules] == [("example.org", True), ("https://x.org", True)]
    assert any("URL" in warning and "ignored" in warning for warning in trusted.warnings)


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("", ()),
        (" , ,", ()),
        ("Edit", ("Edit",)),
        ("Edit Bash", ("Edit", "Bash")),
        ("Edit,Bash(a, b c),Read", ("Edit", "Bash(a, b c)", "Read")),
        ("Bash(f(x) y) Read", ("Bash(f(x) y)", "Read")),
        ("Bash(echo ')' x) Read", ("Bash(echo ')' x)", "Read")),
        ("mcp__a__b\tmcp__c", ("mcp__a__b", "mcp__c")),
    ],
)
def test_rules_are_split_outside_of_parentheses(text, rules):
    assert split_rules(text, "x") == rules


@given(st.lists(st.sampled_from(["Edit", "Bash(git log *)", "Read(./a, b)", "Bash(echo '(')", "mcp__x"]), max_size=6))
def test_joined_rules_are_split_into_the_same_rules(rules):
    assert split_rules(", ".join(rules), "x") == tuple(rules) == split_rules(rules, "x")


@pytest.mark.parametrize(
    ("deny", "texts", "refused"),
    [
        ("['Bash(curl']", ("Bash(curl",), "Bash"),
        ("['Read(a), Bash(curl x']", ("Read(a)", "Bash(curl x"), "Bash"),
        ("['Bash(a && b)']", ("Bash(a && b)",), "Bash"),
        ("['Bash(curl, Edit(y)']", ("(Bash(curl, Edit(y)",), "every tool"),
        ('["Bash(echo \'x)"]', ("Bash(echo 'x)",), "Bash"),
        ("['Edit(x))']", ("Edit(x",), "Edit"),
        ("[')']", (")",), "every tool"),
    ],
)
def test_an_invalid_rule_of_a_project_refuses_its_tool_with_a_warning(load, write_project, deny, texts, refused):
    write_project(f"[permissions]\ndeny = {deny}\n")
    settings = load()
    assert tuple(rule.text for rule in settings.rules) == texts
    (warning,) = settings.warnings
    assert "permissions.deny" in warning and f"Until then {refused} is refused." in warning


@pytest.mark.parametrize(
    ("deny", "refused"),
    [
        ('["Read(a\\u0007b)", "Read(keep/**)"]', "Read"),
        ('["Re\\u0007ad(x)"]', "every tool"),
        ('["Bash(a\\u0000b)"]', "Bash"),
        ('["Read(x)", 5]', "every tool"),
    ],
)
def test_a_projects_rule_with_a_control_character_or_of_another_type_still_refuses(load, write_project, deny, refused):
    write_project(f"[permissions]\ndeny = {deny}\n")
    settings = load()
    assert any(f"Until then {refused} is refused." in warning for warning in settings.warnings)
    assert all(rule.verdict == "deny" for rule in settings.rules) and settings.rules


def test_variables_to_keep_are_combined_without_repeats(load, write_user):
    write_user("kept_variables = ['A', 'B']")
    assert load({}, BRADAWL_KEPT_VARIABLES="B, C").kept_variables == ("B", "C", "A")


# ------------------------------------------------------------------ folders


def test_additional_folders_of_all_sources_are_resolved(load, write_user, home, project, tmp_path):
    for name in ("a", "b", "c", "home/d"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    write_user(f"add_dirs = ['~/d', '{tmp_path}/gone']")
    settings = load(
        {"add_dirs": ["../link", str(project), str(tmp_path / "b")]}, BRADAWL_ADD_DIRS=f"../a{os.pathsep}../c"
    )
    assert settings.add_dirs == tuple(str(tmp_path / name) for name in ("a", "b", "c", "home/d"))
    assert [warning for warning in settings.warnings if f"{tmp_path}/gone is not a folder" in warning]


@pytest.mark.parametrize("text", ["/", "~", "..", "~/.config", "~/.config/bradawl", "~/.local/share/bradawl/x"])
def test_a_folder_that_contains_the_home_folder_or_the_system_is_refused(load, home, tmp_path, text):
    (home / ".config" / "bradawl").mkdir(parents=True)
    (home / ".local" / "share" / "bradawl" / "x").mkdir(parents=True)
    with pytest.raises(SettingsError, match=r"--add-dir: .* can't belong to the workspace"):
        load({"add_dirs": [text]})


def test_a_link_to_such_a_folder_is_refused(load, tmp_path):
    (tmp_path / "link").symlink_to("/")
    with pytest.raises(SettingsError, match="holds the whole system"):
        load({"add_dirs": [str(tmp_path / "link")]})


# ------------------------------------------------------------------ the user's file


@pytest.mark.parametrize("mode", [0o666, 0o646])
def test_a_users_file_that_others_can_write_may_only_restrict(load, write_user, mode):
    path = write_user("yolo = true\nbase_url = 'http://evil.example'\nmax_steps = 3\npermissions.deny = ['Bash']\n")
    path.chmod(mode)
    settings = load()
    assert (settings.yolo, settings.max_steps) == (False, 3)
    assert settings.model.base_url == "https://api.openai.com/v1"
    assert [rule.text for rule in settings.rules] == ["Bash"]
    (warning,) = settings.warnings
    assert str(path) in warning and "base_url, yolo" in warning and "chmod go-w" in warning


def test_a_file_of_the_users_own_group_is_trusted(load, write_user):
    write_user("yolo = true").chmod(0o664)
    assert load().yolo


# ------------------------------------------------------------------ managed settings


@needs_root
def test_managed_rules_come_first(load, managed, write_user):
    write_user("[permissions]\nallow = ['Bash(curl *)']\n")
    managed.write_text("network_commands = ['npm ci']\n[permissions]\ndeny = ['Bash(curl *)', 'WebFetch']\n")
    settings = load()
    assert [(rule.verdict, rule.text) for rule in settings.rules] == [
        ("deny", "Bash(curl *)"),
        ("deny", "WebFetch"),
        ("network", "npm ci"),
        ("allow", "Bash(curl *)"),
    ]
    assert (settings.may_bypass, settings.is_mode_fixed, settings.warnings) == (True, False, ())


@needs_root
def test_the_administrator_may_grant_domains(load, managed):
    managed.write_text("network = ['pip', 'example.org']\n")
    assert [(rule.verdict, rule.text, rule.is_projects) for rule in load().rules] == [
        ("domain", "pip", False),
        ("domain", "example.org", False),
    ]
    managed.write_text("network = ['https://example.org']\n")
    with pytest.raises(SettingsError, match=r"managed\.toml:1: network: "):
        load()


@needs_root
@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("forbid_bypass = true", {"yolo": True}, "--yolo can't be used here"),
        ("forbid_bypass = true", {"permission_mode": "bypass"}, "--permission-mode can't be used here"),
        ("permission_mode = 'default'", {"permission_mode": "auto"}, "--permission-mode can't be used here"),
        ("permission_mode = 'default'", {"yolo": True}, "--yolo can't be used here"),
        ("sandbox = 'required'", {"sandbox": "off"}, "--sandbox can't be used here"),
    ],
)
def test_a_flag_that_contradicts_the_managed_settings_is_refused(load, managed, text, options, message):
    managed.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load(options)
    assert message in str(caught.value) and str(managed) in str(caught.value)


@needs_root
@pytest.mark.parametrize(
    ("text", "user", "expected"),
    [
        ("forbid_bypass = true", "yolo = true", (None, "auto", False)),
        ("permission_mode = 'default'", "yolo = true", ("default", "auto", False)),
        ("forbid_bypass = true", "yolo = true\nsandbox = 'off'", (None, "off", False)),
        ("permission_mode = 'plan'", "permission_mode = 'auto'", ("plan", "auto", False)),
        ("sandbox = 'required'", "sandbox = 'off'", (None, "required", False)),
        ("sandbox = 'required'\nforbid_bypass = true", "yolo = true", (None, "required", False)),
    ],
)
def test_a_users_file_that_contradicts_the_managed_settings_is_ignored(load, managed, write_user, text, user, expected):
    managed.write_text(text)
    write_user(user)
    settings = load()
    assert (settings.permission_mode, settings.sandbox, settings.yolo) == expected
    assert settings.warnings and all("is ignored" in warning for warning in settings.warnings)


@needs_root
def test_only_a_flag_that_contradicts_the_managed_settings_is_named(load, managed):
    managed.write_text("sandbox = 'required'\n")
    with pytest.raises(SettingsError, match=r"^--sandbox can't be used here"):
        load({"sandbox": "off"}, BRADAWL_YOLO="0")
    assert load({}, BRADAWL_YOLO="0", BRADAWL_PERMISSION_MODE="plan").sandbox == "required"
    settings = load({"yolo": True})
    assert (settings.permission_mode, settings.sandbox, settings.warnings) == ("bypass", "required", ())


@needs_root
def test_settings_record_what_the_managed_file_fixes(load, managed):
    managed.write_text("permission_mode = 'default'\nforbid_bypass = true\nsandbox = 'auto'\n")
    settings = load()
    assert (settings.permission_mode, settings.is_mode_fixed, settings.may_bypass) == ("default", True, False)
    assert settings.warnings == ()


@needs_root
@pytest.mark.parametrize("at", ["managed.toml", ""])
def test_managed_settings_that_others_can_write_are_ignored(load, managed, at):
    managed.write_text("permission_mode = 'plan'")
    (managed.parent / at).chmod(0o777)
    settings = load()
    assert settings.permission_mode is None
    assert "written by others than root" in settings.warnings[0]


@needs_root
def test_managed_settings_that_root_does_not_own_are_ignored(load, managed):
    managed.write_text("permission_mode = 'plan'")
    os.chown(managed, 65534, 65534)
    settings = load()
    assert settings.permission_mode is None
    assert "does not belong to root" in settings.warnings[0]


@needs_root
@pytest.mark.parametrize(
    "text",
    ["permission_mode = 'x'", "sandbox = 1", "forbid = true", "forbid_bypass = 'so'", "a = [", "permissions = 1"],
)
def test_invalid_managed_settings_stop_the_run(load, managed, text):
    managed.write_text(text)
    with pytest.raises(SettingsError, match=r"managed\.toml"):
        load()
