"""A project's file may select a model of the providers that the user has configured; any other choice is ignored."""

import pytest
from settings_files import SECRET

from bradawl.app.settings.providers import PROVIDERS
from bradawl.core.errors import SettingsError

_WITH_KEYS = tuple(one.name for one in PROVIDERS.values() if one.needs_key)


@pytest.mark.parametrize("name", _WITH_KEYS)
@pytest.mark.parametrize("own", ["groq/m", "ollama/m"])
def test_a_projects_model_of_a_provider_without_a_key_does_not_stop_the_run(load, name, own):
    none = {"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": "", "GROQ_API_KEY": "g" if own == "groq/m" else ""}
    if own.startswith(name):
        return
    settings = load({}, f'model = "{own}"\n', f'model = "{name}/x"\n', **none)
    assert f"{settings.model.provider}/{settings.model.name}" == own
    (warning,) = settings.warnings
    assert (
        "project/.bradawl/config.toml:1: model is ignored" in warning and name in warning and "API_KEY" not in warning
    )


@pytest.mark.parametrize(
    ("user", "project"),
    [
        ('model = "ollama/m"\n', 'model = "no-provider"\n'),
        ('model = "ollama/m"\n', 'model = "unheard/of"\n'),
        ('model = "ollama/m"\n', 'model = "openai/"\n'),
        ('model = "ollama/m"\n[providers.mine]\nbase_url = "https://m.example/v1"\n', 'model = "mine/m"\n'),
    ],
)
def test_a_projects_unusable_model_is_ignored_with_a_warning(load, user, project):
    settings = load({}, user, project, OPENAI_API_KEY="", ANTHROPIC_API_KEY="", GROQ_API_KEY="")
    assert (settings.model.provider, settings.model.name) == ("ollama", "m")
    assert any(".bradawl/config.toml" in each and "ignored" in each for each in settings.warnings)


def test_a_project_may_select_a_model_of_a_configured_provider(load, tmp_path):
    assert load({}, 'model = "openai/m"\n', 'model = "groq/x"\n').model.provider == "groq"
    credentials = tmp_path / ".config" / "bradawl" / "credentials.toml"
    credentials.write_text(f'[deepseek]\napi_key = "{SECRET}"\n')
    credentials.chmod(0o600)
    assert load({}, 'model = "openai/m"\n', 'model = "deepseek/x"\n').model.provider == "deepseek"


def test_without_any_provider_the_error_names_the_projects_choice(load):
    with pytest.raises(SettingsError, match=r"No provider is set up.*config\.toml:1: model is ignored.*deepseek"):
        load({}, "", 'model = "deepseek/x"\n', OPENAI_API_KEY="", ANTHROPIC_API_KEY="", GROQ_API_KEY="")
