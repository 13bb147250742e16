"""An embedded agent, however it is built, deletes no home folder and writes no file that runs at the next login."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from first_result import first_result

from bradawl import Agent, ModelSettings, Settings, build_agent, build_tools, load_settings, tool
from bradawl.agent.middleware import Finish, Middleware, StepOutcome
from bradawl.core.effects import Effects
from bradawl.core.errors import SettingsError
from bradawl.core.events import TurnFinished
from bradawl.core.permissions import Answer, Policy
from bradawl.core.rules import Rule
from bradawl.session.store import LocalStore
from bradawl.testing.fakes import FakeHook, ScriptedApprover
from bradawl.testing.scripted import ScriptedModel
from bradawl.tools.bash import Bash
from bradawl.tools.edit_file import EditFile
from bradawl.tools.read_file import ReadFile
from bradawl.tools.write_file import WriteFile
from bradawl.workspace.files import LocalFiles
from bradawl.workspace.machine import SystemClock, SystemIds
from bradawl.workspace.processes import LocalProcesses


@tool(writes="path")
def put(path: str, text: str) -> str:
    """Write a file, as a tool of an embedding program does."""
    file = Path(path).expanduser()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return "written"


class WrappedBash:
    """A tool that delegates to the built-in `Bash`."""

    spec = Bash().spec
    params = Bash().params

    def effects(self, params: Any, context: Any) -> Any:
        return Bash().effects(params, context)

    async def run(self, params: Any, context: Any) -> Any:
        return await Bash().run(params, context)


class Machine:
    """A temporary home folder with files to protect, and a workspace beside it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home, self.work = root / "house", root / "work"
        for folder in (self.home / ".ssh", self.work):
            folder.mkdir(parents=True)
        for name in ("kept", ".bashrc", ".ssh/id_ed25519"):
            (self.home / name).write_text("KEY\n")
        (self.home / ".ssh" / "authorized_keys").write_text("mine\n")
        (self.work / "a.txt").write_text("a\n")
        self.environment = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "TMPDIR": os.environ["TMPDIR"]}

    def settings(self, **changes: Any) -> Settings:
        script = str(self.root / "script.json")
        given = {
            "user_home": str(self.home),
            "permission_mode": "bypass",
            "sandbox": "off",
            "headless": True,
            **changes,
        }
        model = ModelSettings("scripted", script)
        return Settings(
            model=model, cwd=str(self.work), home=str(self.root / "data"), environment=self.environment, **given
        )

    def state(self) -> dict[str, str]:
        return {str(p.relative_to(self.home)): p.read_text() for p in self.home.rglob("*") if p.is_file()}

    def answer(self, make: "Make", name: str, arguments: dict[str, Any]) -> str:
        """Text of the result of one call in a whole agent."""
        steps = [{"tool_calls": [{"id": "c", "name": name, "arguments": arguments}]}, {"text": "done"}]
        (self.root / "script.json").write_text(json.dumps(steps))
        agent = make(self)
        agent.run_sync("go")
        return first_result(agent)


Make = Callable[[Machine], Agent]


def allowing() -> ScriptedApprover:
    return ScriptedApprover([Answer(True, "user", "session")] * 9)


async def system_prompt_text() -> str:
    return "You are a test."


def built_by_hand(machine: Machine, policy: Policy, files: LocalFiles, **changes: Any) -> Agent:
    processes = LocalProcesses(machine.environment)
    return Agent(
        **{
            "model": ScriptedModel(str(machine.root / "script.json")),
            "tools": (Bash(), ReadFile(), WriteFile(), EditFile(), put),
            "store": LocalStore(str(machine.root / "data"), str(machine.work), SystemClock(), SystemIds()),
            "files": files,
            "processes": processes,
            "approver": allowing(),
            "clock": SystemClock(),
            "ids": SystemIds(),
            "policy": lambda: policy,
            "system_prompt": system_prompt_text,
            "project": str(machine.work),
            "on_close": processes.close,
            **changes,
        }
    )


AGENTS: dict[str, Make] = {
    "settings": lambda p: build_agent(p.settings(), extra_tools=[put]),
    "settings without a home": lambda p: build_agent(p.settings(user_home=""), extra_tools=[put]),
    "approver": lambda p: build_agent(
        p.settings(permission_mode="default", headless=False), allowing(), extra_tools=[put]
    ),
    "accept-edits": lambda p: build_agent(p.settings(permission_mode="accept-edits"), allowing(), extra_tools=[put]),
    "the list and one tool": lambda p: build_agent(p.settings(), tools=[*build_tools(), put]),
    "tools of settings": lambda p: build_agent(p.settings(), tools=[*build_tools(p.settings()), put]),
    "an exact list": lambda p: build_agent(p.settings(), tools=[Bash(), WriteFile(), EditFile(), ReadFile(), put]),
    "a list and an extra tool": lambda p: build_agent(
        p.settings(), tools=[Bash(), WriteFile(), EditFile(), ReadFile()], extra_tools=[put]
    ),
    "a wrapped tool": lambda p: build_agent(
        p.settings(), tools=[WrappedBash(), WriteFile(), EditFile(), ReadFile(), put]
    ),
    "by hand, bypass": lambda p: built_by_hand(p, Policy("bypass"), LocalFiles(str(p.home))),
    "by hand, default": lambda p: built_by_hand(p, Policy(), LocalFiles(str(p.home))),
    "by hand, with a rule": lambda p: built_by_hand(
        p, Policy("bypass", rules=(Rule("deny", "run", words=("x",)),)), LocalFiles(str(p.home))
    ),
    "by hand, all is a root": lambda p: built_by_hand(p, Policy("accept-edits", roots=("/",)), LocalFiles(str(p.home))),
    "by hand, home is a root": lambda p: built_by_hand(
        p, Policy("bypass", roots=(str(p.home),)), LocalFiles(str(p.home))
    ),
    "by hand, a wrapped tool": lambda p: built_by_hand(
        p, Policy("bypass"), LocalFiles(str(p.home)), tools=(WrappedBash(), WriteFile(), EditFile(), ReadFile(), put)
    ),
}

DELETING = [
    "rm -rf ~",
    'rm -rf "$HOME"',
    "rm -rf ${HOME}/*",
    "cd ~ && rm -rf *",
    "cd && rm -rf .ssh kept",
    "find ~ -delete",
    "find $HOME -type f -exec rm {} +",
    "bash -c 'rm -rf ~'",
    "H=$HOME; rm -rf $H",
    "rm -rf ~/.ssh",
    "mv ~ /nowhere",
]
PERSISTING = [
    "echo new >> ~/.ssh/authorized_keys",
    "cp a.txt ~/.bashrc",
    "tee -a $HOME/.bashrc < a.txt",
    "ln -sf $PWD/a.txt ~/.bashrc",
    "sed -i s/KEY/x/ ~/.bashrc",
]


@pytest.mark.parametrize("made", AGENTS)
def test_no_bash_command_deletes_the_home_folder_or_changes_login_files(tmp_path: Path, made: str) -> None:
    machine = Machine(tmp_path)
    before = machine.state()
    for line in (*DELETING[:6], *PERSISTING[:2]):
        answer = machine.answer(AGENTS[made], "bash", {"command": line})
        assert machine.state() == before, (line, answer)
        assert "was not run" in answer, (line, answer)


@pytest.mark.parametrize("line", DELETING[:4])
def test_without_a_configured_home_folder_that_of_the_user_database_is_protected(tmp_path: Path, line: str) -> None:
    machine = Machine(tmp_path)
    before = machine.state()
    answer = machine.answer(lambda p: built_by_hand(p, Policy("bypass"), LocalFiles()), "bash", {"command": line})
    assert machine.state() == before, answer


@pytest.mark.parametrize("made", ["the list and one tool", "by hand, bypass"])
@pytest.mark.parametrize("line", [*DELETING, *PERSISTING])
def test_no_spelling_of_the_command_gets_around_the_refusal(tmp_path: Path, made: str, line: str) -> None:
    machine = Machine(tmp_path)
    before = machine.state()
    answer = machine.answer(AGENTS[made], "bash", {"command": line})
    assert machine.state() == before, answer


def by_a_link(machine: Machine) -> str:
    (machine.root / "link").symlink_to(machine.home)
    return str(machine.root / "link")


OTHER_NAMES: dict[str, Callable[[Machine], str]] = {
    "a link": by_a_link,
    "two slashes": lambda machine: str(machine.home).replace("/house", "//house"),
    "dots": lambda machine: f"{machine.work}/../house/.",
    "a slash behind": lambda machine: f"{machine.home}/",
}


@pytest.mark.parametrize("other_name", OTHER_NAMES)
def test_a_home_folder_is_protected_under_every_name(tmp_path: Path, other_name: str) -> None:
    machine = Machine(tmp_path)
    before, real = machine.state(), str(machine.home)
    machine.environment["HOME"] = name = OTHER_NAMES[other_name](machine)
    lines = [*DELETING[:4], f"rm -rf {real}", f"find {real} -delete", f"echo new >> {real}/.ssh/authorized_keys"]
    for line in lines:
        for make in (
            lambda p: build_agent(p.settings(user_home=name)),
            lambda p: build_agent(p.settings(user_home="")),
        ):
            answer = machine.answer(make, "bash", {"command": line})
            assert machine.state() == before, (line, answer)
    for path in (f"{real}/.profile", f"{name.rstrip('/')}/.bashrc"):
        written = {"file_path": path, "content": "new\n"}
        answer = machine.answer(lambda p: build_agent(p.settings(user_home=name)), "write_file", written)
        assert machine.state() == before, (path, answer)


@pytest.mark.parametrize(
    "line",
    [
        *DELETING[:4],
        "rm -r ~",
        "rm -rf house",
        "rm -rf house/",
        "rm -rf ./house",
        "rm -rf house/*",
        "rm -rf ~ ; true",
        "rm -rf *",
        "rm -rf house/.ssh",
        "mv house other",
        "mv house/.ssh/authorized_keys x",
        "cp work/a.txt house/.bashrc",
    ],
)
def test_a_workspace_above_the_home_folder_does_not_expose_it(tmp_path: Path, line: str) -> None:
    machine = Machine(tmp_path / "top")
    machine.work = machine.root
    (machine.root / "work" / "a.txt").write_text("a\n")
    before = machine.state()
    answer = machine.answer(lambda p: build_agent(p.settings()), "bash", {"command": line})
    assert machine.state() == before, answer


@pytest.mark.parametrize("made", AGENTS)
def test_no_tool_writes_a_file_that_runs_at_the_next_login(tmp_path: Path, made: str) -> None:
    machine = Machine(tmp_path)
    before = machine.state()
    for name in (
        "~/.ssh/authorized_keys",
        f"{machine.home}/.bashrc",
        "../house/.profile",
        "~/.config/autostart/x.desktop",
    ):
        written = {"file_path": name, "content": "new\n"}
        answers = [machine.answer(AGENTS[made], "write_file", written)]
        answers.append(
            machine.answer(AGENTS[made], "put", {"path": name.replace("..", str(tmp_path)), "text": "new\n"})
        )
        assert machine.state() == before, (name, answers)
        assert all("was not run" in answer for answer in answers), (name, answers)


@tool(effects=lambda path: Effects(writes=(path,)))
def put_as_named(path: str, text: str) -> str:
    """Write a file; the declared path may be relative, which is the author's mistake."""
    Path(path).expanduser().write_text(text)
    return "written"


@pytest.mark.parametrize("made", ["settings", "approver"])
@pytest.mark.parametrize("path", ["~/.ssh/authorized_keys", "../house/.profile", "{work}/../house/.bashrc", "{link}/x"])
def test_a_tool_that_declares_a_path_no_rule_can_match_is_not_run(
    tmp_path: Path, made: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path)
    monkeypatch.setenv("HOME", str(machine.home))
    monkeypatch.chdir(machine.work)
    (machine.work / "link").symlink_to(machine.home / ".ssh")
    before = machine.state()
    changes = {} if made == "settings" else {"permission_mode": "default", "headless": False}
    name = path.format(work=machine.work, link=machine.work / "link")
    answer = machine.answer(
        lambda p: build_agent(p.settings(**changes), allowing(), extra_tools=[put_as_named]),
        "put_as_named",
        {"path": name, "text": "new\n"},
    )
    assert machine.state() == before, answer
    assert "not run" in answer or "Expected paths that are absolute" in answer


def test_an_agent_is_not_built_with_a_relative_home_folder(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.environment["HOME"] = "../house"
    with pytest.raises(SettingsError, match="not an absolute path"):
        build_agent(machine.settings())


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"permission_mode": "bogus"}, "one of default"), ({"may_bypass": False}, "may_bypass=False forbids")],
)
def test_invalid_or_contradictory_settings_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Machine(tmp_path).settings(**changes)


def test_a_setting_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="`permision_mode` is not a setting; did you mean permission_mode"):
        load_settings({"model": "scripted/x", "permision_mode": "plan"}, {"HOME": str(tmp_path)}, str(tmp_path))


@pytest.mark.parametrize(
    "made", ["settings", "the list and one tool", "an exact list", "by hand", "by hand, all is a root"]
)
def test_a_key_is_not_read_without_the_users_approval(tmp_path: Path, made: str) -> None:
    machine = Machine(tmp_path)
    make: dict[str, Make] = {
        "settings": lambda p: build_agent(p.settings(permission_mode="default")),
        "the list and one tool": lambda p: build_agent(p.settings(permission_mode="auto"), tools=[*build_tools(), put]),
        "an exact list": lambda p: build_agent(p.settings(permission_mode="accept-edits"), tools=[Bash(), ReadFile()]),
        "by hand": lambda p: built_by_hand(
            p, Policy("auto"), LocalFiles(str(p.home)), approver=ScriptedApprover([False])
        ),
        "by hand, all is a root": lambda p: built_by_hand(
            p, Policy("auto", roots=("/",)), LocalFiles(str(p.home)), approver=ScriptedApprover([False])
        ),
    }
    for name, arguments in (
        ("read_file", {"file_path": "~/.ssh/id_ed25519"}),
        ("bash", {"command": "cat ~/.ssh/id_ed25519"}),
    ):
        answer = machine.answer(make[made], name, arguments)
        assert "KEY" not in answer
        assert "was not run" in answer


@pytest.mark.parametrize("made", AGENTS)
def test_no_mode_shows_a_key_of_another_user(tmp_path: Path, made: str) -> None:
    machine = Machine(tmp_path)
    for name in ("/home/no-such-user/.ssh/id_rsa", "/home/no-such-user/.aws/credentials", "/home/x/.bash_history"):
        for answer in (
            machine.answer(AGENTS[made], "read_file", {"file_path": name}),
            machine.answer(AGENTS[made], "bash", {"command": f"cat {name}"}),
        ):
            assert "was not run" in answer, (name, answer)


def test_a_list_of_tools_is_exact_and_extra_tools_are_added(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    (machine.root / "script.json").write_text('[{"text": "x"}]')
    names = [one.spec.name for one in build_agent(machine.settings(), tools=[Bash(), put]).tools]
    assert names == ["bash", "put"]
    usual = [one.spec.name for one in build_agent(machine.settings()).tools]
    assert [one.spec.name for one in build_agent(machine.settings(), extra_tools=[put]).tools] == [*usual, "put"]


def test_a_model_hooks_and_middleware_can_be_given(tmp_path: Path) -> None:
    class Refuses(Middleware):
        async def after_step(self, outcome: StepOutcome) -> Finish | None:
            return Finish(TurnFinished("error")) if outcome.step == 2 else None

    machine, hook = Machine(tmp_path), FakeHook()
    script = [
        {"tool_calls": [{"id": "c", "name": "put", "arguments": {"path": str(machine.work / "b"), "text": "b"}}]}
    ] * 3
    model = ScriptedModel(json.dumps(script).encode())
    agent = build_agent(machine.settings(), tools=[put], model=model, hooks=[hook], middleware=[Refuses])
    result = agent.run_sync("go")
    assert (result.reason, result.steps, len(model.requests)) == ("error", 2, 2)
    assert hook.seen == ["c", "c"] * 2


@pytest.mark.parametrize("given", ["tools", "extra_tools"])
def test_a_function_that_is_no_tool_is_refused_wherever_it_is_given(tmp_path: Path, given: str) -> None:
    def plain(text: str) -> str:
        return text

    tools: Any = {given: [plain]}
    with pytest.raises(SettingsError, match="plain is a function, not a tool; make it one with the decorator @tool"):
        build_agent(Machine(tmp_path).settings(), model=ScriptedModel(b"[]"), **tools)


def test_a_parameter_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    unknown: Any = {"tell": print}
    with pytest.raises(TypeError, match="build_agent has no parameter named tell"):
        build_agent(Machine(tmp_path).settings(), **unknown)
