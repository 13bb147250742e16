"""Built-in rules for protected and secret paths, the lists behind them, and names of files that hold secrets."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.effects import Effects
from bradawl.core.permissions import Allow, Ask, Decision, Deny, Mode, Policy, Request, decide
from bradawl.safety.permissions.protected_paths import (
    built_in_rules,
    credentials,
    is_secret_name,
    is_system,
    protected_names,
    search_exclusion,
    watched_names,
    write_refusal,
)
from patience import cpu_limit

WORKSPACE, HOME = "/home/u/project", "/home/u"


def judged(
    mode: Mode, *, reads: str = "", writes: str = "", roots: tuple[str, ...] = (WORKSPACE,), **options: Any
) -> Decision:
    policy = Policy(mode, rules=built_in_rules(roots, HOME, **options), roots=roots)
    effects = Effects(reads=(reads,) if reads else (), writes=(writes,) if writes else ())
    return decide(policy, Request("tool", "digest", effects))


@pytest.mark.parametrize("name", protected_names())
def test_file_tools_ask_before_writing_paths_that_programs_may_never_write(name):
    assert not isinstance(judged("accept-edits", writes=f"{WORKSPACE}/{name.replace('*', 'x')}"), Allow)


@pytest.mark.parametrize("name", watched_names())
def test_no_file_tool_creates_paths_that_must_stay_missing(name):
    below = "/origin" if name in (".git/remotes", ".git/branches") else ""  # the empty folders themselves do nothing
    assert isinstance(judged("bypass", writes=f"{WORKSPACE}/{name}{below}"), Deny)


@pytest.mark.parametrize("place", credentials(HOME))
@pytest.mark.parametrize("below", ["", "/x"])
def test_credentials_are_asked_about_even_in_a_workspace(place, below):
    assert isinstance(judged("auto", reads=place + below, roots=(HOME,)), Ask)
    assert not isinstance(judged("auto", writes=place + below, roots=(HOME,)), Allow)


@pytest.mark.parametrize("mode", ["default", "accept-edits", "plan", "auto", "bypass"])
@pytest.mark.parametrize(
    "place",
    [
        "/home/u/.bashrc",
        f"{WORKSPACE}/.git/hooks/x",
        f"{WORKSPACE}/.bradawl/x",
        "/proc/sysrq-trigger",
        "/sys/x",
        "/dev/sda",
    ],
)
def test_no_mode_writes_a_protected_path(mode, place):
    assert isinstance(judged(mode, writes=place), Deny)
    assert write_refusal(place, (WORKSPACE,), HOME)


def test_system_folders_are_written_only_in_bypass_mode():
    modes: tuple[Mode, ...] = ("default", "accept-edits", "plan", "auto", "bypass")
    decided = [type(judged(mode, writes="/etc/hosts")) for mode in modes]
    assert decided == [Deny, Deny, Deny, Deny, Allow]
    assert not write_refusal("/etc/hosts", (WORKSPACE,), HOME)
    assert is_system("/etc/hosts", (WORKSPACE,))


@pytest.mark.parametrize(
    "root",
    ["/usr/src/app", "/etc/nginx", "/var/lib/jenkins/x", "/home/u/.config/fish", "/home/u/.oh-my-zsh", "/root/.ssh/x"],
)
def test_a_workspace_inside_a_protected_folder_can_be_edited(root):
    assert isinstance(judged("accept-edits", writes=f"{root}/file", roots=(root,)), Allow)
    assert not isinstance(judged("accept-edits", writes=f"{root}-other/file", roots=(root,)), Allow)
    assert isinstance(judged("accept-edits", writes=f"{root}/.git/config", roots=(root,)), Deny)


def test_the_root_folder_as_a_workspace_permits_nothing_more():
    assert isinstance(judged("accept-edits", writes="/etc/hosts", roots=("/",)), Deny)
    assert isinstance(judged("accept-edits", writes="/home/u/.bashrc", roots=("/",)), Deny)


def test_bradawls_own_folders_are_hidden_except_for_readable_parts():
    own, readable = ("/data/bradawl",), ("/data/bradawl/blobs/x",)
    found = [
        judged("auto", reads=path, own=own, readable=readable)
        for path in ("/data/bradawl/sessions/a", "/data/bradawl/blobs/x/1", "/data/bradawl/blobs/xy", "/data/bradawl2")
    ]
    assert [type(one) for one in found] == [Ask, Allow, Ask, Allow]
    assert isinstance(judged("bypass", reads="/data/bradawl/credentials.toml", own=own), Deny)
    assert isinstance(judged("bypass", writes="/data/bradawl/blobs/x/1", own=own, readable=readable), Deny)


def test_without_a_known_home_all_home_folders_are_protected():
    rules = built_in_rules((WORKSPACE,), "")
    policy = Policy("bypass", rules=rules, roots=(WORKSPACE,))
    assert isinstance(decide(policy, Request("tool", "", Effects(writes=("/home/x/.bashrc",)))), Deny)
    assert isinstance(decide(policy, Request("tool", "", Effects(writes=("/.bashrc",)))), Allow)
    assert credentials("") == ()


@pytest.mark.parametrize(
    "name",
    [
        *(".env", ".ENV", ".env.local", ".env-prod", ".env~", "#.env#", ".envrc", "id_rsa", "ID_ED25519"),
        *(".netrc", ".netrc~", "id_rsa.bak", ".git-credentials.lock"),
    ],
)
def test_names_of_files_with_secrets_are_recognised(name):
    assert is_secret_name(name)
    assert search_exclusion()(f"/ws/{name}")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "env",
        ".env.example",
        ".env.sample",
        ".env.local.template",
        ".environment",
        "id_rsa.pub",
        "#.env.example#",
        "a.env.py",
        ".envs",
    ],
)
def test_similar_names_of_other_files_are_not(name):
    assert not is_secret_name(name)
    assert not search_exclusion()(f"/ws/{name}")


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=12)


@given(st.lists(NAMES | st.sampled_from([".git", "hooks", ".bradawl", "config", ".env", "modules"]), max_size=6))
def test_files_in_git_and_bradawls_folders_are_never_written_without_a_question(parts):
    path = "/".join([WORKSPACE, *parts])
    is_in = {".git", ".bradawl"} & {part.casefold() for part in parts}
    decision = judged("accept-edits", writes=path)
    assert not (is_in and isinstance(decision, Allow))


@pytest.mark.parametrize(
    "unit", [".git/", "config/", "a", ".git/modules/", ".env.", "secret", "/", "\n", "%2", "a:", "hooks/", ".g"]
)
def test_long_paths_take_linear_time(unit):
    path = (WORKSPACE + "/" + unit * 4096)[:4096]
    judged("accept-edits", writes=path)  # compiles the rules
    with cpu_limit(0.2):
        judged("accept-edits", writes=path)
        judged("accept-edits", reads=path)


@pytest.mark.parametrize("mode", ["accept-edits", "auto"])
@pytest.mark.parametrize(
    "name",
    [
        *(".venv/bin/pytest", "venv/bin/activate", ".venv/lib/python3.11/site-packages/x.py", "env/bin/python3"),
        *("my-venv/bin/ruff", ".venv/Scripts/python.exe", "venv/pyvenv.cfg", "sub/.tox/py311/bin/x"),
        *("node_modules/.bin/eslint", "web/node_modules/eslint/index.js", "vendor/bin/phpunit", "vendor/bundle/x.rb"),
        *("AGENTS.md", "sub/AGENTS.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", ".cursorrules", ".windsurfrules"),
        *(".github/copilot-instructions.md", ".cursor/rules/x.mdc", ".claude/settings.json", ".clinerules/a.md"),
        *(
            ".roo/rules/x",
            ".kiro/steering/a.md",
            ".aider.conf.yml",
            "opencode.json",
            ".vscode/tasks.json",
            ".idea/x.xml",
        ),
        *(
            "sitecustomize.py",
            "src/usercustomize.py",
            "src/x.pth",
            ".envrc",
            ".direnv/x",
            ".gitmodules",
        ),
        *("agents.md", "Claude.MD", "AGENTS.md.", "AGENTS.md ", "AGENTS.md::$DATA", ".VENV/BIN/x", ".cursorrules. ."),
        *("AG\u200bENTS.md", ".Vscode/x", "NODE_MODULES/.BIN/x", "src/__pycache__/x.cpython-311.pyc"),
    ],
)
def test_files_that_run_later_or_configure_tools_are_asked_about(mode, name):
    assert isinstance(judged(mode, writes=f"{WORKSPACE}/{name}"), Ask)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "README.md",
            "src/agents.py",
            "docs/agents-guide.md",
            "Makefile",
            "package.json",
            "conftest.py",
            "pyproject.toml",
        ),
        *(
            ".gitignore",
            "src/bin/main.rs",
            "bin/tool",
            "scripts/build.sh",
            "vendor/lib/x.go",
            "src/venv.py",
            "Dockerfile",
        ),
        *(
            "node_modules/.cache/x",
            "src/claude/client.py",
            "lib/cursor.ts",
            "src/site.py",
            "packages/x.py",
            ".eslintrc.js",
        ),
        *(
            ".editorconfig",
            "src/continue.py",
            "src/python.py",
            "tests/run/x.py",
            "src/rules",
            ".prettierrc",
            ".dockerignore",
        ),
    ],
)
def test_ordinary_files_are_edited_without_a_question(name):
    assert isinstance(judged("accept-edits", writes=f"{WORKSPACE}/{name}"), Allow)


@pytest.mark.parametrize("name", ["sudoers", "sudoers.d/x", "passwd", "shadow", "cron.d/x", "pam.d/sshd"])
def test_no_mode_writes_files_that_decide_permissions(name):
    assert isinstance(judged("bypass", writes=f"/etc/{name}"), Deny)


_SCRATCH = f"{HOME}/.local/share/bradawl/projects/p/tmp/01M85F1K59CFJ6BRCX1SEN8T2P"
_OF_ANOTHER = f"{HOME}/.local/share/bradawl/projects/p/tmp/01M85F1K59CFJ6BRCX1SEN8T2Q"


@pytest.mark.parametrize("place", [_SCRATCH, f"{_SCRATCH}/a/credentials.toml"])
def test_only_the_folder_of_the_present_session_is_no_part_of_bradawls_data(place):
    roots = (WORKSPACE, _SCRATCH)
    assert isinstance(judged("accept-edits", writes=f"{_SCRATCH}/x", roots=roots, scratch=_SCRATCH), Allow)
    assert not write_refusal(place, roots, HOME, (), _SCRATCH)
    assert not search_exclusion(HOME, (), _SCRATCH)(f"{_SCRATCH}/x")
    other = place.replace(_SCRATCH, _OF_ANOTHER)
    for present in ("", _SCRATCH):
        assert isinstance(judged("auto", reads=f"{other}/x", scratch=present), Ask | Deny)
        assert isinstance(judged("bypass", writes=other, scratch=present), Deny)
        assert write_refusal(other, roots, HOME, (), present)
        assert search_exclusion(HOME, (), present)(other)
