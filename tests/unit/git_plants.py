"""Repositories that make git read files elsewhere, for tests of which git commands run without a question."""

import hashlib
import os
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

SECRET = "hunter2-pass-TOPSECRET"  # noqa: S105 - a made-up password


class Trap:
    """A home folder with a workspace, a secret beside it, and a private repository."""

    def __init__(self, top: Path, template: Path | None = None) -> None:
        """Copies the folder `template`, which is faster, or creates a new one."""
        self.top = Path(os.path.realpath(top))
        self.home = self.top / "home"
        self.ws = self.home / "work" / "ws"
        self.secret = self.home / "secret"
        self.private = self.home / "private"
        self.environment = {"GIT_CONFIG_NOSYSTEM": "1", "HOME": str(self.home), "PATH": os.environ["PATH"]}
        if template is None:
            self._make()
        else:
            shutil.copytree(template / "home", self.home, symlinks=True)

    def _make(self) -> None:
        self.ws.mkdir(parents=True)
        (self.home / ".gitconfig").write_text("[user]\n\tname = a\n\temail = a@example.org\n")
        self.secret.write_text(f"[default]\ntoken = {SECRET}\n")
        self._init(self.private, "hush", "key", f"{SECRET}\n")
        self.git("gc", "-q", cwd=self.private)
        (self.private / "merger").write_text(SECRET)
        self.git("add", "-A", cwd=self.private)
        self.git("commit", "-q", "-m", SECRET, cwd=self.private)
        self._init(self.ws, "trunk", "a.txt", "old\n")
        (self.ws / ".gitignore").write_text(".env\n")
        (self.ws / ".env").write_text(f"KEY={SECRET}\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "second")

    def _init(self, folder: Path, branch: str, name: str, text: str) -> None:
        self.git("init", "-q", "-b", branch, str(folder))
        (folder / name).write_text(text)
        self.git("add", "-A", cwd=folder)
        self.git("commit", "-q", "-m", SECRET if branch == "hush" else "first", cwd=folder)

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=cwd or self.ws, env=self.environment, check=True, capture_output=True, text=True
        )
        return done.stdout

    def place(self, name: str) -> Path:
        """A path in `.git` at which nothing exists."""
        path = self.ws / ".git" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        return path

    def link(self, name: str, target: Path, *, is_folder: bool = False) -> None:
        path = self.place(name)
        if is_folder:
            target.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def head_of(self, folder: Path) -> str:
        return self.git("rev-parse", "HEAD", cwd=folder)

    def borrow(self) -> None:
        """Makes the branch point to a commit of the private repository."""
        (self.ws / ".git" / "refs" / "heads" / "trunk").write_text(self.head_of(self.private))

    def index(self, *listed: bytes, version: int = 2) -> None:
        """Writes an index that lists these names with other contents."""
        blob = bytes.fromhex(self.git("rev-parse", "HEAD:a.txt").strip())
        data, before = b"DIRC" + struct.pack(">II", version, len(listed)), b""
        for name in listed:
            extended = 0x4000 if version >= 3 else 0
            entry = struct.pack(">10I", 0, 0, 0, 0, 0, 0, 0o100644, 0, 0, 4) + blob
            entry += struct.pack(">H", min(len(name), 0xFFF) | extended) + (b"\0\0" if extended else b"")
            if version == 4:
                cut = len(before) if before[:1] != name[:1] else len(before) - 1
                assert cut < 128
                data += entry + bytes([max(cut, 0)]) + name[len(before) - max(cut, 0) :] + b"\0"
                before = name
                continue
            entry += name
            data += entry + b"\0" * (8 - len(entry) % 8)
        path = self.ws / ".git" / "index"
        path.unlink(missing_ok=True)
        path.write_bytes(data + hashlib.sha1(data).digest())  # noqa: S324 - git's own checksum


def names(value: object) -> str:
    return getattr(value, "__name__", str(value))


LINKED_FILES = (
    *("HEAD", "config", "config.worktree", "index", "packed-refs", "shallow", "description", "other", "deep/er/name"),
    *("info/grafts", "info/attributes", "info/exclude", "info/sparse-checkout", "info/refs"),
    *("objects/info/alternates", "objects/info/http-alternates", "objects/info/packs", "objects/info/commit-graph"),
    *("objects/info/commit-graphs/commit-graph-chain", "objects/pack/multi-pack-index", "objects/pack/pack-0.keep"),
    *(f"objects/pack/pack-{'a' * 40}.pack", f"objects/pack/pack-{'a' * 40}.idx", f"objects/ab/{'c' * 38}"),
    *("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "MERGE_RR", "SQUASH_MSG", "FETCH_HEAD", "ORIG_HEAD", "AUTO_MERGE"),
    *("CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "COMMIT_EDITMSG", "TAG_EDITMSG", "NOTES_MERGE_PARTIAL"),
    *("BISECT_START", "BISECT_LOG", "BISECT_NAMES", "BISECT_TERMS", "BISECT_EXPECTED_REV", "BISECT_ANCESTORS_OK"),
    *("branches/other", "remotes/other", "rebase-merge/done", "rebase-merge/git-rebase-todo"),
    *("rebase-merge/head-name", "rebase-merge/onto", "rebase-apply/head-name", "rebase-apply/onto"),
    *("rebase-apply/next", "rebase-apply/0001", "sequencer/todo", "sequencer/head", "refs/heads/trunk"),
    *("refs/heads/other", "refs/tags/other", "refs/remotes/origin/HEAD", "refs/stash", "refs/notes/commits"),
    *(f"refs/replace/{'d' * 40}", "refs/bisect/bad", "logs/HEAD", "logs/refs/heads/trunk", "logs/refs/stash"),
    *("worktrees/w/gitdir", "worktrees/w/HEAD", "worktrees/w/locked", "modules/m/HEAD", "rr-cache/x/preimage"),
    *("hooks/notes", "lfs/objects/x", "annex/index", "reftable/tables.list", "svn/.metadata", "notes-merge/x"),
)
LINKED_FOLDERS = (
    *("refs", "refs/heads", "refs/tags", "refs/remotes", "objects", "objects/pack", "objects/info", "objects/ab"),
    *("logs", "logs/refs", "info", "rebase-merge", "rebase-apply", "worktrees", "modules", "branches", "remotes"),
    *("hooks", "lfs", "sequencer", "objects/info/commit-graphs", "deep"),
)
SETTINGS = (
    *("blame.ignoreRevsFile={secret}", "blame.ignoreRevsFile=../../secret", "blame.ignoreRevsFile=~/secret"),
    *("blame.ignoreRevsFile=.env", "BLAME.ignorerevsfile={secret}", "blame.ignoreRevsFile=./x/../.env"),
    *("mailmap.file={secret}", "mailmap.file=.env", "diff.orderFile={secret}", "diff.orderFile=.git/../.env"),
    *("core.excludesFile={secret}", "core.excludesFile=~/secret", "core.attributesFile={secret}", "core.worktree=/"),
    *("core.worktree={home}", "include.path={secret}", "include.path=../.env", "includeIf.gitdir:**.path={secret}"),
    *("includeIf.onbranch:trunk.path=~/secret", "blame.ignoreRevsFile=~root/x", "mailmap.file=%(prefix)/etc/passwd"),
    *("gpg.ssh.allowedSignersFile={secret}", "core.hooksPath={home}", "fsck.skipList={secret}"),
    *("format.signatureFile={secret}", "blame.ignoreRevsFile=:(optional){secret}"),
)
INDEXES = (
    *("../../secret", "{secret}", "./../../secret", "a/../../../secret", ".git/../../../secret", ".git/config"),
    *(".GIT/config", "x//y", "x/./y", "x/..", "..", ".git", "/", "//", "a/.git/x"),
)


def gitfile(trap: Trap) -> None:
    shutil.rmtree(trap.ws / ".git")
    (trap.ws / ".git").write_text(f"gitdir: {trap.private}/.git\n")


def relative_gitfile(trap: Trap) -> None:
    shutil.rmtree(trap.ws / ".git")
    (trap.ws / ".git").write_text("gitdir: ../../private/.git\n")


def gitfile_of_a_worktree(trap: Trap) -> None:
    trap.git("worktree", "add", "-q", str(trap.home / "w"), cwd=trap.private)
    shutil.rmtree(trap.ws / ".git")
    (trap.ws / ".git").write_text(f"gitdir: {trap.private}/.git/worktrees/w\n")


def linked_folder(trap: Trap) -> None:
    shutil.rmtree(trap.ws / ".git")
    (trap.ws / ".git").symlink_to(trap.private / ".git")


def alternates(trap: Trap) -> None:
    trap.place("objects/info/alternates").write_text(f"{trap.private}/.git/objects\n")
    trap.borrow()


def relative_alternates(trap: Trap) -> None:
    trap.place("objects/info/alternates").write_text("# borrowed\n\n../../../../private/.git/objects/\n")
    trap.borrow()


def quoted_alternates(trap: Trap) -> None:
    trap.place("objects/info/alternates").write_text(f'"{trap.private}/.git/obj\\145cts"\n')
    trap.borrow()


def alternates_through_a_link(trap: Trap) -> None:
    (trap.ws / "lib").symlink_to(trap.private)
    trap.place("objects/info/alternates").write_text("../../lib/.git/objects\n")
    trap.borrow()


def alternates_of_alternates(trap: Trap) -> None:
    (trap.ws / "lib" / "info").mkdir(parents=True)
    (trap.ws / "lib" / "info" / "alternates").write_text(f"{trap.private}/.git/objects\n")
    trap.place("objects/info/alternates").write_text(f"{trap.ws}/lib\n")
    trap.borrow()


def alternates_with_a_linked_pack(trap: Trap) -> None:
    (trap.ws / "lib").mkdir()
    for folder in (trap.private / ".git" / "objects").iterdir():
        (trap.ws / "lib" / folder.name).symlink_to(folder)
    trap.place("objects/info/alternates").write_text("../../lib\n")
    trap.borrow()


def linked_packs(trap: Trap) -> None:
    trap.git("gc", "-q", cwd=trap.private)
    trap.link("objects/pack", trap.private / ".git" / "objects" / "pack")
    trap.borrow()


def linked_objects(trap: Trap) -> None:
    """Links each object separately."""
    objects = trap.private / ".git" / "objects"
    for path in objects.glob("*/*"):
        if path.is_file():
            place = trap.ws / ".git" / "objects" / path.relative_to(objects)
            place.parent.mkdir(exist_ok=True)
            place.unlink(missing_ok=True)
            place.symlink_to(path)
    trap.borrow()


def common_folder(trap: Trap) -> None:
    trap.place("commondir").write_text(f"{trap.private}/.git\n")


def worktree_of_another(trap: Trap) -> bool:
    """`git worktree list` shows the newest commit of the other repository."""
    place = trap.place("worktrees/w/x").parent
    (place / "HEAD").write_text("ref: refs/heads/hush\n")
    (place / "commondir").write_text(f"{trap.private}/.git\n")
    (place / "gitdir").write_text(f"{trap.ws}/a.txt\n")
    return False


FOREIGN: tuple[Callable[[Trap], object], ...] = (
    *(gitfile, relative_gitfile, gitfile_of_a_worktree, linked_folder, alternates, relative_alternates),
    *(quoted_alternates, alternates_through_a_link, alternates_of_alternates, alternates_with_a_linked_pack),
    *(linked_packs, linked_objects, common_folder, worktree_of_another),
)
