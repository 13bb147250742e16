"""More ways of `planted_ways`: unusual layouts of git's data."""

from planted_ways import PlantedWay, armed, bare_layout, script

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
)
