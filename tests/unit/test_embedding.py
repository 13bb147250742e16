"""However an agent is put together, it deletes no home folder and writes nothing that runs at the next login."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bradawl import Agent, ModelSettings, Settings, build_agent, build_tools, load_settings, tool
from bradawl.agent.middleware import Finish, Middleware, StepOutcome
from bradawl.app.machine import SystemClock, SystemIds
from bradawl.core.effects import Effects
from bradawl.core.errors import SettingsError
from bradawl.core.events import TurnFinished
from bradawl.core.messages import ToolResults, text_of
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
from bradawl.workspace.processes import LocalProcesses


@tool(writes="path")
def put(path: str, text: str) -> str:
    """Write a file, as a tool of an embedder's does."""
    file = Path(path).expanduser()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return "written"


class OtherBash:
    """A tool that leaves the work to bradawl's."""

    spec = Bash().spec
    params = Bash().params

    def effects(self, params: Any, context: Any) -> Any:
        return Bash().effects(params, context)

    async def run(self, params: Any, context: Any) -> Any:
        return await Bash().run(params, context)


class Place:
    """A throw-away home folder with things to lose, and a workspace beside it."""

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
        """What the model is answered when it makes this call."""
        steps = [{"tool_calls": [{"id": "c", "name": name, "arguments": arguments}]}, {"text": "done"}]
        (self.root / "script.json").write_text(json.dumps(steps))
        agent = make(self)
        agent.run_sync("go")
        messages: Any = agent.model.requests[1]  # type: ignore[attr-defined]  # it is the scripted model
        (found,) = (one for one in messages if isinstance(one, ToolResults))
        return text_of(found.results[0].parts)


Make = Callable[[Place], Agent]


def yes() -> ScriptedApprover:
    return ScriptedApprover([Answer(True, "user", "session")] * 9)


async def say() -> str:
    return "You are a test."


def by_hand(place: Place, policy: Policy, files: LocalFiles, **changes: Any) -> Agent:
    processes = LocalProcesses(place.environment)
    return Agent(
        **{
            "model": ScriptedModel(str(place.root / "script.json")),
            "tools": (Bash(), ReadFile(), WriteFile(), EditFile(), put),
            "store": LocalStore(str(place.root / "data"), str(place.work), SystemClock(), SystemIds()),
            "files": files,
            "processes": processes,
            "approver": yes(),
            "clock": SystemClock(),
            "ids": SystemIds(),
            "policy": lambda: policy,
            "system_prompt": say,
            "project": str(place.work),
            "on_close": processes.close,
            **changes,
        }
    )


MADE: dict[str, Make] = {
    "settings": lambda p: build_agent(p.settings(), extra_tools=[put]),
    "settings without a home": lambda p: build_agent(p.settings(user_home=""), extra_tools=[put]),
    "approver": lambda p: build_agent(p.settings(permission_mode="default", headless=False), yes(), extra_tools=[put]),
    "accept-edits": lambda p: build_agent(p.settings(permission_mode="accept-edits"), yes(), extra_tools=[put]),
    "the list and one more": lambda p: build_agent(p.settings(), tools=[*build_tools(), put]),
    "tools of settings": lambda p: build_agent(p.settings(), tools=[*build_tools(p.settings()), put]),
    "an exact list": lambda p: build_agent(p.settings(), tools=[Bash(), WriteFile(), EditFile(), ReadFile(), put]),
    "a list with a tool more": lambda p: build_agent(
        p.settings(), tools=[Bash(), WriteFile(), EditFile(), ReadFile()], extra_tools=[put]
    ),
    "a tool around ours": lambda p: build_agent(
        p.settings(), tools=[OtherBash(), WriteFile(), EditFile(), ReadFile(), put]
    ),
    "by hand, bypass": lambda p: by_hand(p, Policy("bypass"), LocalFiles(str(p.home))),
    "by hand, default": lambda p: by_hand(p, Policy(), LocalFiles(str(p.home))),
    "by hand, with a rule": lambda p: by_hand(
        p, Policy("bypass", rules=(Rule("deny", "run", words=("x",)),)), LocalFiles(str(p.home))
    ),
    "by hand, all is a root": lambda p: by_hand(p, Policy("accept-edits", roots=("/",)), LocalFiles(str(p.home))),
    "by hand, home is a root": lambda p: by_hand(p, Policy("bypass", roots=(str(p.home),)), LocalFiles(str(p.home))),
    "by hand, around": lambda p: by_hand(
        p, Policy("bypass"), LocalFiles(str(p.home)), tools=(OtherBash(), WriteFile(), EditFile(), ReadFile(), put)
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
LASTING = [
    "echo new >> ~/.ssh/authorized_keys",
    "cp a.txt ~/.bashrc",
    "tee -a $HOME/.bashrc < a.txt",
    "ln -sf $PWD/a.txt ~/.bashrc",
    "sed -i s/KEY/x/ ~/.bashrc",
]


@pytest.mark.parametrize("made", MADE)
def test_no_line_of_bash_takes_the_home_folder_away(tmp_path: Path, made: str) -> None:
    place = Place(tmp_path)
    before = place.state()
    for line in (*DELETING[:6], *LASTING[:2]):
        answer = place.answer(MADE[made], "bash", {"command": line})
        assert place.state() == before, (line, answer)
        assert "was not run" in answer, (line, answer)


@pytest.mark.parametrize("line", DELETING[:4])
def test_files_without_a_home_folder_leave_the_one_of_the_user_database(tmp_path: Path, line: str) -> None:
    place = Place(tmp_path)
    before = place.state()
    answer = place.answer(lambda p: by_hand(p, Policy("bypass"), LocalFiles()), "bash", {"command": line})
    assert place.state() == before, answer


@pytest.mark.parametrize("made", ["the list and one more", "by hand, bypass"])
@pytest.mark.parametrize("line", [*DELETING, *LASTING])
def test_no_way_to_write_it_gets_around_that(tmp_path: Path, made: str, line: str) -> None:
    place = Place(tmp_path)
    before = place.state()
    answer = place.answer(MADE[made], "bash", {"command": line})
    assert place.state() == before, answer


def by_a_link(place: Place) -> str:
    (place.root / "link").symlink_to(place.home)
    return str(place.root / "link")


OTHER_NAMES: dict[str, Callable[[Place], str]] = {
    "a link": by_a_link,
    "two slashes": lambda place: str(place.home).replace("/house", "//house"),
    "dots": lambda place: f"{place.work}/../house/.",
    "a slash behind": lambda place: f"{place.home}/",
}


@pytest.mark.parametrize("named", OTHER_NAMES)
def test_a_home_folder_is_known_by_every_name(tmp_path: Path, named: str) -> None:
    place = Place(tmp_path)
    before, real = place.state(), str(place.home)
    place.environment["HOME"] = name = OTHER_NAMES[named](place)
    lines = [*DELETING[:4], f"rm -rf {real}", f"find {real} -delete", f"echo new >> {real}/.ssh/authorized_keys"]
    for line in lines:
        for make in (
            lambda p: build_agent(p.settings(user_home=name)),
            lambda p: build_agent(p.settings(user_home="")),
        ):
            answer = place.answer(make, "bash", {"command": line})
            assert place.state() == before, (line, answer)
    for path in (f"{real}/.profile", f"{name.rstrip('/')}/.bashrc"):
        written = {"file_path": path, "content": "new\n"}
        answer = place.answer(lambda p: build_agent(p.settings(user_home=name)), "write_file", written)
        assert place.state() == before, (path, answer)


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
def test_a_workspace_above_the_home_folder_does_not_give_it_away(tmp_path: Path, line: str) -> None:
    place = Place(tmp_path / "top")
    place.work = place.root
    (place.root / "work" / "a.txt").write_text("a\n")
    before = place.state()
    answer = place.answer(lambda p: build_agent(p.settings()), "bash", {"command": line})
    assert place.state() == before, answer


@pytest.mark.parametrize("made", MADE)
def test_no_tool_writes_what_runs_at_the_next_login(tmp_path: Path, made: str) -> None:
    place = Place(tmp_path)
    before = place.state()
    for name in (
        "~/.ssh/authorized_keys",
        f"{place.home}/.bashrc",
        "../house/.profile",
        "~/.config/autostart/x.desktop",
    ):
        written = {"file_path": name, "content": "new\n"}
        answers = [place.answer(MADE[made], "write_file", written)]
        answers.append(place.answer(MADE[made], "put", {"path": name.replace("..", str(tmp_path)), "text": "new\n"}))
        assert place.state() == before, (name, answers)
        assert all("was not run" in answer for answer in answers), (name, answers)


@tool(effects=lambda path: Effects(writes=(path,)))
def put_as_named(path: str, text: str) -> str:
    """Write a file, as a tool whose author forgot that names are relative."""
    Path(path).expanduser().write_text(text)
    return "written"


@pytest.mark.parametrize("made", ["settings", "approver"])
@pytest.mark.parametrize("path", ["~/.ssh/authorized_keys", "../house/.profile", "{work}/../house/.bashrc", "{link}/x"])
def test_a_tool_that_declares_what_no_rule_can_be_compared_with_is_not_run(
    tmp_path: Path, made: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path)
    monkeypatch.setenv("HOME", str(place.home))
    monkeypatch.chdir(place.work)
    (place.work / "link").symlink_to(place.home / ".ssh")
    before = place.state()
    changes = {} if made == "settings" else {"permission_mode": "default", "headless": False}
    name = path.format(work=place.work, link=place.work / "link")
    answer = place.answer(
        lambda p: build_agent(p.settings(**changes), yes(), extra_tools=[put_as_named]),
        "put_as_named",
        {"path": name, "text": "new\n"},
    )
    assert place.state() == before, answer
    assert "not run" in answer or "Expected paths that are absolute" in answer


def test_a_home_folder_without_an_absolute_path_starts_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.environment["HOME"] = "../house"
    with pytest.raises(SettingsError, match="not an absolute path"):
        build_agent(place.settings())


@pytest.mark.parametrize(
    ("changes", "told"),
    [({"permission_mode": "bogus"}, "one of default"), ({"may_bypass": False}, "may_bypass=False forbids")],
)
def test_settings_that_contradict_each_other_are_none(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        Place(tmp_path).settings(**changes)


def test_a_setting_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="`permision_mode` is not a setting; did you mean permission_mode"):
        load_settings({"model": "scripted/x", "permision_mode": "plan"}, {"HOME": str(tmp_path)}, str(tmp_path))


@pytest.mark.parametrize(
    "made", ["settings", "the list and one more", "an exact list", "by hand", "by hand, all is a root"]
)
def test_a_key_is_read_only_if_the_user_says_so(tmp_path: Path, made: str) -> None:
    place = Place(tmp_path)
    make: dict[str, Make] = {
        "settings": lambda p: build_agent(p.settings(permission_mode="default")),
        "the list and one more": lambda p: build_agent(p.settings(permission_mode="auto"), tools=[*build_tools(), put]),
        "an exact list": lambda p: build_agent(p.settings(permission_mode="accept-edits"), tools=[Bash(), ReadFile()]),
        "by hand": lambda p: by_hand(p, Policy("auto"), LocalFiles(str(p.home)), approver=ScriptedApprover([False])),
        "by hand, all is a root": lambda p: by_hand(
            p, Policy("auto", roots=("/",)), LocalFiles(str(p.home)), approver=ScriptedApprover([False])
        ),
    }
    for name, arguments in (
        ("read_file", {"file_path": "~/.ssh/id_ed25519"}),
        ("bash", {"command": "cat ~/.ssh/id_ed25519"}),
    ):
        answer = place.answer(make[made], name, arguments)
        assert "KEY" not in answer
        assert "was not run" in answer


@pytest.mark.parametrize("made", MADE)
def test_no_mode_shows_a_key_of_another_user(tmp_path: Path, made: str) -> None:
    place = Place(tmp_path)
    for name in ("/home/no-such-user/.ssh/id_rsa", "/home/no-such-user/.aws/credentials", "/home/x/.bash_history"):
        for answer in (
            place.answer(MADE[made], "read_file", {"file_path": name}),
            place.answer(MADE[made], "bash", {"command": f"cat {name}"}),
        ):
            assert "was not run" in answer, (name, answer)


def test_a_list_of_tools_is_exact_and_extra_tools_are_added(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (place.root / "script.json").write_text('[{"text": "x"}]')
    names = [one.spec.name for one in build_agent(place.settings(), tools=[Bash(), put]).tools]
    assert names == ["bash", "put"]
    usual = [one.spec.name for one in build_agent(place.settings()).tools]
    assert [one.spec.name for one in build_agent(place.settings(), extra_tools=[put]).tools] == [*usual, "put"]


def test_a_model_hooks_and_middleware_can_be_given(tmp_path: Path) -> None:
    class Refuses(Middleware):
        async def after_step(self, outcome: StepOutcome) -> Finish | None:
            return Finish(TurnFinished("error")) if outcome.step == 2 else None

    place, hook = Place(tmp_path), FakeHook()
    script = [
        {"tool_calls": [{"id": "c", "name": "put", "arguments": {"path": str(place.work / "b"), "text": "b"}}]}
    ] * 3
    model = ScriptedModel(json.dumps(script).encode())
    agent = build_agent(place.settings(), tools=[put], model=model, hooks=[hook], middleware=[Refuses])
    result = agent.run_sync("go")
    assert (result.reason, result.steps, len(model.requests)) == ("error", 2, 2)
    assert hook.seen == ["c", "c"] * 2


@pytest.mark.parametrize("given", ["tools", "extra_tools"])
def test_a_function_that_is_no_tool_is_refused_wherever_it_is_given(tmp_path: Path, given: str) -> None:
    def plain(text: str) -> str:
        return text

    tools: Any = {given: [plain]}
    with pytest.raises(SettingsError, match="plain is a function, not a tool; make it one with the decorator @tool"):
        build_agent(Place(tmp_path).settings(), model=ScriptedModel(b"[]"), **tools)
