"""Tells the settings of git's configuration that run nothing from the others, and removes the others from a file.

Each harmless setting is declared by its name: it names no program, no file that git would read as settings, no folder
of hooks and no transport helper. Any other setting counts as one that runs something, also one that git does not know.
Checked against the documentation of git 2.39 to 2.54, 2026-11-23.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from bradawl.safety.git.config_file import Entry, PlacedEntry, parse, parse_with_places, verifies_signatures

_SECTIONS: Final = frozenset(["advice", "author", "color", "column", "committer", "i18n", "user"])
"""Sections in which no setting runs anything, with and without a subsection."""

_PLAIN: Final = {
    "add": "ignoreErrors",
    "am": "keepcr messageid threeWay",
    "apply": "ignoreWhitespace whitespace",
    "blame": "blankBoundary coloring date ignoreRevsFile markIgnoredLines markUnblamableLines showEmail showRoot",
    "branch": "autoSetupMerge autoSetupRebase",
    "checkout": "defaultRemote guess thresholdForParallelism workers",
    "clone": "defaultRemoteName filterSubmodules rejectShallow",
    "commit": "cleanup gpgSign status template verbose",
    "commitgraph": "generationVersion maxNewFilters readChangedPaths",
    "core": (
        "abbrev autocrlf bare bigFileThreshold checkRoundtripEncoding checkStat commentChar commitGraph compression"
        " createObject deltaBaseCacheLimit eol excludesFile fileMode filesRefLockTimeout fscache fsync fsyncMethod"
        " fsyncObjectFiles hideDotFiles ignoreCase ignoreStat logAllRefUpdates longPaths looseCompression"
        " multiPackIndex notesRef packedGitLimit packedGitWindowSize packedRefsTimeout precomposeUnicode preloadIndex"
        " quotePath repositoryFormatVersion safecrlf sparseCheckout sparseCheckoutCone symlinks trustctime"
        " untrackedCache useReplaceRefs warnAmbiguousRefs whitespace"
    ),
    "diff": (
        "algorithm autoRefreshIndex colorMoved colorMovedWS context dirstat ignoreSubmodules indentHeuristic"
        " interHunkContext mnemonicPrefix noprefix relative renameLimit renames statGraphWidth statNameWidth submodule"
        " suppressBlankEmpty wordRegex wsErrorHighlight"
    ),
    "difftool": "guiDefault prompt trustExitCode",
    "extensions": "compatObjectFormat noop objectFormat preciousObjects relativeWorktrees worktreeConfig",
    "feature": "experimental manyFiles",
    "fetch": (
        "all fsckObjects negotiationAlgorithm output parallel prune pruneTags recurseSubmodules showForcedUpdates"
        " unpackLimit writeCommitGraph"
    ),
    "format": "attach cc coverLetter encodeEmailHeaders from headers notes numbered signOff subjectPrefix thread to",
    "gc": (
        "aggressiveDepth aggressiveWindow auto autoDetach autoPackLimit bigPackThreshold cruftPacks logExpiry"
        " maxCruftSize packRefs pruneExpire reflogExpire reflogExpireUnreachable rerereResolved rerereUnresolved"
        " worktreePruneExpire writeCommitGraph"
    ),
    "github": "user",
    "grep": "column extendedRegexp fallbackToNoIndex fullName lineNumber patternType threads",
    "gui": "diffContext displayUntracked encoding geometry matchTrackingBranch pruneDuringFetch trustmtime wmstate",
    "help": "autoCorrect format",
    "http": "lowSpeedLimit lowSpeedTime maxRequestBuffer maxRequests minSessions postBuffer version",
    "index": "recordEndOfIndexEntries recordOffsetTable skipHash sparse threads version",
    "init": "defaultBranch defaultObjectFormat defaultRefFormat",
    "interactive": "singleKey",
    "lfs": (
        "activitytimeout allowincompletepush concurrenttransfers dialtimeout fetchexclude fetchinclude"
        " fetchrecentalways fetchrecentcommitsdays fetchrecentrefsdays fetchrecentremoterefs locksverify"
        " pruneoffsetdays repositoryformatversion skipdownloaderrors tlstimeout"
    ),
    "log": (
        "abbrevCommit date decorate diffMerges excludeDecoration follow graphColors initialDecorationSet mailmap"
        " showRoot"
    ),
    "maintenance": "auto autoDetach",
    "merge": (
        "autoStash branchdesc conflictStyle defaultToUpstream directoryRenames ff log renameLimit renames renormalize"
        " stat suppressDest verbosity"
    ),
    "mergetool": "guiDefault hideResolved keepBackup keepTemporaries prompt writeToTemp",
    "notes": "displayRef rewriteMode rewriteRef",
    "pack": (
        "allowPackReuse compression deltaCacheLimit deltaCacheSize depth indexVersion island islandCore packSizeLimit"
        " preferBitmapTips readReverseIndex threads useBitmaps useSparse window windowMemory writeBitmapHashCache"
        " writeBitmapLookupTable writeReverseIndex"
    ),
    "protocol": "version",
    "pull": "ff rebase",
    "push": ("autoSetupRemote default followTags gpgSign negotiate recurseSubmodules useBitmaps useForceIfIncludes"),
    "rebase": (
        "abbreviateCommands autoSquash autoStash backend forkPoint missingCommitsCheck rebaseMerges"
        " rescheduleFailedExec stat updateRefs"
    ),
    "receive": (
        "advertisePushOptions autogc denyCurrentBranch denyDeleteCurrent denyDeletes denyNonFastForwards fsckObjects"
        " maxInputSize shallowUpdate unpackLimit"
    ),
    "repack": "cruftWindow packKeptObjects updateServerInfo useDeltaBaseOffset useDeltaIslands writeBitmaps",
    "rerere": "autoUpdate enabled",
    "showbranch": "default",
    "sparse": "expectFilesOutsideOfPatterns",
    "ssh": "variant",
    "stash": "showIncludeUntracked showPatch showStat",
    "status": (
        "aheadBehind branch displayCommentPrefix relativePaths renameLimit renames short showStash showUntrackedFiles"
        " submoduleSummary"
    ),
    "submodule": "active alternateErrorStrategy alternateLocation fetchJobs propagateBranches recurse",
    "tag": "forceSignAnnotated gpgSign",
    "transfer": "advertiseSID credentialsInUrl fsckObjects hideRefs unpackLimit",
    "uploadpack": (
        "allowAnySHA1InWant allowFilter allowReachableSHA1InWant allowRefInWant allowTipSHA1InWant hideRefs keepAlive"
    ),
    "uploadpackfilter": "allow",
    "versionsort": "suffix",
    "worktree": "guessRemote useRelativePaths",
}
"""Settings without a subsection that run nothing, whatever their value."""

_PLAIN_OF_ONE: Final = {
    "branch": "description gh-merge-base github-pr-owner-number rebase vscode-merge-base",
    "diff": "algorithm binary cachetextconv wordRegex xfuncname",
    "gc": "reflogExpire reflogExpireUnreachable",
    "lfs": "access locksverify",
    "maintenance": "auto enabled schedule",
    "merge": "name",
    "remote": (
        "followRemoteHEAD gh-resolved mirror partialclonefilter promisor prune pruneTags skipDefaultUpdate skipFetchAll"
        " tagOpt"
    ),
    "submodule": "active branch fetchRecurseSubmodules ignore shallow",
    "uploadpackfilter": "allow maxDepth",
}
"""Settings of one branch, remote and so on that run nothing, whatever their value."""

_STRATEGY: Final = r"(?:ort|recursive|resolve|octopus|ours|subtree)"
_TOOL: Final = r"[A-Za-z0-9_]+"
_YES_OR_NO: Final = r"(?i:true|false|yes|no|on|off|0|1|)"
_YES: Final = r"(?i:true|yes|on|1)"
_ADDRESS: Final = r"(?!.*(?:::|!))[^\\-].*"
"""An address, a name or a reference: no transport helper (`ext::`), no option."""
_EDITOR: Final = r"(?:vi|vim|nvim|nano|ed|emacs|emacs -nw|emacsclient|code --wait|true|:)"
_PAGER: Final = r"(?:cat|less|less -[FRXSKMi]+|more|delta|)"
_OPTION: Final = r"(?: --?[A-Za-z][A-Za-z-]*)*"
_DISCARDS: Final = r"(?!(?:branch|checkout|restore|switch)\b.* (?:-[a-z]*[fdDMCB]|--(?:f|di|de|o|i)))(?!.* --ou)"
_ALIAS: Final = (
    rf"{_DISCARDS}(?:add|branch|checkout|commit|diff|log|restore|shortlog|show|stash list|status|switch){_OPTION}"
)
"""Commands that run no program that an option could name, and neither discard work nor write to a file."""
_ONE_LINE: Final = r"(?:[^%\n]|%(?:[%hHstTpPdDf]|[ac](?:[nNeElLrti]|[Is])))*"
"""A format of commits that makes no second line: in the list of steps of a rebase it would be a step."""
_LFS: Final = {"clean": r"git-lfs clean -- %f", "smudge": r"git-lfs smudge(?: --skip)? -- %f"}

_BY_VALUE: Final[dict[str, str]] = {
    "alias.*": _ALIAS,
    "branch.*.merge": _ADDRESS,
    "branch.*.pushremote": _ADDRESS,
    "branch.*.remote": _ADDRESS,
    "core.editor": _EDITOR,
    "core.fsmonitor": _YES_OR_NO,
    "core.pager": _PAGER,
    "core.protecthfs": _YES,
    "core.protectntfs": _YES,
    "core.sharedrepository": r"(?i:0|1|true|false|yes|no|group|umask)",
    "diff.guitool": _TOOL,
    "diff.tool": _TOOL,
    "extensions.partialclone": _ADDRESS,
    "extensions.refstorage": r"(?:files|reftable)",
    "filter.lfs.clean": _LFS["clean"],
    "filter.lfs.process": r"git-lfs filter-process(?: --skip)?",
    "filter.lfs.required": _YES_OR_NO,
    "filter.lfs.smudge": _LFS["smudge"],
    "gpg.format": r"(?:openpgp|x509|ssh)",
    "http.sslverify": _YES,
    "maintenance.strategy": r"(?:none|incremental|geometric|gc)",
    "merge.guitool": _TOOL,
    "merge.tool": _TOOL,
    "pager.*": _YES_OR_NO,
    "pull.octopus": _STRATEGY,
    "rebase.instructionformat": _ONE_LINE,
    "pull.twohead": _STRATEGY,
    "remote.*.fetch": _ADDRESS,
    "remote.*.push": _ADDRESS,
    "remote.*.pushurl": _ADDRESS,
    "remote.*.url": _ADDRESS,
    "remote.pushdefault": _ADDRESS,
    "sequence.editor": _EDITOR,
    "submodule.*.update": r"(?:checkout|rebase|merge|none)",
    "submodule.*.url": _ADDRESS,
}
"""Settings that run nothing with these values."""

_SORTS: Final = frozenset(("branch.sort", "tag.sort"))
"""Settings that run nothing unless they name signatures, for which git starts gpg."""
_REDIRECTS: Final = re.compile(
    r"remote\..*\.(?:mirror|promisor|partialclonefilter|push|pushurl)|remote\.pushdefault|branch\..*\.pushremote"
    r"|extensions\.partialclone",
    re.DOTALL,
)
"""Settings by which the user's next push or fetch would do something else."""
_ADDRESSES: Final = re.compile(r"remote\..*\.url|branch\..*\.remote", re.DOTALL)
"""Settings that redirect a remote or a branch which existed before."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def _names(table: dict[str, str], middle: str) -> frozenset[str]:
    return frozenset(f"{section}{middle}.{key.lower()}" for section, keys in table.items() for key in keys.split())


_WITHOUT_CONDITION: Final = _names(_PLAIN, "") | _names(_PLAIN_OF_ONE, ".*")


def runs_nothing(entry: Entry) -> bool:
    """Whether git starts no program, and reads no further settings or hooks, because of a setting.

    False for a setting with control characters, which git may print to the terminal.
    """
    section, _, rest = entry.name.partition(".")
    one, _, key = rest.rpartition(".")
    value = entry.value or ""
    if _CONTROL.search(entry.name + value):
        return False
    name = f"{section}.*.{key}" if one else entry.name
    if section in _SECTIONS or name in _WITHOUT_CONDITION:
        return True
    if name in _SORTS:
        return not verifies_signatures(value)
    pattern = _BY_VALUE.get(entry.name) or _BY_VALUE.get(name if one else f"{section}.*")
    return pattern is not None and re.fullmatch(pattern, value) is not None


def stays_in_existing(entry: Entry) -> bool:
    """As `runs_nothing`, for a setting added to a repository of the user: it redirects no fetch or push either."""
    return runs_nothing(entry) and _REDIRECTS.fullmatch(entry.name) is None


def leads_elsewhere(entry: Entry, known: frozenset[Entry]) -> bool:
    """Whether a setting gives a remote or a branch of the `known` settings another address, or one more."""
    if not _ADDRESSES.fullmatch(entry.name):
        return False
    names = {each.name for each in known}
    is_known_remote = entry.name.startswith("branch.") and f"remote.{entry.value}.url" in names
    return entry.name in names and not is_known_remote


def _always_false(_: Entry) -> bool:
    return False


def has_no_programs(text: str, is_allowed: Callable[[Entry], bool] = _always_false) -> bool:
    """Whether git accepts a configuration file, and no setting in it runs anything or is allowed."""
    found = _others(text)
    return found is not None and all(map(is_allowed, found))


def without_programs(
    text: str, is_allowed: Callable[[Entry], bool] = _always_false, stays: Callable[[Entry], bool] = runs_nothing
) -> str | None:
    """A configuration file with only the settings of which `stays` or `is_allowed` is true; the rest is unchanged.

    None if the file can't be changed safely: git rejects it, or it has lines that end with carriage returns.
    """
    placed = parse_with_places(text)
    if placed is None:
        return None
    kept: list[Entry] = []
    pieces: list[str] = []
    at = 0
    for each in placed:
        if stays(each.entry) or is_allowed(each.entry):
            kept.append(each.entry)
            continue
        start, end = _whole_lines(text, each)
        pieces.append(text[at : max(at, start)])
        at = end
    result = "".join((*pieces, text[at:]))
    return result if parse(result) == kept else None


def _whole_lines(text: str, placed: PlacedEntry) -> tuple[int, int]:
    """The part of a text to remove for a setting: its lines, or what follows a section header on the same line."""
    start = text.rfind("\n", 0, placed.start) + 1
    is_alone = not text[start : placed.start].strip()
    return (start, placed.end + 1) if is_alone else (placed.start, placed.end)


@lru_cache(maxsize=256)
def _others(text: str) -> tuple[Entry, ...] | None:
    """The settings that run something; None for a file that git rejects."""
    entries = parse(text)
    return None if entries is None else tuple(entry for entry in entries if not runs_nothing(entry))
