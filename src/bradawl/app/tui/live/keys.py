"""The keys of the input line: which action each key has, and the file in which the user changes that."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple


class Action(NamedTuple):
    """What a key can do."""

    keys: tuple[str, ...]
    """As the user writes them: `ctrl+r`, `alt+enter`, `esc esc`."""
    help: str


ACTIONS: Final[Mapping[str, Action]] = {
    "send": Action(("enter",), "send; during a turn the model sees it at its next step"),
    "newline": Action(("ctrl+j", "alt+enter"), "begin a new line (also Shift+Enter, or \\ before Enter)"),
    "queue": Action(("ctrl+q",), "send after the running turn"),
    "interrupt": Action(("esc",), "end the running turn"),
    "rewind": Action(("esc esc",), "clear the text; without one, choose a prompt to go back to"),
    "clear": Action(("ctrl+c",), "end the turn, else clear the text; twice leaves"),
    "leave": Action(("ctrl+d",), "leave, when there is no text"),
    "mode": Action(("shift+tab",), "next permission mode"),
    "open": Action(("ctrl+o",), "show calls, results and thinking in full"),
    "todos": Action(("ctrl+t",), "show the to-do list"),
    "background": Action(("ctrl+b",), "move the running command to the background"),
    "history": Action(("ctrl+r",), "search the earlier prompts"),
    "editor": Action(("ctrl+g",), "edit the text in $VISUAL or $EDITOR"),
    "paste_image": Action(("ctrl+v",), "attach the image on the clipboard"),
    "redraw": Action(("ctrl+l",), "draw the screen again"),
    "suspend": Action(("ctrl+z",), "suspend; `fg` comes back"),
    "help": Action(("?",), "list the keys, when there is no text"),
}
FIXED: Final = (
    ("up, down", "earlier and later prompts; up takes back what waits for the next step"),
    ("tab", "complete a /command or an @file; show a folded paste in full"),
    ("@path", "attach a file or a folder"),
    ("!command", "run a command yourself; the model sees the output"),
)
"""Keys that can't be changed."""

_NAMED: Final = {
    "enter": "enter",
    "esc": "escape",
    "tab": "tab",
    "space": "space",
    "backspace": "backspace",
    "delete": "delete",
    "insert": "insert",
    "home": "home",
    "end": "end",
    "pageup": "pageup",
    "pagedown": "pagedown",
    "up": "up",
    "down": "down",
    "left": "left",
    "right": "right",
    **{f"f{number}": f"f{number}" for number in range(1, 25)},
}
_WITH_CONTROL: Final = frozenset("abcdefghijklmnopqrstuvwxyz\\]^_")


class KeyTable(NamedTuple):
    """The keys in force, and what is wrong in the user's file."""

    keys: Mapping[str, tuple[str, ...]]
    """For each action its keys, as the user writes them."""
    problems: tuple[str, ...] = ()

    def sequences(self, action: str) -> Iterator[tuple[str, ...]]:
        """The keys of an action in prompt_toolkit's names."""
        yield from (parsed for text in self.keys[action] if (parsed := sequence_of(text)))

    def help(self) -> str:
        """All keys with what they do, a line each."""
        rows = [(", ".join(map(_shown, self.keys[name])) or "(none)", each.help) for name, each in ACTIONS.items()]
        rows += FIXED
        width = max(len(keys) for keys, _ in rows)
        return "\n".join(f"{keys:<{width}}  {text}" for keys, text in rows)


DEFAULT_KEYS: Final = KeyTable({name: action.keys for name, action in ACTIONS.items()})


def sequence_of(text: str) -> tuple[str, ...]:
    """The names of prompt_toolkit for keys such as `ctrl+x ctrl+e`; empty if one is unknown."""
    sequence: list[str] = []
    for word in text.lower().split():
        keys = _key_of(word)
        if not keys:
            return ()
        sequence += keys
    return tuple(sequence)


def _key_of(word: str) -> tuple[str, ...]:
    *modifiers, key = word.split("+") if word != "+" else ["+"]
    match tuple(modifiers):
        case ():
            name = _NAMED.get(key) or (key if len(key) == 1 else "")
        case ("ctrl",):
            name = f"c-{key}" if key in _WITH_CONTROL or key in ("up", "down", "left", "right", "home", "end") else ""
        case ("shift",):
            name = f"s-{key}" if key in ("tab", "up", "down", "left", "right", "home", "end", "delete") else ""
        case ("alt",):
            inner = _key_of(key)
            return ("escape", *inner) if inner else ()
        case ("alt", "ctrl") | ("ctrl", "alt"):
            return ("escape", f"c-{key}") if key in _WITH_CONTROL else ()
        case _:
            name = ""
    return (name,) if name else ()


def _shown(keys: str) -> str:
    """`Ctrl+R`, `Esc Esc`."""
    return re.sub(r"[a-z]+", lambda word: word[0].capitalize() if len(word[0]) > 1 else word[0].upper(), keys)


def load_keys(path: Path) -> KeyTable:
    """The keys with the changes in the user's file, which need not exist. What is wrong there is left out and told."""
    try:
        given = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return DEFAULT_KEYS
    except (OSError, ValueError) as error:
        return DEFAULT_KEYS._replace(problems=(f"{path} can't be read: {error}",))
    keys, problems = dict(DEFAULT_KEYS.keys), []
    for name, value in given.items():
        texts = (value,) if isinstance(value, str) else value
        if name not in ACTIONS:
            near = get_close_matches(name, ACTIONS, 1)
            problems.append(f"{path}: {name!r} is no action" + (f"; did you mean {near[0]}?" if near else ""))
        elif not isinstance(texts, list | tuple) or not all(isinstance(each, str) for each in texts):
            problems.append(f"{path}: {name} must be a key such as 'ctrl+r', or a list of keys")
        elif wrong := [each for each in texts if not sequence_of(each)]:
            problems.append(f"{path}: {name}: {wrong[0]!r} is no key; examples: 'ctrl+r', 'alt+enter', 'f5', 'esc esc'")
        else:
            keys[name] = tuple(texts)
    problems += _twice(keys, path)
    return KeyTable(keys, tuple(problems))


def _twice(keys: Mapping[str, tuple[str, ...]], path: Path) -> Iterator[str]:
    """Keys that the file gives to two actions."""
    owners: dict[tuple[str, ...], str] = {}
    for name, texts in keys.items():
        for text in texts:
            if (owner := owners.setdefault(sequence_of(text), name)) != name:
                yield f"{path}: {text} has two actions, {owner} and {name}"
