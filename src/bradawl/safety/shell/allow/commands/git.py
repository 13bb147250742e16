"""Effects of git's reading subcommands, in a repository whose configuration starts no program.

Reading subcommands run programs named in the configuration (fsmonitor, filters, textconv, hooks, gpg, a promisor's
remote). The result holds only if the caller has checked the configuration and runs git with `GIT_OPTIONAL_LOCKS=0`.
"""

import re
from itertools import pairwise
from posixpath import basename, dirname, join, normpath

import msgspec

from bradawl.safety.git.config_file import verifies_signatures
from bradawl.safety.permissions.protected_paths import may_hold_secrets
from bradawl.safety.shell.allow.commands.options import Call, Options, options, read_options
from bradawl.safety.shell.allow.commands.readers import Program, Words, require, require_literal
from bradawl.safety.shell.allow.parser import Word
from bradawl.safety.shell.allow.path_effects import PathRecorder

_SHOWN_BY = re.compile(r"(?:^| )--(?:format|pretty|sort)\b")


class _Subcommand(msgspec.Struct, frozen=True):
    known: Options
    most: int = 1_000
    needs: tuple[str, ...] = ()
    """If there are operands, one of these options must be given."""


def _git(recorder: PathRecorder, words: Words) -> None:
    require(recorder.filesystem.git_is_safe and recorder.cwd == recorder.filesystem.start)
    require_literal(words)
    texts = [word.text for word in words]
    if texts[:1] == ["--no-pager"]:
        texts = texts[1:]
    name, rest = _subcommand(texts)
    reading = _SUBCOMMANDS.get(name)
    require(reading is not None)
    if reading is not None:
        call, operands = _parse_arguments(reading, rest)
        if name in _SHOWS and not (name == "log" and _SHOWS_LINES.isdisjoint(call.flags)):
            _read_secrets(recorder, [*operands, call.flags.get("L", "")])
            _read_refused(recorder, [*operands, call.flags.get("L", "")])
        if name == "grep" and "untracked" in call.flags:
            recorder.record_contents_below((), hidden=True)
        _read_operands(recorder, name, operands)
    for place in (_repository_root(recorder), *recorder.filesystem.git_reads):
        recorder.read_path(place)


def _read_operands(recorder: PathRecorder, name: str, operands: list[str]) -> None:
    """Record operands that git may read as plain files: through links, and outside a repository.

    `git diff a b` compares two folders completely if git finds no repository, or one of another user.
    """
    is_comparison = name == "diff" and len(operands) == 2
    if name == "blame" or is_comparison:
        for path in (join(recorder.cwd, operand) for operand in operands):
            if recorder.real_path(path) != normpath(path):
                recorder.read_path(path)
    if is_comparison:
        recorder.record_contents_below(map(Word, operands), hidden=True)


def _subcommand(texts: list[str]) -> tuple[str, list[str]]:
    """The subcommand and its arguments. Two words form the name if the second decides whether anything changes."""
    require(bool(texts))
    double = " ".join(texts[:2])
    if texts[0] in _FAMILIES or double in _SUBCOMMANDS:
        return double, texts[2:]
    return texts[0], texts[1:]


def _read_secrets(recorder: PathRecorder, operands: list[str]) -> None:
    """Record secret files that git shows, in whatever version: each version holds the file's secrets."""
    for operand in operands:
        path = operand.rpartition(":")[2].rstrip("/")
        if may_hold_secrets(basename(path)):
            recorder.read_path(join(recorder.cwd, path))


def _read_refused(recorder: PathRecorder, operands: list[str]) -> None:
    """Record files that rules deny, if git would show versions of them from its history."""
    if recorder.filesystem.path_rules is None:
        return
    top = _repository_root(recorder)
    paths = [operand.rpartition(":")[2].rstrip("/") for operand in operands]
    named = [normpath(join(folder, path)) for path in paths if path for folder in (recorder.cwd, top)]
    there = recorder.filesystem.entries
    is_limited = any(":" in operand and operand[-1] != ":" for operand in operands) or any(
        basename(path) in (there(dirname(join(recorder.cwd, path))) or {}) for path in paths if path
    )
    for place in named if is_limited else [*named, top]:
        for path in recorder.filesystem.path_rules.tracked_below(place, top):
            recorder.read_path(path)
        if recorder.filesystem.path_rules.matches("read", place):
            recorder.read_path(place)


def _parse_arguments(reading: _Subcommand, texts: list[str]) -> tuple[Call, list[str]]:
    """Options and operands. Raises `UnsupportedSyntax`."""
    options_end = texts.index("--") if "--" in texts else len(texts)
    call = read_options(reading.known, tuple(map(Word, texts[:options_end])))
    operands = [word.text for word in call.operands] + texts[options_end + 1 :]
    require(len(operands) <= reading.most)
    require(not operands or not reading.needs or not set(reading.needs).isdisjoint(call.flags))
    require(all(map(_is_inside, operands)))
    require(not _starts_gpg(texts[:options_end]))
    return call, operands


def _is_inside(operand: str) -> bool:
    """Whether an operand stays within the repository. A path outside turns `git diff` into a comparison of any two
    files.
    """
    return bool(operand) and not operand.startswith(("/", "~", "-")) and ".." not in operand.split("/")


def _starts_gpg(texts: list[str]) -> bool:
    """Whether a format or sort key verifies signatures. Each option counts, not only the last: sort keys add up."""
    shown = [f"{before} {text}" for before, text in pairwise(["", *texts])]
    return any(_SHOWN_BY.search(text) and verifies_signatures(text) for text in shown)


def _repository_root(recorder: PathRecorder) -> str:
    """The root of the repository; the working directory if there is none."""
    folder = recorder.cwd
    while ".git" not in (recorder.filesystem.entries(folder) or {}):
        if folder == dirname(folder):
            return recorder.cwd
        folder = dirname(folder)
    return folder


_DIFF = (
    " patch no-patch stat? shortstat numstat name-only name-status summary raw compact-summary dirstat? cached staged"
    " color? no-color word-diff? color-words? ignore-all-space ignore-space-change ignore-blank-lines"
    " ignore-space-at-eol find-renames? find-copies? no-renames diff-filter= unified= relative? no-ext-diff no-textconv"
    " patch-with-stat exit-code quiet check minimal patience histogram full-index abbrev? binary text"
    " function-context merge-base no-prefix diff-algorithm= pickaxe-regex inter-hunk-context="
)
_LOG = (
    " oneline graph all decorate? no-decorate abbrev-commit no-abbrev-commit follow reverse merges no-merges"
    " first-parent date= format= pretty? since= until= after= before= author= committer= grep= all-match invert-grep"
    " regexp-ignore-case extended-regexp fixed-strings max-count= skip= topo-order date-order author-date-order"
    " left-right cherry-pick cherry-mark cherry no-walk? simplify-by-decoration full-history source branches? tags?"
    " remotes? not parents children boundary no-notes no-expand-tabs ancestry-path"
)
_DIFF_SHORT = "pusabwRzW U: S: G: M? C? B?"
_LOG_SHORT = "iEFPgm n: L: "

_SUBCOMMANDS: dict[str, _Subcommand] = {
    "status": _Subcommand(
        options(
            "sbvz u?",
            "short branch verbose long porcelain? show-stash ahead-behind no-ahead-behind"
            " untracked-files? ignored? null column? no-column no-renames",
        )
    ),
    "diff": _Subcommand(options(_DIFF_SHORT, _DIFF)),
    "log": _Subcommand(options(_LOG_SHORT + _DIFF_SHORT, _LOG + _DIFF, numbers=True)),
    "show": _Subcommand(options(_LOG_SHORT + _DIFF_SHORT, _LOG + _DIFF, numbers=True)),
    "whatchanged": _Subcommand(options(_LOG_SHORT + _DIFF_SHORT, _LOG + _DIFF, numbers=True)),
    "reflog": _Subcommand(options("n:", "oneline date= max-count=", numbers=True), most=0),
    "reflog show": _Subcommand(options("n:", "oneline date= max-count=", numbers=True)),
    "rev-list": _Subcommand(options("n:", "count" + _LOG, numbers=True)),
    "shortlog": _Subcommand(options("snce", "summary numbered email committer all since= until= no-merges")),
    "branch": _Subcommand(
        options(
            "arvi",
            "all remotes verbose show-current list merged? no-merged? contains? no-contains? points-at= sort= color?"
            " no-color ignore-case abbrev? format= column? no-column",
        ),
        needs=("list",),
    ),
    "tag": _Subcommand(
        options("li n?", "list merged? no-merged? contains? points-at= sort= color? ignore-case format= column?"),
        needs=("list", "l"),
    ),
    "remote": _Subcommand(options("v", "verbose"), most=0),
    "remote get-url": _Subcommand(options("", "push all"), most=1),
    "stash list": _Subcommand(options("pn:", "stat? patch oneline format= max-count=", numbers=True), most=0),
    "stash show": _Subcommand(options(_DIFF_SHORT, _DIFF)),
    "worktree list": _Subcommand(options("vz", "porcelain verbose"), most=0),
    "config --get": _Subcommand(options(""), most=1),
    "config --get-all": _Subcommand(options(""), most=1),
    "rev-parse": _Subcommand(
        options(
            "q",
            "abbrev-ref? short? verify show-toplevel git-dir git-common-dir absolute-git-dir is-inside-work-tree"
            " is-inside-git-dir is-bare-repository show-prefix show-cdup symbolic-full-name symbolic all quiet"
            " branches tags remotes show-superproject-working-tree is-shallow-repository",
        )
    ),
    "ls-files": _Subcommand(
        options(
            "cmodskutvz x:",
            "cached modified others deleted stage ignored killed unmerged exclude-standard full-name error-unmatch"
            " directory no-empty-directory exclude= eol abbrev? deduplicate",
        )
    ),
    "ls-tree": _Subcommand(options("rtdlz", "name-only name-status full-tree full-name long abbrev? object-only")),
    "cat-file": _Subcommand(options("tspe"), most=2),
    "blame": _Subcommand(
        options(
            "wcselfnpt L: M? C?", "date= porcelain line-porcelain show-email show-name show-number abbrev= root since="
        )
    ),
    "describe": _Subcommand(
        options("", "tags always all long dirty? abbrev= match= exclude= exact-match contains first-parent candidates=")
    ),
    "merge-base": _Subcommand(options("a", "all is-ancestor octopus independent fork-point")),
    "for-each-ref": _Subcommand(
        options("", "format= sort= count= merged? no-merged? contains? points-at= ignore-case color?")
    ),
    "show-ref": _Subcommand(options("dhqs", "head heads tags dereference hash? verify quiet abbrev? branches")),
    "count-objects": _Subcommand(options("vH", "verbose human-readable"), most=0),
    "check-ignore": _Subcommand(options("vnq", "verbose non-matching quiet no-index"), most=1_000),
    "name-rev": _Subcommand(options("", "name-only tags always all refs=")),
    "grep": _Subcommand(
        options(
            "nilLwcEFPvIhHoqapW e: A: B: C: m:",
            "line-number ignore-case files-with-matches name-only files-without-match word-regexp count"
            " extended-regexp fixed-strings perl-regexp basic-regexp invert-match only-matching quiet text"
            " show-function function-context heading break color? no-color cached untracked max-depth= after-context="
            " before-context= context= and or not all-match max-count= full-name column",
            numbers=True,
        )
    ),
}
_SHOWS = frozenset({"diff", "log", "show", "whatchanged", "stash show", "cat-file", "grep", "blame"})
_SHOWS_LINES = frozenset({"p", "u", "patch", "L", "patch-with-stat", "unified", "U", "W", "function-context"})
_FAMILIES = frozenset({"stash", "worktree", "config"})
"""Words that may change something unless a second word follows."""

GIT = Program(_git)
