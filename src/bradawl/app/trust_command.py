"""The command `bradawl trust`, and the question about an untrusted project at the start of a conversation."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from bradawl.app.console import Console
from bradawl.app.instructions.places import place_in, stamps_of
from bradawl.app.settings.files import read_small_file
from bradawl.app.settings.homes import homes
from bradawl.app.settings.project_files import ProjectFile, project_root, read_project_files
from bradawl.app.settings.table import SETTINGS
from bradawl.app.settings.values import check_utf8_path, split_rules
from bradawl.core.errors import SettingsError
from bradawl.safety.name_lists import first_of
from bradawl.safety.trust.findings import Finding
from bradawl.safety.trust.settings_review import review_file
from bradawl.safety.trust.store import TrustStore, digest

if TYPE_CHECKING:
    from bradawl.app.settings.settings import Settings

_PROMPT_FOLDERS: Final = ("commands", "agents", "skills")
_MOST_FILES: Final = 200
_ON_ONE_LINE: Final = 200
_MOST_SHOWN: Final = 20_000
"""Characters of one value. A user could not read a longer one before answering."""
_RUN_ANYTHING: Final = frozenset(
    {"bash", "sh", "dash", "zsh", "sudo", "env", "xargs", "eval", "exec", "python", "python3", "node", "perl", "ruby"}
)
_MANY_RULES: Final = 10
_MOST_WIDE: Final = 5
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


# ------------------------------------------------------------------ the question


def trust_question(settings: "Settings") -> str | None:
    """The question whether to trust the project, with all entries that would take effect; None if none would.

    It is not asked twice about the same contents. Pass the answer to `answer_trust`, and load the settings again after
    a yes. The caller escapes the text before it is shown.
    """
    items, store = _open(settings)
    if settings.is_trusted:  # instruction files count already
        items = tuple(item for item in items if not item.is_text)
    digests = {item.name: item.digest for item in items}
    if not items or store.refusal(settings.project) or store.is_answered(settings.project, digests):
        return None
    if _too_long(items):
        return None  # `bradawl trust` reports it
    from bradawl.app.rendering import one_line

    changed = "has changed since you trusted it" if settings.is_trusted else "is not trusted"
    lines = [line for item in items for line in _lines(item)]
    summary = [one_line(line) for line in _summary(items)]
    return "\n".join(
        (
            f"The project {one_line(settings.project)} {changed}.",
            *summary,
            "If you trust it, these entries of its files take effect from now on:",
            *(f"  {line}" for line in lines),
            *(summary if len(lines) > _MANY_RULES else ()),
            "Until then its files may only forbid, and what its AGENTS.md says is material, not instructions.",
        )
    )


def _summary(items: Sequence[Item]) -> list[str]:
    """A summary of what a long list could hide: the number of rules, and rules that allow everything or any command."""
    rules = [rule for item in items if not (item.is_program or item.is_text) for rule in _rules_of(item)]
    wide = list(dict.fromkeys(rule for rule in rules if _is_wide(rule)))
    many = f"Its files have {len(rules)} rules that allow something." if len(rules) > _MANY_RULES else ""
    warning = f"THESE RULES ALLOW EVERYTHING, OR ANY COMMAND: {first_of(wide, _MOST_WIDE)}" if wide else ""
    return [line for line in (many, warning) if line]


def _rules_of(item: Item) -> tuple[str, ...]:
    """The rules in an item; as in settings, one text may contain several."""
    try:
        texts: list[str] = [msgspec.json.decode(each, type=str) for each in item.entries] or [item.value]
        return tuple(rule for text in texts for rule in split_rules(text, item.name, is_forgiving=True))
    except (SettingsError, ValueError):
        return item.entries or (item.value,)


def _is_wide(rule: str) -> bool:
    """Whether a rule allows every tool, every use of a tool that runs or writes, or a program that runs any command."""
    tool, _, rest = rule.strip().partition("(")
    words = [word for word in re.split(r"[\s:*~?'\"]+", rest.removesuffix(")")) if word.strip("./-c")]
    runs_any = len(words) == 1 and "*" in rest and words[0].rpartition("/")[2] in _RUN_ANYTHING
    return _covers_any_change(tool.strip()) and (not words or runs_any)


def _covers_any_change(tool: str) -> bool:
    """Whether a rule of this name alone allows tools that run commands, change files or start sub-agents."""
    from bradawl.safety.permissions.rule_syntax import rule_name

    known = rule_name(tool)
    return tool == "*" or (known is not None and (known.on in ("run", "write") or known.name == "Agent"))


def answer_trust(settings: "Settings", *, is_trusted: bool) -> None:
    """Remember the answer to `trust_question`. Raises `SettingsError` if it can't be written."""
    items, store = _open(settings)
    digests = {item.name: item.digest for item in items}
    if is_trusted:
        store.trust(settings.project, digests)
    else:
        store.decline(settings.project, digests)


def _open(settings: "Settings") -> tuple[tuple[Item, ...], TrustStore]:
    user_file = Path(homes(settings.environment, settings.cwd).config, "config.toml")
    files, _ = read_project_files(settings.cwd, settings.project, user_file, SETTINGS)
    return items_in(settings.project, files), TrustStore(settings.home, settings.user_home)


def _lines(item: Item) -> list[str]:
    """The whole item for the question, because a part that is left out could be the important one."""
    if item.is_text:
        return [f"{item.name} = {item.value}"]
    kept = " (a program; this version starts none)" if item.is_program else ""
    seal = f"[sha256 {item.digest[:12]}]"
    if len(item.value) <= _ON_ONE_LINE and not _PADDING.search(item.value):
        return [f"{item.name}{kept} = {item.value}  {seal}"]
    shown = (_PADDING.sub(_counted, each) for each in item.entries or (item.value,))
    return [f"{item.name}{kept}  {seal}:", *(f"  {each}" for each in shown)]


def _counted(blanks: re.Match[str]) -> str:
    return f" <{len(blanks[0])} blanks> "


def _too_long(items: Sequence[Item]) -> str:
    """The name of the first item that is too long to be shown; empty if there is none."""
    return next((item.name for item in items if len(item.value) > _MOST_SHOWN), "")


# ------------------------------------------------------------------ the command


def run_trust(
    options: Mapping[str, object], environ: Mapping[str, str], console: Console, cwd: str, notify: Callable[[str], None]
) -> int:
    """Run `bradawl trust`: show the entries that need trust, and remember that the user trusts the project.

    `notify` is called with each warning. Returns the exit code. Raises `SettingsError`.
    """
    from bradawl.app.rendering import one_line

    home = homes(environ, cwd)
    store = TrustStore(home.data, home.user)
    if options.get("list"):
        lines = [f"{path}{' and all below' if one.below else ''}" for path, one in store.trusted()]
        if not lines:
            console.say("No project is trusted.")
    else:
        start = str(options.get("cwd") or cwd)
        user_file = Path(home.config, "config.toml")
        lines = _about_folder(options, store, _project(options.get("folder"), start), user_file, notify)
    console.answer("".join(f"{one_line(line)}\n" for line in lines))
    return 0


def _project(named: object, cwd: str) -> tuple[str, str]:
    """The named folder, and the root of its project; both are real paths."""
    path = Path(cwd, str(named or ""))
    try:
        folder = path.resolve()
        is_folder = folder.is_dir()
    except (OSError, ValueError, RuntimeError) as error:
        raise SettingsError(f"The folder {str(path)!r} can't be used: {error}.") from error
    if not is_folder:
        raise SettingsError(f"{path} is not a folder.")
    check_utf8_path(str(folder), "The project")
    return str(folder), project_root(str(folder))


def _about_folder(
    options: Mapping[str, object],
    store: TrustStore,
    place: tuple[str, str],
    user_file: Path,
    notify: Callable[[str], None],
) -> list[str]:
    folder, root = place
    if options.get("remove"):
        return [f"{root} is no longer trusted." if store.distrust(root) else f"{root} was not trusted."]
    files, warnings = read_project_files(folder, root, user_file, SETTINGS)
    for warning in warnings:
        notify(warning)
    items = items_in(root, files)
    if name := _too_long(items):
        raise SettingsError(f"{name} in {root} is too long to be read before it is trusted; shorten it.")
    lines = [line for item in items for line in _lines(item)] or ["Nothing in its files needs trust."]
    if options.get("show"):
        return lines
    store.trust(root, {item.name: item.digest for item in items}, below=bool(options.get("below")))
    below = " with all folders below it" if options.get("below") else ""
    later = (
        "one of these entries changes"
        if not all(item.is_text for item in items)
        else "its files get entries that need trust"
    )
    return [*lines, f"{root}{below} is trusted. You are asked again if {later}."]
