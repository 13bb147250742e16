"""Asks the user at the terminal: for permission before a call, and questions of the model."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final

from bradawl.app.tui.question_text import (
    destinations,
    granted_text,
    in_line,
    indented,
    is_about_a_host,
    question_text,
    scopes_of,
)
from bradawl.app.tui.rule_saving import save_rules
from bradawl.core.permissions import Answer, Choice, Question
from bradawl.safety.control_characters import escape

if TYPE_CHECKING:
    from bradawl.app.remembered_rules import RememberedRules

ASKED: Final = "Allow? "
WANTED: Final = "Your answer: "
RULE: Final = "Enter = save it so, other text = save that instead, n = back: "


def parse_answer(text: str) -> Answer | None:
    """The typed answer; None if it is unclear, so that nothing runs by mistake."""
    word, _, rest = text.strip().partition(" ")
    match word.lower().rstrip(",.:;"):
        case "y" | "yes" if not rest:
            return Answer(True, by="user")
        case "a" | "always" if not rest:
            return Answer(True, by="user", scope="session")
        case "p" | "project" if not rest:
            return Answer(True, by="user", scope="project")
        case "n" | "no":
            return Answer(False, by="user", message=rest.strip())
        case "x" | "none":
            return Answer(False, by="user", scope="session", message=rest.strip())
        case _:
            return None


def choices_text(question: Question, rules: tuple[str, ...] = (), *, is_cut: bool = False) -> str:
    """The possible answers; each lasting one names what it covers. `rules`: the rules offered for the project."""
    name = in_line(question.call.name)
    if is_about_a_host(question):
        covered = f"{destinations(question)}, for every command"
    elif question.request.stands_alone:
        covered = f"this exact {'command' if question.request.effects.seal else f'{name} call'}"
    else:
        covered = f"every {name} call"
    project = f"  p = always in this project: {escape(', '.join(rules))}\n" if rules else ""
    no = f"{'v = show all of it, ' if is_cut else ''}n = no (a reason may follow)"
    no += ", x = no, and no further host of this command" * is_about_a_host(question)
    yes = "  y = once"
    if "session" in scopes_of(question, rules):
        yes += f", a = {covered} for the rest of the session"
    return f"{yes}\n{project}  {no}" if project else f"{yes}, {no}"


def _is_offered(answer: Answer, question: Question, scopes: tuple[str, ...]) -> bool:
    """Whether the question has this answer."""
    if answer.allowed:
        return answer.scope in scopes
    return answer.scope == "once" or is_about_a_host(question)


_ANSWERS: Final = {
    ("once",): "y",
    ("once", "session"): "y, a",
    ("once", "project"): "y, p",
    ("once", "session", "project"): "y, a, p",
}


def choice_text(choice: Choice) -> str:
    """The question with its numbered options, and how to answer."""
    options = [f"    {number}. {escape(option)}" for number, option in enumerate(choice.options, 1)]
    how = "a number, or an answer of your own" if options else "an answer in your own words"
    return "\n".join(["The model asks:", *indented(choice.question), *options, f"  {how}; nothing = no answer"])


def parse_choice(text: str, options: tuple[str, ...]) -> str | None:
    """The chosen option or the typed text; None for none. A number selects its option, unless it is the text of an
    option.
    """
    said = text.strip()
    same = next((option for option in options if option.casefold() == said.casefold()), None)
    number = int(said) if said.isascii() and said.isdigit() and len(said) < 3 else 0
    if same is None and 0 < number <= len(options):
        return options[number - 1]
    return same or said or None


class TerminalApprover:
    """`Approver` that asks at the terminal until the answer is clear."""

    def __init__(
        self,
        show: Callable[[str], None],
        read: Callable[[str], Awaitable[str]],
        cancel: Callable[[], None],
        hold: Callable[[], AbstractContextManager[None]] = nullcontext,
        memory: "RememberedRules | None" = None,
    ) -> None:
        """`read` returns one line or raises EOFError or KeyboardInterrupt; `cancel` ends the running turn.

        `hold()` reserves the terminal for the question. Without `memory` no answer lasts longer than the session.
        """
        self._show = show
        self._read = read
        self._cancel = cancel
        self._hold = hold
        self._memory = memory

    async def ask(self, question: Question) -> Answer:
        """The user's answer. Ctrl+C is a no that also ends the turn; a closed input is a no by `nobody`.

        A yes for the project is saved before it is returned; if it can't be saved, the question is asked again.
        """
        with self._hold():
            try:
                return await self._answer(question)
            except EOFError:
                return Answer(False, by="nobody", message="No answer: the input is closed.")
            except KeyboardInterrupt:
                self._cancel()
                return Answer(False, by="user", message="The user ended the turn.")
            except asyncio.CancelledError:
                if is_about_a_host(question):  # what is typed now would be the next prompt
                    self._show("The command has ended: this needs no answer any more.")
                raise

    async def _answer(self, question: Question) -> Answer:
        shown, whole = question_text(question), question_text(question, whole=True)
        rules = self._memory.proposals(question.request) if self._memory else ()
        parts = (shown, granted_text(question), choices_text(question, rules, is_cut=shown != whole))
        self._show("\n".join(filter(None, parts)))
        scopes = scopes_of(question, rules)
        while True:
            typed = await self._read(ASKED)
            answer = parse_answer(typed)
            if typed.strip().lower() == "v" and shown != whole:
                self._show(whole)
            elif answer is None or not _is_offered(answer, question, scopes):
                no = ", n or x" if is_about_a_host(question) else " or n"
                self._show(f"Please answer {_ANSWERS[scopes]}{no}.")
            elif answer.scope != "project" or (answer := await self._saved(question, rules)):
                return answer

    async def _saved(self, question: Question, rules: tuple[str, ...]) -> Answer | None:
        """A yes for the project, once its rules are on disk; None to ask again."""
        memory = self._memory
        texts = await self._edited(rules)
        if memory is None or not texts or not (path := await save_rules(memory, question, texts, self._show)):
            return None
        self._show(f"Saved in {escape(path)}")
        return Answer(True, by="user", scope="project", rules=texts)

    async def _edited(self, rules: tuple[str, ...]) -> tuple[str, ...]:
        """The rules as the user edits them; none to ask again."""
        where = escape(self._memory.path) if self._memory else ""
        self._show(f"For this project it will be saved in {where}:")
        texts: list[str] = []
        for number, rule in enumerate(rules, 1):
            self._show(f"  {escape(rule)}" + (f"  ({number} of {len(rules)})" if len(rules) > 1 else ""))
            typed = (await self._read(RULE)).strip()
            if typed.lower() in ("n", "no"):
                return ()
            texts.append(typed or rule)
        return tuple(dict.fromkeys(texts))

    async def choose(self, choice: Choice) -> str | None:
        """The user's answer to a question of the model; None for an empty line, Ctrl+C or a closed input."""
        with self._hold():
            self._show(choice_text(choice))
            try:
                return parse_choice(await self._read(WANTED), choice.options)
            except (EOFError, KeyboardInterrupt):
                return None
