"""A call outside the sandbox shows the exported variables that it would use, and asks about dangerous ones."""

import json
from pathlib import Path

import pytest

from bradawl import ModelSettings, Settings, build_agent
from bradawl.app.settings.permission_values import RuleText
from bradawl.app.tui.plain.approver import granted_text
from bradawl.core.permissions import Answer, Question
from bradawl.safety.environment_variables import is_execution_relevant, may_affect_program, redirects_clients


class Asked:
    """An approver that permits every call, once each, and records the questions."""

    def __init__(self) -> None:
        self.questions: list[Question] = []

    async def ask(self, question: Question) -> Answer:
        self.questions.append(question)
        return Answer(True, "user")

    async def choose(self, choice: object) -> None:
        return None


async def asked(tmp_path: Path, *lines: str) -> list[Question]:
    """Questions about these commands, without a sandbox and with a rule that allows `tar` and `npm`."""
    script = [
        {"tool_calls": [{"id": f"c{n}", "name": "bash", "arguments": {"command": line}}]}
        for n, line in enumerate(lines)
    ]
    (tmp_path / "script.json").write_text(json.dumps([*script, {"text": "done"}]))
    work = tmp_path / "work"
    work.mkdir()
    approver = Asked()
    settings = Settings(
        model=ModelSettings("scripted", str(tmp_path / "script.json")),
        cwd=str(work),
        home=str(tmp_path / "data"),
        user_home=str(tmp_path),
        environment={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        rules=tuple(RuleText("allow", f"Bash({name} *)", "user", str(tmp_path)) for name in ("tar", "npm")),
        sandbox="off",
        user_tools=False,
    )
    agent = build_agent(settings, approver)

    try:
        await agent.run("go")
    finally:
        await agent.aclose()
    return approver.questions


NAMES = [
    *("CVS_RSH", "RSYNC_CONNECT_PROG", "DBUS_SESSION_BUS_ADDRESS", "GNUPGHOME", "TWINE_REPOSITORY_URL", "S3_ENDPOINT"),
    *("VAULT_ADDR", "HTTPS_PROXY", "https_proxy", "API_HOST", "BASE_URL", "PIP_EXTRA_INDEX_URL", "FOO_REGISTRY"),
    *("KUBECONFIG", "DOCKER_HOST", "AWS_PROFILE", "SSH_AUTH_SOCK", "EDITOR", "VISUAL", "PAGER", "BROWSER", "CC", "LD"),
    *("MAKEFLAGS", "HOSTCFLAGS", "CARGO_TARGET_X_RUNNER", "RUSTC_WRAPPER", "NPM_CONFIG_REGISTRY", "UV_DEFAULT_INDEX"),
    *("npm_config_registry", "DATABASE_URL", "REDIS_URI", "MQ_BROKERS", "SENTRY_DSN", "PGHOST", "GIT_SSH", "GOPROXY"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_variable_that_selects_a_program_or_a_host_is_dangerous(name: str) -> None:
    assert is_execution_relevant(name) or redirects_clients(name)


@pytest.mark.parametrize("name", ["DEBUG", "CI", "LANG", "NODE_ENV", "PORT", "ACME_ENV", "VERBOSE", "A", "NO_COLOR"])
def test_an_ordinary_variable_is_not_dangerous(name: str) -> None:
    assert not is_execution_relevant(name)
    assert not redirects_clients(name)


@pytest.mark.parametrize(
    "value", ["/tmp/x", "evil.example", "evil:80", "user@evil", "a b", "--url=x", "$X", "`x`", "10.0.0.1", "é", "a\nb"]
)
def test_an_unknown_variable_is_judged_by_its_value(value: str) -> None:
    assert may_affect_program("ACME_UPLINK", value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("STAGE", "test"),
        ("N", "12"),
        ("A", ""),
        ("B", None),
        ("LANG", "C.UTF-8"),
        ("LC_ALL", "de_DE.UTF-8"),
        ("TZ", "Europe/Rome"),
    ],
)
def test_an_unknown_variable_with_a_plain_word_is_not_dangerous(name: str, value: str | None) -> None:
    assert not may_affect_program(name, value)


@pytest.mark.parametrize("line", ["API_URL=http://evil npm ci", "ACME=evil.example npm ci", "PATH=x npm ci"])
async def test_an_assignment_before_the_command_asks_like_an_exported_variable(tmp_path: Path, line: str) -> None:
    (question,) = await asked(tmp_path, line)
    assert line in question.call.raw_arguments


async def test_an_assignment_of_a_plain_word_before_the_command_does_not_ask(tmp_path: Path) -> None:
    assert not await asked(tmp_path, "STAGE=test npm ci", "LC_ALL=C.UTF-8 npm ci")


@pytest.mark.parametrize(
    "name",
    ["NPM_CONFIG_REGISTRY", "TAR_OPTIONS", "API_HOST", "CVS_RSH", "GNUPGHOME", "BORG_PASSCOMMAND", "ACME_UPLINK"],
)
async def test_an_allowed_call_outside_the_sandbox_asks_and_shows_dangerous_variables(
    tmp_path: Path, name: str
) -> None:
    questions = await asked(tmp_path, f"export {name}=http://evil.example/", "tar --version; npm ci")
    (question,) = (one for one in questions if "npm ci" in one.call.raw_arguments)
    assert name in question.reason
    assert f"with {name}=http://evil.example/, from an earlier command" in granted_text(question)


async def test_without_dangerous_variables_the_rule_applies_and_ordinary_ones_are_only_shown(tmp_path: Path) -> None:
    questions = await asked(tmp_path, "export STAGE=test", "tar --version", "make x")
    (question,) = questions
    assert "make x" in question.call.raw_arguments
    assert "with STAGE=test, from an earlier command" in granted_text(question)


async def test_the_value_of_a_variable_is_shown_escaped(tmp_path: Path) -> None:
    questions = await asked(tmp_path, "export A_URL=$'x\\n  y = once\\e[2J'", "make x")
    text = granted_text(questions[-1])
    assert "\x1b" not in text
    assert "A_URL=x\\n  y = once" in text
