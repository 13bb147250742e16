"""The question about a project that is not trusted: what was found in its files, what trust does, and the answer.

The question is a value, so that each front end can draw it. `ask_about_trust` is the dialogue of those that have lines.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from bradawl.app.rendering import cut, one_line
from bradawl.app.settings.files import read_small_file
from bradawl.app.settings.homes import homes
from bradawl.app.settings.project_files import read_project_files
from bradawl.app.settings.table import SETTINGS
from bradawl.app.settings.values import split_rules
from bradawl.app.trust_items import Item, item_lines, items_in, too_long_item, without_padding
from bradawl.core.errors import SettingsError
from bradawl.safety.name_lists import first_of
from bradawl.safety.trust.store import TrustStore

if TYPE_CHECKING:
    from bradawl.app.settings.settings import Settings

Kind = Literal[
    "instructions", "permission rules", "settings", "hooks", "MCP servers", "prompts", "programs", "own tools"
]
Answer = Literal["trust", "decline", "later", "view", "unclear"]
"""`decline`: the question is not repeated about the same contents. `later`: the next start asks again."""

ANSWERS: Final = "y = trust it, n = no, v = view it all, Enter = not now:"
_TAKES_EFFECT: Final[Mapping[Kind, str]] = {
    "instructions": "the model follows them as yours",
    "permission rules": "what they allow runs without a question",
    "settings": "they change what this project's runs may reach",
    "hooks": "this version starts none",
    "MCP servers": "this version starts none",
    "prompts": "this version starts none of their programs",
    "programs": "this version starts none",
    "own tools": "never loaded from a project",
}
_ONLY_FORBIDS: Final = "its files may only forbid"
_WITHOUT_TRUST: Final = f"{_ONLY_FORBIDS}, and its instruction file is material: read as information, not followed"
_ANSWERS: Final[Mapping[str, Answer]] = {
    **dict.fromkeys(("y", "yes"), "trust"),
    **dict.fromkeys(("n", "no", "never"), "decline"),
    **dict.fromkeys(("v", "view"), "view"),
    **dict.fromkeys(("", "l", "later", "not now"), "later"),
}
_RUN_ANYTHING: Final = frozenset(
    {"bash", "sh", "dash", "zsh", "sudo", "env", "xargs", "eval", "exec", "python", "python3", "node", "perl", "ruby"}
)
_MANY_RULES: Final = 10
_MOST_WIDE: Final = 5
_MOST_NAMED: Final = 4
_LONGEST_NAME: Final = 60
_MOST_LINES: Final = 10
"""Entries that the question shows itself; with more, they are shown before a yes counts."""
_MOST_INSTRUCTION_LINES: Final = 200


class TrustFinding(msgspec.Struct, frozen=True):
    """What was found of one kind."""

    kind: Kind
    names: tuple[str, ...]
    """Names of files, rules, settings or servers."""
    files: tuple[str, ...]
    """The files they are in, relative to the project."""

    @property
    def takes_effect(self) -> str:
        """What happens with them in a trusted project."""
        return _TAKES_EFFECT[self.kind]


class TrustQuestion(msgspec.Struct, frozen=True):
    """The question whether to trust a project. No text of it is escaped."""

    project: str
    has_changed: bool
    """The project is trusted, but entries in it are new or different."""
    findings: tuple[TrustFinding, ...]
    warnings: tuple[str, ...]
    """What a long list could hide: the number of rules, and rules that allow everything."""
    entries: tuple[str, ...]
    """Every entry that would take effect, in full."""
    instructions: tuple[str, ...]
    """The lines of the instruction file."""
    digests: Mapping[str, str]
    """What the answer is about: digests of all entries by name, as they were read for the question."""

    @property
    def must_be_viewed(self) -> bool:
        """There are more entries than the question shows, so they are shown before a yes counts."""
        return len(self.entries) > _MOST_LINES

    def lines(self) -> tuple[str, ...]:
        """The question: what was found, what trust does, and what holds without it."""
        what = "has changed since you trusted it" if self.has_changed else "is not trusted"
        found = (f"  {one.kind}: {first_of(one.names, _MOST_NAMED)} ({one.takes_effect})" for one in self.findings)
        shown = () if self.must_be_viewed else ("In full:", *(f"  {line}" for line in self.entries))
        return (
            f"The project {self.project} {what}. Found in its files:",
            *found,
            *self.warnings,
            *shown,
            "If you trust it, this takes effect from now on, and the model acts on it with your rights.",
            f"Until then {_WITHOUT_TRUST if self.instructions else _ONLY_FORBIDS}.",
        )

    def view(self) -> tuple[str, ...]:
        """Everything the answer is about: the entries in full, and the text of the instruction file."""
        text = self.instructions[:_MOST_INSTRUCTION_LINES]
        left = len(self.instructions) - len(text)
        rest = (f"  | ... {left} more lines",) if left > 0 else ()
        return (*self.entries, *self.warnings, *(f"  | {line}" for line in text), *rest)


def trust_question(settings: "Settings") -> TrustQuestion | None:
    """The question whether to trust the project, with all entries that would take effect; None if none would.

    It is not asked twice about the same contents, unless the answer was "not now".
    """
    if settings.values.get("safe_mode"):
        return None
    found, store = _open(settings)
    # In a trusted project instruction files count already.
    items = tuple(item for item in found if not (item.is_text and settings.is_trusted))
    asked = {item.name: item.digest for item in items}
    if not items or store.refusal(settings.project) or store.is_answered(settings.project, asked):
        return None
    if too_long_item(items):
        return None  # `bradawl trust` reports it
    return TrustQuestion(
        one_line(settings.project),
        settings.is_trusted,
        _findings(items, settings.project),
        tuple(one_line(line) for line in _warnings(items)),
        tuple(line for item in items for line in item_lines(item)),
        _instruction_lines(items, settings.project),
        {item.name: item.digest for item in found},
    )


def read_answer(text: str) -> Answer:
    """The answer that a typed text means. A text that is none of them is unclear, and is no refusal."""
    return _ANSWERS.get(" ".join(text.lower().split()), "unclear")


async def ask_about_trust(
    settings: "Settings",
    question: TrustQuestion,
    show: Callable[[str], None],
    ask: Callable[[str], Awaitable[str]],
) -> bool:
    """Ask, store the answer, and return whether the settings have to be loaded again.

    `show` prints a line, escaped; `ask` may raise `EOFError` and `KeyboardInterrupt`, which mean "not now". Raises
    `SettingsError` if the answer can't be stored.
    """
    for line in question.lines():
        show(line)
    has_viewed = not question.must_be_viewed
    while True:
        try:
            answer = read_answer(await ask(f"{ANSWERS} "))
        except (EOFError, KeyboardInterrupt):
            return False
        if answer == "trust" and not has_viewed:
            show("There is more than was shown; here is all of it. Answer again.")
            answer = "view"
        match answer:
            case "view":
                has_viewed = True
                for line in question.view():
                    show(line)
            case "unclear":
                show("Please answer y, n or v, or press Enter.")
            case "later":
                show("Not trusted now; the next start asks again. `bradawl trust` trusts it at any time.")
                return False
            case "trust" | "decline":
                answer_trust(settings, question, is_trusted=answer == "trust")
                return True


def answer_trust(settings: "Settings", question: TrustQuestion, *, is_trusted: bool) -> None:
    """Remember the answer, which is about the contents that were shown. Raises `SettingsError`."""
    store = TrustStore(settings.home, settings.user_home)
    if is_trusted:
        store.trust(settings.project, question.digests)
    else:
        store.decline(settings.project, question.digests)


# ------------------------------------------------------------------ what was found


def _findings(items: Sequence[Item], project: str) -> tuple[TrustFinding, ...]:
    """The items by kind, in the order of the kinds; and tools, which are found although nothing loads them."""
    found: dict[Kind, list[Item]] = {}
    for item in items:
        found.setdefault(_kind_of(item), []).append(item)
    findings = [
        TrustFinding(
            kind,
            tuple(name for item in found[kind] for name in _names_of(kind, item)),
            tuple(dict.fromkeys(item.name.partition(": ")[0] for item in found[kind])),
        )
        for kind in _TAKES_EFFECT
        if kind in found
    ]
    if (Path(project) / ".bradawl" / "tools").is_dir():
        findings.append(TrustFinding("own tools", (".bradawl/tools",), (".bradawl/tools",)))
    return tuple(findings)


def _kind_of(item: Item) -> Kind:
    file, _, key = item.name.partition(": ")
    name = re.sub(r"[^a-z]", "", key.lower())
    if item.is_text:
        return "instructions"
    if file.endswith(".mcp.json") or name.startswith("mcp"):
        return "MCP servers"
    if file.endswith(".md"):
        return "prompts"
    if "hook" in name:
        return "hooks"
    if item.is_program:
        return "programs"
    return "permission rules" if "permissionsallow" in name or "allowedtools" in name else "settings"


def _names_of(kind: Kind, item: Item) -> tuple[str, ...]:
    file, _, key = item.name.partition(": ")
    if kind == "permission rules":
        return tuple(cut(without_padding(rule), _LONGEST_NAME) for rule in _rules_of(item))
    return (key.rpartition("mcpServers.")[2] or key or file,) if kind != "prompts" else (file,)


def _instruction_lines(items: Sequence[Item], project: str) -> tuple[str, ...]:
    """The text of the instruction file, if there is one; empty if it can't be read."""
    name = next((item.name for item in items if item.is_text), "")
    try:
        data = read_small_file(Path(project, name)) if name else None
    except OSError:
        return ()
    return tuple((data or b"").decode("utf-8", "replace").splitlines())


def _warnings(items: Sequence[Item]) -> list[str]:
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


def _open(settings: "Settings") -> tuple[tuple[Item, ...], TrustStore]:
    user_file = Path(homes(settings.environment, settings.cwd).config, "config.toml")
    files, _ = read_project_files(settings.cwd, settings.project, user_file, SETTINGS)
    return items_in(settings.project, files), TrustStore(settings.home, settings.user_home)
