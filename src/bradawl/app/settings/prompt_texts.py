"""The settings `system_prompt` and `append_system_prompt`: a text, or the text of a file."""

from pathlib import Path
from typing import Final

from bradawl.app.settings.files import read_small_file
from bradawl.app.settings.layers import Sources, UncheckedValue
from bradawl.app.settings.values import parse_prose, parse_text
from bradawl.core.errors import SettingsError

LONGEST_BYTES: Final = 100_000


def prompt_text(sources: Sources, name: str, cwd: str, home: str) -> str:
    """The text of a setting, or of the file that the setting `NAME_file` names; empty if neither is given.

    The stronger source counts. Raises `SettingsError`, also if one source gives both.
    """
    text, file = sources.find(name), sources.find(f"{name}_file")
    if text is not None and file is not None and text.rank == file.rank:
        raise SettingsError(f"{text.place} and {file.place} both give this text; use one of them.")
    if file is not None and (text is None or file.rank < text.rank):
        return _text_of_file(file, cwd, home)
    return _checked(parse_prose(text.value, text.place), text.place) if text is not None else ""


def _text_of_file(found: UncheckedValue, cwd: str, home: str) -> str:
    name = parse_text(found.value, found.place)
    path = Path(found.folder or cwd, home + name[1:] if name.startswith("~/") else name)
    place = f"{found.place}: {path}"
    try:
        data = None if path.is_dir() else read_small_file(path)
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else "") or error
        raise SettingsError(f"{place} can't be read: {why}; name a text file.") from error
    if data is None:
        problem = "is a folder; name a text file in it" if path.is_dir() else "is not there; check the path"
        raise SettingsError(f"{place} {problem}.")
    try:
        return _checked(parse_prose(data.decode("utf-8-sig"), place), place)
    except UnicodeDecodeError as error:
        raise SettingsError(f"{place} is not UTF-8 text; name a text file.") from error


def _checked(text: str, place: str) -> str:
    if (size := len(text.encode())) > LONGEST_BYTES:
        raise SettingsError(
            f"{place} has {size:,} bytes, more than {LONGEST_BYTES:,}; shorten it: each request has it."
        )
    return text
