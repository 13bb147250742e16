"""What a line of bash would read, write and run. Says unknown for all that it doesn't fully understand."""

from collections.abc import Mapping
from posixpath import join, normpath

import msgspec

from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.errors import ToolError
from bradawl.safety.environment_variables import is_execution_relevant, matters_to_bash
from bradawl.safety.shell.allow.commands.git import GIT
from bradawl.safety.shell.allow.commands.readers import PROGRAMS, VERSIONS, Program, check
from bradawl.safety.shell.allow.commands.writers import WRITERS
from bradawl.safety.shell.allow.cross_check import confirm
from bradawl.safety.shell.allow.folder_listing import entries as entries_on_disk
from bradawl.safety.shell.allow.parser import Line, Pipeline, SimpleCommand, read_line
from bradawl.safety.shell.allow.path_effects import Resolve, Scene, Touched, World
from bradawl.safety.shell.allow.program_lookup import Programs
from bradawl.safety.shell.errors import NotUnderstood

_MOST_FOLDERS = 4
_KNOWN: dict[str, Program] = {**PROGRAMS, **WRITERS, "git": GIT}
_ON_THE_SHELL = frozenset({"cd", "export", "unset"})
Place = tuple[str, str]
"""A working directory as bash calls it, and where it is."""


def confirmed_line(command: str, home: str) -> Line | None:
    """A line as both readers see it, patterns unexpanded; None if one of them doesn't understand it.

    Says nothing about what its commands do. Without `home`, a line with an unquoted `~` gives None.
    """
    try:
        line = read_line(command, home)
        confirm(line)
    except NotUnderstood:
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
    programs: Programs | None = None,
) -> Effects:
    """As `effects_in`, on this machine."""
    world = World(resolve, entries_on_disk, home, git_is_safe)
    return effects_in(world, command, cwd, env or {}, programs)


def effects_in(
    world: World, command: str, cwd: str, env: Mapping[str, str | None], programs: Programs | None
) -> Effects:
    """Effects of running `command` with `bash -c` in `cwd`; `UNKNOWN` unless each part of it is understood.

    Never raises. `env` is what the session changed in the environment, None for what it unset. Without `programs`
    every name is taken to find the system's own program.

    May be called from several threads. The first line that is all known commands loads a grammar, about 10 ms.
    """
    try:
        line = read_line(command, world.home)
        _check_names(line, programs)
        confirm(line)
        start = world.resolve(cwd, cwd)
        walk = _Walk(msgspec.structs.replace(world, start=start), env)
        walk.follow(line.pipelines, (normpath(cwd), start))
        touched = walk.touched
    except (NotUnderstood, ToolError):
        return UNKNOWN
    if programs and any(map(programs.may_change_by, touched.writes)):
        return UNKNOWN
    return Effects(
        reads=tuple(touched.reads),
        writes=tuple(touched.writes),
        commands=line.argvs,
        understood=True,
        session=tuple(touched.session),
        redirects=tuple(touched.redirects),
    )


def _check_names(line: Line, programs: Programs | None) -> None:
    """Refuse, before anything else is looked at, a line with a command that isn't known."""
    for pipeline in line.pipelines:
        for command in pipeline.commands:
            if not command.words or command.name in _ON_THE_SHELL:
                continue
            known = _KNOWN.get(command.name)
            check(bool(command.name) and (known is not None or command.argv in VERSIONS))
            if programs and not (known and known.is_builtin):
                check(programs.is_trusted(command.name))


class _Walk:
    """Follows a line from command to command, with every working directory it may be in."""

    def __init__(self, world: World, env: Mapping[str, str | None]) -> None:
        self.touched = Touched()
        self._world = world
        # OLDPWD comes with every `cd` and matters to `cd -` alone, which is not understood anyway.
        self._changed = set(env) - {"OLDPWD"}

    def follow(self, pipelines: tuple[Pipeline, ...], start: Place) -> None:
        """Judge all of them; `cd` that fails leaves the shell where it was, so both go on."""
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

    def _pipeline(self, pipeline: Pipeline, places: frozenset[Place]) -> tuple[frozenset[Place], frozenset[Place]]:
        """Where the shell may be if it succeeds, and if it fails."""
        check(len(places) <= _MOST_FOLDERS)
        if len(pipeline.commands) == 1:
            return self._one(pipeline.commands[0], places)
        writes = len(self.touched.writes)
        for command in pipeline.commands:
            self._judge(command, places, is_alone=False)
        if len(self.touched.writes) != writes:
            # All run at once: what the last one writes, the first may find in a folder.
            for command in pipeline.commands:
                self._judge(command, places, is_alone=False)
        return places, places

    def _one(self, command: SimpleCommand, places: frozenset[Place]) -> tuple[frozenset[Place], frozenset[Place]]:
        self._judge(command, places, is_alone=True)
        if not command.words:
            for name, _ in command.assignments:
                self._change_variable(name)
        elif command.name == "cd":
            return frozenset(self._change_folder(command, place) for place in places), places
        elif command.name in _ON_THE_SHELL:
            self._export(command)
        return places, places

    # -------------------------------------------------------------- the shell itself

    def _change_folder(self, command: SimpleCommand, place: Place) -> Place:
        check(len(command.words) <= 2)
        check(not any(map(matters_to_bash, self._changed)))
        target = command.words[1].text if len(command.words) == 2 else self._world.home
        is_plain = bool(target) and not target.startswith("-") and not any(word.is_glob for word in command.words)
        check(is_plain and (len(command.words) == 2 or target.startswith("/")))
        # `..` takes away the last name for bash and leads to the parent for everybody else.
        name = normpath(join(place[0], target))
        scene = Scene(self._world, self.touched, place[1], is_alone=True)
        goal = scene.read_path(target)  # whether it is there is for the calls before to say
        check(goal == scene.place(name))
        self.touched.session["cwd"] = None
        return name, goal

    def _export(self, command: SimpleCommand) -> None:
        check(len(command.words) > 1 and not command.assignments)
        for word in command.words[1:]:
            name, equals, _ = word.text.partition("=")
            check(name.isascii() and name.isidentifier() and not word.is_glob)
            check(bool(equals) == (command.name == "export"))
            self._change_variable(name)

    def _change_variable(self, name: str) -> None:
        self._changed.add(name)
        self.touched.session["env"] = None
        if is_execution_relevant(name):
            self.touched.session[f"env:{name}"] = None

    # -------------------------------------------------------------- programs

    def _judge(self, command: SimpleCommand, places: frozenset[Place], *, is_alone: bool) -> None:
        check(is_alone or (bool(command.words) and command.name not in _ON_THE_SHELL))
        check(not (command.words and any(is_execution_relevant(name) for name, _ in command.assignments)))
        relinked: list[tuple[str, bool]] = []
        for _, cwd in sorted(places):
            scene = Scene(self._world, self.touched, cwd, is_alone=is_alone)
            self._judge_at(scene, command)
            relinked += scene.relinked.items()
        for entry, is_link in relinked:
            self.touched.relinked[entry] = self.touched.relinked.get(entry, False) or is_link

    def _judge_at(self, scene: Scene, command: SimpleCommand) -> None:
        for redirect in command.redirects:
            if redirect.writes:
                scene.redirect(redirect.target)
            elif redirect.target.text == "-":
                raise NotUnderstood
            else:
                scene.read(redirect.target)
        if not command.words or command.name in _ON_THE_SHELL:
            return
        if command.argv in VERSIONS:
            check(not any(map(is_execution_relevant, self._changed)))
            return
        program = _KNOWN[command.name]
        is_changed = matters_to_bash if program.is_builtin else is_execution_relevant
        check(not any(map(is_changed, self._changed)))
        program.judge(scene, command.words[1:])
