"""A user without a key reads in five lines what to do; no line is too wide and no word is broken."""

import io
import json

import pytest
from cli_world import Terminal
from hypothesis import given
from hypothesis import strategies as st

from bradawl.app.cli import run
from bradawl.app.console import Console
from bradawl.app.first_run import first_run_lines
from bradawl.app.settings.providers import NoProvider
from bradawl.app.text_layout import cells
from bradawl.providers.local_server_answers import LocalModel
from bradawl.providers.local_servers import LocalServer

OLLAMA = LocalServer("ollama", "http://127.0.0.1:11434/v1", (LocalModel("cold"), LocalModel("warm", 8192)))
EMPTY = LocalServer("ollama", "http://127.0.0.1:11434/v1")
BROKEN = LocalServer("vllm", "http://127.0.0.1:8000/v1", (), "It wants a key.")
LONG = LocalServer("lmstudio", "http://127.0.0.1:1235/v1", (LocalModel("lmstudio-community/Qwen2.5-Coder-32B-GGUF"),))
SERVERS = st.lists(st.sampled_from([OLLAMA, EMPTY, BROKEN, LONG]), max_size=4)


@given(SERVERS, st.integers(40, 200))
def test_no_line_is_too_wide_and_no_word_is_broken(servers, width):
    lines = first_run_lines(servers, width)
    assert all(cells(line) <= width for line in lines)
    known = {word for line in first_run_lines(servers, 10_000) for word in line.split()} | {"key,", "or:"}
    too_wide = "".join(word for word in known if cells(word) > width - 4)
    assert all(word in known or word in too_wide for line in lines for word in line.split())


@given(SERVERS, st.integers(80, 200))
def test_from_80_columns_on_there_are_at_most_five_lines(servers, width):
    lines = first_run_lines(servers, width)
    assert len(lines) <= 5
    text = "\n".join(lines)
    said = [part for part in ("No provider is set up.", "No model is chosen.") if part in text]
    usable = any(each.models and not each.problem for each in servers)
    assert said == ["No model is chosen." if usable else "No provider is set up."]
    for part in ("bradawl login", "OPENAI_API_KEY=...", "bradawl demo"):
        assert part in text


def test_the_local_server_that_can_be_used_is_named_with_its_command():
    assert first_run_lines([BROKEN, EMPTY, OLLAMA], 80) == [
        "bradawl: No model is chosen. One of these starts it:",
        "  bradawl login                 store a key and choose a model",
        "  OPENAI_API_KEY=... bradawl    set a key for this run only",
        "  bradawl -m ollama/warm        Ollama runs here; 2 more: bradawl models",
        "  bradawl demo                  watch a whole run without a key",
    ]


@pytest.mark.parametrize(
    ("server", "words"),
    [(EMPTY, "  ollama pull MODEL             Ollama runs here, but has no model yet"), (BROKEN, "bradawl doctor")],
)
def test_a_server_that_can_not_be_used_yet_says_what_it_lacks(server, words):
    assert words in "\n".join(first_run_lines([server], 80))


def test_names_of_models_can_not_send_escape_sequences():
    server = LocalServer("ollama", "http://127.0.0.1:11434/v1", (LocalModel("a\x1b[2J\nb"),))
    assert "\x1b" not in "".join(first_run_lines([server], 80))


def test_a_narrow_terminal_has_the_remarks_below_the_commands():
    assert first_run_lines([], 40) == [
        "bradawl: No provider is set up. One of",
        "these starts it:",
        "  bradawl login",
        "    store a key and choose a model",
        "  OPENAI_API_KEY=... bradawl",
        "    set a key for this run only",
        "  bradawl demo",
        "    watch a whole run without a key",
    ]


@pytest.mark.parametrize("argv", [["-p", "hello"], ["hello"], []])
def test_without_a_provider_the_lines_are_on_stderr_and_the_exit_code_is_2(user_home, argv):
    out, err = Terminal(), Terminal()
    environ = {"HOME": str(user_home), "COLUMNS": "80", "PATH": "/usr/bin:/bin", "OLLAMA_HOST": "127.0.0.1:9"}
    stdin = io.StringIO() if argv[:1] == ["-p"] else Terminal()
    assert run(argv, environ, Console(stdin, out, err, environ)) == 2
    assert out.getvalue() == ""
    lines = err.getvalue().splitlines()
    assert lines[0] == "bradawl: No provider is set up. One of these starts it:"
    assert len(lines) <= 5


def test_json_is_printed_where_it_is_asked_for(user_home):
    out, environ = io.StringIO(), {"HOME": str(user_home)}
    code = run(["-p", "x", "--output-format", "json"], environ, Console(io.StringIO(), out, io.StringIO(), environ))
    result = json.loads(out.getvalue())
    assert (code, result["exit_code"], result["is_error"]) == (2, 2, True)
    assert "bradawl login" in result["errors"][0]


def test_a_project_whose_model_does_not_count_is_named_first():
    error = NoProvider("config.toml: model is ignored.")
    assert first_run_lines([], 80, error.note)[0] == "config.toml: model is ignored."
    assert "config.toml: model is ignored." in str(error)
