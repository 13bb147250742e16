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
    """Parts of the session's state it changes: `cwd`, `env`, `todos`."""
    unknown: bool = False

    @property
    def is_read_only(self) -> bool:
        """True when running it twice, or not at all, changes nothing anywhere."""
        changes = (self.writes, self.commands, self.hosts, self.session, self.external, self.spends, self.unknown)
        return not any(changes)


UNKNOWN = Effects(unknown=True)


def _same_place(first: str, second: str) -> bool:
    """True when one path is the other or lies below it, compared by component."""
    if first == second:
        return True
    outer, inner = sorted((first, second), key=len)
    return inner.startswith(outer.rstrip("/") + "/")


def _touch(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    return any(_same_place(one, other) for one in first for other in second)


def conflict(first: Effects, second: Effects) -> bool:
    """True when two calls may not overlap: the order in which they run could be seen."""
    if first.unknown or second.unknown or (first.external and second.external):
        return True
    if set(first.session) & set(second.session):
        return True
    writes_meet = _touch(first.writes, second.writes)
    return writes_meet or _touch(first.writes, second.reads) or _touch(first.reads, second.writes)
