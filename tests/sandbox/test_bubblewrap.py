"""Each guarantee holds in bubblewrap, as root and as nobody, against programs that succeed without a sandbox."""

import time
from pathlib import Path

import pytest
from bubblewrap_programs import bubblewrap_programs
from bwrap import needs_bwrap
from landlock_programs import USERS
from running import pids_of
from test_landlock import ATTEMPTS, NEVER_OPEN

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.sandbox.guarantees import GUARANTEES

pytestmark = needs_bwrap

# Excluded attempts: a hidden folder is shown empty, and programs may use TCP among themselves.
_NO_WAY_OUT = ("ls ~/.ssh && echo OPEN", "s.listen()")
CASES = [
    (line, attempt)
    for line, attempts in ATTEMPTS.items()
    for attempt in attempts
    if not any(each in attempt for each in _NO_WAY_OUT)
]

# Guarantee to shell lines, each of which changes something protected.
PROTECTED = {
    "protected_file": [
        "echo bad >> .git/config",
        "rm -f .git/config",
        "echo bad > .git/new; mv .git/new .git/config",
        "git config -f .git/config core.fsmonitor bad",
        "ln -f README .git/config",
        "chmod 777 .git/config",
        "touch -d 2001-01-01 .git/config",
        "truncate -s 0 .git/config",
        "echo bad > .git/hooks/pre-commit",
        "ln -s ../../README .git/hooks/post-checkout",
        "rm -rf .git/hooks; mkdir .git/hooks",
        "echo bad > .git/modules/sub/config",
        "echo bad > .git/modules/sub/hooks/pre-commit",
        "echo bad > .git/modules/deep/er/config",
        "echo bad > .git/worktrees/tree/commondir",
        "echo bad > .vscode/tasks.json",
        "rm -rf .vscode; mkdir .vscode",
        "echo bad > nested/.git/config",
        "mkdir -p a/b/.git/hooks; echo bad > a/b/.git/hooks/pre-commit",
    ],
    "new_protected_file": [
        "echo bad > .mcp.json",
        "mkdir -p .bradawl; echo bad > .bradawl/settings.toml",
        "mkdir -p .idea; echo bad > .idea/workspace.xml",
        "echo bad > .envrc",
        "ln -s README .mcp.json",
        "rmdir .mcp.json; echo bad > .mcp.json",
        "rm -rf .zed; echo bad > .zed",
        "echo bad > README2; mv -T README2 .envrc",
        "echo bad > .git/info/attributes",
        "rm -rf .git/info/*; rmdir .git/info; mkdir .git/info; echo bad > .git/info/attributes",
        "echo bad > .git/config.worktree",
        "mkdir nested/.git/hooks; echo bad > nested/.git/hooks/pre-commit",
    ],
    "rename_protected": [
        "mv .git old; mkdir .git; echo bad > .git/config",
        "mv .git/hooks .git/old; mkdir .git/hooks; echo bad > .git/hooks/pre-commit",
        "mv .git/info .git/old; mkdir .git/info; echo bad > .git/info/attributes",
        "mv .git/modules .git/old; mkdir -p .git/modules/sub; echo bad > .git/modules/sub/config",
        "mv .vscode old; mkdir .vscode; echo bad > .vscode/tasks.json",
        "mv nested old; mkdir -p nested/.git; echo bad > nested/.git/config",
        "mv a old; mkdir -p a/b/.git; echo bad > a/b/.git/config",
        'python3 -c \'import os; os.rename(".git", "README")\'',
        "mv ../ws ../old",
    ],
}
PROTECTED_CASES = [(line, attempt) for line, attempts in PROTECTED.items() for attempt in attempts]


@pytest.fixture(params=USERS)
def made(request):
    with bubblewrap_programs(request.param) as built:
        yield built


@pytest.mark.parametrize(("line", "attempt"), CASES)
def test_an_attempt_fails_in_the_sandbox_and_succeeds_without(made, outside, line, attempt):
    ended = made.sh(attempt, env=outside.env)
    assert "OPEN" not in ended.out, ended
    assert "bwrap:" not in ended.err, "the program did not start, so the test shows nothing"
    assert (made.outside / "file").read_text() == "outside"
    never = NEVER_OPEN[made.user]
    if line not in never and not any(part in attempt for part in never):
        assert "OPEN" in made.bare(attempt, outside.env), "the attempt fails without a sandbox too"


def test_a_datagram_reaches_no_socket_outside(made, outside):
    made.sh("echo x > /dev/udp/127.0.0.1/$UDP; echo x > /dev/udp/10.255.255.1/53", env=outside.env)
    outside.udp.setblocking(False)
    with pytest.raises(BlockingIOError):
        outside.udp.recv(10)


def test_mode_owner_and_times_of_files_outside_are_unchanged(made):
    before = (made.outside / "file").stat()
    ended = made.sh(
        "chmod 777 ../outside/file; touch -d 2001-01-01 ../outside/file ../outside; chown 1 ../outside/file"
    )
    after = (made.outside / "file").stat()
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert ended.code != 0


# ------------------------------------------------------------------ what is protected


@pytest.fixture
def protected(made):
    """A workspace with all kinds of protected files, and their state before the test."""
    for name in (
        *(f"{folder}.git/{name}" for folder in ("", "nested/", "a/b/") for name in ("HEAD", "config", "objects/x")),
        *(f".git/modules/{folder}/{name}" for folder in ("sub", "deep/er") for name in ("HEAD", "config", "hooks/x")),
        *(f".git/worktrees/tree/{name}" for name in ("HEAD", "commondir", "gitdir")),
        *(".git/hooks/sample", ".git/info/exclude", ".vscode/tasks.json", "README"),
    ):
        made.write(made.root / name, "[core]\n" if name.endswith("config") else "good\n")
    made.give_away()
    return made


def _guarded(root: Path) -> dict[str, object]:
    """State of every protected file: kind, mode, time and content; below `.git` only names and content."""
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        in_git = ".git/" in name and not any(
            part in name for part in ("config", "hooks", "info", "commondir", "gitdir")
        )
        if path.is_dir() or in_git or name in ("README", "README2", ".git/info/exclude"):
            continue
        status = path.lstat()
        found[name] = (status.st_mode, status.st_mtime_ns, path.read_text("utf-8", "replace"))
    return found


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(("line", "attempt"), PROTECTED_CASES)
def test_protected_files_are_unchanged(protected, line, attempt):
    before = _guarded(protected.root)
    names = _names(protected.root)
    ended = protected.sh(f"{attempt}; [ -e .git/HEAD ] && echo ran")
    assert ended.out.endswith("ran\n"), ended
    assert "bad" not in "".join(map(str, _guarded(protected.root).values()))
    after = _guarded(protected.root)
    assert {name: after.get(name) for name in before} == before
    assert _names(protected.root) - names <= {"README2"}, "no placeholder is left"
    protected.bare(attempt)
    changed = _guarded(protected.root)
    is_shown = changed != before or not protected.root.exists() or _names(protected.root) != names
    assert is_shown or "os.rename" in attempt or "ln -f" in attempt, "the attempt fails without a sandbox too"


def test_every_guarantee_has_an_attempt():
    elsewhere = {"chmod_outside", "symlinked_git", "private_tmp", "escapees", "domains"}
    assert set(GUARANTEES) == {line for line, _ in (*CASES, *PROTECTED_CASES)} | elsewhere


@pytest.mark.parametrize("inside", [True, False], ids=["data inside", "data outside"])
def test_a_git_folder_that_is_a_link_can_not_be_replaced(made, inside):
    data = made.root / "data" if inside else made.place / "data"
    (made.root / ".git").rename(made.place / "unused")
    made.write(data / "config", "[core]\n")
    made.write(data / "HEAD", "x")
    made.write(made.root / "src/a.py", "old")
    (made.root / ".git").symlink_to(data)
    ended = made.sh(
        "echo bad > .git/config; rm -f .git; mkdir .git; mv data old; mkdir data; mv .git git2; echo bad > data/config;"
        "ln -sfn /tmp .git; echo new > src/a.py; mkdir src/sub; echo done"
    )
    assert ended.out == "done\n", ended
    assert (made.root / ".git").readlink() == data
    assert (data / "config").read_text() == "[core]\n"
    assert (made.root / "src/a.py").read_text() == "new\n", "the rest of the workspace can be changed"
    made.bare("rm .git; mkdir .git")
    assert not (made.root / ".git").is_symlink()


@pytest.mark.parametrize("name", [".mcp.json", ".vscode", ".bradawl", ".git/hooks", ".git/config"])
def test_a_protected_name_that_is_a_link_can_not_be_replaced(made, name):
    made.write(made.root / ".git/HEAD", "x")
    target = made.root / "elsewhere/inner"
    if name.endswith((".json", "config")):
        made.write(target, "good")
    else:
        made.write(target / "file", "good")
    (made.root / name).unlink(missing_ok=True) if not (made.root / name).is_dir() else (made.root / name).rmdir()
    (made.root / name).symlink_to(target)
    made.sh(
        f"rm -rf {name}; echo bad > {name}; mkdir {name}; echo bad > elsewhere/inner; echo bad > elsewhere/inner/file;"
        "mv elsewhere old; mkdir -p elsewhere/inner; echo bad > elsewhere/inner/file"
    )
    assert (made.root / name).readlink() == target
    assert "bad" not in "".join(path.read_text() for path in made.root.rglob("*") if path.is_file())


# ------------------------------------------------------------------ what is put back


@pytest.mark.parametrize("name", [".git/commondir", ".git/objects/info/alternates"])
def test_files_that_break_git_are_removed_afterwards(made, name):
    made.write(made.root / ".git/HEAD", "x")
    ended = made.sh(f"mkdir -p $(dirname {name}); echo /elsewhere > {name}; cat {name}")
    assert ended.out == "/elsewhere\n"
    assert not (made.root / name).exists()
    assert ended.restored == (str(made.root / name),)


# ------------------------------------------------------------------ what is left


def test_no_placeholder_of_a_missing_file_is_left(made):
    made.write(made.root / ".git/HEAD", "x")
    before = sorted(str(path) for path in made.root.rglob("*"))
    assert ".mcp.json" in made.sh("ls -A").out
    assert sorted(str(path) for path in made.root.rglob("*")) == before


def test_files_made_from_outside_meanwhile_are_kept(made):
    def meanwhile() -> None:
        deadline = time.monotonic() + 60
        while not (made.root / "up").exists() and time.monotonic() < deadline:
            time.sleep(0.005)
        (made.root / ".vscode/settings.json").write_text("{}")
        (made.root / ".envrc").rmdir()
        (made.root / ".envrc").write_text("")
        (made.root / "on").touch()

    made.run(("bash", "-c", "touch up; until [ -e on ]; do sleep 0.01; done"), meanwhile=meanwhile)
    assert (made.root / ".vscode/settings.json").read_text() == "{}"
    assert (made.root / ".envrc").is_file()


def test_concurrent_programs_share_placeholders(made):
    def meanwhile() -> None:
        assert made.sh("ls -d .mcp.json").code == 0
        assert (made.root / ".mcp.json").is_dir()
        (made.root / "on").touch()

    made.run(("bash", "-c", "until [ -e on ]; do sleep 0.01; done"), meanwhile=meanwhile)
    assert not (made.root / ".mcp.json").exists()


def test_a_process_that_leaves_its_group_and_clears_its_environment_is_ended(made):
    made.sh(
        "env -i setsid -f /bin/sh -c 'echo $$ > pid; exec sleep 3141' < /dev/null > /dev/null 2>&1; "
        "until [ -s pid ]; do sleep 0.01; done"
    )
    deadline = time.monotonic() + 60
    while (left := _sleepers()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left


def _sleepers() -> list[int]:
    return pids_of("sleep", "3141")


def test_the_temporary_folder_belongs_to_the_session(made):
    assert made.sh("echo kept > /tmp/here; mktemp").code == 0
    assert made.sh("cat /tmp/here").out == "kept\n"
    assert made.sh("cat /tmp/here", grant=Grant()).out == "kept\n"
    assert not Path("/tmp/here").exists()
    scratch = Path(made.layout.scratch)
    assert (scratch / "here").read_text() == "kept\n"
    assert scratch.stat().st_mode & 0o077 == 0
    made.backend.close()
    assert not scratch.exists()


# ------------------------------------------------------------------ what is hidden


def test_files_with_keys_appear_empty(made):
    for name in (".env", ".env.local", "packages/app/.env", ".env.example"):
        made.write(made.root / name, "KEY=secret")
    (made.root / ".env.linked").symlink_to("packages/app/.env")
    ended = made.sh("cat .env .env.local packages/app/.env .env.linked; echo x >> .env; rm -f .env; mv .env y")
    assert "secret" not in ended.out
    assert (made.root / ".env").read_text() == "KEY=secret"
    assert made.sh("cat .env.example").out == "KEY=secret"


def test_files_uncovered_by_a_grant_can_be_read_and_changed(made):
    made.write(made.root / ".env", "KEY=secret")
    path = str(made.root / ".env")
    key, new = str(made.home / ".ssh/id_ed25519"), str(made.root / ".mcp.json")
    grant = Grant(writable=(str(made.root),), uncovered=(path, key, new))
    assert made.sh("cat .env ~/.ssh/id_ed25519", grant=grant).out == "KEY=secretPRIVATE"
    assert made.sh("echo A=1 > .env; echo {} > .mcp.json; echo x > ~/.ssh/id_ed25519", grant=grant).code != 0
    assert (made.root / ".env").read_text() == "A=1\n"
    assert (made.root / ".mcp.json").read_text() == "{}\n"
    assert (made.home / ".ssh/id_ed25519").read_text() == "PRIVATE"


def test_readable_parts_of_hidden_folders_are_visible(made):
    made.write(made.own / "blobs/one", "blob")
    made.write(made.own / "log", "log")
    import msgspec

    made.layout = msgspec.structs.replace(made.layout, readable=(f"{made.own}/blobs",))
    made.restart_backend()
    assert made.sh("cat ~/.config/bradawl/blobs/one; cat ~/.config/bradawl/log").out == "blob"
    assert made.sh("echo x > ~/.config/bradawl/blobs/two; echo x > ~/.config/bradawl/two").code != 0


# ------------------------------------------------------------------ grants


def test_without_a_writable_folder_nothing_is_written(made):
    ended = made.sh("echo x > new; echo x > /tmp/y; ls -A; mkdir .vscode", grant=Grant())
    assert ended.out == ".git\n"
    assert not (made.root / "new").exists()


def test_a_grant_can_make_a_single_file_writable(made):
    made.write(made.root / "a", "a")
    made.write(made.root / "b", "b")
    grant = Grant(writable=(str(made.root / "a"), str(made.outside)))
    made.sh("echo x > a; echo x > b; echo x > ../outside/new", grant=grant)
    assert [(made.root / name).read_text() for name in "ab"] == ["x\n", "b"]
    assert (made.outside / "new").read_text() == "x\n"


def test_a_grant_for_a_missing_file_outside_lets_programs_create_it(made):
    new = str(made.outside / "new/file")
    grant = Grant(writable=(str(made.root), new))
    assert made.sh(f"mkdir {made.outside}/new && echo x > {new}", grant=grant).code == 0
    assert Path(new).read_text() == "x\n"


@pytest.mark.parametrize("name", ["home", "home/.config/bradawl", "home/.config/bradawl/state", "home/new", ""])
def test_no_grant_opens_home_or_own_folders(made, name):
    with pytest.raises(ToolError, match="use another folder"):
        made.sh("true", grant=Grant(writable=(str(made.place / name),)))


def test_a_root_that_was_replaced_by_a_link_is_refused(made):
    made.root.rename(made.place / "old")
    made.root.symlink_to(made.outside)
    with pytest.raises(ToolError, match="replaced by a link"):
        made.sh("echo x > file")


# ------------------------------------------------------------------ a second working tree


def test_git_works_in_a_second_working_tree_and_uses_no_new_settings(made):
    main = made.place / "main"
    line = "git init -q -b main {0} && cd {0} && git config user.name A && git config user.email a@b && "
    made.bare(line.format(main) + "git commit -q --allow-empty -m one && git worktree add -q -b side ../tree")
    made.restart_backend(made.place / "tree")
    made.root = made.place / "tree"
    ended = made.sh("echo x > a && git add a && git commit -qm two && git log --oneline | wc -l && git stash list")
    assert (ended.code, ended.out.strip()) == (0, "2"), ended
    config = (main / ".git/config").read_text()
    ended = made.sh(
        f"echo bad >> {main}/.git/config; echo bad > {main}/.git/hooks/pre-commit; echo 'gitdir: /tmp' > .git;"
        f"echo /tmp > {main}/.git/worktrees/tree/commondir; echo bad > {main}/file; rm -f .git"
    )
    assert (main / ".git/config").read_text() == config
    assert not (main / ".git/hooks/pre-commit").exists()
    assert not (main / "file").exists()
    assert (main / ".git/worktrees/tree/commondir").read_text() == "../..\n"
    assert (made.root / ".git").read_text().startswith("gitdir: ")


def test_git_works_in_a_folder_of_a_repository_and_uses_no_new_settings():
    with bubblewrap_programs() as made:
        main = made.place / "main"
        made.root = main / "packages/one"
        made.root.mkdir(parents=True)
        made.bare(f"git init -q -b main {main} && git config user.name A && git config user.email a@b")
        (main / ".git/info/attributes").unlink(missing_ok=True)
        made.restart_backend(made.root)
        ended = made.sh(
            "echo x > a && git add -A && git commit -qm one && git switch -qc side && git log --oneline | wc -l"
        )
        assert (ended.code, ended.out.strip()) == (0, "1"), ended
        config = (main / ".git/config").read_text()
        ended = made.sh(
            f"echo bad >> {main}/.git/config; echo bad > {main}/.git/hooks/pre-commit; mv {main}/.git {main}/old;"
            f"echo '* x' > {main}/.git/info/attributes; git config core.fsmonitor bad; echo bad > {main}/file"
        )
        assert (main / ".git/config").read_text() == config, ended
        assert not (main / ".git/hooks/pre-commit").exists()
        assert not (main / ".git/info/attributes").exists()
        assert sorted(path.name for path in main.iterdir()) == [".git", "packages"]
        # Replacing the file from outside removes its mount for a running program.
        ended = made.run(
            (
                "/bin/bash",
                "-c",
                f"touch up; until [ -e go ]; do sleep 0.01; done; git -C {main} config core.fsmonitor bad",
            ),
            meanwhile=lambda: made.bare(
                f"until [ -e up ]; do sleep 0.01; done; git -C {main} config user.name B; touch go"
            ),
        )
        assert (main / ".git/config").read_text() == config.replace("name = A", "name = B"), ended
        assert made.sh("git commit -q --allow-empty -m no", grant=Grant()).code != 0


def test_a_git_file_that_names_a_parent_of_home_or_no_repository_makes_nothing_writable():
    with bubblewrap_programs() as made:
        made.bare(f"git init -q {made.home}; git init -q {made.place}/other")
        for top in (made.home, made.place / "other"):
            made.root = top / "work"
            made.root.mkdir()
            if top != made.home:
                (top / ".git/HEAD").unlink()
            made.restart_backend(made.root)
            made.sh(f"echo bad > {top}/.git/new")
            assert not (top / ".git/new").exists()


@pytest.mark.parametrize("named", ["outside", "home/.ssh", "home", "outside/.git/worktrees/x"])
def test_a_git_file_makes_only_a_folder_writable_that_points_back_to_it(made, named):
    fake = made.place / named
    fake.mkdir(parents=True, exist_ok=True)
    for name, text in (("HEAD", "ref: refs/heads/main"), ("commondir", "../..\n"), ("config", "[core]\n")):
        (fake / name).write_text(text)
    for folder in ("objects", "refs"):
        (fake / folder).mkdir()
    (made.root / ".git/config").unlink()
    (made.root / ".git/hooks").rmdir()
    (made.root / ".git").rmdir()
    (made.root / ".git").write_text(f"gitdir: {fake}\n")
    made.sh(f"echo bad > {fake}/new; echo bad > {fake}/HEAD; echo bad > {made.outside}/.git/new")
    assert not (fake / "new").exists()
    assert not (made.outside / ".git/new").exists()
