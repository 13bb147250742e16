"""Which files a git command changes in a working tree or elsewhere, apart from its own data in `.git`."""

import re
from collections.abc import Callable, Mapping
from posixpath import join

import msgspec

from bradawl.safety.shell.arguments import arguments
from bradawl.safety.shell.argv import Argv, names
from bradawl.safety.shell.paths.file_changes import Changes, Copies
from bradawl.safety.shell.program_options import git_words

_SYSTEM_TEMPLATES = ("/usr/share/git-core/templates", "/usr/local/share/git-core/templates")


class GitCall(msgspec.Struct, frozen=True):
    """A parsed git command."""

    sub: str
    words: Argv
    """The subcommand and its arguments."""
    git_dirs: Argv = ()
    work_trees: Argv = ()
    settings: Argv = ()
    """Values of `-c`."""


def git_call(argv: Argv, environment: Mapping[str, str]) -> GitCall:
    """Parse a git command. `environment` holds variables that the line sets, such as GIT_DIR."""
    split = git_words(argv)
    given: dict[str, list[str]] = {"-c": [], "--git-dir": [], "--work-tree": []}
    for name, value in split.options:
        given.setdefault(name, []).append(value)
    dirs = (*given["--git-dir"], *_values_of(environment, "GIT_DIR", "GIT_COMMON_DIR"))
    trees = (*given["--work-tree"], *_values_of(environment, "GIT_WORK_TREE"))
    words = split.rest or ("",)
    return GitCall(words[0], words, dirs, trees, tuple(given["-c"]))


def _values_of(environment: Mapping[str, str], *variables: str) -> Argv:
    return tuple(environment[name] for name in variables if environment.get(name))


def git_changes(call: GitCall) -> Changes:
    """The files that it changes or creates."""
    if handler := _HANDLERS.get(call.sub):
        found = handler(call)
    elif call.sub in _CHANGES_NO_FILES or not call.sub:
        found = Changes(files=_output(call))
    else:
        found = Changes(maybe_changed=call.words[1:])
    if call.work_trees and call.sub in _FILLS_A_TREE:
        trees = call.work_trees
        found = msgspec.structs.replace(found, files=(*found.files, *trees), trees=(*found.trees, *trees))
    return found


def git_refusal(call: GitCall, environment: Mapping[str, str]) -> str:
    """Why the command is refused in every mode because it changes what git executes; empty if it isn't."""
    if call.sub in ("init", "clone"):
        options = arguments(call.words, "bojcu", "template branch origin depth config jobs")
        set_by = (
            *(value.partition("=")[2] for value in call.settings if value.lower().startswith("init.templatedir=")),
        )
        for folder in (*options.values("", "template"), *set_by, *_values_of(environment, "GIT_TEMPLATE_DIR")):
            if folder not in _SYSTEM_TEMPLATES:
                return f"git would install the hooks in {folder}, which run later; leave --template out"
    if call.sub == "config" and any(word in ("-e", "--edit", "edit") for word in call.words[1:4]):
        return "it would open git's configuration in an editor that a variable names; leave that to the user"
    return ""


def git_config_files(call: GitCall, environment: Mapping[str, str]) -> Argv:
    """Configuration files that the command names and writes to; for a git directory its `config`."""
    if call.sub != "config" or _only_reads_config(call.words[1:]):
        return ()
    options = arguments(call.words, "f", "file blob type default comment value")
    files = options.values("f", "file") or _values_of(environment, "GIT_CONFIG", "GIT_CONFIG_GLOBAL")
    return files or tuple(join(folder, "config") for folder in call.git_dirs)


def _only_reads_config(words: Argv) -> bool:
    options = [word for word in words if word[:1] == "-"]
    operands = [word for word in words if word[:1] != "-"]
    if any(re.match(r"--(?:get|list|show|name-only)|-l$", word) for word in options):
        return True
    return operands[:1] in (["get"], ["list"]) or (
        len(operands) < 2 and not any("set" in word or "rem" in word for word in options)
    )


# ------------------------------------------------------------------ subcommands


def _output(call: GitCall) -> Argv:
    """The value of `--output`, for subcommands that print."""
    found = [after for word, after in zip(call.words, call.words[1:], strict=False) if word == "--output"]
    return (*found, *(word[9:] for word in call.words if word.startswith("--output=")))


def _output_file(call: GitCall) -> Changes:
    options = arguments(call.words, "o", "output output-directory prefix format remote exec export-marks file")
    return Changes(files=options.values("o", "output", "output-directory", "export-marks", "file"))


def _bundle(call: GitCall) -> Changes:
    if call.words[1:2] != ("create",):
        return Changes()
    return Changes(files=tuple(word for word in call.words[2:] if word[:1] != "-" or word == "-")[:1])


def _checkout_index(call: GitCall) -> Changes:
    options = arguments(call.words, "", "prefix stage")
    prefixes = options.values("", "prefix")
    files = tuple(prefix + word for prefix in prefixes or ("",) for word in options.operands)
    return Changes(
        files=(*files, *prefixes), trees=(".",) if options.has("a", "all") and not prefixes else (), tracked=True
    )


def _restore(call: GitCall) -> Changes:
    options = arguments(call.words, "sU", "source conflict unified pathspec-from-file")
    if options.has("S", "staged") and not options.has("W", "worktree"):
        return Changes()
    paths = _pathspecs(options.operands)
    return Changes(files=paths, trees=paths, tracked=True)


def _checkout(call: GitCall) -> Changes:
    """Operands may be branches; the caller ignores those that are no existing path."""
    if "--" in call.words:
        paths = _pathspecs(call.words[call.words.index("--") + 1 :])
        return Changes(files=paths, trees=paths, tracked=True)
    options = arguments(call.words, "bBU", "orphan conflict unified pathspec-from-file")
    if options.has("bB", "orphan", "detach"):
        return Changes()
    return Changes(
        maybe_changed=options.operands,
        trees=tuple(word for word in options.operands if "/" in word or word == "."),
        tracked=True,
    )


def _rm(call: GitCall) -> Changes:
    options = arguments(call.words, "", "pathspec-from-file")
    if options.has("n", "cached", "dry-run"):
        return Changes()
    paths = _pathspecs(options.operands)
    return Changes(files=paths, trees=paths, tracked=True)


def _mv(call: GitCall) -> Changes:
    options = arguments(call.words)
    *sources, target = options.operands or ("",)
    return Changes(
        files=tuple(sources), trees=tuple(sources), removes=True, copies=(Copies(tuple(sources), target, True),)
    )


def _clean(call: GitCall) -> Changes:
    options = arguments(call.words, "e", "exclude")
    if options.has("n", "dry-run"):
        return Changes()
    return Changes(trees=options.operands or (".",), tracked=False)


def _stash(call: GitCall) -> Changes:
    takes_new = any(re.match(r"-[a-zA-Z]*[ua]|--(?:inc|all)", word) for word in call.words[1:])
    is_read = call.words[1:2] in (("show",), ("list",), ("drop",), ("pop",), ("apply",), ("branch",))
    named = _pathspecs(arguments(call.words[1:], "m", "message pathspec-from-file").operands)
    if named and call.words[1:2] == ("push",):
        return Changes(files=named, trees=named, tracked=True)
    return Changes(trees=(".",), tracked=False) if takes_new and not is_read else Changes()


def _apply(call: GitCall) -> Changes:
    options = arguments(call.words, "pC", "directory exclude include whitespace build-fake-ancestor")
    if options.has("", "stat", "numstat", "summary", "check") and not options.has("", "apply"):
        return Changes()
    return Changes(
        files=options.values("", "directory", "build-fake-ancestor"),
        maybe_changed=tuple(f"@{word}" for word in options.operands),
        texts=("",),
    )


def _clone_or_init(call: GitCall) -> Changes:
    options = arguments(
        call.words, "bojcu", "template branch origin depth config jobs separate-git-dir reference shallow-since"
    )
    made = tuple(word for word in options.operands if "://" not in word and "@" not in word)
    return Changes(
        files=(
            *(made[1:] if call.sub == "clone" and len(options.operands) == len(made) else made),
            *options.values("", "separate-git-dir"),
        )
    )


def _worktree(call: GitCall) -> Changes:
    if call.words[1:2] not in (("add",), ("move",), ("remove",)):
        return Changes()
    operands = arguments(call.words[1:], "bB", "branch name reference depth reason").operands
    is_away = call.words[1] in ("move", "remove")
    return Changes(files=tuple(word for word in operands if "://" not in word), trees=operands[:1] if is_away else ())


def _first_operand(call: GitCall) -> Changes:
    return Changes(files=arguments(call.words, "L").operands[:1])


def _all_operands(call: GitCall) -> Changes:
    return Changes(files=(*arguments(call.words, "o").operands, *arguments(call.words, "o").values("o")))


def _pathspecs(words: Argv) -> Argv:
    """Pathspecs as shell patterns. In a pathspec, `*` also matches slashes."""
    found: list[str] = []
    for word in words:
        plain = re.sub(r"\A:(?:\([^)]*\)|/)", "", word)
        found.append(plain)
        if "*" in plain:
            found += [f"**/{plain}", plain.replace("*", "**/*")]
    return tuple(found)


_CHANGES_NO_FILES = names(
    "add stage status log diff show commit fetch push pull merge rebase cherry-pick revert reset switch branch tag"
    " remote"
    " ls-files ls-tree ls-remote rev-parse rev-list grep blame annotate cat-file describe shortlog reflog whatchanged"
    " range-diff name-rev merge-base for-each-ref show-ref symbolic-ref check-ignore check-attr check-mailmap"
    " check-ref-format count-objects gc prune repack fsck verify-commit verify-tag verify-pack"
    " notes help version config"
    " bisect hash-object update-index update-ref read-tree write-tree commit-tree mktree mktag diff-tree diff-index"
    " diff-files request-pull rerere replace pack-refs maintenance var cherry show-branch interpret-trailers stripspace"
    " column credential sparse-checkout lfs submodule difftool mergetool gui citool instaweb send-email imap-send"
    " fast-import unpack-objects upload-pack receive-pack pack-redundant commit-graph multi-pack-index prune-packed"
    " for-each-repo show-index patch-id get-tar-commit-id"
)
_FILLS_A_TREE = names(
    "checkout checkout-index restore reset switch read-tree merge pull stash rebase apply clean rm am"
)
_HANDLERS: dict[str, Callable[[GitCall], Changes]] = {
    **dict.fromkeys(("archive", "format-patch", "bugreport", "diagnose", "fast-export", "mailsplit"), _output_file),
    **dict.fromkeys(("index-pack", "credential-store", "credential-cache"), _output_file),
    "bundle": _bundle,
    "checkout-index": _checkout_index,
    "restore": _restore,
    "checkout": _checkout,
    "rm": _rm,
    "mv": _mv,
    "clean": _clean,
    "stash": _stash,
    **dict.fromkeys(("apply", "am"), _apply),
    **dict.fromkeys(("clone", "init"), _clone_or_init),
    **dict.fromkeys(("worktree", "submodule"), _worktree),
    "merge-file": _first_operand,
    "mailinfo": _all_operands,
    "pack-objects": _all_operands,
}
