"""A prompt or command as the user sent it from a terminal."""

from typing import NamedTuple


class Submission(NamedTuple):
    """What the user sent."""

    text: str
    """With all pasted text."""
    shown: str = ""
    """With folded pastes, as it was on the screen."""
    images: tuple[str, ...] = ()
    """Paths of attached images."""
    pasted_names: tuple[str, ...] = ()
    """Names whose `@` was pasted: they attach nothing."""

    @property
    def typed(self) -> str:
        """What decides whether it is a command: what is folded away never is one."""
        return self.shown or self.text
