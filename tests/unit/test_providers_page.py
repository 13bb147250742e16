"""docs/providers.md agrees with the program: providers, settings, flags and examples."""

import re
from pathlib import Path

import pytest

from bradawl.app.cli import main_parser
from bradawl.app.model_endpoint import model_endpoint
from bradawl.app.settings.credentials import read_credentials
from bradawl.app.settings.load import load_settings
from bradawl.app.settings.provider_tables import MODEL_KEYS, PROVIDER_KEYS
from bradawl.app.settings.providers import PROVIDERS, SCRIPTED
from bradawl.providers.compat import WAITS, CompatProfile
from bradawl.providers.messages.profile import MessagesProfile
from bradawl.providers.protocols import PROTOCOLS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "providers.md").read_text()
ROWS = re.findall(r"^\| [\w. ()]+ \| (.*?) \| (.*?) ?\| `bradawl -m (\S+)` \|$", PAGE, re.MULTILINE)


def example(name):
    found = re.search(rf"<!-- example: {name}.*? -->\n```toml\n(.*?)```", PAGE, re.DOTALL)
    assert found, name
    return found[1]


def fields_after(heading):
    """The names in the first column of the table below this heading."""
    table = PAGE[PAGE.index(heading) :].partition("|---|---|\n")[2].partition("\n\n")[0]
    return {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}


def assert_same_names(place, named, expected):
    """Fails with the names to add to a place of the page, and those to remove."""
    difference = f"add {sorted(expected - named)}, remove {sorted(named - expected)}"
    assert named == expected, f"docs/providers.md, {place}: {difference}"


@pytest.fixture
def load(tmp_path):
    def load(options, text="", **environ):
        (tmp_path / "config.toml").write_text(text)
        return load_settings(options, {"BRADAWL_HOME": str(tmp_path), **environ}, str(tmp_path)).model

    return load


def test_every_known_provider_is_listed():
    named, known = {command.partition("/")[0] for _, _, command in ROWS}, set(PROVIDERS) - {SCRIPTED}
    assert not known - named, f"docs/providers.md needs a row with `bradawl -m NAME/MODEL` for {known - named}"
    assert not named - known, f"docs/providers.md names {named - known}, which app/settings/providers.py has not"


@pytest.mark.parametrize(("address", "key", "command"), ROWS)
def test_each_row_needs_only_its_key_and_its_command(load, address, key, command):
    environ = {key.strip("`"): "k"} if key else {}
    if address.startswith("`AZURE"):
        environ["AZURE_OPENAI_ENDPOINT"] = "https://name.openai.azure.com"
        address = "`https://name.openai.azure.com/openai/v1`"
    model = load({"model": command}, **environ)
    assert f"`{model.base_url}`" == address
    assert model.api_key == ("k" if key else "")
    assert model.name == command.partition("/")[2]
    assert model_endpoint(model, {}).endpoint.model == model.name


def test_the_examples_load_and_mean_what_the_text_says(load, tmp_path):
    own = example("a gateway")
    assert load({"model": "work/x"}, own).api == "anthropic_messages"
    assert load({"model": "kimi-cn/x"}, own, KIMI_CN_KEY="k").api_key == "k"
    deadlines = model_endpoint(load({"model": "lab/x"}, own), {}).deadlines
    assert deadlines is not None and deadlines.first_byte_s == 1200
    model = load({"model": "lab/qwen3-coder"}, own + example("a model"))
    assert (model.context_window, model.max_output, model.price.output) == (131_072, 32_768, 0.4)
    keys = tmp_path / "credentials.toml"
    keys.write_text(example("keys"))
    keys.chmod(0o600)
    assert set(read_credentials(keys)) == {"openai", "work"}


def test_every_wire_protocol_is_named():
    row = next(line for line in PAGE.splitlines() if line.startswith("| `api` |"))
    expected = ["api", *(protocol.name for protocol in PROTOCOLS)]
    assert re.findall(r"`(\w+)`", row) == expected, f"the row `api` of docs/providers.md must name {expected[1:]}"


def test_every_setting_is_named():
    assert_same_names("the table below `## Your own`", fields_after("## Your own"), PROVIDER_KEYS)
    shown = {name for name in MODEL_KEYS if name in example("a model")}
    assert_same_names("the example `a model`", shown, MODEL_KEYS)
    chat, messages = fields_after("With `openai_chat`"), fields_after("With `anthropic_messages`:")
    assert_same_names("the table of `openai_chat`", chat, set(CompatProfile.__struct_fields__))
    assert_same_names("the table of `anthropic_messages`", messages, {*MessagesProfile.__struct_fields__, *WAITS})


def test_every_flag_on_the_page_exists():
    known = {name for action in main_parser()._actions for name in action.option_strings}
    of_servers = {"--jinja", "--enable-auto-tool-choice", "--tool-call-parser"}
    assert set(re.findall(r"`(?:bradawl )?(--?[a-z][\w-]*)", PAGE)) - of_servers <= known


def test_the_readme_links_to_the_page():
    assert "(docs/providers.md)" in (ROOT / "README.md").read_text()
