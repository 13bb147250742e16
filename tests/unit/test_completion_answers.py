"""`bradawl __complete`: candidates with descriptions, fast and without any error."""

import io
import subprocess
import sys

import pytest

from bradawl.app.cli import COMMANDS, all_parsers, main_parser, parse, run
from bradawl.app.completion.answers import answer
from bradawl.app.completion.scripts import script_of
from bradawl.app.completion.words import SHELLS, commands_of
from bradawl.app.console import Console
from bradawl.app.foreign_flags import FLAGS
from bradawl.app.settings.table import SETTINGS
from bradawl.core.events import PromptSubmitted, SessionOpened
from bradawl.core.messages import Text, User
from bradawl.session.store import LocalStore
from bradawl.testing.fakes import FakeClock, FakeIds


@pytest.fixture
def ask(tmp_path):
    """Returns the candidates of `__complete WORDS`, each with its description."""

    def ask(*words, config="", **environ):
        path = tmp_path / ".config" / "bradawl" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(config if isinstance(config, bytes) else config.encode())
        text = answer(words, {"HOME": str(tmp_path), **environ}, str(tmp_path))
        return [tuple(line.split("\t")) for line in text.splitlines()]

    return ask


def test_keys_have_their_help_and_those_of_the_file_are_among_them(ask):
    found = ask("key", "", config="[providers.lab]\n[models.'a/b.c']\n")
    assert ("max_steps", SETTINGS.rows["max_steps"].help) in found
    assert ("permissions.allow", SETTINGS.rows["permissions.allow"].help) in found
    assert ("providers.lab.base_url",) in found and ('models."a/b.c".effort',) in found
    assert not [each for each in found if each[0] in ("cwd", "headless", "forbid_bypass")]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["profile", ""], ["work", "home"]),
        (["profile", "w"], ["work"]),
        (["value", "effort", "x"], ["xhigh"]),
        (["value", "profiles.work.effort", "x"], ["xhigh"]),
        (["value", "undo", ""], ["true", "false"]),
        (["value", "profile", ""], ["work", "home"]),
        (["value", "nonsense", ""], []),
        (["value"], []),
        (["provider", "lm"], ["lmstudio"]),
        (["provider", "la"], ["lab"]),
        (["provider", "scr"], []),
        (["model", "scr"], []),
        (["value", "model", "scr"], []),
        (["nonsense", ""], []),
        ([], []),
    ],
)
def test_candidates_begin_with_the_prefix(ask, words, wanted):
    found = ask(*words, config="[profiles.work]\n[profiles.home]\n[providers.lab]\n")
    assert [each[0] for each in found] == wanted


def test_models_are_those_of_the_file_then_of_the_provider_in_the_catalog(ask):
    config = "model = 'lab/big'\n[models.'lab/small']\n"
    names = [each[0] for each in ask("model", "", config=config)]
    assert names[:2] == ["lab/big", "lab/small"] and "openai/" in names and "ollama/" in names
    assert [each[0] for each in ask("model", "lab", config=config)] == ["lab/big", "lab/small"]
    of_anthropic = [each[0] for each in ask("model", "anthropic/cl")]
    assert "anthropic/claude-sonnet-5-5" in of_anthropic
    assert all(each.startswith("anthropic/cl") for each in of_anthropic)


async def test_sessions_have_their_first_prompts_the_last_one_first(ask, tmp_path):
    store = LocalStore(tmp_path / ".local" / "share" / "bradawl", tmp_path, FakeClock(is_eager=True), FakeIds())
    ids = []
    for prompt in ("fix the test\nand more", "a \x07red\ttab"):
        opened = store.create()
        opened.log.append(SessionOpened(1, str(tmp_path), str(tmp_path)))
        await opened.log.durable(opened.log.append(PromptSubmitted(User((Text(prompt),)))))
        opened.log.close()
        ids.append(opened.log.session_id)
    assert sorted(ask("session", "")) == sorted([(ids[0], "fix the test and more"), (ids[1], "a red tab")])


@pytest.mark.parametrize(
    "config", [b"\xff\xfe", "model = ", "profiles = 3\nproviders = [1]\nmodels = 'x'", "[profiles]\nx = 1"]
)
@pytest.mark.parametrize("kind", ["model", "provider", "session", "key", "value", "profile"])
def test_a_broken_file_is_no_error(ask, config, kind):
    ask(kind, "", config=config)
    assert ask("provider", "openai", config=config)[0][0] == "openai"


def test_nothing_is_an_error_for_the_shell(tmp_path):
    class Broken(io.StringIO):
        def write(self, _):
            raise OSError(28, "No space left on device")

    environ = {"BRADAWL_HOME": "\udcff", "HOME": str(tmp_path)}
    for out in (io.StringIO(), Broken()):
        err = io.StringIO()
        assert run(["__complete", "key", ""], environ, Console(io.StringIO(), out, err, environ)) == 0
        assert err.getvalue() == ""


def test_an_answer_loads_neither_the_agent_nor_an_http_library(tmp_path):
    code = (
        "import sys; from bradawl.app.cli import main\n"
        "for kind in ('key', 'profile', 'provider', 'model', 'session'): main(['__complete', kind, 'anthropic/'])\n"
        "heavy = {'asyncio', 'bradawl.agent', 'bradawl.app.launch', 'bradawl.app.build', 'h11', 'httpx2', 'tomlkit'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], env={"HOME": str(tmp_path)}, cwd=tmp_path, check=True, timeout=60)


# ------------------------------------------------------------------ the scripts


def test_every_flag_of_every_command_is_known_with_its_help():
    commands = {command.words: command for command in commands_of(all_parsers(), COMMANDS)}
    flags = {name: flag for flag in commands[()].flags for name in flag.names}
    foreign = {name for flag in FLAGS for name in flag.names}
    assert set(flags) == set(main_parser()._option_string_actions) - foreign
    assert flags["--effort"].value.choices == SETTINGS.rows["effort"].kind.choices
    assert flags["--yolo"].value is None
    assert flags["-r"].value.kind == "session"
    assert {words[0] for words in commands if words} == {*COMMANDS, "permissions", "demo"}
    assert all(flag.help for command in commands.values() for flag in command.flags)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_names_every_command_and_flag(shell):
    script = script_of(shell, all_parsers(), COMMANDS)
    for command in commands_of(all_parsers(), COMMANDS):
        assert all(word in script for word in command.words)
        assert all(name.lstrip("-") in script for flag in command.flags for name in flag.names)


def test_the_command_line_of_completion():
    assert parse(["completion", "zsh"])["shell"] == "zsh"
    assert "eval" in str(parse(["completion"])["help_text"])
    assert parse(["completion", "of", "the", "work"])["prompt"] == "completion of the work"


@pytest.mark.parametrize("words", [words for words in all_parsers() if words], ids=" ".join)
def test_no_line_of_any_help_is_wider_than_80_columns(words):
    text = all_parsers()[words].format_help()
    assert max(map(len, text.splitlines())) <= 80, text


def test_no_line_of_the_help_is_wider_than_80_columns():
    assert max(map(len, main_parser().format_help().splitlines())) <= 80
