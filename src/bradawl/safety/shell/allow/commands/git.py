"""What reading commands of git would touch, in a repository whose configuration starts no program.

Git reads run programs named in the configuration (fsmonitor, filters, textconv, hooks, gpg, a promisor's remote), so
nothing here counts unless somebody has looked at that, and runs git with `GIT_OPTIONAL_LOCKS=0`.
"""

import re
from itertools import pairwise
from posixpath import basename, dirname, join, normpath

import msgspec

from bradawl.safety.git.config import verifies_signatures
from bradawl.safety.permissions.protected_paths import may_hold_secrets
from bradawl.safety.shell.allow.commands.options import Call, Options, options, read_options
from bradawl.safety.shell.allow.commands.readers import Program, Words, check, check_literal
from bradawl.safety.shell.allow.parser import Word
from bradawl.safety.shell.allow.path_effects import Scene

_SHOWN_BY = re.compile(r"(?:^| )--(?:format|pretty|sort)\b")


class _Reading(msgspec.Struct, frozen=True):
    known: Options
    most: int = 1_000
    needs: tuple[str, ...] = ()
    """One of these must be given if there are operands."""


def _git(scene: Scene, words: Words) -> None:
    check(scene.world.git_is_safe and scene.cwd == scene.world.start)
    check_literal(words)
    texts = [word.text for word in words]
    if texts[:1] == ["--no-pager"]:
        texts = texts[1:]
    name, rest = _subcommand(texts)
    reading = _READINGS.get(name)
    check(reading is not None)
    if reading is not None:
        call, operands = _judge(reading, rest)
        if name in _SHOWS and not (name == "log" and _SHOWS_LINES.isdisjoint(call.flags)):
            _read_secrets(scene, [*operands, call.flags.get("L", "")])
            _read_refused(scene, [*operands, call.flags.get("L", "")])
        if name == "grep" and "untracked" in call.flags:
            scene.show_all_below((), hidden=True)
        _read_operands(scene, name, operands)
    for place in (_top(scene), *scene.world.git_reads):
        scene.read_path(place)


def _read_operands(scene: Scene, name: str, operands: list[str]) -> None:
    """Operands that git may read as plain files: through links, and where there is no repository to speak of.

    `git diff a b` compares two folders with all below them if git finds no repository, or one that is another user's.
    """
    is_comparison = name == "diff" and len(operands) == 2
    if name == "blame" or is_comparison:
        for path in (join(scene.cwd, operand) for operand in operands):
            if scene.place(path) != normpath(path):
                scene.read_path(path)
    if is_comparison:
        scene.show_all_below(map(Word, operands), hidden=True)


def _subcommand(texts: list[str]) -> tuple[str, list[str]]:
    """Two words make one name where the second decides whether anything changes."""
    check(bool(texts))
    double = " ".join(texts[:2])
    if texts[0] in _FAMILIES or double in _READINGS:
        return double, texts[2:]
    return texts[0], texts[1:]


def _read_secrets(scene: Scene, operands: list[str]) -> None:
    """What git shows of a file is the file's, whichever version it is."""
    for operand in operands:
        path = operand.rpartition(":")[2].rstrip("/")
        if may_hold_secrets(basename(path)):
            scene.read_path(join(scene.cwd, path))


def _read_refused(scene: Scene, operands: list[str]) -> None:
    """Files that rules refuse, as far as git would show what it has recorded of them."""
    if scene.world.ruled is None:
        return
    top = _top(scene)
    paths = [operand.rpartition(":")[2].rstrip("/") for operand in operands]
    named = [normpath(join(folder, path)) for path in paths if path for folder in (scene.cwd, top)]
    there = scene.world.entries
    is_limited = any(":" in operand and operand[-1] != ":" for operand in operands) or any(
        basename(path) in (there(dirname(join(scene.cwd, path))) or {}) for path in paths if path
    )
    for place in named if is_limited else [*named, top]:
        for path in scene.world.ruled.tracked_below(place, top):
            scene.read_path(path)
        if scene.world.ruled.speaks("read", place):
            scene.read_path(place)


def _judge(reading: _Reading, texts: list[str]) -> tuple[Call, list[str]]:
    """Options and operands. Raises for what isn't understood."""
    options_end = texts.index("--") if "--" in texts else len(texts)
    call = read_options(reading.known, tuple(map(Word, texts[:options_end])))
    operands = [word.text for word in call.operands] + texts[options_end + 1 :]
    check(len(operands) <= reading.most)
    check(not operands or not reading.needs or not set(reading.needs).isdisjoint(call.flags))
    check(all(map(_is_inside, operands)))
    check(not _starts_gpg(texts[:options_end]))
    return call, operands


def _is_inside(operand: str) -> bool:
    """A path outside turns `git diff` into a comparison of any two files."""
    return bool(operand) and not operand.startswith(("/", "~", "-")) and ".." not in operand.split("/")


def _starts_gpg(texts: list[str]) -> bool:
    """Each option counts, not only the last: sort keys add up."""
    shown = [f"{before} {text}" for before, text in pairwise(["", *texts])]
    return any(_SHOWN_BY.search(text) and verifies_signatures(text) for text in shown)


def _top(scene: Scene) -> str:
    """The repository, or where git looks in vain for one."""
    folder = scene.cwd
    while ".git" not in (scene.world.entries(folder) or {}):
        if folder == dirname(folder):
            return scene.cwd
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

_READINGS: dict[str, _Reading] = {
    "status": _Reading(
        options(
            "sbvz u?",
            "short branch verbose long porcelain? show-stash ahead-behind no-ahead-behind"
            " untracked-files? ignored? null column? no-column no-renames",
        )
    ),
    "diff": _Reading(options(_DIFF_SHORT, _DIFF)),
    "log": _Reading(options(_LOG_SHORT + _DIFF_SHORT, _LOG + _DIFF, numbers=True)),
    "show": _Reading(options(_LOG_SHORT + _DIFF_SHORT, _LOG + _DIFF, numbers=True)),
    "whatchanged": _Reading(options(_LOG_SHORT + _DIFF_SHORT, _LOG + _DIFF, numbers=True)),
    "reflog": _Reading(options("n:", "oneline date= max-count=", numbers=True), most=0),
    "reflog show": _Reading(options("n:", "oneline date= max-count=", numbers=True)),
    "rev-list": _Reading(options("n:", "count" + _LOG, numbers=True)),
    "shortlog": _Reading(options("snce", "summary numbered email committer all since= until= no-merges")),
    "branch": _Reading(
        options(
            "arvi",
            "all remotes verbose show-current list merged? no-merged? contains? no-contains? points-at= sort= color?"
            " no-color ignore-case abbrev? format= column? no-column",
        ),
        needs=("list",),
    ),
    "tag": _Reading(
        options("li n?", "list merged? no-merged? contains? points-at= sort= color? ignore-case format= column?"),
        needs=("list", "l"),
    ),
    "remote": _Reading(options("v", "verbose"), most=0),
    "remote get-url": _Reading(options("", "push all"), most=1),
    "stash list": _Reading(options("pn:", "stat? patch oneline format= max-count=", numbers=True), most=0),
    "stash show": _Reading(options(_DIFF_SHORT, _DIFF)),
    "worktree list": _Reading(options("vz", "porcelain verbose"), most=0),
    "config --get": _Reading(options(""), most=1),
    "config --get-all": _Reading(options(""), most=1),
    "rev-parse": _Reading(
        options(
            "q",
            "abbrev-ref? short? verify show-toplevel git-dir git-common-dir absolute-git-dir is-inside-work-tree"
            " is-inside-git-dir is-bare-repository show-prefix show-cdup symbolic-full-name symbolic all quiet"
            " branches tags remotes show-superproject-working-tree is-shallow-repository",
        )
    ),
    "ls-files": _Reading(
        options(
            "cmodskutvz x:",
            "cached modified others deleted stage ignored killed unmerged exclude-standard full-name error-unmatch"
            " directory no-empty-directory exclude= eol abbrev? deduplicate",
        )
    ),
    "ls-tree": _Reading(options("rtdlz", "name-only name-status full-tree full-name long abbrev? object-only")),
    "cat-file": _Reading(options("tspe"), most=2),
    "blame": _Reading(
        options(
            "wcselfnpt L: M? C?", "date= porcelain line-porcelain show-email show-name show-number abbrev= root since="
        )
    ),
    "describe": _Reading(
        options("", "tags always all long dirty? abbrev= match= exclude= exact-match contains first-parent candidates=")
    ),
    "merge-base": _Reading(options("a", "all is-ancestor octopus independent fork-point")),
    "for-each-ref": _Reading(
        options("", "format= sort= count= merged? no-merged? contains? points-at= ignore-case color?")
    ),
    "show-ref": _Reading(options("dhqs", "head heads tags dereference hash? verify quiet abbrev? branches")),
    "count-objects": _Reading(options("vH", "verbose human-readable"), most=0),
    "check-ignore": _Reading(options("vnq", "verbose non-matching quiet no-index"), most=1_000),
    "name-rev": _Reading(options("", "name-only tags always all refs=")),
    "grep": _Reading(
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
"""Where the first word alone changes something, or may."""

GIT = Program(_git)
