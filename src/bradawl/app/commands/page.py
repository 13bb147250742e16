"""The list of slash commands in docs/commands.md, written from the registry."""

from collections.abc import Iterator
from types import ModuleType

from bradawl.app.commands.builtin import GROUPS
from bradawl.app.slash_commands import SlashCommand, commands_in


def commands_page() -> str:
    """Markdown: for each group its commands with arguments, help and other names."""
    return "\n".join(line for title, modules in GROUPS.items() for line in _group(title, modules))


def _group(title: str, modules: tuple[ModuleType, ...]) -> Iterator[str]:
    yield from (f"## {title}", "")
    for module in modules:
        for each in commands_in(vars(module)):
            yield from _command(each)


def _command(each: SlashCommand) -> Iterator[str]:
    yield from (f"### {each.name}", "", f"`{each.usage}`", "")
    for paragraph in each.explanation.split("\n\n"):
        yield from (_escaped(" ".join(paragraph.split())), "")
    facts = [f"{name}: {', '.join(choices)}." for name, choices in each.choices.items()]
    facts += [f"Also {', '.join(f'`/{alias}`' for alias in each.aliases)}."] if each.aliases else []
    facts += ["Only in a conversation."] if each.needs_user else []
    if facts:
        yield from (" ".join(facts), "")


def _escaped(text: str) -> str:
    return text.replace("*", "\\*").replace("<", "\\<")
