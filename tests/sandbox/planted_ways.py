"""Ways in which a command in a workspace can arrange that a program runs later, outside the sandbox.

The program runs when the user types something harmless, such as `git status`, `git log` or `git fetch`, or when the
shell shows its prompt. Each `PlantedWay` is data; this module neither runs anything nor judges bradawl.

To use one:

1. Create a workspace with `SETUP`, then run `before`, both as the user, outside the sandbox. `before` is what the user
   has configured already; a command then only edits what that names. It may create folders beside the workspace.
2. Run `plant` in the workspace, in the sandbox. It may fail, which is a good answer of the sandbox.
3. Run `fire` in the workspace, outside the sandbox. Its exit code does not matter. If the marker exists now, the way
   works.

All four are lines for `bash -c`. `@MARKER@` in `plant` is the absolute path of the marker: replace it by a path of
letters, digits, `/`, `.`, `-` and `_` in a folder that does not exist for the plant, but for the user. HOME must be an
empty folder, so that no configuration of the user matters. `test_planted_ways.py` shows that every way works without a
sandbox.
"""

from typing import NamedTuple

SETUP = """
git init -q -b main . && git config user.name u && git config user.email u@example.org &&
mkdir -p src docs && echo one > a.txt && echo two > src/b.txt && git add . && git commit -qm first &&
echo three >> a.txt && git commit -qam second
"""
RUN = "touch @MARKER@"


class PlantedWay(NamedTuple):
    """A way, by a name that says what is planted."""

    name: str
    plant: str
    fire: str = "git status"
    before: str = ""
    needs: str = "git"
    """The program that must be installed for `fire`."""


def armed(config: str) -> str:
    """A command that makes git run the program whenever it refreshes the index, by a file in git's syntax."""
    return f"""printf '[core]\\n\\tfsmonitor = "{RUN}; false"\\n' >> {config}"""


def script(path: str, more: str = "") -> str:
    """A command that writes an executable script."""
    return f"mkdir -p $(dirname {path}) && printf '#!/bin/sh\\n{RUN}\\n{more}' > {path} && chmod +x {path}"


def repository(folder: str) -> str:
    """A command that creates a repository whose configuration runs the program."""
    return f"git init -q {folder} && {armed(f'{folder}/.git/config')}"


def committed(folder: str) -> str:
    """A command that gives a repository a commit."""
    identity = "-c user.name=x -c user.email=x@example.org"
    return f"git -C {folder} {identity} commit -q --allow-empty -m x"


def bare_layout(folder: str) -> str:
    """A command that makes a folder look like a git directory, with the folder itself as the working tree."""
    config = f"{folder}/config"
    return (
        f"mkdir -p {folder}/objects {folder}/refs && echo 'ref: refs/heads/main' > {folder}/HEAD && "
        f"printf '[core]\\n\\tbare = false\\n\\trepositoryformatversion = 0\\n\\tworktree = .\\n' > {config} && "
        f"{armed(config)}"
    )


_SUBMODULE = (
    "git init -q ../origin && git -C ../origin -c user.name=x -c user.email=x@e commit -q --allow-empty -m x &&"
    " git -c protocol.file.allow=always submodule --quiet add ../origin sub && git commit -qm sub"
)
_NESTED_SUBMODULES = (
    "git init -q ../inner && git -C ../inner -c user.name=x -c user.email=x@e commit -q --allow-empty -m x &&"
    " git init -q ../outer && (cd ../outer && git -c protocol.file.allow=always submodule --quiet add ../inner inner &&"
    " git -c user.name=x -c user.email=x@e commit -qm x) && git -c protocol.file.allow=always submodule --quiet add"
    " ../outer outer && git commit -qm outer && git -c protocol.file.allow=always submodule --quiet"
    " update --init --recursive"
)
_REMOTE = "git clone -q --bare . ../remote.git && git remote add origin ../remote.git && git fetch -q"

WAYS = (
    # ---------------------------------------------------------------- the repository of the workspace
    PlantedWay("fsmonitor in the configuration", armed(".git/config")),
    PlantedWay(
        "fsmonitor, with the old times of the file",
        f"touch -r .git/config t; {armed('.git/config')}; touch -r t .git/config",
    ),
    PlantedWay("configuration through a hard link", f"ln .git/config c && {armed('c')}"),
    PlantedWay("configuration through a symbolic link", f"ln -s .git g && {armed('g/config')}"),
    PlantedWay("configuration replaced by rename", f"cp .git/config c && {armed('c')} && mv c .git/config"),
    PlantedWay("configuration replaced by a link", f"cp .git/config c && {armed('c')} && ln -sf ../c .git/config"),
    PlantedWay("included file", f"{armed('inc')} && git config include.path ../inc"),
    PlantedWay(
        "file included for this folder", f'{armed("inc")} && git config "includeIf.gitdir:$PWD/.path" "$PWD/inc"'
    ),
    PlantedWay("file included for a branch", f"{armed('inc')} && git config includeIf.onbranch:main.path ../inc"),
    PlantedWay(
        "file included by an included file",
        f"{armed('inc')} && git config -f first include.path inc && git config include.path ../first",
    ),
    PlantedWay(
        "configuration of the working tree",
        f"git config extensions.worktreeConfig true && {armed('.git/config.worktree')}",
    ),
    PlantedWay("commondir", f"cp -r .git other && {armed('other/config')} && echo ../other > .git/commondir"),
    PlantedWay(
        "git directory moved, with a .git file", f"mv .git data && {armed('data/config')} && echo 'gitdir: data' > .git"
    ),
    PlantedWay("git directory moved, with a link", f"mv .git data && {armed('data/config')} && ln -s data .git"),
    PlantedWay("git directory replaced by a copy", f"mv .git old && cp -r old .git && {armed('.git/config')}"),
    PlantedWay("hook after a change of the index", script(".git/hooks/post-index-change"), "touch a.txt; git status"),
    PlantedWay("hook of references", script(".git/hooks/reference-transaction"), "git branch new"),
    PlantedWay("hook after a checkout", script(".git/hooks/post-checkout"), "git checkout -q -b new"),
    PlantedWay("hook before a commit", script(".git/hooks/pre-commit"), "git commit --allow-empty -qm x"),
    PlantedWay("hook before a push", script(".git/hooks/pre-push"), "git push -q origin main", _REMOTE),
    PlantedWay(
        "folder of hooks replaced by a link",
        f"{script('h/post-index-change')} && rm -r .git/hooks && ln -s ../h .git/hooks",
        "touch a.txt; git status",
    ),
    PlantedWay(
        "folder of hooks elsewhere",
        f"{script('h/post-index-change')} && git config core.hooksPath h",
        "touch a.txt; git status",
    ),
    PlantedWay(
        "filter for files, with attributes of the project",
        f"git config filter.x.clean '{RUN}; cat' && echo '* filter=x' > .gitattributes",
        "touch a.txt; git status",
    ),
    PlantedWay(
        "filter for files, with attributes in .git/info",
        f"git config filter.x.clean '{RUN}; cat' && mkdir -p .git/info && echo '* filter=x' > .git/info/attributes",
        "touch a.txt; git status",
    ),
    PlantedWay(
        "filter process",
        f"git config filter.x.process '{RUN}; false' && echo '* filter=x' > .gitattributes",
        "touch a.txt; git status",
    ),
    PlantedWay(
        "filter, with an attributes file elsewhere",
        f"git config filter.x.clean '{RUN}; cat' && git config core.attributesFile \"$PWD/attr\" &&"
        " echo '* filter=x' > attr",
        "touch a.txt; git status",
    ),
    PlantedWay("external diff", f"git config diff.external '{RUN}; true' && echo x >> a.txt", "git diff"),
    PlantedWay(
        "conversion for diffs",
        f"git config diff.x.textconv '{RUN}; cat' && echo '* diff=x' > .gitattributes",
        "git log -p",
    ),
    PlantedWay("pager", f"git config core.pager '{RUN}; cat'", "script -qec 'git log' /dev/null", needs="script"),
    PlantedWay(
        "pager of one command", f"git config pager.log '{RUN}; cat'", "script -qec 'git log' /dev/null", needs="script"
    ),
    PlantedWay("editor", f"git config core.editor '{RUN}; true'", "git commit --amend"),
    PlantedWay("editor of rebase", f"git config sequence.editor '{RUN}; true'", "git rebase -i HEAD~1"),
    PlantedWay(
        "program for signatures",
        (
            f'{script("gpg")} && git config gpg.program "$PWD/gpg" && git config log.showSignature true && '
            "git cat-file commit HEAD | sed '/^committer/a gpgsig -----BEGIN PGP SIGNATURE-----\\n \\n"
            " -----END PGP SIGNATURE-----'"
            " | git hash-object -t commit -w --stdin | xargs git reset -q --soft"
        ),
        "git log",
    ),
    PlantedWay("alias", f"git config alias.st '!{RUN}; git status'", "git st"),
    PlantedWay(
        "driver for merges",
        (
            f"git config merge.x.driver '{RUN}; true' && echo '* merge=x' > .gitattributes &&"
            " git checkout -q -b side HEAD~1 &&"
            " echo side > a.txt && git commit -qam side && git checkout -q main"
        ),
        "git merge side",
    ),
    PlantedWay(
        "instructions of a rebase",
        (
            "GIT_SEQUENCE_EDITOR='sed -i 1i\\\\break' git rebase -q -i HEAD~1;"
            f" echo 'exec {RUN}' >> .git/rebase-merge/git-rebase-todo"
        ),
        "git rebase --continue",
    ),
    PlantedWay(
        "filter for git add -p",
        f"git config interactive.diffFilter '{RUN}; cat' && echo x >> a.txt",
        "TERM=xterm script -qec 'git add -p' /dev/null",
        needs="script",
    ),
    PlantedWay(
        "tool for diffs",
        f"git config diff.tool x && git config difftool.x.cmd '{RUN}' && echo x >> a.txt",
        "git difftool -y",
    ),
    PlantedWay(
        "command of a trailer", f"git config trailer.x.cmd '{RUN}'", "git commit --allow-empty -qm m --trailer x=y"
    ),
    # ---------------------------------------------------------------- remotes
    PlantedWay(
        "ssh command", f"git config core.sshCommand '{RUN}; false' && git remote add o ssh://localhost/x", "git fetch o"
    ),
    PlantedWay(
        "program of a remote", f"git config remote.origin.uploadpack '{RUN}; git-upload-pack'", "git fetch", _REMOTE
    ),
    PlantedWay(
        "program as the address of a remote",
        f"git config protocol.ext.allow always && git config remote.origin.url 'ext::{RUN}'",
        "git fetch",
        _REMOTE,
    ),
    PlantedWay(
        "address rewritten",
        f"git config protocol.ext.allow always && git config 'url.ext::{RUN}.insteadOf' ../remote.git",
        "git fetch",
        _REMOTE,
    ),
    PlantedWay(
        "proxy for git",
        f'{script("proxy")} && git config core.gitProxy "$PWD/proxy" && git remote add o git://localhost/x',
        "git fetch o",
    ),
    PlantedWay(
        "missing object, and a remote that has it",
        (
            "git config extensions.partialClone p && git config core.repositoryFormatVersion 1 &&"
            " git config remote.p.url . &&"
            f" git config remote.p.promisor true && git config remote.p.uploadpack '{RUN}; false' &&"
            " o=$(git rev-parse HEAD:a.txt) && rm -f .git/objects/${o:0:2}/${o:2}"
        ),
        "git show HEAD",
    ),
    PlantedWay(
        "update command of a submodule",
        f"git config submodule.sub.update '!{RUN}'; git -C sub checkout -q --orphan x && {committed('sub')}",
        "git submodule update",
        _SUBMODULE,
    ),
    # ---------------------------------------------------------------- what the user's configuration names already
    PlantedWay(
        "file that the configuration includes",
        armed("dev.gitconfig"),
        before="touch dev.gitconfig && git config include.path ../dev.gitconfig",
    ),
    PlantedWay(
        "missing file that the configuration includes",
        armed("dev.gitconfig"),
        before="git config include.path ../dev.gitconfig",
    ),
    PlantedWay(
        "folder of hooks that the configuration names",
        script(".githooks/post-index-change"),
        "touch a.txt; git status",
        "mkdir .githooks && git config core.hooksPath .githooks",
    ),
    PlantedWay(
        "missing folder of hooks that the configuration names",
        script("build/hooks/pre-commit"),
        "git commit --allow-empty -qm x",
        "git config core.hooksPath build/hooks",
    ),
    PlantedWay(
        "script of a filter that the configuration names",
        script("tools/clean", "cat"),
        "touch a.txt; git status",
        "mkdir tools && printf '#!/bin/sh\\ncat' > tools/clean && chmod +x tools/clean &&"
        " git config filter.x.clean tools/clean && echo '* filter=x' > .gitattributes",
    ),
    PlantedWay(
        "attributes for a filter that the configuration names",
        f"{script('tools/clean', 'cat')} && echo '* filter=x' > src/.gitattributes",
        "touch src/b.txt; git status",
        "git config filter.x.clean tools/clean",
    ),
    PlantedWay(
        "script that the configuration names as monitor",
        script("tools/monitor"),
        before="git config core.fsmonitor tools/monitor",
    ),
    # ---------------------------------------------------------------- submodules and working trees
    PlantedWay("configuration of a submodule", armed(".git/modules/sub/config"), before=_SUBMODULE),
    PlantedWay(
        "hook of a submodule",
        script(".git/modules/sub/hooks/post-checkout"),
        "git -C sub checkout -q -b new",
        _SUBMODULE,
    ),
    PlantedWay(
        "configuration of a submodule in a submodule",
        armed(".git/modules/outer/modules/inner/config"),
        before=_NESTED_SUBMODULES,
    ),
    PlantedWay(
        "data of a submodule elsewhere",
        f"cp -r .git/modules/sub data && {armed('data/config')} && git config -f data/config core.worktree"
        " ../sub && echo 'gitdir: ../data' > sub/.git",
        before=_SUBMODULE,
    ),
    PlantedWay(
        "data of a submodule in the submodule",
        "rm sub/.git && cp -r .git/modules/sub sub/.git && git config -f sub/.git/config --unset"
        f" core.worktree; {armed('sub/.git/config')}",
        before=_SUBMODULE,
    ),
    PlantedWay(
        "configuration of a linked working tree",
        f"git config extensions.worktreeConfig true && {armed('.git/worktrees/wt/config.worktree')}",
        "cd wt && git status",
        "git worktree add -q wt",
    ),
    PlantedWay(
        "commondir of a linked working tree",
        f'cp -r .git other && {armed("other/config")} && echo "$PWD/other" > .git/worktrees/wt/commondir',
        "cd wt && git status",
        "git worktree add -q wt",
    ),
    PlantedWay(
        ".git file of a linked working tree",
        f'cp -r .git other && {armed("other/config")} && echo "gitdir: $PWD/other" > wt/.git',
        "cd wt && git status",
        "git worktree add -q wt",
    ),
    # ---------------------------------------------------------------- new repositories in the workspace
    PlantedWay("repository in a folder", repository("docs"), "cd docs && git status"),
    PlantedWay(
        "repository ten folders down", repository("a/b/c/d/e/f/g/h/i/j"), "cd a/b/c/d/e/f/g/h/i/j && git status"
    ),
    PlantedWay(
        "repository a hundred folders down",
        repository("$(printf 'd/%.0s' {1..100})x"),
        "cd $(printf 'd/%.0s' {1..100})x && git status",
    ),
    *(
        PlantedWay(f"repository below {name}", repository(f"{name}/x"), f"cd {name}/x && git status")
        for name in ("node_modules", ".venv/lib", "vendor", "target/debug", "__pycache__", ".cache", "dist", ".tox/py")
    ),
    PlantedWay(
        "repository in a folder that git ignores",
        f"echo tmp/ >> .git/info/exclude; echo tmp/ > .gitignore; {repository('tmp/x')}",
        "cd tmp/x && git status",
    ),
    PlantedWay(
        "repository behind 3,000 folders",
        f"mkdir -p many/{{1..3000}} && {repository('many/zz/x')}",
        "cd many/zz/x && git status",
    ),
    PlantedWay(
        "repository with the oldest times",
        f"{repository('docs/x')} && find docs -exec touch -h -d @0 {{}} +",
        "cd docs/x && git status",
    ),
    PlantedWay(
        "repository with a name that is not UTF-8", repository("$'\\xff\\xfe'"), "cd $'\\xff\\xfe' && git status"
    ),
    PlantedWay(
        "repository with a newline in its name",
        repository("$'a\\nb'").replace("$'a\\nb'/.git/config", "$'a\\nb/.git/config'"),
        "cd $'a\\nb' && git status",
    ),
    PlantedWay(
        "repository made elsewhere and moved",
        f"{repository('x')} && mv x/.git src/.git && rmdir x",
        "cd src && git status",
    ),
    PlantedWay("repository in the git directory", repository(".git/x"), "cd .git/x && git status"),
    PlantedWay(
        "folder with a .git file",
        f"git init -q .data && {armed('.data/.git/config')} && echo 'gitdir: ../.data/.git' > src/.git",
        "cd src && git status",
    ),
    PlantedWay(
        "folder with a linked .git",
        f"git init -q .data && {armed('.data/.git/config')} && ln -s ../.data/.git src/.git",
        "cd src && git status",
    ),
    PlantedWay(
        "link to a folder with a repository",
        f"{repository('.data/x')} && ln -s .data/x shown",
        "cd shown && git status",
    ),
    PlantedWay(
        "existing repository moved, and a copy in its place",
        f"mv lib old && cp -r old lib && {armed('lib/.git/config')}",
        "cd lib && git status",
        "git init -q lib",
    ),
    PlantedWay(
        "existing repository below a skipped name",
        armed("node_modules/p/.git/config"),
        "cd node_modules/p && git status",
        "git init -q node_modules/p",
    ),
    # ---------------------------------------------------------------- found by the git of the outer repository
    PlantedWay(
        "gitlink in the index",
        f"git init -q lib && {committed('lib')} && git add lib 2> /dev/null; {armed('lib/.git/config')}",
    ),
    PlantedWay(
        "gitlink below a skipped name",
        f"git init -q node_modules/p && {committed('node_modules/p')} && git add -f node_modules/p 2>"
        f" /dev/null; {armed('node_modules/p/.git/config')}",
    ),
    PlantedWay(
        "gitlink that only the index has",
        (
            f"git init -q lib && {committed('lib')} && {armed('lib/.git/config')} &&"
            " git update-index --add --cacheinfo 160000,$(git -C lib -c core.fsmonitor= rev-parse HEAD),lib"
        ),
    ),
    PlantedWay(
        "gitlink to a .git file",
        (
            f"git init -q lib && {committed('lib')} && mv lib/.git .data && git config -f .data/config"
            ' core.worktree "$PWD/lib" &&'
            f" echo 'gitdir: ../.data' > lib/.git && git add lib 2> /dev/null; {armed('.data/config')}"
        ),
    ),
    PlantedWay(
        "gitlink in a gitlink",
        (
            f"git init -q a && git init -q a/b && {committed('a/b')} && git -C a add b 2> /dev/null;"
            f" {committed('a')} &&"
            f" git add a 2> /dev/null; {armed('a/b/.git/config')}"
        ),
    ),
    # ---------------------------------------------------------------- folders that look like a git directory
    PlantedWay("folder that looks like a git directory", bare_layout("docs"), "cd docs && git status"),
    PlantedWay(
        "such a folder, deep and below a skipped name",
        bare_layout("node_modules/.cache/a/b/c"),
        "cd node_modules/.cache/a/b/c && git status",
    ),
    PlantedWay(
        "such a folder, of which only the configuration was missing",
        f"{bare_layout('new')} && mv new/config docs",
        "cd docs && git status",
        "mkdir docs/objects docs/refs && echo 'ref: refs/heads/main' > docs/HEAD",
    ),
    PlantedWay(
        "such a folder with links as its parts",
        f"{bare_layout('d')} && mv d/HEAD docs && ln -s ../d/config ../d/objects ../d/refs docs",
        "cd docs && git status",
    ),
    PlantedWay(
        "such a folder with a detached HEAD",
        bare_layout("docs") + " && git rev-parse HEAD > docs/HEAD",
        "cd docs && git status",
    ),
    PlantedWay(
        "bare repository with a hook",
        f"git init -q --bare docs/b.git && {script('docs/b.git/hooks/reference-transaction')}",
        "git push -q docs/b.git main",
    ),
    # ---------------------------------------------------------------- the prompt of a shell
    PlantedWay(
        "repository, entered by a shell that shows its state",
        repository("docs/x"),
        "GIT_PS1_SHOWDIRTYSTATE=1; GIT_PS1_SHOWUNTRACKEDFILES=1; . /usr/lib/git-core/git-sh-prompt;"
        " cd docs/x; __git_ps1",
        needs="/usr/lib/git-core/git-sh-prompt",
    ),
    PlantedWay(
        "gitlink, seen by a shell that shows its state",
        f"git init -q lib && {committed('lib')} && git add lib 2> /dev/null; {armed('lib/.git/config')}",
        "GIT_PS1_SHOWDIRTYSTATE=1; . /usr/lib/git-core/git-sh-prompt; __git_ps1",
        needs="/usr/lib/git-core/git-sh-prompt",
    ),
    # ---------------------------------------------------------------- programs that the user lets read the folder
    PlantedWay(
        "settings of vim",
        f"echo 'silent !{RUN}' > .exrc",
        "timeout -s KILL 10 vim --not-a-term -T dumb -c qa",
        "echo 'set exrc' > ~/.vimrc",
        "vim",
    ),
    PlantedWay(
        "settings of gdb",
        f"echo 'shell {RUN}' > .gdbinit",
        "gdb -batch",
        "echo 'set auto-load safe-path /' > ~/.gdbinit",
        "gdb",
    ),
    PlantedWay(
        "file that the prompt of a shell reads",
        f"echo '{RUN}' > .envrc",
        "PROMPT_COMMAND='[ -f .envrc ] && . ./.envrc'; eval \"$PROMPT_COMMAND\"",
        needs="bash",
    ),
)
