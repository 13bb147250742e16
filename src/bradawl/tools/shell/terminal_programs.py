"""Recognises programs that do nothing useful without a terminal, before they are started."""

from collections.abc import Iterable
from typing import Final

_EDITORS: Final = frozenset({"vi", "vim", "nvim", "view", "vimdiff", "nano", "pico", "emacs", "joe", "micro", "helix"})
_SCREENS: Final = {
    "top": "ps aux --sort=-%cpu | head, or top -bn1, shows the same once",
    "htop": "ps aux --sort=-%cpu | head shows the same once",
    "watch": "run the command itself, again when it is needed",
    "tmux": "what is to go on is a call with run_in_background",
    "screen": "what is to go on is a call with run_in_background",
}
_WITHOUT_SCREEN: Final = {
    "top": ("-b", "--batch"),
    "emacs": ("-batch", "--batch", "--script", "-x"),
    "tmux": ("new-session", "kill-", "ls", "list-", "send-keys", "capture-pane", "has-session", "-V"),
    "screen": ("-d", "-ls", "-list", "-X", "-S", "-v"),
}
"""Beginnings of arguments with which a program needs no terminal."""
_SCRIPTED: Final = ("-c", "+", "-e", "-E", "-s", "-S", "--cmd", "--headless", "--version", "--help", "-h")
"""The same for editors: with such a command they can end by themselves."""


def needs_terminal(commands: Iterable[tuple[str, ...]]) -> str:
    """Why these commands can't be run, and what to do instead; empty if none of them needs a terminal."""
    return next(filter(None, map(_why, commands)), "")


def _why(words: tuple[str, ...]) -> str:
    name = words[0].rpartition("/")[2]
    harmless = _WITHOUT_SCREEN.get(name) or (_SCRIPTED if name in _EDITORS else ())
    instead = "change files with edit_file" if name in _EDITORS else _SCREENS.get(name, "")
    if not instead or any(word.startswith(harmless) for word in words[1:] if harmless):
        return ""
    return f"{name} needs a terminal, and there is none; {instead}"
