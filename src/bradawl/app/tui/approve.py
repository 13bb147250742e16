"""Asking the user: before a call runs, and what the model wants to know."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from bradawl.app.tui.clean import escape
from bradawl.core.arguments import parse_arguments
from bradawl.core.permissions import Answer, Choice, Question

ASKED: Final = "Allow? "
WANTED: Final = "Your answer: "
_LONG: Final = frozenset({"content", "old_string", "new_string"})
_LINES_SHOWN: Final = 20


def parse_answer(text: str) -> Answer | None:
    """The answer somebody typed; None if it can't be understood, so that nothing runs by mistake."""
    word, _, rest = text.strip().partition(" ")
    match word.lower().rstrip(",.:;"):
        case "y" | "yes" if not rest:
            return Answer(True, by="user")
        case "a" | "always" if not rest:
            return Answer(True, by="user", scope="session")
        case "n" | "no":
            return Answer(False, by="user", message=rest.strip())
        case _:
            return None


def question_text(question: Question) -> str:
    """The tool, why it is asked, and all that it was called with, nothing of it hidden."""
    call = question.call
    arguments, _ = parse_arguments(call.raw_arguments)
    lines = [f"{escape(call.name)} wants to run ({escape(question.reason)}):"]
    if arguments is None:
        lines += _indented(call.raw_arguments)
    elif set(arguments) == {"command"}:
        lines += _indented(str(arguments["command"]))
    else:
        for key, value in arguments.items():
            lines += _argument(key, value if isinstance(value, str) else repr(value))
    return "\n".join(lines)


def choices_text(question: Question) -> str:
    """What may be answered; for a yes that lasts, exactly what it covers."""
    name = escape(question.call.name)
    if question.request.stands_alone:
        covered = f"this exact {'command' if name == 'bash' else f'{name} call'}"
    else:
        covered = f"every {name} call"
    return f"  y = once, a = {covered} for the rest of the session, n = no (a reason may follow)"


def choice_text(choice: Choice) -> str:
    """The question with its numbered options, and how to answer."""
    options = [f"    {number}. {escape(option)}" for number, option in enumerate(choice.options, 1)]
    how = "a number, or an answer of your own" if options else "an answer in your own words"
    return "\n".join(["The model asks:", *_indented(choice.question), *options, f"  {how}; nothing = no answer"])


def parse_choice(text: str, options: tuple[str, ...]) -> str | None:
    """What somebody typed stands for; None for nothing. A number is that of an option, unless it is one itself."""
    said = text.strip()
    same = next((option for option in options if option.casefold() == said.casefold()), None)
    number = int(said) if said.isascii() and said.isdigit() and len(said) < 3 else 0
    if same is None and 0 < number <= len(options):
        return options[number - 1]
    return same or said or None


def _argument(key: str, value: str) -> list[str]:
    lines = _indented(value.removesuffix("\n"))
    if len(lines) == 1:
        return [f"    {escape(key)}: {lines[0].strip()}"]
    if key in _LONG and len(lines) > _LINES_SHOWN:
        lines = [*lines[:_LINES_SHOWN], f"      ... {len(lines) - _LINES_SHOWN} more lines"]
    return [f"    {escape(key)}:", *("  " + line for line in lines)]


def _indented(text: str) -> list[str]:
    return ["    " + line for line in escape(text).split("\n")]


class TerminalApprover:
    """`Approver` that asks at the terminal until the answer is clear."""

    def __init__(
        self,
        show: Callable[[str], None],
        read: Callable[[str], Awaitable[str]],
        cancel: Callable[[], None],
        hold: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """`read` gives one line and raises EOFError or KeyboardInterrupt; `cancel` ends the running turn.

        Within `hold()` nobody else may write to the terminal or read from it.
        """
        self._show = show
        self._read = read
        self._cancel = cancel
        self._hold = hold

    async def ask(self, question: Question) -> Answer:
        """The user's word; Ctrl+C is a no that also ends the turn, a closed input is nobody's no."""
        with self._hold():
            self._show(f"{question_text(question)}\n{choices_text(question)}")
            return await self._answer()

    async def _answer(self) -> Answer:
        while True:
            try:
                answer = parse_answer(await self._read(ASKED))
            except EOFError:
                return Answer(False, by="nobody", message="Nobody answered: the input is closed.")
            except KeyboardInterrupt:
                self._cancel()
                return Answer(False, by="user", message="The user ended the turn.")
            if answer is not None:
                return answer
            self._show("Please answer y, a or n.")

    async def choose(self, choice: Choice) -> str | None:
        """What the user says; nothing, Ctrl+C and a closed input are no answer, and the turn goes on."""
        with self._hold():
            self._show(choice_text(choice))
            try:
                return parse_choice(await self._read(WANTED), choice.options)
            except (EOFError, KeyboardInterrupt):
                return None
