"""What a git command discards, for each of its options: long, short, bundled, and values that look like options."""

import pytest

from bradawl.safety.shell.deny.git_losses import FORCED_PUSH, REMOTE_DELETION, Loss, forced_push, loss
from bradawl.safety.shell.deny.git_settings import GitCommand

CHANGES, STAGED, UNTRACKED = Loss("uncommitted changes"), Loss("staged changes"), Loss("untracked files")
IGNORED = Loss("ignored files, such as installed packages", undoable=False)
COMMITS = Loss("commits that may be on no other branch")
REFLOG = Loss("entries of the reflog, which lead to replaced commits")
CONFLICTS = Loss("resolved conflicts")
HISTORY = Loss("the history before the rewrite", undoable=False)
OBJECTS = Loss("objects that no reference leads to", undoable=False)
WORKTREE = Loss("uncommitted changes and untracked files of a worktree")
SUBMODULES = Loss("changes in submodules")

LOSSES = {
    CHANGES: (
        *(
            "reset --hard",
            "reset --har HEAD~1",
            "checkout -f",
            "checkout -p main",
            "checkout --patch",
            "checkout --ours f",
        ),
        *("checkout --theirs f", "checkout --force main", "checkout --pathspec-from-file x", "checkout a b"),
        *("checkout -- f", "checkout .", "checkout /abs", "checkout :x", "checkout a*", "checkout a?", "checkout [a]"),
        *("checkout is_file", "switch -f main", "switch --force x", "switch --discard-changes x", "restore f"),
        *("restore -SW f", "restore --staged --worktree f", "restore -S --no-staged f", "restore -s HEAD f", "rm -f a"),
        *(
            "rm --force a",
            "rm -rf a",
            "rm --cached --no-cached -f a",
            "mv -f a b",
            "mv --force a b",
            "checkout-index -f a",
        ),
        *("checkout-index --force -a", "checkout-index -af", "read-tree --reset -u HEAD", "read-tree -mu --reset HEAD"),
    ),
    STAGED: (
        *("reset --merge", "reset --keep HEAD~1", "checkout -m main", "checkout --merge main", "switch -m main"),
        *("switch --merge main",),
    ),
    UNTRACKED: ("clean -f", "clean -fd", "clean -f -e x", "clean --force --exclude -x", "clean -e -X", "clean -ex"),
    IGNORED: ("clean -fx", "clean -fX", "clean -fdx", "clean -e y -x"),
    COMMITS: (
        *(
            "branch -D x",
            "branch -M a b",
            "branch -C a b",
            "branch -f -d x",
            "branch --force --delete x",
            "branch -f -m a b",
        ),
        *("branch --force --move a b", "branch --force --copy a b", "branch -f -c a b", "update-ref -d x"),
        *("update-ref --stdin", "update-ref -m why -d x"),
    ),
    REFLOG: ("reflog expire --all", "reflog delete x", "reflog drop x"),
    CONFLICTS: (
        *("merge --abort", "rebase --abort", "rebase --skip", "cherry-pick --abort", "revert --skip", "am --abort"),
    ),
    WORKTREE: ("worktree remove -f x", "worktree remove --force x"),
    SUBMODULES: ("submodule update -f", "submodule deinit --force --all", "submodule update --init -f"),
    OBJECTS: (
        *("gc --prune=now", "gc --prune=all", "prune", "prune --expire now", "prune --expire -n", "prune -v"),
        *("repack -ad --unpack-unreachable=now", "repack --cruft-expiration=now", "repack -g x --cruft-exp=now"),
    ),
    HISTORY: ("filter-repo --path x",),
    None: (
        *(
            "reset",
            "reset --soft HEAD~1",
            "reset -U --hard",
            "reset --pathspec-from-file --hard",
            "clean -n",
            "clean -fn",
        ),
        *(
            "clean --dry-run -fx",
            "checkout main",
            "checkout FIX",
            "checkout -bfix",
            "checkout -Bfix a",
            "checkout -b f a",
        ),
        *(
            "checkout -d a b",
            "checkout --detach a b",
            "checkout -t a b",
            "checkout --track a b",
            "checkout --orphan -f x y",
        ),
        *("checkout --conflict -f main", "checkout --unified -f main", "checkout -U -f main", "checkout -B -f a b"),
        *("checkout --inter-hunk-context 3 main", "switch main", "switch -cfix", "switch -Cfix", "switch --create -f"),
        *(
            "switch --force-create -m x",
            "switch --orphan -f",
            "switch --conflict -f x",
            "restore -S f",
            "restore --staged f",
        ),
        *("restore -S -s -W f", "restore -S --source --worktree f", "restore -S --conflict -W f", "restore -S -U -W f"),
        *("restore -S --unified -W f", "restore -S --inter-hunk-context -W f", "restore -S --pathspec-from-file -W"),
        *("rm a", "rm -fn a", "rm --cached -f a", "rm --pathspec-from-file -f", "mv a b", "mv -fn a b", "branch -d x"),
        *("branch -f x HEAD", "branch -m a b", "branch --delete x", "branch -u -D x", "branch --set-upstream-to -D x"),
        *("branch --sort -D", "branch --points-at -D", "branch --format -D", "worktree add -f x", "worktree remove x"),
        *("reflog", "reflog show", "reflog expire --dry-run --all", "update-ref x y", "update-ref -m -d x y"),
        *("merge x", "rebase --continue", "merge -m --abort", "rebase --onto --abort x", "rebase --exec --abort"),
        *(
            "rebase -x --abort",
            "merge -X --abort x",
            "merge -s --abort x",
            "merge --strategy --abort x",
            "am -S --abort x",
        ),
        *("merge --strategy-option --abort x", "merge --message --abort x", "submodule status -f", "submodule update"),
        *(
            "checkout-index a",
            "checkout-index -f --prefix=x/ a",
            "checkout-index --prefix -f a",
            "checkout-index --stage -f",
        ),
        *("read-tree HEAD", "read-tree -mu HEAD", "read-tree --reset HEAD", "read-tree --prefix --reset -u HEAD"),
        *("read-tree --index-output --reset -u HEAD", "gc", "gc --prune=never", "gc --prune=2.weeks.ago", "prune -n"),
        *(
            "prune --dry-run",
            "maintenance run",
            "repack -ad",
            "repack --window --cruft-expiration x",
            "status",
            "log -f",
        ),
        *(
            "repack --window-memory --unpack-unreachable",
            "repack --depth --unpack-unreachable",
            "repack -m --cruft-exp",
        ),
        *(
            "repack --threads --unpack-unreachable",
            "repack --max-pack-size --unpack-unreachable",
            "repack -g --cruft-exp",
        ),
        *("repack --keep-pack --unpack-unreachable", "repack --filter --unpack-unreachable", "filter-repo --dry-run"),
        *("filter-repo --analyze", "filter-repo --help", "filter-repo -h", "stash push", "stash"),
    ),
}


@pytest.mark.parametrize(("line", "expected"), [(line, found) for found, lines in LOSSES.items() for line in lines])
def test_what_a_command_discards(line: str, expected: Loss | None):
    assert loss(GitCommand(tuple(line.split())), lambda word: word == "is_file") == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        *(
            (line, FORCED_PUSH)
            for line in ("push -f", "push --force o b", "push --force-w", "push --force-if-includes o b")
        ),
        *((line, FORCED_PUSH) for line in ("push o +b", "send-pack --force r", "http-push --force u", "push -uf o b")),
        *((line, FORCED_PUSH) for line in ("subtree push -P x o +b", "push --dry-run --no-dry-run -f")),
        *(
            (line, REMOTE_DELETION)
            for line in ("push -d o b", "push --delete o b", "push --mirror o", "push --prune o")
        ),
        *(
            (line, REMOTE_DELETION)
            for line in ("push o :b", "http-push -d u b", "http-push -D u b", "send-pack --mirror r")
        ),
        *(
            (line, "")
            for line in ("push", "push o b", "push -n -f", "push --dry-run -f", "push --dr -d o b", "push o :")
        ),
        *((line, "") for line in ("push -o -f o b", "push --push-option -f o b", "push --repo -f", "push --exec -f o")),
        *(
            (line, "")
            for line in ("push --receive-pack -f o", "push --recurse-submodules -f o", "send-pack -d r", "push -D o b")
        ),
        *(
            (line, "")
            for line in ("subtree push -P x o b", "subtree pull o +b", "config user.name +b", "fetch -f", "commit -f")
        ),
    ],
)
def test_which_pushes_are_forced(line: str, expected: str):
    assert forced_push(GitCommand(tuple(line.split()))) == expected
