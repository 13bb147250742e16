"""All that can be said of a line of bash before it runs: what it would do, and what speaks against it."""

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
from bradawl.safety.shell.deny.protected_targets import Ground, is_home_of_a_user
from bradawl.safety.shell.deny.scanner import Seen, look_through
from bradawl.safety.shell.path_rules import PathRules

if TYPE_CHECKING:
    from bradawl.safety.shell.paths.refused_writes import RefusedWrites


def _not_there(_: str) -> bool:
    return False


def _nothing_else(_folder: str, **_: bool) -> tuple[str, ...]:
    return ()


def _shows_the_working_tree(argv: Argv) -> bool:
    """Whether a command of git may show the content of files as they are: `status` does so with `-vv`."""
    if "status" in argv:
        return sum(word.count("v") for word in argv if word.startswith("-")) > 1
    return not {"diff", "grep", "blame"}.isdisjoint(argv)


class ShellContext(msgspec.Struct, frozen=True):
    """What is known of the machine on which a line would run."""

    resolve: Resolve
    home: str = ""
    roots: tuple[str, ...] = ()
    """Folders of the workspace; absolute, resolved."""
    search_path: str = ""
    """PATH as bash has it; empty: every name finds the system's own program."""
    changeable: tuple[str, ...] = ()
    """Folders besides the roots in which somebody may have put a program; absolute, resolved."""
    entries: Entries = entries_on_disk
    git_is_safe: Callable[[str], bool] = _not_there
    """Whether git in this folder starts no program that its configuration names."""
    git_reads: Callable[..., tuple[str, ...] | None] = _nothing_else
    """What git reads there besides its data and the working tree; None if that can't be told.

    Called with `is_search`: whether the content of tracked files is searched, and `shows_keys`: whether tracked files
    with keys would be shown.
    """
    is_confined: Callable[[], bool] = bool
    """Whether what only reads runs where it can't write, and reaches no network."""
    secrets: Callable[[str], Iterable[str]] = lambda _: ()
    """Files with keys below a folder that nothing hides from programs. May raise `UnsupportedSyntax`."""
    is_unignored: Callable[[str], bool] = _not_there
    """Whether an ignore file may bring a file back that ripgrep passes over for a dot in its path."""
    rules: tuple[Rule, ...] = ()
    """Rules other than the built-in ones that refuse paths or ask about them."""
    is_covered: Callable[[], bool] = bool
    """Whether a sandbox keeps programs from what the rules refuse."""
    own: tuple[str, ...] = ()
    """bradawl's folders besides those in the home folder."""
    environment: Mapping[str, str] | None = None
    """Variables of the shell before the session changed any; None where they are not known."""

    @property
    def path_rules(self) -> PathRules | None:
        """The same rules, for paths of lines."""
        return PathRules(self.rules, self.is_covered) if self.rules else None

    def refused(self, path: str) -> str:
        """Why a rule refuses to write to a path; empty if none does."""
        from bradawl.safety.permissions.protected_paths import installation_rules
        from bradawl.safety.trusted_programs import installation_paths

        rules = (*self.rules, *installation_rules(installation_paths(self.roots)))
        found = (rule for rule in rules if (rule.verdict, rule.on) == ("deny", "write"))
        return next((rule.reason for rule in found if speaks_of(rule, path)), "")


def line_effects(text: str, cwd: str, env: Mapping[str, str | None], around: ShellContext) -> Effects:
    """Effects of `bash -c text` in `cwd`, with what no mode lets run in `danger`. Never raises.

    Of a line that isn't fully understood they are unknown; `commands` are its commands if they are plain words and
    all that would touch something, `inner` those that they would start.
    """
    effects = _understood(text, cwd, env, around)
    home = _real_home(around)
    if effects.understood and (why := _shown_keys(effects, home, around)):
        return msgspec.structs.replace(effects, danger=why)
    if effects.understood and (homes := _other_homes(effects, home)):
        effects = msgspec.structs.replace(effects, reads=(*effects.reads, *homes))
    if effects.understood and not _needs_a_second_look(text, effects, around.roots, home):
        return effects
    variables = None if around.environment is None else {**around.environment, **env}
    ground = Ground(home, around.roots, around.resolve, own=around.own, refused=around.refused, environment=variables)
    seen = look_through(text, cwd=cwd, ground=ground)
    if effects.understood:
        changes = _refused_writes(text, effects.commands, seen, cwd, ground, around)
        writes = (*effects.writes, *(path for path in changes.paths if path not in effects.writes))
        return msgspec.structs.replace(effects, danger=seen.danger or changes.danger, writes=writes)
    commands = _plain_commands(text, around.home, seen)
    argvs = (*commands, *seen.argvs)
    paths, danger = _refused_reads(text, argvs, seen, cwd, around)
    changes = _refused_writes(text, argvs, seen, cwd, ground, around)
    return Effects(
        reads=paths,
        writes=changes.paths,
        unknown=True,
        commands=commands,
        inner=tuple(argv for argv in seen.argvs if argv not in commands),
        hosts=("*",) if reaches_out(argvs) else (),
        danger=seen.danger or danger or changes.danger or _read_keys(text, argvs, seen, cwd, home, around),
        unsealed=not seen.is_whole,
    )


def _shown_keys(effects: Effects, home: str, around: ShellContext) -> str:
    """Why a line that is understood must not read or move what it would."""
    from bradawl.safety.shell.paths.secret_reads import SecretFiles, secret_in_effects

    path = secret_in_effects(SecretFiles(home, around.own), effects, is_covered=around.is_covered)
    return f"it would read {path}: {_KEYS}" if path else ""


def _other_homes(effects: Effects, home: str) -> tuple[str, ...]:
    from bradawl.safety.shell.paths.secret_reads import SecretFiles, other_homes_read

    return other_homes_read(SecretFiles(home), effects)


def _read_keys(text: str, argvs: tuple[Argv, ...], seen: Seen, cwd: str, home: str, around: ShellContext) -> str:
    """The same of a line that is not understood, where no sandbox hides the files."""
    if around.is_covered():
        return ""
    from bradawl.safety.shell.paths.secret_reads import SecretFiles, secret_in_words

    path = secret_in_words(SecretFiles(home, around.own), text, argvs, seen, cwd)
    return f"it would read {path}: {_KEYS}" if path else ""


_KEYS = "keys, or sessions of other users, are kept there; do the work without them"


def _refused_reads(
    text: str, argvs: tuple[Argv, ...], seen: Seen, cwd: str, around: ShellContext
) -> tuple[tuple[str, ...], str]:
    if (ruled := around.path_rules) is None or not ruled.applies("read"):
        return (), ""
    from bradawl.safety.shell.paths.refused_reads import (
        refused_reads,  # only where rules refuse paths and no sandbox hides them
    )

    found = refused_reads(ruled, text, argvs, seen, cwd)
    return found.paths, found.danger


def _refused_writes(
    text: str, argvs: tuple[Argv, ...], seen: Seen, cwd: str, ground: Ground, around: ShellContext
) -> "RefusedWrites":
    from bradawl.safety.shell.paths.refused_writes import (  # only where a line is not understood
        RefusedWrites,
        refused_writes,
    )

    if seen.danger or around.is_covered():
        return RefusedWrites()
    return refused_writes(text, argvs, seen, cwd, ground, around.path_rules)


def _needs_a_second_look(text: str, effects: Effects, roots: tuple[str, ...], home: str) -> bool:
    """Whether more might be lost than what lies within the workspace, about which there are rules for each path.

    A home folder may lie in the workspace. Of a pattern only the folder is declared.
    """
    if "env" in effects.session or (effects.writes and ("*" in text or "?" in text)):
        return True
    return any(_is_more(path, roots, home) for path in effects.writes)


def _is_more(path: str, roots: tuple[str, ...], home: str) -> bool:
    holds_home = bool(home) and any(is_within(home, root) for root in roots)
    if (holds_home and (is_within(home, path) or is_within(path, home))) or is_home_of_a_user(path):
        return True
    return not any(path != root and is_within(path, root) for root in roots)


def _real_home(around: ShellContext) -> str:
    """The home folder as paths are compared with it: HOME may be a link, or be written with `//` or `..`."""
    if not around.home.startswith("/"):
        return around.home
    try:
        return around.resolve(around.home, "/")
    except ToolError:
        return normpath(around.home)


def _understood(text: str, cwd: str, env: Mapping[str, str | None], around: ShellContext) -> Effects:
    changeable = (*around.roots, *around.changeable)
    programs = ProgramLookup(around.search_path, changeable) if around.search_path and changeable else None

    def judged(*, git_is_safe: bool, git_reads: tuple[str, ...] = ()) -> Effects:
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
        return judged(git_is_safe=False)
    effects = judged(git_is_safe=True)
    if not effects.understood or not any("git" in argv[0] for argv in effects.commands if argv):
        return effects
    # Whatever git would start then starts where it can do no harm; for what writes there is no such place.
    is_held = effects.is_read_only and around.is_confined()
    is_search = any("grep" in argv for argv in effects.commands)
    shows_keys = any(map(_shows_the_working_tree, effects.commands)) and not around.is_covered()
    reads = around.git_reads(cwd, is_search=is_search, shows_keys=shows_keys)
    if reads is None or not (is_held or around.git_is_safe(cwd)):
        return judged(git_is_safe=False)
    return judged(git_is_safe=True, git_reads=reads) if reads else effects


def _plain_commands(text: str, home: str, seen: Seen) -> tuple[Argv, ...]:
    """The commands of a line, if nothing but they decides what it does."""
    if seen.leaves or seen.danger or not seen.is_whole:
        return ()
    line = cross_checked_line(text, home)
    return line.argvs if line is not None and _has_only_commands(line) else ()


def _has_only_commands(line: ParsedLine) -> bool:
    """Whether no file is opened for them, and no variable changes what they run."""
    for pipeline in line.pipelines:
        for command in pipeline.commands:
            if any(redirect.target.text != NULL_DEVICE for redirect in command.redirects):
                return False
            if any(may_affect_program(name, value) for name, value in command.assignments):
                return False
    return True
