"""What a tool call would read, write, run or reach; permission, order and undo follow from it."""

import msgspec


class Effects(msgspec.Struct, frozen=True, omit_defaults=True):
    """Effects of one call; `Effects()` touches nothing. Paths are absolute, with symlinks resolved."""

    reads: tuple[str, ...] = ()
    """Files and folders; a folder includes everything below it."""
    writes: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    """argv of each program that would run."""
    hosts: tuple[str, ...] = ()
    """Names of hosts; `*` for any. `NAME` is for the ports 80 and 443, `NAME:PORT` for another one."""
    external: bool = False
    """Acts on a remote system whose state is not visible here."""
    spends: bool = False
    """Costs money, for example by starting a sub-agent."""
    session: tuple[str, ...] = ()
    """Parts of the session it changes: `cwd`, `env`, `todos`, `jobs`, `mode`; `user` if it asks the user; `env:NAME`
    for a variable that decides what later commands run."""
    unknown: bool = False
    understood: bool = False
    """The commands touch only what is declared here; needs an analysis of all their options."""
    redirects: tuple[str, ...] = ()
    """The writes that are redirections (`>`) of a shell line, not done by a command."""
    inner: tuple[tuple[str, ...], ...] = ()
    """argv of programs the commands would start, as far as known; used to refuse or ask, never to allow."""
    danger: str = ""
    """Why the call is refused in every mode, for example `it deletes the home folder`."""
    seal: str = ""
    """Digest of the one command it runs, with its folder and environment; a grant starts only that. Empty for none."""
    opaque: str = ""
    """Why what it runs can't be known before: a question in every mode but `bypass`, unless a rule allows the call."""
    forced: str = ""
    """Why it is a question in every mode but `bypass`, also if a rule allows it, for example `it forces a push`."""
    discards: str = ""
    """What it discards that git does not keep, for example `uncommitted changes`."""
    undoable: bool = False
    """Undo can bring back what it discards."""
    unsealed: bool = False
    """The seal does not cover everything that decides what runs: an approval holds for this call only."""
    variables: tuple[str, ...] = ()
    """Variables set by earlier commands that decide what it runs or reaches outside a sandbox."""
    lifts: tuple[str, ...] = ()
    """Sandbox limits it asks to lift: `host` for `hosts` alone, `network` for any host, `sandbox` for all."""

    @property
    def is_read_only(self) -> bool:
        """True if the call changes nothing."""
        changes = (self.writes, self.hosts, self.session, self.external, self.spends, self.unknown, self.lifts)
        return not any(changes) and (self.understood or not self.commands)

    @property
    def moves(self) -> bool:
        """True if it may change the working directory or environment of later calls."""
        return self.unknown or not _SURROUNDINGS.isdisjoint(self.session)


UNKNOWN = Effects(unknown=True)
_SURROUNDINGS = frozenset({"cwd", "env"})


def is_within(path: str, folder: str) -> bool:
    """True if an absolute path is the folder or lies below it, compared by component."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _touch(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    return any(is_within(one, other) or is_within(other, one) for one in first for other in second)


def conflict(earlier: Effects, later: Effects) -> bool:
    """True if a call must wait for an earlier one. Folder and variables are copied, so the later may change them."""
    if earlier.moves or later.unknown or (earlier.external and later.external):
        return True
    if set(earlier.session) & set(later.session):
        return True
    return _touch(earlier.writes, (*later.writes, *later.reads)) or _touch(earlier.reads, later.writes)
