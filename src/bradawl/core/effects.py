"""What one call would read, write, run or reach. Declared once, used for permission, order and undo."""

import msgspec


class Effects(msgspec.Struct, frozen=True, omit_defaults=True):
    """Declared effects of one call. Paths are absolute with symlinks resolved.

    Declaring nothing (`Effects()`) is a promise; not being able to tell is `UNKNOWN`.
    """

    reads: tuple[str, ...] = ()
    """Files or folders; a folder stands for all below it."""
    writes: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    """argv of each program that would run."""
    hosts: tuple[str, ...] = ()
    external: bool = False
    """Reaches something whose state can't be seen from here (a remote tool)."""
    spends: bool = False
    """Costs money, for example a sub-agent."""
    session: tuple[str, ...] = ()
    """Parts of the session it changes: `cwd`, `env`, `todos`, `jobs`; `user` for a question to them; `env:NAME` for a
    variable that decides what later commands run."""
    unknown: bool = False
    understood: bool = False
    """The commands touch nothing but what is declared here; only who knows each of their options may say so."""
    redirects: tuple[str, ...] = ()
    """Of the writes those that a line does itself, by `>`: no word of a command says so."""
    inner: tuple[tuple[str, ...], ...] = ()
    """argv of programs that the commands would start in turn, as far as can be seen; only ever held against a call."""
    danger: str = ""
    """Why no mode lets it run, for example `it deletes the home folder`."""
    seal: str = ""
    """Names the one command, with place and surroundings, through which the call does all it does; empty if there is
    none. Only that command can be started with its grant."""
    unsealed: bool = False
    """The seal does not cover all that decides what runs: a yes holds for this one call."""
    variables: tuple[str, ...] = ()
    """Variables changed by earlier commands that decide what it runs or reaches where no sandbox holds it."""
    lifts: tuple[str, ...] = ()
    """What of the sandbox it asks to do without: `network`, or `sandbox` for all of it."""

    @property
    def is_read_only(self) -> bool:
        """True when running it twice, or not at all, changes nothing anywhere."""
        runs = self.commands and not self.understood
        return not any(
            (self.writes, runs, self.hosts, self.session, self.external, self.spends, self.unknown, self.lifts)
        )

    @property
    def moves(self) -> bool:
        """True when it may change where or in what environment later calls run."""
        return self.unknown or not _SURROUNDINGS.isdisjoint(self.session)


UNKNOWN = Effects(unknown=True)
_SURROUNDINGS = frozenset({"cwd", "env"})


def is_within(path: str, folder: str) -> bool:
    """True when an absolute path is a folder or lies below it, compared by component."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _same_place(first: str, second: str) -> bool:
    return is_within(first, second) or is_within(second, first)


def _touch(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    return any(_same_place(one, other) for one in first for other in second)


def conflict(earlier: Effects, later: Effects) -> bool:
    """True when a call may not begin before an earlier one has ended: the order in which they run could be seen.

    Each call sees the working directory and the environment that the calls before it left. Who only reads them
    runs on a copy, so that a later call may change them meanwhile.
    """
    if earlier.moves or later.unknown or (earlier.external and later.external):
        return True
    if set(earlier.session) & set(later.session):
        return True
    writes_meet = _touch(earlier.writes, later.writes)
    return writes_meet or _touch(earlier.writes, later.reads) or _touch(earlier.reads, later.writes)
