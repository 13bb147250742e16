"""Analyzes a bash command line before it runs: the files it reads and writes, its commands, and dangers in it."""

import shlex
from collections.abc import Callable, Iterable, Mapping
from posixpath import normpath
from typing import TYPE_CHECKING

import msgspec

from bradawl.core.effects import Effects, is_within
from bradawl.core.errors import ToolError
from bradawl.core.rules import Rule, speaks_of
from bradawl.safety.environment_variables import may_affect_program
from bradawl.safety.shell.allow.analyzer import cross_checked_line, effects_in
from bradawl.safety.shell.allow.folder_listing import entries as entries_on_disk
from bradawl.safety.shell.allow.parser import ParsedLine
from bradawl.safety.shell.allow.path_effects import NULL_DEVICE, Entries, FilesystemView, Resolve
from bradawl.safety.shell.allow.program_lookup import ProgramLookup
from bradawl.safety.shell.argv import Argv
from bradawl.safety.shell.deny.network_programs import reaches_out
from bradawl.safety.shell.deny.protected_targets import ProtectedTargets, is_home_of_a_user
from bradawl.safety.shell.deny.scanner import ScanResult, scan
from bradawl.safety.shell.path_rules import PathRules

if TYPE_CHECKING:
    from bradawl.safety.shell.paths.refused_paths import RefusedPaths


_LEAST_COMMANDS = 2


def _always_false(_: str) -> bool:
    return False


def _reads_nothing_else(_folder: str, **_: bool) -> tuple[str, ...]:
    return ()


def _shows_the_working_tree(argv: Argv) -> bool:
    """Whether a command of git may show the content of files as they are: `status` does so with `-vv`."""
    if "status" in argv:
        return sum(word.count("v") for word in argv if word.startswith("-")) > 1
    return not {"diff", "grep", "blame"}.isdisjoint(argv)


class ShellContext(msgspec.Struct, frozen=True):
    """The environment in which a line would run: file system, workspace, rules and sandbox."""

    resolve: Resolve
    home: str = ""
    roots: tuple[str, ...] = ()
    """Folders of the workspace; absolute, resolved."""
    search_path: str = ""
    """PATH of the shell; if empty, every name is taken for the system's program."""
    changeable: tuple[str, ...] = ()
    """Further folders whose programs may have been changed; absolute, resolved."""
    entries: Entries = entries_on_disk
    git_is_safe: Callable[[str], bool] = _always_false
    """Whether git in this folder starts no program from its configuration."""
    git_reads: Callable[..., tuple[str, ...] | None] = _reads_nothing_else
    """What git reads there besides its data and the working tree; None if unknown.

    Called with `is_search`: whether the content of tracked files is searched, and `shows_keys`: whether tracked files
    with keys would be shown.
    """
    is_confined: Callable[[], bool] = bool
    """Whether read-only commands run in a sandbox that blocks writes and the network."""
    secrets: Callable[[str], Iterable[str]] = lambda _: ()
    """Files with keys below a folder that programs can read. May raise `UnsupportedSyntax`."""
    is_unignored: Callable[[str], bool] = _always_false
    """Whether an ignore file may make ripgrep search this file, which it otherwise skips as hidden."""
    rules: tuple[Rule, ...] = ()
    """Rules, besides the built-in ones, that deny paths or ask about them."""
    is_covered: Callable[[], bool] = bool
    """Whether a sandbox keeps programs from the paths that the rules deny."""
    own: tuple[str, ...] = ()
    """bradawl's folders besides those in the home folder."""
    scratch: str = ""
    """The folder that programs of the session call `/tmp`, which may lie in bradawl's; empty if there is none."""
    environment: Mapping[str, str] | None = None
    """Variables of the shell before the session changed any; None if unknown."""

    @property
    def path_rules(self) -> PathRules | None:
        """`rules` for the paths in lines; None without rules."""
        return PathRules(self.rules, self.is_covered) if self.rules else None

    def refused(self, path: str) -> str:
        """Why a rule refuses to write to a path; empty if none does."""
        from bradawl.safety.permissions.protected_paths import installation_rules
        from bradawl.safety.trusted_programs import installation_paths

        rules = (*self.rules, *installation_rules(installation_paths(self.roots)))
        found = (rule for rule in rules if (rule.verdict, rule.on) == ("deny", "write"))
        return next((rule.reason for rule in found if speaks_of(rule, path)), "")


def line_effects(text: str, cwd: str, env: Mapping[str, str | None], around: ShellContext) -> Effects:
    """Effects of `bash -c text` in `cwd`; `danger` is the reason why no mode may run it. Never raises.

    Effects of a line that isn't fully understood are unknown; `commands` are its commands if they are plain words and
    all that would touch something, `inner` those that they would start. Beside a command that needs a permission,
    commands that only read in the workspace are in `inner` too.
    """
    effects = _whole_line_effects(text, cwd, env, around)
    if effects.is_read_only or not (harmless := _harmless(effects.commands, cwd, env, around)):
        return effects
    return msgspec.structs.replace(
        effects,
        commands=tuple(argv for argv in effects.commands if argv not in harmless),
        inner=tuple(dict.fromkeys((*harmless, *effects.inner))),
    )


def _harmless(
    commands: tuple[Argv, ...], cwd: str, env: Mapping[str, str | None], around: ShellContext
) -> tuple[Argv, ...]:
    """The commands of a line that would run without a question by themselves, so that no rule has to allow them.

    None of them if nothing would be left. Beside a `cd` only commands that read no files count: paths are elsewhere.
    """
    programs = [argv for argv in commands if argv[0] != "cd"]
    if len(programs) < _LEAST_COMMANDS:
        return ()
    folders = () if len(programs) < len(commands) else (*around.roots, cwd)
    found = tuple(argv for argv in dict.fromkeys(programs) if _only_reads(argv, folders, cwd, env, around))
    return found if len(found) < len(set(programs)) else ()


def _only_reads(
    argv: Argv, folders: tuple[str, ...], cwd: str, env: Mapping[str, str | None], around: ShellContext
) -> bool:
    effects = _whole_line_effects(shlex.join(argv), cwd, env, around)
    inside = all(any(is_within(path, folder) for folder in folders) for path in effects.reads)
    return effects.understood and effects.is_read_only and not (effects.danger or effects.session) and inside


def _whole_line_effects(text: str, cwd: str, env: Mapping[str, str | None], around: ShellContext) -> Effects:
    effects = _allow_effects(text, cwd, env, around)
    home = _real_home(around)
    if effects.understood and (why := _keys_danger(effects, home, around)):
        return msgspec.structs.replace(effects, danger=why)
    if effects.understood and (homes := _other_homes(effects, home)):
        effects = msgspec.structs.replace(effects, reads=(*effects.reads, *homes))
    if effects.understood and not _needs_scan(text, effects, around.roots, home):
        return effects
    environment = None if around.environment is None else {**around.environment, **env}
    protected = ProtectedTargets(
        home,
        around.roots,
        around.resolve,
        own=around.own,
        scratch=around.scratch,
        refused=around.refused,
        environment=environment,
    )
    scanned = scan(text, cwd=cwd, protected=protected)
    if effects.understood:
        changes = _refused_writes(text, effects.commands, scanned, cwd, protected, around)
        writes = (*effects.writes, *(path for path in changes.paths if path not in effects.writes))
        return msgspec.structs.replace(effects, danger=scanned.danger or changes.danger, writes=writes)
    commands = _plain_commands(text, around.home, scanned)
    argvs = (*commands, *scanned.argvs)
    paths, danger = _refused_reads(text, argvs, scanned, cwd, around)
    changes = _refused_writes(text, argvs, scanned, cwd, protected, around)
    return Effects(
        reads=paths,
        writes=changes.paths,
        unknown=True,
        commands=commands,
        inner=tuple(argv for argv in scanned.argvs if argv not in commands),
        hosts=("*",) if reaches_out(argvs) else (),
        danger=scanned.danger
        or danger
        or changes.danger
        or _unsandboxed_keys_danger(text, argvs, scanned, cwd, home, around),
        opaque=scanned.opaque,
        forced=scanned.forced,
        discards=scanned.discards,
        undoable=scanned.undoable,
        unsealed=bool(scanned.opaque or scanned.forced) or not scanned.is_whole,  # a remote repository changes
    )


def _keys_danger(effects: Effects, home: str, around: ShellContext) -> str:
    """Why an understood line must not run: it reads or moves files with keys."""
    from bradawl.safety.shell.paths.secret_reads import SecretFiles, secret_in_effects

    path = secret_in_effects(SecretFiles(home, around.own, around.scratch), effects, is_covered=around.is_covered)
    return f"it would read {path}: {_KEYS}" if path else ""


def _other_homes(effects: Effects, home: str) -> tuple[str, ...]:
    from bradawl.safety.shell.paths.secret_reads import SecretFiles, other_homes_read

    return other_homes_read(SecretFiles(home), effects)


def _unsandboxed_keys_danger(
    text: str, argvs: tuple[Argv, ...], scanned: ScanResult, cwd: str, home: str, around: ShellContext
) -> str:
    """Why a line that is not understood must not run: it may read files with keys, which no sandbox hides."""
    if around.is_covered():
        return ""
    from bradawl.safety.shell.paths.secret_reads import SecretFiles, secret_in_words

    path = secret_in_words(SecretFiles(home, around.own, around.scratch), text, argvs, scanned, cwd)
    return f"it would read {path}: {_KEYS}" if path else ""


_KEYS = "keys, or sessions of other users, are kept there; do the work without them"


def _refused_reads(
    text: str, argvs: tuple[Argv, ...], scanned: ScanResult, cwd: str, around: ShellContext
) -> tuple[tuple[str, ...], str]:
    if (ruled := around.path_rules) is None or not ruled.applies("read"):
        return (), ""
    from bradawl.safety.shell.paths.refused_reads import (
        refused_reads,  # only where rules refuse paths and no sandbox hides them
    )

    found = refused_reads(ruled, text, argvs, scanned, cwd)
    return found.paths, found.danger


def _refused_writes(
    text: str, argvs: tuple[Argv, ...], scanned: ScanResult, cwd: str, protected: ProtectedTargets, around: ShellContext
) -> "RefusedPaths":
    from bradawl.safety.shell.paths.refused_paths import RefusedPaths
    from bradawl.safety.shell.paths.refused_writes import refused_writes  # only where a line is not understood

    if scanned.danger or around.is_covered():
        return RefusedPaths()
    return refused_writes(text, argvs, scanned, cwd, protected, around.path_rules)


def _needs_scan(text: str, effects: Effects, roots: tuple[str, ...], home: str) -> bool:
    """Whether the deny layer must scan an understood line: it may change more than single paths in the workspace.

    The home folder may be in the workspace. For a pattern the effects name only the folder.
    """
    if "env" in effects.session or (effects.writes and ("*" in text or "?" in text)):
        return True
    return any(_is_beyond_workspace(path, roots, home) for path in effects.writes)


def _is_beyond_workspace(path: str, roots: tuple[str, ...], home: str) -> bool:
    holds_home = bool(home) and any(is_within(home, root) for root in roots)
    if (holds_home and (is_within(home, path) or is_within(path, home))) or is_home_of_a_user(path):
        return True
    return not any(path != root and is_within(path, root) for root in roots)


def _real_home(around: ShellContext) -> str:
    """The resolved home folder, for comparison with paths: HOME may be a link, or contain `//` or `..`."""
    if not around.home.startswith("/"):
        return around.home
    try:
        return around.resolve(around.home, "/")
    except ToolError:
        return normpath(around.home)


def _allow_effects(text: str, cwd: str, env: Mapping[str, str | None], around: ShellContext) -> Effects:
    changeable = (*around.roots, *around.changeable)
    programs = ProgramLookup(around.search_path, changeable) if around.search_path and changeable else None

    def analyzed(*, git_is_safe: bool, git_reads: tuple[str, ...] = ()) -> Effects:
        world = FilesystemView(
            around.resolve,
            around.entries,
            around.home,
            git_is_safe,
            secrets=around.secrets,
            is_unignored=around.is_unignored,
            path_rules=around.path_rules,
            git_reads=git_reads,
        )
        return effects_in(world, text, cwd, env, programs)

    if "git" not in text:
        return analyzed(git_is_safe=False)
    effects = analyzed(git_is_safe=True)
    if not effects.understood or not any("git" in argv[0] for argv in effects.commands if argv):
        return effects
    # A read-only git runs in a sandbox where programs it starts do no harm; one that writes does not.
    is_held = effects.is_read_only and around.is_confined()
    is_search = any("grep" in argv for argv in effects.commands)
    shows_keys = any(map(_shows_the_working_tree, effects.commands)) and not around.is_covered()
    reads = around.git_reads(cwd, is_search=is_search, shows_keys=shows_keys)
    if reads is None or not (is_held or around.git_is_safe(cwd)):
        return analyzed(git_is_safe=False)
    return analyzed(git_is_safe=True, git_reads=reads) if reads else effects


def _plain_commands(text: str, home: str, scanned: ScanResult) -> tuple[Argv, ...]:
    """The commands of a line, if they alone determine its effects."""
    if scanned.leaves or scanned.danger or not scanned.is_whole:
        return ()
    line = cross_checked_line(text, home)
    return line.argvs if line is not None and _has_only_commands(line) else ()


def _has_only_commands(line: ParsedLine) -> bool:
    """Whether the line has no redirections, except to the null device, and no assignments that affect programs."""
    for pipeline in line.pipelines:
        for command in pipeline.commands:
            if any(redirect.target.text != NULL_DEVICE for redirect in command.redirects):
                return False
            if any(may_affect_program(name, value) for name, value in command.assignments):
                return False
    return True
