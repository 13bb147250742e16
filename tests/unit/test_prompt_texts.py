"""`--system-prompt` and `--append-system-prompt`: as a text or a file, from every source but a project's file."""

import os

import pytest
from settings_files import settings_loader

from bradawl.core.errors import SettingsError


@pytest.fixture
def load(tmp_path):
    return settings_loader(tmp_path)


MODEL = {"model": "groq/x"}


def test_a_text_is_taken_from_a_flag_a_variable_or_the_users_file(load):
    assert load({**MODEL, "system_prompt": " Be\nbrief. "}).system_prompt == "Be\nbrief."
    assert load(MODEL, BRADAWL_SYSTEM_PROMPT="Be brief.").system_prompt == "Be brief."
    assert load(MODEL, "append_system_prompt = '''\nBe\nbrief.\n'''").append_system_prompt == "Be\nbrief."
    assert (load(MODEL).system_prompt, load(MODEL).append_system_prompt) == ("", "")


def test_a_file_is_found_from_the_working_directory_the_home_folder_and_the_users_file(load, tmp_path):
    (tmp_path / "project/rules.md").write_bytes(b"\xef\xbb\xbfBe\r\nbrief.\n")
    (tmp_path / "home.md").write_text("From home.")
    (tmp_path / ".config/bradawl/mine.md").write_text("Mine.")
    assert load({**MODEL, "system_prompt_file": "rules.md"}).system_prompt == "Be\nbrief."
    assert load(MODEL, BRADAWL_APPEND_SYSTEM_PROMPT_FILE="~/home.md").append_system_prompt == "From home."
    assert load(MODEL, 'append_system_prompt_file = "mine.md"').append_system_prompt == "Mine."


def test_the_stronger_source_counts_whichever_form_it_has(load, tmp_path):
    (tmp_path / "project/rules.md").write_text("From the file.")
    file, variable = {"system_prompt_file": "rules.md"}, {"BRADAWL_SYSTEM_PROMPT": "From the variable."}
    assert load({**MODEL, **file}, **variable).system_prompt == "From the file."
    assert load(MODEL, 'system_prompt_file = "none.md"', **variable).system_prompt == "From the variable."


def test_both_forms_from_one_source_are_refused(load):
    with pytest.raises(SettingsError, match="--system-prompt and --system-prompt-file both give this text; use one"):
        load({**MODEL, "system_prompt": "a", "system_prompt_file": "b"})


@pytest.mark.parametrize("line", ["system_prompt = 'x'", "append_system_prompt = 'x'", "system_prompt_file = 'x'"])
def test_a_projects_file_may_not_set_them(load, line):
    settings = load(MODEL, "", line)
    assert (settings.system_prompt, settings.append_system_prompt) == ("", "")
    assert any(line.split()[0] in warning for warning in settings.warnings)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.md", None, "none.md is not there; check the path"),
        ("folder", "folder", "folder is a folder; name a text file in it"),
        ("empty.md", b" \n", "empty.md is empty; give a text"),
        ("binary.md", b"\xff\xfe\0\0", "binary.md is not UTF-8 text; name a text file"),
        ("zero.md", b"a\0b", "zero.md is not a text"),
        ("long.md", b"x" * 100_001, "more than 100,000; shorten it"),
        ("pipe", "pipe", "it is not a regular file"),
    ],
)
def test_a_file_that_can_not_be_used_is_named_with_what_to_do(load, tmp_path, name, content, said):
    path = tmp_path / "project" / name
    if content == "folder":
        path.mkdir()
    elif content == "pipe":
        os.mkfifo(path)
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError, match="--append-system-prompt-file: ") as error:
        load({**MODEL, "append_system_prompt_file": name})
    assert said in str(error.value)


@pytest.mark.parametrize("text", ["", " \n ", "a\x1b[2Jb", "a\0b"])
def test_a_text_that_is_empty_or_has_control_characters_is_refused(load, text):
    with pytest.raises(SettingsError, match="--system-prompt "):
        load({**MODEL, "system_prompt": text})


def test_an_empty_flag_is_wrong_usage(tmp_path):
    from cli_world import World

    world = World(tmp_path, [])
    assert world.run("-p", "go", "--system-prompt", "") == 2
    assert world.err == "bradawl: --system-prompt is empty; give a text, or leave it out.\n"
    assert world.model is None
