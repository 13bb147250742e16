"""Repositories that programs create keep their configuration, except for the lines by which git would run something."""

import shutil
import subprocess
from pathlib import Path

import pytest
from bwrap import needs_bwrap
from sandboxed_session import SYSTEM_PATH, SandboxedSession, sandboxed_session

pytestmark = needs_bwrap

SETUP = (
    "git init -q -b main . && git config user.name u && git config user.email u@example.org &&"
    " git config uploadpack.allowFilter true && mkdir src && echo one > a.txt && echo two > src/b.txt && git add . &&"
    " git commit -qm first && git branch side && echo three >> a.txt && git commit -qam second"
)
LFS_HOOK = (
    "#!/bin/sh\n"
    'command -v git-lfs >/dev/null 2>&1 || { printf >&2 "\\n%s\\n\\n" "This repository is configured for Git LFS but'
    " 'git-lfs' was not found on your path. If you no longer wish to use Git LFS, remove this hook by deleting the"
    " 'pre-push' file in the hooks directory (set by 'core.hookspath'; usually '.git/hooks').\"; exit 2; }\n"
    'git lfs pre-push "$@"\n'
)
LFS = (
    "git clone -q . cl && cp lfs-hook cl/.git/hooks/pre-push && chmod +x cl/.git/hooks/pre-push && cd cl &&"
    " git config lfs.repositoryformatversion 0 && git config lfs.https://example.org/x.git/info/lfs.access basic &&"
    " git config filter.lfs.clean 'git-lfs clean -- %f' && git config filter.lfs.smudge 'git-lfs smudge -- %f' &&"
    " git config filter.lfs.process 'git-lfs filter-process' && git config filter.lfs.required true"
)
DAILY = (
    "git clone -q . cl && cd cl && git config gc.auto 0 && git config rerere.enabled true &&"
    " git config advice.detachedHead false && git config core.quotePath false && git config log.date iso &&"
    " git config diff.renames copies && git config merge.conflictStyle diff3 && git config fetch.prune true &&"
    " git config push.default current && git config color.ui auto && git config http.sslVerify true &&"
    " git config core.editor vim && git config core.pager 'less -FRX' && git config diff.tool vimdiff &&"
    " git config alias.st status && git config alias.lg 'log --oneline --graph --all' &&"
    " git config submodule.recurse true && git config rebase.instructionFormat '%s [%an]' &&"
    " git config branch.main.description 'a branch' &&"
    " git config remote.origin.tagOpt --no-tags && git config remote.origin.pushurl https://example.org/y.git &&"
    " git config --add remote.origin.fetch +refs/pull/*:refs/pull/* && git config remote.origin.gh-resolved base"
)

HONEST = {
    "partial clone": ("git clone -q --filter=blob:none file://$PWD cl", "git -C cl log -p --all"),
    "shared objects": ("git clone -q --shared . cl", "git -C cl log -p"),
    "objects of a reference": ("git clone -q --reference . file://$PWD cl", "git -C cl log -p"),
    "mirror": ("git clone -q --mirror . cl.git", "git -C cl.git remote update"),
    "bare repository": ("git init -q --bare --shared cl.git", "git push -q cl.git main"),
    "settings of the clone": (
        "git clone -q -c core.autocrlf=input -c core.eol=lf -c core.longpaths=true -c pull.rebase=true . cl",
        "git -C cl pull -q",
    ),
    "sparse clone": ("git clone -q --sparse . cl && git -C cl sparse-checkout set src", "git -C cl status"),
    "shallow clone": ("git clone -q --depth 1 file://$PWD cl", "git -C cl fetch -q --depth 2"),
    "daily settings": (DAILY, "git -C cl st && git -C cl lg"),
    "large files": (LFS, "git -C cl log"),
    "own hooks of the template": ("git clone -q . cl", "git -C cl commit -q --allow-empty -m x"),
    "made by gitoxide": ("git clone -q . cl && echo '[InternetShortcut]' > cl/.git/hooks/docs.url", "git -C cl status"),
    "working trees of a bare repository": (
        "mkdir cl && git clone -q --bare . cl/.bare && echo 'gitdir: ./.bare' > cl/.git &&"
        " git -C cl worktree add -q w main",
        "git -C cl/w commit -q --allow-empty -m x && git -C cl worktree list",
    ),
    "settings of a linked working tree": (
        (
            "git clone -q . cl && cd cl && git config extensions.worktreeConfig true && git worktree add -q w2 &&"
            " git -C w2 config --worktree core.autocrlf input && git -C w2 config --worktree gc.auto 0"
        ),
        "git -C cl/w2 status",
    ),
}
"""What a command does, and what works in the repository afterwards."""


def as_user(session: SandboxedSession, line: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": SYSTEM_PATH, "HOME": str(session.home), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    return subprocess.run(
        ["bash", "-c", line], cwd=session.root, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def workspace(tmp_path):
    with sandboxed_session(tmp_path) as session:
        (session.home / "template/hooks").mkdir(parents=True)
        hook = session.home / "template/hooks/commit-msg"
        hook.write_text("#!/bin/sh\ntouch ../by-template\n")
        hook.chmod(0o755)
        (session.home / ".gitconfig").write_text(
            "[init]\n\ttemplateDir = ~/template\n[user]\n\tname = u\n\temail = u@example.org\n"
        )
        assert as_user(session, SETUP).returncode == 0
        (session.root / "lfs-hook").write_text(LFS_HOOK)
        yield session


def settings(place: Path) -> dict[str, bytes]:
    """Files of the new repository that git obeys."""
    found = [*place.rglob("config"), *place.rglob("config.worktree"), *place.rglob("alternates")]
    found += place.rglob("hooks/*")
    return {str(path.relative_to(place)): path.read_bytes() for path in found if path.is_file()}


@pytest.mark.parametrize("name", HONEST)
def test_a_repository_that_a_command_creates_is_as_without_a_sandbox(workspace, name):
    make, use = HONEST[name]
    workspace.run("true")
    assert as_user(workspace, make).returncode == 0
    (made,) = (each for each in workspace.root.iterdir() if each.name in ("cl", "cl.git"))
    expected = settings(made)
    assert expected
    shutil.rmtree(made)
    result = workspace.run(make)
    workspace.cwd = str(workspace.root)
    assert (result.exit_code, result.restored) == (0, ()), result.stderr
    assert settings(made) == expected
    result = workspace.run(use)
    assert (result.exit_code, result.restored) == (0, ()), result.stderr
    assert settings(made) == expected
    done = as_user(workspace, use)
    assert done.returncode == 0, done.stderr


def test_settings_that_a_later_command_makes_in_its_own_repository_stay(workspace):
    assert workspace.run("git clone -q . cl").restored == ()
    assert workspace.run("git clone -q --mirror . m.git").restored == ()
    lines = (
        "git -C cl config rerere.enabled true",
        "git -C m.git config gc.auto 0",
        "cp lfs-hook cl/.git/hooks/pre-push",
    )
    for line in lines:
        assert workspace.run(line).restored == (), line
    assert "rerere" in (workspace.root / "cl/.git/config").read_text()
    assert "auto = 0" in (workspace.root / "m.git/config").read_text()
    assert (workspace.root / "cl/.git/hooks/pre-push").exists()


ARMED = (
    ("core.fsmonitor", "touch @; false"),
    ("core.hooksPath", "../evil"),
    ("core.worktree", ".."),
    ("include.path", "../../evil"),
    ("includeIf.onbranch:main.path", "../../evil"),
    ("alias.st", "!touch @"),
    ("alias.lg", "-c core.fsmonitor=x log"),
    ("alias.xx", "--exec-path=. status"),
    ("alias.dt", "difftool -x ./evil"),
    ("alias.rb", "rebase --exec=./evil"),
    ("alias.co", "checkout --output=x"),
    ("core.editor", "./evil"),
    ("core.editor", "vim -S evil"),
    ("core.pager", "less -ofile"),
    ("core.pager", "touch @; less"),
    ("core.sshCommand", "./evil"),
    ("diff.tool", "../../../evil"),
    ("merge.tool", "../../../evil"),
    ("pull.twohead", "x/../evil"),
    ("branch.main.mergeOptions", "-s x/../evil"),
    ("filter.lfs.clean", "git-lfs clean -- %f; touch @"),
    ("filter.lfs.process", "./git-lfs filter-process"),
    ("filter.x.clean", "git-lfs clean -- %f"),
    ("lfs.customtransfer.x.path", "./evil"),
    ("lfs.standalonetransferagent", "x"),
    ("remote.origin.url", "ext::./evil"),
    ("remote.origin.pushurl", "ext::./evil"),
    ("remote.origin.uploadpack", "./evil"),
    ("remote.origin.vcs", "x/../evil"),
    ("branch.main.remote", "ext::./evil"),
    ("submodule.x.update", "!./evil"),
    ("submodule.x.url", "ext::./evil"),
    ("url.ext::sh.insteadOf", "https"),
    ("protocol.ext.allow", "always"),
    ("gc.recentObjectsHook", "./evil"),
    ("credential.helper", "!./evil"),
    ("gpg.program", "./evil"),
    ("gpg.ssh.defaultKeyCommand", "./evil"),
    ("http.sslVerify", "false"),
    ("http.proxy", "http://evil"),
    ("tag.sort", "signature"),
    ("merge.x.driver", "./evil"),
    ("diff.x.textconv", "./evil"),
    ("pager.log", "./evil"),
    ("core.sharedRepository", "world"),
    ("unknown.key", "value"),
)


@pytest.mark.parametrize("kind", ["repository", "bare", "later"])
def test_only_the_settings_that_could_run_something_are_removed(workspace, kind):
    place = "cl.git" if kind == "bare" else "cl"
    make = f"git clone -q {'--bare' if kind == 'bare' else ''} . {place}"
    config = workspace.root / (f"{place}/config" if kind == "bare" else f"{place}/.git/config")
    workspace.run("true")
    workspace.run(f"{make}; git config -f {config} rerere.enabled true")
    clean = config.read_bytes()
    if kind != "later":
        shutil.rmtree(workspace.root / place)
    workspace.write("settings", "\n".join(f"{name}\t{value}" for name, value in ARMED) + "\n")
    result = workspace.run(
        ("" if kind == "later" else f"{make}; git config -f {config} rerere.enabled true; ")
        + f'while IFS=$\'\\t\' read -r name value; do git config -f {config} --add "$name" "$value"; done < settings'
    )
    assert result.restored == (str(config),)
    assert [line for line in config.read_bytes().splitlines() if b"=" in line] == [
        line for line in clean.splitlines() if b"=" in line
    ]
    assert any("only the lines that run" in note and "fsmonitor = " in note for note in result.notes)
    assert "rerere.enabled=true" in as_user(workspace, f"git config -l -f {config}").stdout


@pytest.mark.parametrize(
    "plant",
    [
        "printf '[core] fsmonitor = touch ran # x\\n' >> cl/.git/config",
        "printf '[core]\\n\\tfsmonitor = touch \\\\\\n ran\\n' >> cl/.git/config",
        "printf '\\357\\273\\277[core]\\n\\tfsmonitor = touch ran\\n' > cl/.git/config",
        "printf '[core]\\r\\n\\tfsmonitor = touch ran\\r\\n' >> cl/.git/config",
        "printf '[core]\\n\\tfsmonitor = touch ran' >> cl/.git/config",
        "printf '[core]\\n\\teditor = vim\\n[core\\n\\tfsmonitor = touch ran\\n' >> cl/.git/config",
        "printf '[user]\\n\\tname = \"a\\\\\\n\"\\n[core]\\n\\tfsmonitor = touch ran\\n' >> cl/.git/config",
        "printf '#!/bin/sh\\ntouch ran\\n' > cl/.git/hooks/commit-msg",
        "sed 's/git lfs/touch ran;git lfs/' lfs-hook > cl/.git/hooks/pre-push; chmod +x cl/.git/hooks/pre-push",
        "sed 's/pre-push/post-checkout/' lfs-hook | sed '2s/printf/touch ran; printf/' > cl/.git/hooks/post-checkout",
        "cp lfs-hook cl/.git/hooks/post-index-change; chmod +x cl/.git/hooks/post-index-change",
        "ln -sf ~/template/hooks/commit-msg cl/.git/hooks/commit-msg",
        "ln -sf ~/template/hooks/commit-msg cl/.git/hooks/post-index-change",
        "echo ~/.ssh > cl/.git/objects/info/alternates",
        "echo '\"/x\"' > cl/.git/objects/info/alternates",
        "mkfifo cl/.git/objects/info/alternates",
        "echo ../.. > cl/.git/commondir",
    ],
)
def test_what_only_resembles_a_harmless_file_is_undone(workspace, plant):
    for repeat in range(2):  # in the command that creates the repository, then in a later one
        make = "git clone -q . cl; " if repeat == 0 else ""
        result = workspace.run(make + plant)
        assert result.restored, (repeat, plant)
        as_user(workspace, "cd cl && git status && git commit -q --allow-empty -m x")
        assert not (workspace.root / "cl/ran").exists() and not (workspace.root / "ran").exists()
        assert "fsmonitor" not in as_user(workspace, "git -C cl config -l").stdout
        if repeat == 0:
            shutil.rmtree(workspace.root / "cl")
            workspace.run("git clone -q . cl")
