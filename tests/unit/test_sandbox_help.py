"""Messages for users without a sandbox: the reason, its consequences, and the command that installs one."""

import io
import json
import os
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bradawl.app.build.agent import build_agent
from bradawl.app.console import Console
from bradawl.app.doctor.command import diagnose
from bradawl.app.doctor.machine import sandbox_checks
from bradawl.app.launch import launch
from bradawl.app.modes import help_with_refusals, sandbox_warning
from bradawl.app.refusal_advice import how_to_allow
from bradawl.app.sandbox_help import install_hint, install_lines, kernel_hints, refused_hint
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.settings import Settings
from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.messages import ToolCall
from bradawl.core.permissions import Policy, Question, Request, Sandbox
from bradawl.testing.fakes import Cut, ScriptedHttp


@pytest.fixture(autouse=True)
def _probes_have_ended():
    """A probe that takes too long, on a machine with much other work, is abandoned; its files are closed at its end."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(60)


NONE = Sandbox()
LANDLOCK = Sandbox("landlock", ("protected_file",))


def switches(**values: str):
    def read(name: str) -> str:
        if name.replace(".", "_") not in values:
            raise FileNotFoundError(name)
        return values[name.replace(".", "_")]

    return read


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"kernel_apparmor_restrict_unprivileged_userns": "1\n"}, "kernel.apparmor_restrict_unprivileged_userns=0"),
        ({"kernel_apparmor_restrict_unprivileged_userns": "2"}, "kernel.apparmor_restrict_unprivileged_userns=0"),
        ({"kernel_unprivileged_userns_clone": "0\n"}, "kernel.unprivileged_userns_clone=1"),
        ({"user_max_user_namespaces": "0\n"}, "user.max_user_namespaces=15000"),
        ({"kernel_apparmor_restrict_unprivileged_userns": "0"}, ""),
        ({"kernel_unprivileged_userns_clone": "1", "user_max_user_namespaces": "63000"}, ""),
        ({"user_max_user_namespaces": "no number"}, ""),
        ({}, ""),
    ],
)
def test_a_kernel_setting_that_prevents_the_sandbox_is_named_with_a_command(values, named):
    hints = list(kernel_hints(switches(**values)))
    assert (f"  sudo sysctl -w {named}" in hints) if named else hints == []


def test_both_ways_to_install_a_sandbox_are_named(monkeypatch):
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "n", "6", "v", "x86_64")))
    for text in (install_hint(), refused_hint(), "\n".join(install_lines())):
        assert "apt install bubblewrap" in text and "dnf" in text and "pacman" in text
        assert "bradawl[sandbox]" in text


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/u/.local/share/pipx/venvs/bradawl", "pipx runpip bradawl install 'bradawl[sandbox]'"),
        ("/home/u/.local/share/uv/tools/bradawl", "uv pip install --python "),
        ("/home/u/a b/.venv", "-m pip install 'bradawl[sandbox]'"),
    ],
)
def test_the_command_fits_how_bradawl_was_installed(prefix, command, monkeypatch):
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(sys, "executable", f"{prefix}/bin/python")
    assert command in install_hint()
    assert "a b" not in prefix or "'/home/u/a b/.venv/bin/python'" in install_hint()


@pytest.mark.parametrize("machine", ["riscv64", "armv7l", "i686"])
def test_no_package_is_named_on_a_machine_without_one(machine, monkeypatch):
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "n", "6", "v", machine)))
    assert "bradawl[sandbox]" not in install_hint() and "apt install bubblewrap" in install_hint()


def test_no_package_is_named_with_another_c_library(monkeypatch):
    def confstr(name):
        raise ValueError

    monkeypatch.setattr(os, "confstr", confstr)
    assert "bradawl[sandbox]" not in install_hint()


def test_the_warning_at_the_start_names_both_ways(tmp_path):
    made = Settings(model=ModelSettings("demo", "x"), cwd="/ws", home="/h", environment={"PATH": str(tmp_path)})
    text = sandbox_warning(lambda: NONE, made, user_is_there=True)
    assert "apt install bubblewrap" in text and "bradawl[sandbox]" in text


# ------------------------------------------------------------------ refusals

COMMAND = Effects(commands=(("make",),), unknown=True, seal="x")


def advice(effects: Effects, sandbox: Sandbox = NONE, mode="default") -> str:
    question = Question(ToolCall("c", "bash", "{}"), Request("bash", "0" * 64, effects), "because")
    policy = Policy(mode, roots=("/ws",), sandbox=sandbox)
    return how_to_allow([question], policy, cwd="/ws", home="/home/u", without_sandbox=lambda: "GET ONE")


@pytest.mark.parametrize("sandbox", [NONE, LANDLOCK])
def test_a_refusal_that_a_sandbox_would_avoid_says_how_to_install_one(sandbox):
    text = advice(COMMAND, sandbox, "default" if sandbox is NONE else "auto")
    assert text.endswith("GET ONE") and "--yolo" in text


@pytest.mark.parametrize(
    "effects",
    [
        Effects(writes=("/ws/a",)),
        Effects(writes=("/etc/a",), seal="x", commands=(("touch", "/etc/a"),)),
        Effects(hosts=("example.com",)),
        UNKNOWN,
        Effects(commands=(("npm", "ci"),), unknown=True, seal="x", lifts=("network",)),
    ],
)
def test_other_refusals_do_not_mention_the_sandbox(effects):
    assert "GET ONE" not in advice(effects)


def test_refusals_with_a_sandbox_do_not_mention_its_installation():
    assert "GET ONE" not in advice(COMMAND, Sandbox("bubblewrap"), "auto")


@pytest.mark.parametrize(
    ("changes", "is_reported"),
    [
        ({}, True),
        ({"permission_mode": "auto"}, True),
        ({"permission_mode": "default"}, False),
        ({"sandbox": "off"}, False),
        ({"cwd": "{home}"}, False),
    ],
)
def test_a_sandbox_is_recommended_only_if_it_would_help(tmp_path, changes, is_reported):
    home, ws = tmp_path / "home", tmp_path / "ws"
    home.mkdir()
    ws.mkdir()
    given = {"cwd": str(ws), **changes}
    given["cwd"] = given["cwd"].format(home=home)
    made = Settings(
        model=ModelSettings("demo", "x"),
        home=f"{tmp_path}/data",
        user_home=str(home),
        environment={"HOME": str(home)},
        **given,
    )
    assert bool(help_with_refusals(made)) is is_reported


def script(tmp_path: Path, command: str) -> Path:
    call = {"name": "bash", "arguments": {"command": command}}
    path = tmp_path / "script.json"
    path.write_text(json.dumps([{"tool_calls": [call]}, {"text": "done"}]))
    return path


@pytest.mark.parametrize("as_json", [False, True])
def test_a_run_that_refuses_for_lack_of_a_sandbox_says_so(tmp_path, monkeypatch, as_json):
    ws, home = tmp_path / "ws", tmp_path / "home"
    ws.mkdir()
    home.mkdir()
    monkeypatch.chdir(ws)
    monkeypatch.setattr("bradawl.sandbox.selection.SandboxSelection._probe_backends", lambda self: None)
    out, errors = io.StringIO(), io.StringIO()
    environ = {"HOME": str(home), "PATH": os.environ["PATH"]}
    console = Console(io.StringIO(), out, errors, environ)
    options = {
        "model": f"scripted/{script(tmp_path, 'touch made')}",
        "headless": True,
        "prompt": "go",
        "output_format": "json" if as_json else "text",
    }
    launch(options, environ, console, as_json=as_json, build=lambda settings, approver: build_agent(settings, approver))
    message = errors.getvalue() + (out.getvalue() if as_json else "")
    assert not (ws / "made").exists()
    assert "apt install bubblewrap" in message and "bradawl[sandbox]" in message, message
    assert "With a sandbox commands run unasked" in message, message
    if as_json:
        assert "bradawl[sandbox]" in json.dumps(json.loads(out.getvalue()))


# ------------------------------------------------------------------ doctor


async def examine(home: Path, cwd: Path, **environ: str):
    given = {"HOME": str(home), "PATH": "/usr/bin:/bin", **environ}
    return await diagnose({}, given, str(cwd), lambda *_: ScriptedHttp(lambda _: Cut()), build_agent)


@pytest.fixture
def places(tmp_path) -> tuple[Path, Path]:
    for name in ("home", "ws"):
        (tmp_path / name).mkdir()
    return tmp_path / "home", tmp_path / "ws"


async def test_doctor_reports_why_there_is_no_sandbox_without_a_model_too(places, monkeypatch):
    def probe(self):
        self._report.append("bwrap: no luck")

    monkeypatch.setattr("bradawl.sandbox.selection.SandboxSelection._probe_backends", probe)
    found = await examine(*places)
    (check,) = [each for each in found.checks if each.name == "sandbox"]
    assert check.state == "warning" and "bwrap: no luck" in check.hint and "bradawl[sandbox]" in check.hint


async def test_doctor_checks_the_sandbox_despite_a_broken_settings_file(places):
    config = places[0] / ".config/bradawl"
    config.mkdir(parents=True)
    (config / "config.toml").write_text("model = [")
    assert any(each.name == "sandbox" for each in (await examine(*places)).checks)


async def test_a_missing_required_sandbox_is_a_problem_with_its_reason(places, monkeypatch):
    monkeypatch.setattr(
        "bradawl.sandbox.selection.SandboxSelection._probe_backends", lambda self: self._report.append("no luck")
    )
    found = await examine(*places, BRADAWL_SANDBOX="required")
    (check,) = [each for each in found.checks if each.name == "sandbox"]
    assert check.state == "problem" and "no luck" in check.hint and not found.healthy


async def test_no_installation_is_recommended_if_the_workspace_is_the_problem(places):
    (check,) = [each for each in (await examine(places[0], places[0])).checks if each.name == "sandbox"]
    assert "holds your home folder" in check.hint and "apt install" not in check.hint


def test_no_installation_is_recommended_if_bubblewrap_fails():
    (check,) = sandbox_checks(NONE, "auto", ("/usr/bin/bwrap: bwrap: no namespaces",))
    assert "no namespaces" in check.hint and "apt install" not in check.hint


@pytest.mark.parametrize(
    ("reason", "place"),
    [
        ("/usr/bin/bwrap can be written by other users", "/usr/bin/bwrap"),
        ("/usr/bin/bwrap can be written by every user", "/usr/bin/bwrap"),
        ("/usr/bin can be written by other users", "/usr/bin"),
        ("it is not executable", "/usr/bin/bwrap"),
    ],
)
def test_wrong_permissions_of_bubblewrap_are_reported_with_a_repair(reason, place):
    (check,) = sandbox_checks(NONE, "auto", (f"/usr/bin/bwrap is not used: {reason}",))
    assert check.hint.splitlines()[-1] == f"  sudo chmod 755 {place}" and "apt install" not in check.hint


def test_no_installation_is_recommended_for_a_bubblewrap_of_another_user():
    why = ("/usr/bin/bwrap is not used: /usr/bin/bwrap belongs to another user",)
    (check,) = sandbox_checks(NONE, "auto", why)
    assert "apt install" not in check.hint and "chmod" not in check.hint


def test_landlock_names_the_calls_that_are_asked_about():
    check = sandbox_checks(LANDLOCK, "auto", ())[0]
    assert "is asked about" in check.hint and "apt install bubblewrap" in check.hint


async def test_doctor_names_programs_that_are_not_trusted(places):
    planted = places[1] / "bin"
    planted.mkdir()
    for name in ("git", "bash", "rg"):
        (planted / name).write_text("#!/bin/sh\n")
        (planted / name).chmod(0o755)
    found = {each.name: each for each in (await examine(*places, PATH=f"{planted}:/usr/bin:/bin")).checks}
    for name, file in (("git", "git"), ("bash", "bash"), ("ripgrep", "rg")):
        assert f"{planted}/{file} is not used: " in found[name].hint
        assert str(planted) not in found[name].text


async def test_an_installation_in_the_workspace_is_reported_with_an_alternative(places):
    prefix = os.path.realpath(sys.prefix)
    found = {each.name: each for each in (await examine(places[0], Path(prefix).parent)).checks}
    assert found["installation"].state == "warning" and prefix in found["installation"].text
    assert "pipx" in found["installation"].hint and "uv tool" in found["installation"].hint
    assert "installation" not in {each.name for each in (await examine(*places)).checks}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="namespaces are Linux's")
def test_the_setting_that_forbids_user_namespaces_is_named(places):
    inner = f"echo 0 >/proc/sys/user/max_user_namespaces && exec {shlex.quote(sys.executable)} -m bradawl doctor"
    made = subprocess.run(
        ["unshare", "-Ur", "sh", "-c", inner],
        cwd=places[1],
        env={"HOME": str(places[0]), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    if "version" not in made.stdout:
        pytest.skip(f"unshare does not work here: {made.stderr[:200]}")
    assert "sudo sysctl -w user.max_user_namespaces" in made.stdout
