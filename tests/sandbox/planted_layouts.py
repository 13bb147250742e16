"""More ways of `planted_ways`: unusual layouts of git's data, and settings that git obeys in another place."""

from planted_ways import RUN, PlantedWay, armed, bare_layout, script

_COMMIT = "git commit --allow-empty -qm x"
_OWN_COMMONDIR = (
    "mkdir -p .git/worktrees/y w && cp -r .git/objects .git/refs .git/HEAD .git/worktrees/y && echo >"
    " .git/worktrees/y/commondir && cp .git/config .git/worktrees/y/config &&"
    " echo 'gitdir: ../.git/worktrees/y' > w/.git"
)
"""A command that makes a linked working tree whose data are the shared data, too."""
WITHOUT_HEAD = (
    "mkdir -p x/objects x/refs x/worktrees/y w && echo 'ref: refs/heads/main' > x/worktrees/y/HEAD && echo ../.. >"
    " x/worktrees/y/commondir && echo 'gitdir: ../x/worktrees/y' > w/.git"
)
"""A command that makes a linked working tree of shared data that git itself takes for no repository."""
_TWO_COMMITS = (
    "git init -q docs/x && cd docs/x && git config user.name x && git config user.email x@e &&"
    " git commit -q --allow-empty -m one && git commit -q --allow-empty -m two"
)

LAYOUT_WAYS = (
    # ---------------------------------------------------------------- data of linked working trees
    PlantedWay(
        "folder that looks like a git directory, below the name for linked working trees",
        bare_layout("docs/worktrees/x"),
        "cd docs/worktrees/x && git status",
    ),
    PlantedWay(
        "such a folder, below the name for linked working trees in the git directory",
        bare_layout(".git/worktrees/x"),
        "cd .git/worktrees/x && git status",
    ),
    PlantedWay(
        "configuration of a linked working tree that shares with itself",
        f"{_OWN_COMMONDIR} && {armed('.git/worktrees/y/config')}",
        "cd w && git status",
    ),
    PlantedWay(
        "hook of a linked working tree that shares with itself",
        f"{_OWN_COMMONDIR} && {script('.git/worktrees/y/hooks/reference-transaction')}",
        "cd w && git branch new HEAD",
    ),
    PlantedWay(
        "configuration that linked working trees share, beside no HEAD",
        f"{WITHOUT_HEAD} && printf '[core]\\n\\trepositoryformatversion = 0\\n' > x/config && {armed('x/config')}",
        "cd w && git status",
    ),
    PlantedWay(
        "hook that linked working trees share, beside no HEAD",
        f"{WITHOUT_HEAD} && {script('x/hooks/reference-transaction')}",
        "cd w && git update-ref refs/x/new $(git hash-object -t tree -w /dev/null)",
    ),
    # ---------------------------------------------------------------- settings that look harmless
    PlantedWay(
        "steps of a rebase by their format",
        f"({_TWO_COMMITS} && git config rebase.instructionFormat '%s%nexec {RUN}')",
        "cd docs/x && git rebase -f HEAD~1",
    ),
    # ---------------------------------------------------------------- what the user's configuration names already
    PlantedWay(
        "program that packs an archive",
        script("tools/x", "cat"),
        "git archive --format=x HEAD",
        "mkdir tools && printf '#!/bin/sh\\ncat' > tools/x && chmod +x tools/x && git config tar.x.command tools/x",
    ),
    PlantedWay(
        "folder of hooks that a long configuration names",
        script(".gh/pre-commit"),
        _COMMIT,
        "mkdir .gh && git config core.hooksPath .gh &&"
        " for i in {1..2000}; do printf '[branch \"b%d\"]\\n\\tdescription = a long text\\n' $i; done >> .git/config",
    ),
    PlantedWay(
        "script that a long hook starts",
        script("tools/x"),
        _COMMIT,
        "mkdir tools && printf '#!/bin/sh\\n' > tools/x && chmod +x tools/x && { echo '#!/bin/sh';"
        " for i in {1..2000}; do echo ': a line that makes the hook long'; done; echo tools/x; }"
        " > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit",
    ),
    PlantedWay(
        "folder of hooks that the repository around the workspace names",
        script("gh/pre-commit"),
        _COMMIT,
        "mkdir gh && mv .git .. && git config core.hooksPath ws/gh",
    ),
    PlantedWay(
        "script that a hook of the repository around the workspace starts",
        script("tools/x"),
        _COMMIT,
        "mkdir tools && printf '#!/bin/sh\\n' > tools/x && chmod +x tools/x && mv .git .. &&"
        " printf '#!/bin/sh\\nexec ws/tools/x\\n' > ../.git/hooks/pre-commit && chmod +x ../.git/hooks/pre-commit",
    ),
    PlantedWay(
        "folder of hooks that a repository far down names",
        script("a/b/c/d/e/.gh/pre-commit"),
        f"cd a/b/c/d/e && git -c user.name=x -c user.email=x@e {_COMMIT.removeprefix('git ')}",
        "mkdir -p a/b/c/d/e/.gh && git init -q a/b/c/d/e && git -C a/b/c/d/e config core.hooksPath .gh",
    ),
    PlantedWay(
        "folder of hooks that a bare repository names",
        script("gh/post-update"),
        "git push -q store.git main",
        'mkdir gh && git init -q --bare store.git && git -C store.git config core.hooksPath "$PWD/gh"',
    ),
    PlantedWay(
        "hook of a bare repository that is a link",
        script("tools/x"),
        "git push -q store.git main",
        "mkdir tools && printf '#!/bin/sh\\n' > tools/x && chmod +x tools/x && git init -q --bare store.git &&"
        " ln -s ../../tools/x store.git/hooks/post-update",
    ),
    PlantedWay(
        "folder of hooks that the configuration of a linked working tree names",
        script("wt/.gh/pre-commit"),
        f"cd wt && {_COMMIT}",
        "git worktree add -q wt && mkdir wt/.gh && git config extensions.worktreeConfig true &&"
        " git -C wt config --worktree core.hooksPath .gh",
    ),
    PlantedWay(
        "folder of hooks that a file included by many others names",
        script(".gh/pre-commit"),
        _COMMIT,
        "mkdir .gh && git config include.path ../../i1 && for i in {1..8}; do"
        " git config -f ../i$i include.path i$((i + 1)); done && git config -f ../i9 core.hooksPath .gh",
    ),
)
