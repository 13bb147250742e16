"""Published files name no folder of one machine and no package index."""

import re

import pytest
from source_tree import text_files

INDEX_HOST = re.compile(
    r"pypi\.org|python[h]osted|registry\.npm[j]s|index-url\s*[= ]\s*http|anaconda\.or[g]"
    r"|crates\.i[o]|proxy\.golan[g]|sum\.golan[g]|download\.pytorc[h]",
    re.IGNORECASE,
)
# A folder of one machine or one person: /work/..., /root/..., /home/NAME/..., /Users/NAME/...
MACHINE_PATH = re.compile(r"(?<![\w.~$}*/>-])/(?:work/\w|root/[\w.]|home/\w+/|Users/\w+/|opt/(?:pypi|wheels))")
SAMPLES_ALLOWED = ("tests/", "src/bradawl/testing/")


def findings(pattern: re.Pattern[str], path: str, text: str) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()[:100]}"
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_names_a_package_index():
    published = list(text_files())
    assert published
    assert not [found for path, text in published for found in findings(INDEX_HOST, path, text)]


def test_no_file_names_a_folder_of_a_particular_machine():
    published = [(path, text) for path, text in text_files() if not path.startswith(SAMPLES_ALLOWED)]
    assert published
    assert not [found for path, text in published for found in findings(MACHINE_PATH, path, text)]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (INDEX_HOST, "pip install --index-url" + " https://example.org/simple x"),
        (INDEX_HOST, "https://files.python" + "hosted.org/packages/x.whl"),
        (INDEX_HOST, "index.crates." + "io"),
        (INDEX_HOST, "GOPROXY=https://proxy.gol" + "ang.org"),
        (MACHINE_PATH, "cd /home/" + "ada/bradawl"),
        (MACHINE_PATH, 'open("/root/' + '.bashrc")'),
        (MACHINE_PATH, "see /work/" + "x/README.md"),
    ],
)
def test_the_patterns_find_machine_paths_and_index_hosts(pattern: re.Pattern[str], text: str):
    assert findings(pattern, "x", text)


@pytest.mark.parametrize(
    "text", ["~/work/x", "src/root/x", "https://host/home/x/", "/usr/bin/env bash", "$HOME/root/x"]
)
def test_the_patterns_do_not_match_other_paths(text: str):
    assert not findings(MACHINE_PATH, "x", text)


def test_text_ends_with_a_newline_and_has_no_windows_line_ends():
    for path, text in text_files():
        if path.startswith("tests/") and not path.endswith(".py"):
            continue  # recorded responses of servers may end in any way
        assert not text or text.endswith("\n"), path
        assert "\r\n" not in text, path
