"""Determines what a line of bash would read, write and run, or reports that it can't tell."""

from collections.abc import Mapping
from functools import lru_cache
from posixpath import join, normpath

import msgspec

from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.errors import ToolError
from bradawl.safety.environment_variables import affects_bash, is_execution_relevant
from bradawl.safety.shell.allow.commands.git import GIT
from bradawl.safety.shell.allow.commands.readers import PROGRAMS, VERSIONS, Program, require
from bradawl.safety.shell.allow.commands.writers import WRITERS
from bradawl.safety.shell.allow.cross_check import confirm
from bradawl.safety.shell.allow.folder_listing import entries as entries_on_disk
from bradawl.safety.shell.allow.parser import ParsedLine, Pipeline, SimpleCommand, parse_line
from bradawl.safety.shell.allow.path_effects import FilesystemView, PathRecorder, RecordedEffects, Resolve
from bradawl.safety.shell.allow.program_lookup import ProgramLookup
from bradawl.safety.shell.errors import UnsupportedSyntax

_MOST_FOLDERS = 4
_KNOWN: dict[str, Program] = {**PROGRAMS, **WRITERS, "git": GIT}
_STATE_BUILTINS = frozenset({"cd", "export", "unset"})
WorkingDirectory = tuple[str, str]
"""A working directory: the name that bash has for it, and its real path."""
Directories = frozenset[WorkingDirectory]


def cross_checked_line(command: str, home: str) -> ParsedLine | None:
    """Parse a line with both parsers; None if one of them rejects it or if they disagree.

    Patterns are not expanded, and the commands need not be known. If `home` is empty, a line with an unquoted `~` gives
    None.
    """
    try:
        line = parse_line(command, home)
        confirm(line)
    except UnsupportedSyntax:
        return None
    return line


def shell_effects(
    command: str,
    *,
    cwd: str,
    home: str,
    resolve: Resolve,
    env: Mapping[str, str | None] | None = None,
    git_is_safe: bool = False,
    programs: ProgramLookup | None = None,
) -> Effects:
    """As `effects_in`, with the folders of this machine."""
    filesystem = FilesystemView(resolve, entries_on_disk, home, git_is_safe)
    return effects_in(filesystem, command, cwd, env or {}, programs)


def effects_in(
    filesystem: FilesystemView, command: str, cwd: str, env: Mapping[str, str | None], programs: ProgramLookup | None
) -> Effects:
    """Effects of running `command` with `bash -c` in `cwd`; `UNKNOWN` unless every part of it is understood.

    `env` holds the variables that the session changed, None for those it unset. Without `programs`, every name is
    assumed to find the system's own program.

    Never raises. Thread-safe. The first line that consists of known commands loads a grammar, which takes about 10 ms.
    """
    try:
        line = _parsed(command, filesystem.home)
        _check_names(line, programs)
        _confirm(command, filesystem.home)
        start = filesystem.resolve(cwd, cwd)
        walk = _LineWalk(msgspec.structs.replace(filesystem, start=start), env)
        walk.follow(line.pipelines, (normpath(cwd), start))
        recorded = walk.recorded
    except (UnsupportedSyntax, ToolError):
        return UNKNOWN
    if programs and any(map(programs.is_affected_by_write, recorded.writes)):
        return UNKNOWN
    return Effects(
        reads=tuple(recorded.reads),
        writes=tuple(recorded.writes),
        commands=line.argvs,
        understood=True,
        session=tuple(recorded.session),
        redirects=tuple(recorded.redirects),
    )


@lru_cache(maxsize=16)
def _parsed(command: str, home: str) -> ParsedLine:
    """Each line is analyzed before its permission and again before it runs, and so are its commands."""
    return parse_line(command, home)


@lru_cache(maxsize=16)
def _confirm(command: str, home: str) -> None:
    """Raise `UnsupportedSyntax` unless both parsers agree about the line. Only agreement is remembered."""
    confirm(_parsed(command, home))


def _check_names(line: ParsedLine, programs: ProgramLookup | None) -> None:
    """Raise `UnsupportedSyntax` for a line with an unknown command, before the expensive checks."""
    for pipeline in line.pipelines:
        for command in pipeline.commands:
            if not command.words or command.name in _STATE_BUILTINS:
                continue
            known = _KNOWN.get(command.name)
            require(bool(command.name) and (known is not None or command.argv in VERSIONS))
            if programs and not (known and known.is_builtin):
                require(programs.is_trusted(command.name))


class _LineWalk:
    """Walks the commands of a line and tracks every working directory that it may be in."""

    def __init__(self, filesystem: FilesystemView, env: Mapping[str, str | None]) -> None:
        self.recorded = RecordedEffects()
        self._filesystem = filesystem
        # Each `cd` changes OLDPWD. Only `cd -` uses it, and that is not supported.
        self._changed = set(env) - {"OLDPWD"}

    def follow(self, pipelines: tuple[Pipeline, ...], start: WorkingDirectory) -> None:
        """Record the effects of all pipelines. A `cd` may fail, so the old working directory stays possible, too."""
        succeeded = failed = frozenset({start})
        for pipeline in pipelines:
            match pipeline.join:
                case ";":
                    succeeded, failed = self._pipeline(pipeline, succeeded | failed)
                case "&&":
                    succeeded, more = self._pipeline(pipeline, succeeded)
                    failed |= more
                case "||":
                    more, failed = self._pipeline(pipeline, failed)
                    succeeded |= more

    def _pipeline(self, pipeline: Pipeline, places: Directories) -> tuple[Directories, Directories]:
        """The possible working directories after success and after failure."""
        require(len(places) <= _MOST_FOLDERS)
        if len(pipeline.commands) == 1:
            return self._single_command(pipeline.commands[0], places)
        writes = len(self.recorded.writes)
        for command in pipeline.commands:
            self._record_command(command, places, is_alone=False)
        if len(self.recorded.writes) != writes:
            # The commands run at the same time: the first may find in a folder what the last writes there.
            for command in pipeline.commands:
                self._record_command(command, places, is_alone=False)
        return places, places

    def _single_command(self, command: SimpleCommand, places: Directories) -> tuple[Directories, Directories]:
        self._record_command(command, places, is_alone=True)
        if not command.words:
            for name, _ in command.assignments:
                self._change_variable(name)
        elif command.name == "cd":
            return frozenset(self._change_directory(command, place) for place in places), places
        elif command.name in _STATE_BUILTINS:
            self._export(command)
        return places, places

    # -------------------------------------------------------------- the shell itself

    def _change_directory(self, command: SimpleCommand, place: WorkingDirectory) -> WorkingDirectory:
        require(len(command.words) <= 2)
        require(not any(map(affects_bash, self._changed)))
        target = command.words[1].text if len(command.words) == 2 else self._filesystem.home
        is_plain = bool(target) and not target.startswith("-") and not any(word.is_glob for word in command.words)
        require(is_plain and (len(command.words) == 2 or target.startswith("/")))
        # bash applies `..` to the text, all other programs to the real folder.
        name = normpath(join(place[0], target))
        recorder = PathRecorder(self._filesystem, self.recorded, place[1], is_alone=True)
        goal = recorder.read_path(target)  # a missing folder makes `cd` fail, which the caller allows for
        require(goal == recorder.real_path(name))
        self.recorded.session["cwd"] = None
        return name, goal

    def _export(self, command: SimpleCommand) -> None:
        require(len(command.words) > 1 and not command.assignments)
        for word in command.words[1:]:
            name, equals, _ = word.text.partition("=")
            require(name.isascii() and name.isidentifier() and not word.is_glob)
            require(bool(equals) == (command.name == "export"))
            self._change_variable(name)

    def _change_variable(self, name: str) -> None:
        self._changed.add(name)
        self.recorded.session["env"] = None
        if is_execution_relevant(name):
            self.recorded.session[f"env:{name}"] = None

    # -------------------------------------------------------------- programs

    def _record_command(self, command: SimpleCommand, places: Directories, *, is_alone: bool) -> None:
        require(is_alone or (bool(command.words) and command.name not in _STATE_BUILTINS))
        require(not (command.words and any(is_execution_relevant(name) for name, _ in command.assignments)))
        links_unknown: list[tuple[str, bool]] = []
        for _, cwd in sorted(places):
            recorder = PathRecorder(self._filesystem, self.recorded, cwd, is_alone=is_alone)
            self._record_at(recorder, command)
            links_unknown += recorder.links_unknown.items()
        for entry, is_link in links_unknown:
            self.recorded.links_unknown[entry] = self.recorded.links_unknown.get(entry, False) or is_link

    def _record_at(self, recorder: PathRecorder, command: SimpleCommand) -> None:
        for redirect in command.redirects:
            if redirect.writes:
                recorder.redirect(redirect.target)
            elif redirect.target.text == "-":
                raise UnsupportedSyntax
            else:
                recorder.read(redirect.target)
        if not command.words or command.name in _STATE_BUILTINS:
            return
        if command.argv in VERSIONS:
            require(not any(map(is_execution_relevant, self._changed)))
            return
        program = _KNOWN[command.name]
        is_changed = affects_bash if program.is_builtin else is_execution_relevant
        require(not any(map(is_changed, self._changed)))
        program.record(recorder, command.words[1:])
