"""Words the note that a command ran without the changes of earlier calls, and names a call by its arguments."""

import typing
from collections.abc import Sequence
from typing import Final

from bradawl.core.arguments import Arguments, is_object

_CALLS_NAMED: Final = 5
_FILES_NAMED: Final = 3
_LONGEST_NAME: Final = 100


def note(failed: Sequence[str]) -> str:
    """The note about failed calls, which `named` names."""
    counts = {name: failed.count(name) for name in failed}
    names = [name if count == 1 else f"{name} ({count} calls)" for name, count in counts.items()]
    changes = "that change" if len(failed) == 1 else "those changes"
    return f"[{_listed(names, _CALLS_NAMED)} before it in this reply failed: this ran without {changes}]"


def named(tool: str, arguments: Arguments | None, shows: tuple[str, ...], cwd: str) -> str:
    """A call by its tool and its main arguments, on one line; paths below the working directory are relative to it."""
    found = next((texts for key in shows if (texts := argument_texts(arguments or {}, key))), ())
    texts = [" ".join(text.removeprefix(f"{cwd.rstrip('/')}/").split()) for text in found]
    cut = [text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}..." for text in texts]
    return f"{tool} {_listed(list(dict.fromkeys(cut)), _FILES_NAMED)}" if cut else tool


def argument_texts(arguments: Arguments, key: str) -> tuple[str, ...]:
    """One argument as texts: the items of a list; for `list.field` that field of each item."""
    name, _, field = key.partition(".")
    value = arguments.get(name)
    if isinstance(value, list):
        items = typing.cast("list[object]", value)
        if field:
            items = [item.get(field, "") for item in items if is_object(item)]
        return tuple(dict.fromkeys(map(str, items)))
    return (value,) if isinstance(value, str) and value else ()


def _listed(names: list[str], most: int) -> str:
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
