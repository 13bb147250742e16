"""Completes slash commands and `@` paths in the input line."""

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncGenerator, Iterable
from typing import TYPE_CHECKING, Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from bradawl.app.listed_files import listed_files
from bradawl.app.slash_commands import SlashCommand, is_command

if TYPE_CHECKING:
    from bradawl.app.frontend import FrontendSession

_PATH: Final = re.compile(r"(?:^|[\s(\"'])@([^\s@]*)$")
_SHOWN: Final = 50
_LISTED_FOR_S: Final = 5.0


class InputCompleter(Completer):
    """Completions for the text before the cursor; files are listed in the background."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._session: FrontendSession | None = None
        self._files: tuple[str, ...] = ()
        self._listed_at = -_LISTED_FOR_S

    def follow(self, session: "FrontendSession | None") -> None:
        """Offer the commands of this session."""
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """The completions that need no wait."""
        text = document.text_before_cursor
        if text.startswith("/") and "\n" not in text and self._session is not None:
            yield from self._commands(text)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """All completions; the first for `@` list the files."""
        for completion in self.get_completions(document, complete_event):
            yield completion
        if found := _PATH.search(document.text_before_cursor):
            await self._list()
            for path in best(found[1], self._files):
                end = "" if path.endswith("/") else " "  # a folder goes on
                yield Completion(path + end, start_position=-len(found[1]), display=path)

    def _commands(self, text: str) -> Iterable[Completion]:
        if self._session is None:
            return
        commands = self._session.frontend.commands
        word, blank, rest = text[1:].partition(" ")
        if not blank:
            for each in commands.commands:
                for name in (each.name, *each.aliases):
                    if name.startswith(word.lower()):
                        yield Completion(
                            name + " ", start_position=-len(word), display=f"/{name}", display_meta=each.summary
                        )
            return
        if is_command(text):
            with contextlib.suppress(Exception):
                yield from _choices(commands.find(word), rest)

    async def _list(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() - self._listed_at >= _LISTED_FOR_S:
            self._files = await asyncio.to_thread(listed_files, self._folder)
            self._listed_at = loop.time()


def _choices(command: SlashCommand, rest: str) -> Iterable[Completion]:
    for choice in next(iter(command.choices.values()), ()):
        if " " not in rest and choice.startswith(rest.lower()):
            yield Completion(choice, start_position=-len(rest))


def _has_letters(text: str, letters: str) -> bool:
    """Whether the letters are in the text in their order."""
    place = 0
    for letter in letters:
        place = text.find(letter, place) + 1
        if not place:
            return False
    return True


def best(typed: str, paths: Iterable[str]) -> list[str]:
    """The paths that fit what is typed: its letters in their order, best those in one piece and in the name."""
    wanted = typed.casefold()
    if not wanted:
        return sorted(paths, key=lambda path: (path.count("/"), path))[:_SHOWN]
    ranked = []
    for path in paths:
        plain = path.casefold()
        if not _has_letters(plain, wanted):
            continue
        name = os.path.basename(plain.rstrip("/"))  # noqa: PTH119 - a text
        rank = 0 if name.startswith(wanted) else 1 if wanted in name else 2 if wanted in plain else 3
        ranked.append((rank, len(path), path))
    return [path for _, _, path in sorted(ranked)[:_SHOWN]]
