"""The entries of a project's files that take effect only if the user trusts the project."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from bradawl.app.instructions.places import place_in, stamps_of
from bradawl.app.settings.files import read_small_file
from bradawl.app.settings.project_files import ProjectFile
from bradawl.app.settings.table import SETTINGS
from bradawl.safety.trust.findings import Finding
from bradawl.safety.trust.settings_review import review_file
from bradawl.safety.trust.store import digest

_PROMPT_FOLDERS: Final = ("commands", "agents", "skills")
_MOST_FILES: Final = 200
_ON_ONE_LINE: Final = 200
_MOST_SHOWN: Final = 20_000
"""Characters of one value. A user could not read a longer one before answering."""
_TEXT: Final = "instructions to the model, as the file is at any time; without trust it is material"
_PADDING: Final = re.compile(r"[ \t]{9,}")


class Item(msgspec.Struct, frozen=True):
    """An entry of a project's files that takes effect only if the user trusts the project."""

    name: str
    """File and key: `.bradawl/config.toml: permissions.allow`."""
    value: str
    """The value on one line, as JSON unless it is text."""
    entries: tuple[str, ...]
    """The entries of a list, each as JSON."""
    digest: str
    """Digest of the value and of the files in the project that it names."""
    is_program: bool
    """It names a program to run. This version runs none of them."""
    is_text: bool = False
    """It is an instruction file as a whole, whatever it says."""


def items_in(root: str, files: Sequence[ProjectFile]) -> tuple[Item, ...]:
    """All entries of a project's files that need trust, and its instruction files. Reads a bounded number of files."""
    found = [(file.name, one) for file in files for one in file.findings]
    for path in _other_files(Path(root)):
        name = str(path.relative_to(root))
        found += [(name, one) for one in _findings_in(path, name, root)]
    return (*(_item(name, one, root) for name, one in found if one.is_for_trust), *_texts_in(root))


def _texts_in(root: str) -> Iterator[Item]:
    """The instruction file at the top of the project, if it has one. Its contents are not part of the consent."""
    place = place_in(root, root, is_trusted=True)
    path = next((path for path in place.paths if stamps_of((path,)).get(path, (0, 0, 0))[1]), None)
    if path is not None:
        name = path[len(root.rstrip("/")) + 1 :]
        yield Item(name, _TEXT, (), digest(_TEXT, root), is_program=False, is_text=True)


def _other_files(root: Path) -> list[Path]:
    found = [root / ".mcp.json"]
    for folder in _PROMPT_FOLDERS:
        found += _markdown_below(root / ".bradawl" / folder)
    return found[:_MOST_FILES]


def _markdown_below(folder: Path) -> list[Path]:
    paths: list[Path] = []
    for at, folders, names in os.walk(folder):
        folders.sort()
        paths += (Path(at, name) for name in sorted(names) if name.endswith(".md"))
        if len(paths) >= _MOST_FILES:
            break
    return paths


def _findings_in(path: Path, name: str, root: str) -> tuple[Finding, ...]:
    try:
        data = read_small_file(path)
        if data is None or not path.resolve().is_relative_to(root):
            return ()
    except OSError:
        return ()
    return review_file(name, data, SETTINGS.project_settings)


def _item(file: str, one: Finding, root: str) -> Item:
    text = one.value if isinstance(one.value, str) else _on_one_line(one.value)
    name = f"{file}: {one.key}" if one.key else file
    entries = tuple(map(_on_one_line, one.value)) if isinstance(one.value, list) else ()
    return Item(name, text, entries, digest(one.value, root), one.is_program)


def _on_one_line(value: object) -> str:
    try:
        return msgspec.json.encode(value, enc_hook=str).decode()
    except (ValueError, TypeError, RecursionError):
        return repr(value)


# ------------------------------------------------------------------ as text


def item_lines(item: Item) -> list[str]:
    """The whole item, because a part that is left out could be the important one."""
    if item.is_text:
        return [f"{item.name} = {item.value}"]
    kept = " (a program; this version starts none)" if item.is_program else ""
    seal = f"[sha256 {item.digest[:12]}]"
    if len(item.value) <= _ON_ONE_LINE and not _PADDING.search(item.value):
        return [f"{item.name}{kept} = {item.value}  {seal}"]
    shown = (without_padding(each) for each in item.entries or (item.value,))
    return [f"{item.name}{kept}  {seal}:", *(f"  {each}" for each in shown)]


def without_padding(text: str) -> str:
    """The text with long runs of blanks, which could push its end off the screen, replaced by their number."""
    return _PADDING.sub(_counted, text)


def _counted(blanks: re.Match[str]) -> str:
    return f" <{len(blanks[0])} blanks> "


def too_long_item(items: Sequence[Item]) -> str:
    """The name of the first item that is too long to be shown; empty if there is none."""
    return next((item.name for item in items if len(item.value) > _MOST_SHOWN), "")
