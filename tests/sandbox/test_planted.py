"""Repositories that commands plant do not run when the user starts git: at any depth, by any layout, at any time.

Each way runs in a sandbox through the real processes. Then the user's git runs outside in every folder that git could
take for a repository: the marker program, which git would start, must not have run. What existed before stays in place.
Without a sandbox each way starts the marker program, which shows that it works.
"""

import os
import random
import subprocess
from pathlib import Path

import pytest
from bwrap import HAS_BWRAP
from landlock_programs import need_landlock
from sandboxed_session import IDENTITY, SandboxedSession, remove_folder, sandboxed_session

from bradawl.core.permissions import Grant
from bradawl.sandbox.landlock import LandlockBackend, why_unavailable

FUNCTIONS = r"""
export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
arm() { printf '[core]\n\tfsmonitor = %s\n' "$MARK" >> "$1"; }
hook() { printf '#!/bin/sh\nexec %s\n' "$MARK" > "$1"; chmod 755 "$1"; }
plant() { mkdir -p "$1"; git init -q "$1"; (cd "$1"; git commit -q --allow-empty -m x); arm "$1/.git/config"; }
bare() { git init -q --bare "$1"; printf '[core]\n\tbare = false\n\tworktree = .\n' >> "$1/config"; arm "$1/config"; }
"""

WAYS = {
    "at the depth of a folder that was searched before": "plant a/b",
    "deep": "plant a/b/c/d/e/f/g/h",
    "below 200 folders": "d=.; for i in $(seq 200); do d=$d/d; done; plant $d",
    "in node_modules": "plant node_modules/x",
    "in site-packages": "plant lib/site-packages/x/y",
    "in a cache": "plant __pycache__/x",
    "in a folder of hooks": "plant hooks/pre-commit/x",
    "behind 10,000 folders": "mkdir many; cd many; seq 10000 | xargs mkdir; cd ..; plant zz/y/x",
    "before 10,000 folders": "plant aa/y/x; mkdir many; cd many; seq 10000 | xargs mkdir",
    "with reset times": "plant user/x/y; find user -exec touch -h -d 2001-01-01 {} +",
    "with the times of the folder before": "plant user/x; touch -r user/file user user/x",
    "in a folder that replaced another": "cp -r user new; plant new/x; mv user old; mv new user",
    "in a folder that replaced another of the same times": "cp -rp user new; plant new/inner/x; mv user old;"
    " mv new user; touch -r old user",
    "moved in from the folder for temporary files": "d=$(mktemp -d); plant $d/x; mv $d/x user/x; rmdir $d",
    "moved in from the cache": "plant $XDG_CACHE_HOME/x; mkdir -p user/c; mv $XDG_CACHE_HOME/x user/c/x",
    "then closed": "plant shut/x; chmod 0 shut",
    "then closed, at each level": "plant shut/x/y; chmod 0 shut/x/y/.git shut/x/y shut/x shut",
    "then not listable": "plant shut/x; chmod 300 shut",
    "with a name that is not UTF-8": "plant $'a/\\xff\\xfe/x'",
    "with a line break in its name": "plant $'a/x\\ny'",
    "in the user's folder": "plant user",
    "a bare layout": "mkdir a; bare a/x.git",
    "a bare layout without a name that says so": "bare deep/er/folder/src",
    "a bare layout in the user's folder": "bare t; mv t/HEAD t/objects t/refs user; mv t/config user",
    "a bare layout around the user's configuration": "bare t; mv t/HEAD t/objects t/refs armed",
    "a bare layout with data elsewhere": "bare t; mkdir s; cp t/HEAD s; echo ../t > s/commondir; rm t/HEAD;"
    " git config -f t/config --unset core.worktree; git config -f t/config --unset core.bare;"
    " git config -f t/config extensions.worktreeConfig true;"
    " printf '[core]\\nbare=false\\nworktree=.\\n' > s/config.worktree",
    "a bare layout with hooks alone": "git init -q --bare x; printf '[core]\\nbare=false\\nworktree=.\\n' >> x/config;"
    " hook x/hooks/post-index-change; cd x; echo 1 > file; git add file; touch -d 2001-01-01 file",
    "hooks": "git init -q a/b/c/d/e; cd a/b/c/d/e; echo 1 > f; git add f; hook .git/hooks/post-index-change;"
    " touch -d 2001-01-01 f",
    "a relocated folder of hooks": "git init -q a/b/c/d/e; cd a/b/c/d/e; echo 1 > f; git add f; mkdir h;"
    " hook h/post-index-change; git config core.hooksPath h; touch -d 2001-01-01 f",
    "an included file": "git init -q a/b/c/d/e; cd a/b/c/d/e; arm more; git config include.path ../more",
    "a conditional include": "git init -q a/b/c/d/e; cd a/b/c/d/e; arm more;"
    " git config includeIf.gitdir:/.path $PWD/more",
    "a filter": "git init -q a/b/c/d/e; cd a/b/c/d/e; echo 1 > f; git add f; git config filter.x.clean $MARK;"
    " echo '* filter=x' > .gitattributes; echo 2 > f; touch -d 2001-01-01 f",
    "a text conversion": "git init -q a/b/c/d/e; cd a/b/c/d/e; echo 1 > f; git add f; git commit -qm x;"
    " git config diff.x.textconv $MARK; echo '* diff=x' > .gitattributes",
    "a program for signatures": "git init -q a/b/c/d/e; cd a/b/c/d/e; git commit -q --allow-empty -m x;"
    " t=$(git rev-parse HEAD^{tree}); c=$(printf 'tree %s\\nauthor a <a> 1 +0\\ncommitter a <a> 1 +0\\n"
    "gpgsig -----BEGIN PGP SIGNATURE-----\\n x\\n -----END PGP SIGNATURE-----\\n\\nm\\n'"
    " $t | git hash-object -t commit -w --stdin --literally); git reset -q $c; git config log.showSignature true;"
    " git config gpg.program $MARK",
    "settings of a working tree": "git init -q a/b/c/d/e; cd a/b/c/d/e; git config extensions.worktreeConfig true;"
    " arm .git/config.worktree",
    "a file that names data": "plant t/u/v/w; mkdir -p a/b/c/d; mv t/u/v/w/.git data;"
    " echo 'gitdir: ../../../../data' > a/b/c/d/.git",
    "a file that names data in the cache": "plant t; mv t/.git $XDG_CACHE_HOME/data; mkdir -p a/b/c/d;"
    " echo gitdir: $XDG_CACHE_HOME/data > a/b/c/d/.git",
    "a link to data": "plant t; mv t/.git data; mkdir -p a/b/c/d; ln -s $PWD/data a/b/c/d/.git",
    "data that leads elsewhere": "plant t; git init -q a/b/c/d; echo $PWD/t/.git > a/b/c/d/.git/commondir",
    "the data of a new submodule": "git init -q a/b/c/d/e; plant s; mkdir -p a/b/c/d/e/.git/modules/m a/b/c/d/e/m;"
    " cp -r s/.git/. a/b/c/d/e/.git/modules/m; echo 'gitdir: ../.git/modules/m' > a/b/c/d/e/m/.git",
    "data of a submodule in that of another": "plant s; mkdir -p .git/modules/o; cp -r s/.git .git/modules/o/modules;"
    ' mkdir -p k/k; echo "gitdir: $PWD/.git/modules/o/modules" > k/k/.git',
    "a working tree in an odd place": "git init -q --bare x/y/z/data; cd x/y/z/data;"
    " git worktree add -q ../../../node_modules/w $(git commit-tree -m x $(git mktree </dev/null)); arm config",
    "a repository in a folder of git's objects": "plant .git/objects/ab/x",
    "an armed repository that existed, now a submodule": "git add nested-armed; git ls-files --stage | grep -q ^160000",
    "an armed repository that existed, in a new one": "git init -q around; cd around; git add inner;"
    " git ls-files --stage | grep -q ^160000",
    "an armed repository that existed, now over the user's files": "mv nested-armed/.git user/.git",
    "arming a deep one that existed": "arm deep/deep/deep/deep/plain/.git/config",
    "arming a bare one that existed": "printf '[core]\\n\\tbare = false\\n\\tworktree = .\\n' >> stored.git/config;"
    " arm stored.git/config",
    "replacing a deep one that existed": "plant t; rm -rf deep/deep/deep/deep/plain/.git;"
    " mv t/.git deep/deep/deep/deep/plain/",
    "a file that the configuration includes": "arm included",
    "the folder of hooks that the configuration names": "mkdir -p my-hooks; hook my-hooks/post-index-change;"
    " touch -d 2001-01-01 tracked",
}
_ALONE = ("user", "armed", "arming", "existed", "replac", "configuration", "10,000", "cache", "submodule", "objects")
"""Words of ways that need files of the user, or take long."""
_COMBINED = [name for name in WAYS if not any(word in name for word in _ALONE)]


class Planted:
    """A workspace with files of the user, and a program that leaves a mark outside when git starts it."""

    def __init__(self, made: SandboxedSession) -> None:
        self.made = made
        self.ran, self.mark = made.outside / "ran", made.outside / "mark"
        self.mark.write_text(f"#!/bin/sh\n: >> {self.ran}\ncat 2>/dev/null || true\n")
        self.mark.chmod(0o755)
        made.env["MARK"] = str(self.mark)
        made.env["XDG_CACHE_HOME"] = str(made.cache)
        made.cache.mkdir(exist_ok=True)
        made.write("user/file", "mine")
        made.write("user/inner/file", "mine, too")
        made.write("tracked", "1")
        self.user_does(
            f"{FUNCTIONS} git init -q; {IDENTITY}; git add tracked; git commit -qm one;"
            " git config include.path ../included;"
            " git config core.hooksPath my-hooks; plant nested-armed; plant around/inner;"
            " git init -q deep/deep/deep/deep/plain; git -C deep/deep/deep/deep/plain commit -q --allow-empty -m x;"
            " git init -q --bare stored.git; mkdir armed; arm armed/config;"
            " printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = .\\n' >> armed/config"
        )
        self.files = self.user_files()

    def user_does(self, line: str) -> None:
        """Run a line outside the sandbox, with the user's rights."""
        environment = {**self.made.environment, "MARK": str(self.mark), "XDG_CACHE_HOME": str(self.made.cache)}
        subprocess.run(["bash", "-c", line], cwd=self.made.root, env=environment, check=False, capture_output=True)

    def user_files(self) -> dict[str, tuple[bytes, int]]:
        """Content and inode of the user's own files."""
        root = self.made.root
        names = ("user/file", "user/inner/file", "tracked", "nested-armed/.git/config", "armed/config")
        found = (root / name for name in names)
        return {str(path): (path.read_bytes(), path.stat().st_ino) for path in found if path.exists()}

    def user_starts_git(self) -> None:
        """Run the user's git in each folder that git could take for a repository, except the one that the user has
        armed.
        """
        root = self.made.root
        self._open_all()
        own = {str(root / name) for name in ("nested-armed", "nested-armed/.git", "around/inner", "around/inner/.git")}
        for folder, inner, files in os.walk(root):
            if {".git", "HEAD"} & {*inner, *files} and folder not in own:
                self._git_in(folder)

    def _git_in(self, folder: str) -> None:
        environment = {"PATH": self.made.environment["PATH"], "HOME": str(self.made.home), "GIT_CONFIG_NOSYSTEM": "1"}
        for words in (("status",), ("log", "-p", "-1")):
            subprocess.run(
                ["git", "-c", "safe.directory=*", *words],
                cwd=folder,
                env=environment,
                check=False,
                capture_output=True,
                stdin=subprocess.DEVNULL,
            )

    def _open_all(self) -> None:
        waiting = [str(self.made.root)]
        while waiting:
            folder = waiting.pop()
            if not os.access(folder, os.R_OK | os.X_OK) or os.lstat(folder).st_mode & 0o700 != 0o700:
                Path(folder).chmod(0o700)
            waiting += [each.path for each in os.scandir(folder) if each.is_dir(follow_symlinks=False)]


@pytest.fixture(params=["bubblewrap", "landlock", "bare"])
def planted(request, tmp_path):
    with sandboxed_session(tmp_path) as made:
        if request.param == "bubblewrap" and not HAS_BWRAP:
            pytest.skip("bubblewrap does not work here")
        if request.param == "landlock":
            need_landlock()
            if why := why_unavailable(made.layout):
                pytest.skip(why)
            made.backend.close()
            Path(made.layout.scratch).mkdir()
            made.backend = LandlockBackend(made.layout)
        if request.param == "bare":
            made.grant = Grant(outside_sandbox=True)
        built = Planted(made)
        built.kind = request.param
        yield built
        built._open_all()
    remove_folder(str(made.root))


@pytest.mark.parametrize("way", WAYS)
def test_a_planted_repository_never_runs(planted, way):
    ended = planted.made.run(f"{FUNCTIONS} {WAYS[way]}")
    planted.user_starts_git()
    if planted.kind == "bare":
        assert planted.ran.exists(), (ended.stdout, ended.stderr)
        return
    assert not planted.ran.exists(), (ended.restored, ended.stderr)
    assert ended.restored
    moved = ("replaced another", "now over the user's files")
    if not any(each in way for each in moved):
        assert planted.user_files() == planted.files


@pytest.mark.parametrize("seed", range(6))
def test_several_planted_repositories_never_run(planted, seed):
    if planted.kind == "bare":
        pytest.skip("each way alone shows that it works")
    chance = random.Random(seed)  # noqa: S311 - no secret depends on it
    for number in range(3):
        ways = chance.sample(_COMBINED, 4)
        places = [
            chance.choice(("p", "p/q/r/s", "node_modules/n", "user/new")) + f"/{number}{each}" for each in range(4)
        ]
        lines = (f"(mkdir -p {place}; cd {place}; {WAYS[way]})" for place, way in zip(places, ways, strict=True))
        planted.made.run(f"{FUNCTIONS} {'; '.join(lines)}")
        planted.user_starts_git()
        assert not planted.ran.exists(), ways
    assert planted.user_files() == planted.files
