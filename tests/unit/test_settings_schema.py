"""The JSON Schemas of settings files: current, and in agreement with what the program accepts."""

import re
import tomllib
from pathlib import Path

import jsonschema_rs
import pytest

from bradawl.app.settings.file_check import problems_of, user_keys
from bradawl.app.settings.permission_values import SANDBOX_CHOICES
from bradawl.app.settings.schema import KINDS, schema_text, settings_schema
from bradawl.app.settings.table import SETTINGS
from bradawl.app.tui.live.keys import ACTIONS
from bradawl.core.permissions import MODES

DOCS = Path(__file__).parents[2] / "docs"
NAMES = {"user": "config", "project": "project-config", "managed": "managed"}
VALIDATORS = {kind: jsonschema_rs.validator_for(settings_schema(SETTINGS, kind)) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_in_docs_is_current(kind):
    written = (DOCS / f"{NAMES[kind]}.schema.json").read_text()
    assert written == schema_text(SETTINGS, kind), "run .venv/bin/python scripts/settings_schema.py"


def test_modes_and_sandbox_choices_of_the_table_are_those_of_the_program():
    assert SETTINGS.rows["permission_mode"].kind.choices == MODES
    assert SETTINGS.rows["sandbox"].kind.choices == SANDBOX_CHOICES


def test_every_key_of_a_file_is_in_its_schema_with_a_description():
    for name in SETTINGS.file_keys():
        schema = settings_schema(SETTINGS, "user")
        for key in name.split("."):
            schema = schema["properties"][key]
        assert schema["description"] == SETTINGS.rows[name].help


GOOD = (
    "",
    "model = 'openai/m'\nmax_steps = 3\nyolo = false\neffort = 'low'\ncompact_at = [50, 70, 90]",
    "compact_at = '50,70,90'\nadd_dirs = ['a', 'b']\nnetwork = 'pip'",
    "[permissions]\nallow = ['Edit']\nask = 'Bash(rm *)'",
    "[providers.lab]\nbase_url = 'http://127.0.0.1:9/v1'\napi_key_env = ''\nheaders = { A = 'b' }\napi = 'openai_chat'",
    "[providers.lab.compat]\nstream_options = false\nefforts = { high = 'max' }\nfirst_byte_s = 2.5",
    "[models.'openai/m']\ncontext_window = 3\nprice = { input = 1, output = 0.5 }\neffort = 'high'",
    "profile = 'work'\n[profiles.work]\nmodel = 'x'\n[profiles.work.providers.lab]\nbase_url = 'http://127.0.0.1/v1'",
)
BAD = (
    "modle = 'x'",
    "max_steps = 0",
    "max_steps = 'many'",
    "yolo = 3",
    "effort = 'extreme'",
    "permission_mode = 'never'",
    "sandbox = 'no'",
    "api_key = 'x'",
    "cwd = '/'",
    "permissions = 3",
    "[permissions]\nallowed = []",
    "[permissions]\ndeny = [1]",
    "[providers.lab]\nkey = 1",
    "[providers.lab]\nheaders = { A = 1 }",
    "[providers.lab]\napi = 'x'",
    "[providers.lab.compat]\nno_such_field = 1",
    "[models.'openai/m']\nprice = { inptu = 1 }",
    "[models.'openai/m']\nprice = { input = -1 }",
    "[profiles.work]\nprofile = 'x'",
    "[profiles.work]\nmax_stpes = 1",
)


@pytest.mark.parametrize("text", GOOD)
def test_what_the_program_accepts_is_valid(text):
    values = tomllib.loads(text)
    assert list(problems_of(values, user_keys(SETTINGS))) == []
    assert VALIDATORS["user"].is_valid(values), [str(error) for error in VALIDATORS["user"].iter_errors(values)]


@pytest.mark.parametrize("text", BAD)
def test_what_the_program_refuses_is_not_valid(text):
    values = tomllib.loads(text)
    assert list(problems_of(values, user_keys(SETTINGS)))
    assert not VALIDATORS["user"].is_valid(values)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_every_settings_file_in_the_docs_is_valid(page):
    for block in re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        values = tomllib.loads(re.sub(r"(?m)^  (?=\S)", "", block))
        is_credentials = any(isinstance(each, dict) and set(each) == {"api_key"} for each in values.values())
        if set(values) <= set(ACTIONS):  # keys.toml
            continue
        if not is_credentials and not {"project", "folder", "rule"} & set(values):
            assert any(validator.is_valid(values) for validator in VALIDATORS.values()), block


def test_a_projects_schema_has_what_a_project_may_set():
    valid = VALIDATORS["project"].is_valid
    assert valid({"max_steps": 3, "permissions": {"deny": ["Bash"], "allow": ["Edit"]}})
    assert not valid({"base_url": "http://evil.example"})
    assert not valid({"profile": "work"})
