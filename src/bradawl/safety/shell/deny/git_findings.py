"""What the git commands of a scanned text would discard, here or in a remote repository."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from posixpath import join

from bradawl.safety.shell.argv import Argv, name_of
from bradawl.safety.shell.deny.exfiltration import literals, starts_programs
from bradawl.safety.shell.deny.expansion import UNKNOWN_VALUE
from bradawl.safety.shell.deny.git_losses import (
    FORCED_PUSH,
    OBJECTS,
    REPOSITORY,
    Loss,
    deletes_repository,
    forced_push,
    loss,
)
from bradawl.safety.shell.deny.git_settings import GitCommand, git_command
from bradawl.safety.shell.deny.shell_state import ShellState

_VARIABLE = re.compile(r"(GIT_\w+)=(.*)", re.DOTALL)
_SET_VARIABLES = frozenset({"env", "sudo", "doas"})
# For texts that exceed the scan's budget, line by line.
_FORCE = re.compile(r"[ \t](?:-[a-zA-Z]*[fd]\b|--(?:force|mirror|del|prune)|\+\w|:\w)")
_LOSS = re.compile(
    r"--(?:ha|me|ke)|[ \t](?:clean|checkout|restore|switch|reflog|update-ref)\b"
    r"|stash[ \t]+(?:drop|clear)|branch[ \t]+-D"
)
_NAMES_GIT = re.compile(r"git[ \t-]")
_PRUNES = re.compile(r"[ \t](?:prune\b|gc\b.*prune|repack\b)")


class GitFindings:
    """Collects the findings of one scan."""

    def __init__(self, state: ShellState) -> None:
        self._state = state
        self._losses: dict[Loss, None] = {}
        self.forced = ""
        """Why a push is asked about even if a rule allows it."""

    @property
    def discards(self) -> str:
        """What is discarded; empty for nothing."""
        found = [each.what for each in sorted(self._losses, key=lambda each: each.undoable)]
        return " and ".join(found[:3])

    @property
    def undoable(self) -> bool:
        """Whether undo could bring all of it back; False for nothing."""
        return bool(self._losses) and all(each.undoable for each in self._losses)

    def check(self, name: str, words: Argv) -> tuple[Argv, ...]:
        """Record what a command discards. Returns the commands that an alias set in the text stands for."""
        if name == "rm" and deletes_repository(words):
            self._losses[REPOSITORY] = None
        # A program whose name is unknown may be git.
        command = git_command(("git", *words[1:]) if name == UNKNOWN_VALUE else words, self._values)
        if command is None:
            return ()
        self.forced = self.forced or forced_push(command)
        if found := loss(command, lambda path: self._exists(command, path)):
            self._losses[found] = None
        return (command.alias,) if command.alias else ()

    def check_code(self, code: str) -> None:
        """Record what git discards that code starts with a list of words, such as `["git", "push", "-f"]`."""
        found = tuple(literals(code)) if starts_programs(code) else ()
        for place, word in enumerate(found):
            if name_of((word,)) == "git":
                # Words before it may be in a list that is added later.
                self.check("git", (*found[place:], *found[:place]))

    def note_oversized(self, text: str) -> None:
        """Record what patterns find in a text that was not scanned to its end."""
        for line in filter(_NAMES_GIT.search, re.sub(r"['\"\\]", "", text).split("\n")):
            if "push" in line and _FORCE.search(line):
                self.forced = self.forced or FORCED_PUSH
            if _LOSS.search(line):
                self._losses[Loss("uncommitted changes or more")] = None
            if _PRUNES.search(line):
                self._losses[OBJECTS] = None

    @contextmanager
    def variables_of(self, name: str, words: Argv) -> Iterator[None]:
        """Set git's variables that `env` gives to a command."""
        given = [match for word in words if (match := _VARIABLE.fullmatch(word))] if name in _SET_VARIABLES else []
        if not given:
            yield
            return
        with self._state.subshell():
            for match in given:
                self._state.assign(match[1], (match[2],))
            yield

    def _values(self, name: str) -> Argv:
        """Possible values of a variable that the text sets."""
        if name not in self._state.variables:
            return ()
        return tuple(value for value in self._state.value(name) if value and value != UNKNOWN_VALUE)

    def _exists(self, command: GitCommand, path: str) -> bool:
        if UNKNOWN_VALUE in path or "\3" in path:
            return False
        if self._state.cwd is None:
            return True
        return os.path.lexists(join(self._state.cwd, command.folder, path))
