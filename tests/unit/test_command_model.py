"""`/model` and `/effort` change who answers a running conversation, and a later run of the session remembers it."""

from typing import get_args

import pytest
from command_world import CommandWorld, FakeUser

from bradawl.app.commands.model import Effort
from bradawl.app.settings.values import EFFORTS
from bradawl.app.slash_commands import CommandError
from bradawl.core.errors import SettingsError
from bradawl.core.events import ModelChosen, PrefixOpened, RequestSent, StateChanged


@pytest.fixture
def world(tmp_path) -> CommandWorld:
    return CommandWorld(tmp_path)


def chosen(events) -> list[str]:
    return [
        each.state.model for each in events if isinstance(each, StateChanged) and isinstance(each.state, ModelChosen)
    ]


async def test_model_changes_who_answers_and_a_later_run_goes_on_with_it(world):
    world.script = [{"text": "One."}]
    other = world.script_file("other.json", [{"text": "Two."}])
    async with world.conversation() as talk:
        assert await talk.prompt("a") == "One."
        assert await talk.type(f"/model {other}") == (
            f"From the next prompt on scripted/{world.project}/other.json (window unknown, price unknown) answers."
        )
        assert await talk.prompt("b") == "Two."
        assert (await talk.type("/model")).startswith(f"scripted/{world.project}/other.json")
        assert "other.json" in await talk.type("/status")
        name = talk.session.id
    world.script_file("other.json", [{"text": "Three."}])
    async with world.conversation(name) as talk:
        assert talk.notices[-1] == (
            f"this session goes on with scripted/{world.project}/other.json, as you chose in it; "
            "/model or -m chooses another"
        )
        assert await talk.prompt("c") == "Three."
        assert [each for each in talk.events if isinstance(each, PrefixOpened)] == []


async def test_a_flag_decides_over_the_choice_in_the_session_and_is_the_choice_from_then_on(world):
    world.script = [{"text": "By flag."}]
    other = world.script_file("other.json", [{"text": "Two."}])
    async with world.conversation() as talk:
        await talk.type(f"/model {other}")
        assert await talk.prompt("b") == "Two."
    world.options = {"model": "scripted/default.json"}
    async with world.conversation(talk.session.id) as again:
        assert await again.prompt("c") == "By flag."
    world.options = {}
    world.environ["BRADAWL_MODEL"] = other
    world.script_file("default.json", [])
    async with world.conversation(talk.session.id) as again:
        assert "this session goes on with scripted/" in again.notices[-1] and "default.json" in again.notices[-1]


async def test_a_session_continues_with_the_flags_that_it_ran_with_unless_told(world):
    """In the order in which the runs follow each other: flags, and the model, effort and window that hold."""
    world.script = [{"text": "x"}]
    one, two = (world.script_file(f"{name}.json", [{"text": "x"}]) for name in ("one", "two"))
    name = None
    runs = [
        ({"model": one, "effort": "high", "context_window": "50_000"}, "one", "high", 50_000),
        ({}, "one", "high", 50_000),
        ({"context_window": "60_000"}, "one", "high", 60_000),
        ({"effort": "low"}, "one", "low", 60_000),
        ({"model": one}, "one", "low", 60_000),
        ({}, "one", "low", 60_000),
        ({"model": two}, "two", "low", None),
        ({}, "two", "low", None),
    ]
    for options, model, effort, window in runs:
        world.options = options
        async with world.conversation(name) as talk:
            await talk.prompt("a")
            now = talk.session.session.model
            found = (talk.session.model.name, now.params.effort, talk.session.model.context_window)
            assert found == (f"{world.project}/{model}.json", effort, window), options
            name = talk.session.id


async def test_a_window_of_the_usual_model_is_kept_and_said(world):
    world.script = [{"text": "x"}]
    world.script_file("default.json", [])
    world.options = {"context_window": "50_000"}
    async with world.conversation() as talk:
        await talk.prompt("a")
    world.options = {}
    async with world.conversation(talk.session.id) as again:
        assert again.notices[-1] == (
            "this session goes on with a context window of 50,000 tokens, as you chose in it; "
            "--context-window chooses another"
        )
        assert again.session.session.model.info.context_window == 50_000
        assert "of 50,000 tokens" in await again.type("/context")
        other = world.script_file("other.json", [])
        await again.type(f"/model {other}")
    async with world.conversation(talk.session.id) as again:
        assert again.session.model.context_window is None, "the window was that of the other model"


async def test_no_flag_that_permits_more_is_kept(world):
    world.script = [{"text": "x"}]
    (world.home / "more").mkdir()
    world.options = {"yolo": True, "allowed_tools": ["Bash(make *)"], "add_dirs": [str(world.home / "more")]}
    async with world.conversation() as talk:
        await talk.prompt("a")
        assert not [each for each in talk.events if isinstance(each, StateChanged)]
    world.options = {}
    async with world.conversation(talk.session.id) as again:
        choices, settings = again.session.session.choices.now, again.frontend.settings
        assert (choices.rules, choices.dirs, settings.rules, settings.add_dirs) == ((), (), (), ())
        assert settings.permission_mode is None and again.session.session.state.mode is None


async def test_new_sessions_of_the_run_keep_the_choice_and_their_logs_have_it(world):
    other = world.script_file("other.json", [{"text": "Two."}])
    shown = []
    frontend = world.start(shown)
    async with frontend.open() as session:
        await session.run_command(f"/model {other}")
    async with frontend.open() as session:
        assert (await session.run("a")).text == "Two."
    await frontend.agent.aclose()
    assert world.models[0].requests == []
    assert chosen([item.event for item in shown if hasattr(item, "event")])[-1].endswith("other.json")
    assert frontend.model_name.endswith("other.json")


async def test_a_model_of_the_session_that_is_gone_leaves_that_of_the_settings(world):
    world.script = [{"text": "One."}]
    world.environ["LOST_API_KEY"] = "k"
    config = world.home / ".config/bradawl/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[providers.lost]\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "LOST_API_KEY"\n')
    async with world.conversation() as talk:
        await talk.prompt("a")
        await talk.type("/model lost/m1")
    config.unlink()
    world.script = [{"text": "Still here."}]
    async with world.conversation(talk.session.id) as again:
        assert again.notices[-1].startswith("lost/m1, the model of this session, can't be used, scripted/")
        assert await again.prompt("b") == "Still here."


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/model opnai/gpt-5.5", "`opnai` is not a provider bradawl knows"),
        ("/model openai/gpt-5.5", "No key for openai: run `bradawl login openai`, set OPENAI_API_KEY"),
        ("/model openai/", "names no model"),
        ("/model a b", "/model takes only /model [NAME]"),
        ("/effort maximal", "/effort: level must be none, minimal, low"),
    ],
)
async def test_a_model_or_level_that_can_not_be_used_changes_nothing(world, line, said):
    async with world.conversation() as talk:
        await talk.prompt("a")
        with pytest.raises(SettingsError) as refused:
            await talk.type(line)
        assert said in str(refused.value)
        assert chosen(talk.events) == []


async def test_an_unknown_name_of_a_known_provider_is_used_with_a_warning(world):
    world.environ["ANTHROPIC_API_KEY"] = "k"
    async with world.conversation() as talk:
        text = await talk.type("/model anthropic/claude-sonet-5-5")
    assert "claude-sonet-5-5 is not among the known models of anthropic" in text
    assert "Did you mean anthropic/claude-sonnet-5" in text


async def test_a_name_that_the_endpoint_does_not_list_is_asked_about(world):
    world.environ["ANTHROPIC_API_KEY"] = "k"
    world.listed = {"api.anthropic.com": ["claude-sonnet-5-5", "claude-new", "claude-opus-5"]}
    user = FakeUser("anthropic/claude-sonnet-5-5", "all the same")
    async with world.conversation(user=user) as talk:
        assert "answers." in await talk.type("/model anthropic/claude-new"), "newer than the catalog"
        assert "anthropic/claude-sonnet-5-5 (" in await talk.type("/model anthropic/claude-sonet-5-5")
        title, options = user.offered[0]
        assert title == "anthropic/claude-sonet-5-5 is not among the 3 models that anthropic lists. Which one is meant?"
        assert options[0].value == "anthropic/claude-sonnet-5-5" and options[-1].value == "anthropic/claude-sonet-5-5"
        assert "anthropic/my-own (" in await talk.type("/model anthropic/my-own")
        assert await talk.type("/model anthropic/nonsense") == "anthropic/my-own goes on answering."
        offered = [option.value.removeprefix("anthropic/") for option in user.offered[-1][1]]
        assert offered == ["claude-sonnet-5-5", "claude-new", "claude-opus-5", "nonsense"], "all, where none is near"


async def test_without_a_user_a_name_that_the_endpoint_does_not_list_is_refused(world):
    world.script = [{"text": "x"}]
    world.environ["OLLAMA_BASE_URL"] = "http://127.0.0.1:9/v1"
    world.listed = {"127.0.0.1:9/": ["qwen3:latest", "qwen3-coder"]}
    async with world.conversation(user_is_there=False) as talk:
        await talk.prompt("a")
        with pytest.raises(CommandError) as refused:
            await talk.type("/model ollama/qwen3-codr")
        assert "is not among the 2 models that ollama lists; did you mean ollama/qwen3-coder" in str(refused.value)
        assert "`bradawl models ollama`" in str(refused.value) and chosen(talk.events) == []
        assert "answers." in await talk.type("/model ollama/qwen3")


async def test_a_name_is_taken_with_a_notice_where_there_is_no_list(world):
    world.environ["LLAMACPP_BASE_URL"] = "http://127.0.0.1:9/v1"
    async with world.conversation(user=FakeUser()) as talk:
        text = await talk.type("/model llamacpp/whatever")
    assert "answers." in text and "llamacpp gives no list of its models, so the name is taken as it is." in text


async def test_a_known_model_at_another_url_has_an_assumed_window_and_no_price(world):
    world.environ |= {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "ANTHROPIC_API_KEY": "k"}
    world.listed = {"127.0.0.1:9/": ["gpt-5.5"]}
    async with world.conversation() as talk:
        assert "openai/gpt-5.5 (1.0M window (assumed), price unknown)" in await talk.type("/model openai/gpt-5.5")
        window = await talk.session.session.model.window()
        assert (window.tokens, window.source) == (1_000_000, "assumed")
        assert "1,000,000" in await talk.type("/context")
        models = talk.frontend.request.models
        assert models.price_of("openai", "gpt-5.5") is None
        assert models.price_of("anthropic", "claude-sonnet-5-5") is not None


async def test_a_name_alone_finds_the_provider_that_is_set_up_and_has_it(world):
    world.environ |= {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
    async with world.conversation() as talk:
        assert "anthropic/claude-sonnet-5-5 (" in await talk.type("/model claude-sonnet-5-5")
        assert "openai/gpt-5.5 (" in await talk.type("/model gpt-5.5")
        assert "per million tokens" in await talk.type("/model")
        assert await talk.type("/model gpt-5.5") == "openai/gpt-5.5 answers already."


async def test_a_name_with_a_slash_may_be_a_model_of_a_router_or_an_unknown_provider(world):
    world.environ |= {"OPENROUTER_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    async with world.conversation() as talk:
        assert "openrouter/some/thing-1 (" in await talk.type("/model openrouter/some/thing-1")
        assert "openrouter/other/thing-2 (" in await talk.type("/model other/thing-2")
        await talk.type("/model anthropic/claude-sonnet-5-5")
        with pytest.raises(SettingsError, match="`other` is not a provider"):
            await talk.type("/model other/thing-2")


async def test_without_a_name_the_user_picks_from_the_models_of_the_providers(world):
    world.environ["ANTHROPIC_API_KEY"] = "k"
    user = FakeUser("claude-sonnet-5-5")
    async with world.conversation(user=user) as talk:
        text = await talk.type("/model")
        assert "anthropic/claude-sonnet-5-5 (" in text
        (_, options) = user.offered[0]
        assert [each.label for each in options if each.is_current] == [f"scripted/{world.project}/default.json"]
        one = next(each for each in options if each.value == "anthropic/claude-sonnet-5-5")
        assert "window" in one.detail and "per million tokens" in one.detail
        assert not any(each.value.startswith("openai/") for each in options), "it has no key"
        assert await talk.type("/model") == "anthropic/claude-sonnet-5-5 goes on answering."


async def test_effort_holds_from_the_next_prompt_on_and_in_later_runs(world):
    world.script = [{"text": "x"}] * 3
    async with world.conversation() as talk:
        assert await talk.type("/effort") == "effort of the model itself, as the settings have it"
        assert await talk.type("/effort HIGH") == "effort high, chosen in this session"
        await talk.prompt("a")
    async with world.conversation(talk.session.id) as again:
        await again.prompt("b")
        assert await again.type("/effort default") == "effort of the model itself, as the settings have it"
        await again.prompt("c")
    sent = [each.params.effort for each in (*talk.events, *again.events) if isinstance(each, RequestSent)]
    assert sent == ["high", "high", None]


async def test_without_a_user_a_choice_needs_a_session_that_has_begun(world):
    world.script = [{"text": "x"}]
    other = world.script_file("other.json", [])
    async with world.conversation(user_is_there=False) as talk:
        for line, flag in ((f"/model {other}", "-m"), ("/effort low", "--effort low")):
            with pytest.raises(CommandError, match=flag):
                await talk.type(line)
        assert (await talk.type("/model")).startswith("scripted/")
        await talk.prompt("a")
    async with world.conversation(talk.session.id, user_is_there=False) as again:
        assert "answers." in await again.type(f"/model {other}")
    async with world.conversation(talk.session.id, user_is_there=False) as again:
        assert (await again.type("/model")).startswith(f"scripted/{world.project}/other.json")


def test_the_levels_of_effort_are_those_of_the_setting():
    assert get_args(Effort) == EFFORTS
