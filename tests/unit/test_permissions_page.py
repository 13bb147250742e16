"""The examples of docs/permissions.md are valid rules, and its table lists every rule name."""

import re
import tomllib
from pathlib import Path

import pytest
from tool_specs import SPECS

from bradawl.app.remembered_rules import RememberedRules
from bradawl.app.settings.network_presets import PRESETS, check_domains
from bradawl.safety.permissions.path_globs import Bases
from bradawl.safety.permissions.rule_syntax import RULE_NAMES, network_rule, parse_rule

PAGE = (Path(__file__).parents[2] / "docs" / "permissions.md").read_text()
EXAMPLES = {
    name: tomllib.loads(text)
    for name, text in re.findall(r"<!-- example: (\w+) -->\n```toml\n(.*?)```", PAGE, re.DOTALL)
}


def parsed(text, verdict="allow"):
    return parse_rule(text, verdict, "page", Bases("/ws", "/home/you", "/ws"), str)


def test_the_lists_of_rules_on_the_page_are_valid():
    for verdict, texts in EXAMPLES["rules"]["permissions"].items():
        for text in texts:
            assert parsed(text, verdict)
    for text in EXAMPLES["network"]["network_commands"]:
        assert network_rule(text, "page", "/home/you")
    check_domains(EXAMPLES["domains"]["network"], "page")
    for verdict, texts in EXAMPLES["domains"]["permissions"].items():
        assert all(parsed(text, verdict) for text in texts)


def test_the_page_names_every_preset():
    table = PAGE.split("| Preset |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)) == {
        "`pip`",
        "`uv`",
        "`npm`, `pnpm`",
        "`yarn`",
        "`cargo`",
        "`go`",
        "`apt`",
        "`github`",
    }
    assert all(f"`{name}`" in table for name in PRESETS)


@pytest.mark.parametrize(
    "text", sorted(set(re.findall(r"`((?:Bash|Read|Edit|WebFetch|Network)\([^`]*\)|mcp__\w+\**)`", PAGE)))
)
def test_each_rule_in_the_text_is_valid(text):
    if text in (
        "Bash(words)",
        "Read(path)",
        "Edit(path)",
        "Bash(...)",
        "Network(...)",
        "Network(domain)",
        "Network(host)",
    ):
        return
    assert parsed(text, "deny")


def test_the_table_lists_every_rule_name_with_its_tools():
    table = PAGE.split("### Names")[1].split("To allow")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| `")]
    named = {name: row for row in rows for name in re.findall(r"`(\w+)`", row[1].split("(")[0] + row[1].split(")")[-1])}
    assert set(RULE_NAMES) <= set(named) | {"edit_file"}
    for name, known in RULE_NAMES.items():
        row = named[name]
        assert bool(row[3].strip()) == (known.on != "tool"), name
        tools = [spec.name for spec in SPECS.values() if known.name in (spec.name, *spec.rule_names)] or [known.name]
        assert row[2].strip() == "that tool" or all(f"`{tool}`" in row[2] for tool in tools), name


def test_the_pages_example_file_loads(tmp_path):
    remembered = RememberedRules(str(tmp_path), "/srv/shop", "/home/you")
    path = Path(remembered.path)
    path.parent.mkdir()
    path.write_text(re.findall(r"<!-- example: remembered -->\n```toml\n(.*?)```", PAGE, re.DOTALL)[0])
    path.chmod(0o600)
    assert [rule.text for rule in remembered.rules()] == ["Bash(npm run test:*)"] and not remembered.problems
