"""What the system prompt says about the files and the tests of a project."""

import os
import threading
from pathlib import Path
from time import monotonic

import pytest

from bradawl.app.ignored_names import IgnoredNames, is_ignored
from bradawl.app.project_overview import ProjectOverview
from bradawl.app.project_survey import survey_of
from bradawl.workspace.gitignore import is_ignored as is_ignored_slowly
from bradawl.workspace.gitignore import parse_rules
from patience import call_limit, cpu_limit, no_wait


def make(root: Path, files: dict[str, str]) -> None:
    """Files by path; a path that ends in a slash is a folder."""
    for name, text in files.items():
        path = root / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_text(text)


def lines(root: Path, search_path: str = "", home: str = "") -> list[str]:
    return ProjectOverview(str(root), search_path, home, time_s=5).lines()


def command_said(root: Path, search_path: str = "") -> str:
    return "".join(line.removeprefix("tests: ") for line in lines(root, search_path) if line.startswith("tests: "))


# ------------------------------------------------------------------ files


def test_a_small_project_is_listed_whole_with_the_length_of_long_files(tmp_path):
    make(
        tmp_path,
        {
            **{"README.md": "x\n", "src/pkg/a.py": "x\n" * 99, "src/pkg/b.py": "x\n" * 100},
            **{"src/pkg/data/d.bin": "\0\n" * 500, "tests/test_a.py": "x\n" * 1234, "tests/deep/empty/": ""},
            "huge.txt": "x\n" * 200_000,
        },
    )
    assert lines(tmp_path) == [
        "files here (number: lines, from 100 on): README.md, huge.txt (large)",
        "src/pkg/: a.py, b.py 100",
        "src/pkg/data/: d.bin",
        "tests/: deep/, test_a.py 1234",
    ]


def test_hidden_ignored_and_generated_files_are_left_out(tmp_path):
    make(
        tmp_path,
        {
            ".gitignore": "*.log\nout/\n/top.txt\n!keep.log\n",
            "src/.gitignore": "*.pyc",
            **dict.fromkeys((".git/config", ".env", "a.py", "b.log", "keep.log", "out/x.py", "src/out/x.py"), ""),
            **dict.fromkeys(("top.txt", "src/top.txt", "src/b.pyc", "node_modules/x.js", "__pycache__/x"), ""),
            **dict.fromkeys(("env/pyvenv.cfg", "env/bin/python", "vendor/lib/x.go", "venv/x", "src/c.py"), ""),
        },
    )
    (tmp_path / "src" / "__pycache__").mkdir()
    assert lines(tmp_path) == ["files here: a.py, env/, keep.log, vendor/", "src/: c.py, top.txt"]


def test_a_bradawlignore_file_leaves_names_out(tmp_path):
    make(tmp_path, {".bradawlignore": "*.txt\n", "a.py": "", "b.txt": "", "sub/c.txt": "", "sub/d.py": ""})
    assert lines(tmp_path) == ["files here: a.py", "sub/: d.py"]
    assert lines(tmp_path / "sub") == ["files here: d.py"]


def test_a_larger_project_is_listed_in_part_sources_first(tmp_path):
    for number in range(400):
        make(tmp_path, {f"src/package/part{number % 8}/module{number:03}.py": ""})
        make(tmp_path, {f"tests/test_{number:03}.py": ""})
    make(tmp_path, {"setup.py": "x\n" * 120, "docs/a.md": "", "vendor/a/b.go": ""})
    assert lines(tmp_path) == [
        "files here (number: lines, from 100 on): setup.py 120, tests/ (400 files), vendor/",
        "docs/: a.md",
        "src/package/: " + ", ".join(f"part{number}/ (50 files)" for number in range(8)),
    ]


def test_the_listing_of_a_large_project_is_short_and_looks_at_few_files(tmp_path):
    for number in range(60):
        folder = tmp_path / f"folder{number:02}" / "below"
        folder.mkdir(parents=True)
        for name in range(60):
            (folder / f"a_long_name_of_a_file_{name}.py").touch()
    with call_limit(60_000):
        found = survey_of(str(tmp_path), monotonic() + 60)
    assert found and not found.is_whole
    assert 800 < sum(len(folder.files) for folder in found.folders.values()) <= 1_000
    text = "\n".join(lines(tmp_path))
    assert len(text) < 2_000
    assert "folder09/ (60 files), folder10/ (60 files)" in text
    assert "folder59/" in text


def test_a_folder_of_very_many_files_is_cut(tmp_path):
    for number in range(1_500):
        (tmp_path / f"{number}.txt").touch()
    (line,) = lines(tmp_path)
    assert line.startswith("files here: ")
    assert line.endswith(" and at least 440 more")
    assert line.count(", ") == 59


def test_folders_full_of_data_and_package_metadata_are_not_opened(tmp_path):
    for number in range(501):
        make(tmp_path, {f"test/cases/{number}.html": ""})
    make(tmp_path, {"lib/main.py": "x\n" * 3_000, "test/run.py": "", "lib.egg-info/PKG-INFO": ""})
    assert lines(tmp_path) == [
        "files here (number: lines, from 100 on): only folders",
        "lib/: main.py 3000",
        "test/: cases/ (500+ files), run.py",
    ]


def test_long_names_do_not_make_the_listing_long(tmp_path):
    for number in range(40):
        (tmp_path / (f"{number:02}" + "n" * 240)).touch()
    (line,) = lines(tmp_path)
    assert len(line) < 1_600
    assert line.endswith(" and 34 more")


def test_folders_are_read_only_until_the_time_is_over(tmp_path):
    make(tmp_path, {"a/b/c.py": "x\n" * 200, "d.py": "x\n" * 200})
    assert ProjectOverview(str(tmp_path), "", time_s=-1).lines() == ["files here: a/, d.py"]


@pytest.mark.parametrize("is_home", [True, False])
def test_of_the_home_folder_only_the_names_are_read(tmp_path, is_home):
    make(tmp_path, {"Documents/letter.txt": "", "notes.txt": ""})
    found = lines(tmp_path, home=str(tmp_path) if is_home else str(tmp_path.parent))
    letter = [] if is_home else ["Documents/: letter.txt"]
    assert found == ["files here: Documents/, notes.txt" if is_home else "files here: notes.txt", *letter]


def test_a_link_to_a_folder_is_not_followed(tmp_path):
    make(tmp_path, {"real/a.py": ""})
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "broken").symlink_to("nowhere")
    assert lines(tmp_path) == ["files here: broken, loop/", "real/: a.py"]


def test_very_deep_folders_are_not_entered(tmp_path):
    deep = tmp_path / "/".join(["d"] * 300)
    deep.mkdir(parents=True)
    (deep / "x").touch()
    assert lines(tmp_path) == ["files here: only folders", f"{'/'.join(['d'] * 16)}/: d/"]


def test_a_folder_that_is_missing_or_empty_is_no_error(tmp_path):
    assert lines(tmp_path) == ["files here: none"]
    assert lines(tmp_path / "missing") == []


def test_pipes_in_place_of_files_do_not_block(tmp_path):
    for name in ("pyproject.toml", ".gitignore", "package.json", "Makefile", "a.py"):
        os.mkfifo(tmp_path / name)
    with no_wait():
        assert lines(tmp_path) == ["files here: Makefile, a.py, package.json, pyproject.toml"]


def test_a_file_system_that_hangs_is_given_up(tmp_path):
    release = threading.Event()

    class Hanging(ProjectOverview):
        def _find(self) -> None:
            release.wait()

    hanging = Hanging(str(tmp_path), "")
    with no_wait():
        assert hanging.lines() == ["files here: not listed, the file system is slow"]
    release.set()


@pytest.mark.parametrize(
    "rules",
    [
        *("*.log", "/a", "a/", "a/b.log", "b*", "[ab].py", "a", "*.tar.gz", "**/c.py", "a/**", "!a", "*\n!*/\n!*.py"),
        *(
            "*.log\n!keep.log\n",
            "!keep.log\n*.log",
            "# a\n\\#b\na \na\\ ",
            "/*.py",
            "*.",
            "x\r\na\r\n",
            "\ufeffa",
            "/",
            "!",
        ),
        *("a//", "/a/b.log/", "*.log/", "!*.log", "a/b.log\n!b.log"),
    ],
)
def test_ignored_names_are_those_that_the_file_tools_leave_out(rules):
    slow = parse_rules("/w", rules)
    quick = IgnoredNames("/w", rules)
    for path in (
        "a",
        "a/b.log",
        "b.log",
        "keep.log",
        "c.py",
        "a/c.py",
        "x.tar.gz",
        "#b",
        "a ",
        "x",
        "a/keep.log",
        "b",
        "a/a",
    ):
        for is_folder in (False, True):
            absolute, name = f"/w/{path}", path.rpartition("/")[2]
            expected = bool(slow) and is_ignored_slowly((slow,), absolute, is_folder=is_folder)
            assert is_ignored((quick,), absolute, name, is_folder=is_folder) == expected, (path, is_folder)


# ------------------------------------------------------------------ commands


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, ""),
        ({"tests/a.py": ""}, ""),
        ({"tests/conftest.py": ""}, "python -m pytest"),
        ({"conftest.py": ""}, "python -m pytest"),
        ({"pytest.ini": ""}, "python -m pytest"),
        ({"pyproject.toml": "[tool.pytest.ini_options]"}, "python -m pytest"),
        ({"pyproject.toml": "[project]"}, ""),
        ({"setup.cfg": "[tool:pytest]"}, "python -m pytest"),
        ({"tox.ini": "[tox]"}, "tox"),
        ({"tox.ini": "[testenv]\ncommands = pytest"}, "python -m pytest"),
        ({"noxfile.py": ""}, "nox"),
        ({"manage.py": ""}, "python manage.py test"),
        ({"package.json": '{"scripts": {"test": "jest"}}'}, "npm test"),
        ({"package.json": '{"scripts": {"test": "jest"}}', "pnpm-lock.yaml": ""}, "pnpm test"),
        ({"package.json": '{"scripts": {"test": "jest"}}', "yarn.lock": ""}, "yarn test"),
        ({"package.json": '{"scripts": {"test": "bun test"}}', "bun.lock": ""}, "bun run test"),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, ""),
        ({"package.json": '{"scripts": {"test": 3}}'}, ""),
        ({"package.json": '{"scripts": {"test": "node test/compress.js && node test/mocha.js"}}'}, ""),
        ({"package.json": '{"scripts": {"test": "node --x test/all"}}', "test/all.js": ""}, "npm test"),
        ({"package.json": '{"scripts": {"test": "A=1 mocha test/*.js"}}'}, "npm test"),
        ({"package.json": '{"scripts": "x"}'}, ""),
        ({"package.json": "{"}, ""),
        ({"Cargo.toml": "[package]"}, "cargo test"),
        ({"Cargo.toml": "[workspace]"}, "cargo test --workspace"),
        ({"go.mod": ""}, "go test ./..."),
        ({"Makefile": "all: x\n\ntest: x\n\tgo test\n"}, "make test"),
        ({"Makefile": "check:\n"}, "make check"),
        ({"Makefile": "test := 3\ntests:\n.PHONY: test\n"}, ""),
        ({"justfile": "test *args:\n  x\n"}, "just test"),
        ({"justfile": "test := 'x'\n"}, ""),
        ({"gradlew": "", "pom.xml": ""}, "./gradlew test"),
        ({"pom.xml": ""}, "mvn test"),
        ({"Makefile": "test:", "pyproject.toml": "pytest"}, "python -m pytest, or make test"),
        ({"web/package.json": '{"scripts": {"test": "x"}}', "api/pytest.ini": ""}, "in web/: npm test"),
        (
            {"web/package.json": '{"scripts": {"test": "x"}}', "api/pytest.ini": "", "api/setup.py": ""},
            "in api/: python -m pytest; in web/: npm test",
        ),
        ({"packages/a/package.json": '{"scripts": {"test": "x"}}'}, "in packages/a/: npm test"),
        (
            {"conftest.py": "", "sub/setup.py": "", "sub/conftest.py": "", "ui/go.mod": ""},
            "python -m pytest; in ui/: go test ./...",
        ),
    ],
)
def test_the_command_for_the_tests_is_told_from_configuration_files(tmp_path, files, said):
    make(tmp_path, files)
    assert command_said(tmp_path) == said


@pytest.mark.parametrize(
    ("files", "programs", "said"),
    [
        ({".venv/bin/python": ""}, (), ".venv/bin/python -m pytest"),
        ({"venv/bin/python": ""}, ("python",), "venv/bin/python -m pytest"),
        ({"uv.lock": ""}, ("uv",), "uv run pytest"),
        ({"uv.lock": ""}, ("python3",), "python3 -m pytest"),
        ({"uv.lock": "", ".venv/bin/python": ""}, ("uv",), ".venv/bin/python -m pytest"),
        ({"poetry.lock": ""}, ("poetry",), "poetry run pytest"),
        ({}, ("python", "python3"), "python -m pytest"),
        ({}, ("python3",), "python3 -m pytest"),
        ({}, (), "python -m pytest"),
    ],
)
def test_the_python_that_works_is_named(tmp_path, files, programs, said):
    project, bin_ = tmp_path / "project", tmp_path / "bin"
    make(project, files | {"pytest.ini": ""})
    for program in (*(bin_ / name for name in programs), *project.glob("*/bin/python")):
        program.parent.mkdir(exist_ok=True)
        program.touch(0o755)
        program.chmod(0o755)
    assert command_said(project, f"{tmp_path}/none:{bin_}") == said


def test_a_python_that_is_not_the_usual_one_is_named_also_without_tests(tmp_path):
    make(tmp_path, {"setup.py": "", ".venv/bin/python": ""})
    assert lines(tmp_path)[1:] == []
    (tmp_path / ".venv/bin/python").chmod(0o755)
    assert lines(tmp_path)[1:] == ["python: .venv/bin/python"]


def test_in_a_folder_of_a_repository_what_is_above_counts(tmp_path):
    make(tmp_path, {"pyproject.toml": "pytest", "Makefile": "test:", ".venv/bin/python": "", "a/b/c.py": ""})
    (tmp_path / ".venv/bin/python").chmod(0o755)
    assert command_said(tmp_path / "a/b") == ""
    (tmp_path / ".git").mkdir()
    assert command_said(tmp_path / "a/b") == "../../.venv/bin/python -m pytest, or make -C ../.. test"
    make(tmp_path, {"a/b/package.json": '{"scripts": {"test": "x"}}', "pnpm-lock.yaml": ""})
    assert command_said(tmp_path / "a/b") == "pnpm test"
    make(tmp_path, {"a/b/setup.py": "pytest", "a/b/conftest.py": ""})
    assert command_said(tmp_path / "a/b") == "../../.venv/bin/python -m pytest, or pnpm test"


def test_no_text_of_a_project_is_repeated(tmp_path):
    make(tmp_path, {"package.json": '{"scripts": {"test": "OBEY", "OBEY": "x"}}', "Makefile": "test: OBEY\n\tOBEY"})
    assert command_said(tmp_path) == "npm test, or make test"


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a*a*a*a*a*a*a*a*a*b", "a" * 250),
        ("**/*a/**/*a/**/*a/**/*a/**/*b", "/".join(["a" * 250] * 12)),
        ("*?*?*?*?*?*?*?*?*?*b", "a" * 250),
        ("*[a]*[a]*[a]*[a]*[a]*[a]*b", "a" * 250),
        ("**/**/**/**/**/**/**/**/b", "/".join("a" * 40)),
    ],
)
def test_no_pattern_of_a_gitignore_takes_long(tmp_path, pattern, path):
    (rules,) = [parse_rules(str(tmp_path), f"{pattern}\n")]
    with cpu_limit(1.0):
        assert rules is not None and rules.verdict(f"{tmp_path}/{path}", is_folder=False) is None


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*a*b", "xaab", True),
        ("*a*b", "xaba", False),
        ("a*b*c", "abcbc", True),
        ("*.tar.*z", "x.tar.tar.gz", True),
        ("x*y/*z", "xay/az", True),
        ("x*y/*z", "xa/y/az", False),
        ("*ab*ab", "aabab", True),
        ("*a?b*", "aaab", True),
        ("**/a*c/**/d*", "q/abc/e/f/d", True),
    ],
)
def test_stars_match_as_before(tmp_path, pattern, path, matches):
    rules = parse_rules(str(tmp_path), f"{pattern}\n")
    assert rules is not None and (rules.verdict(f"{tmp_path}/{path}", is_folder=False) is True) is matches
