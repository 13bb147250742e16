"""Asks for permissions in the live region, one question at a time; each answer has a key."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from bradawl.app.refusal_reasons import why_asked
from bradawl.app.rendering import one_line
from bradawl.app.tui.live.dialogs import CLOSED, TYPED, Key, KeyDialog
from bradawl.app.tui.live.pager import Pager
from bradawl.app.tui.live.preview import preview_of
from bradawl.app.tui.plain.approver import parse_choice
from bradawl.app.tui.question_text import destinations, in_line, is_about_a_host, scopes_of, visible
from bradawl.app.tui.render.cells import wrap
from bradawl.app.tui.render.markdown import markdown_lines
from bradawl.app.tui.render.palettes import Role
from bradawl.app.tui.render.theme import Theme
from bradawl.app.tui.rule_saving import save_rules
from bradawl.core.permissions import Answer, Choice, Question
from bradawl.safety.control_characters import clean, escape

if TYPE_CHECKING:
    from bradawl.app.remembered_rules import RememberedRules
    from bradawl.app.tui.live.view import LiveView

_NO_REASON: Final = "Say why, or Enter alone"
_NOTE: Final = "A note for the model"
_RULE: Final = "The rule; Enter saves it"
_ASKS: Final = "The model asks"
_OWN, _WHOLE = "own", "whole"


class LiveApprover:
    """`Approver` in the live region. Esc and Ctrl+C are a no that also ends the turn."""

    def __init__(
        self,
        view: "LiveView",
        memory: "RememberedRules",
        show: Callable[[str], None],
        send: Callable[[str], object],
        asks: Callable[[str], None],
    ) -> None:
        """`show` prints a line; `send` passes a note to the model; `asks` tells the user that a question waits."""
        self._view, self._memory = view, memory
        self._show, self._send, self._asks = show, send, asks
        self._one = asyncio.Lock()
        self._waiting = 0

    async def ask(self, question: Question) -> Answer:
        """The user's answer. A yes for the project is saved before it is returned."""
        self._waiting += 1
        try:
            async with self._one:
                self._asks(f"{question.call.name} needs your answer")
                return await self._answer(question)
        except asyncio.CancelledError:
            if is_about_a_host(question):
                self._show("The command has ended: this needs no answer any more.")
            raise
        finally:
            self._waiting -= 1

    async def _answer(self, question: Question) -> Answer:
        rules = self._memory.proposals(question.request)
        while True:
            dialog = self._dialog(question, rules)
            pressed = await self._view.open_dialog(dialog) or CLOSED
            if pressed == CLOSED:
                self._view.stop()
                return Answer(False, by="user")
            if (answer := await self._answered(pressed, question, rules, dialog.typed)) is not None:
                return answer

    async def _answered(self, pressed: str, question: Question, rules: tuple[str, ...], typed: str) -> Answer | None:
        """The answer for a key; None if the question is to be shown again. `typed` was typed behind the key."""
        match pressed:
            case "yes" | "session":
                return Answer(True, by="user", scope="once" if pressed == "yes" else "session")
            case "project" | "rule":
                return await self._saved(question, rules, is_edited=pressed == "rule")
            case "note":
                return await self._with_note(typed)
            case "no" | "no host":
                reason = await self._view.type_text(_NO_REASON, typed)
                scope = "session" if pressed == "no host" else "once"
                return None if reason is None else Answer(False, by="user", scope=scope, message=reason.strip())
            case _:
                screen, whole = self._view.screen, preview_of(question).whole
                await Pager(in_line(question.call.name), lambda width: whole(screen.theme, width)).show(screen)
                return None

    async def _with_note(self, begin: str) -> Answer | None:
        """A yes, after which the model gets what the user typed."""
        note = await self._view.type_text(_NOTE, begin)
        if note is None:
            return None
        if note.strip():
            self._send(note)
        return Answer(True, by="user")

    def _dialog(self, question: Question, rules: tuple[str, ...]) -> KeyDialog:
        preview = preview_of(question)
        return KeyDialog(
            preview.title,
            preview.body,
            preview.foot,
            list(_keys(question, rules)),
            role=_role(question),
            fixed=preview.fixed,
            after=self._after(question),
        )

    def _after(self, question: Question) -> str:
        more = self._waiting - 1
        waiting = f" · {more} more question{'s' if more > 1 else ''} after this one" if more else ""
        return f"asked because {one_line(why_asked(question.reason))}{waiting}"

    async def _saved(self, question: Question, rules: tuple[str, ...], *, is_edited: bool) -> Answer | None:
        """A yes for the project, once its rules are on disk; None to ask again."""
        texts = await self._edited(rules) if is_edited else rules
        if not texts or not (path := await save_rules(self._memory, question, texts, self._show)):
            return None
        self._show(f"Saved in {escape(path)}: {escape(', '.join(texts))}")
        return Answer(True, by="user", scope="project", rules=texts)

    async def _edited(self, rules: tuple[str, ...]) -> tuple[str, ...]:
        """The rules as the user edits them; none to ask again."""
        texts: list[str] = []
        for number, rule in enumerate(rules, 1):
            label = _RULE if len(rules) == 1 else f"{_RULE} ({number} of {len(rules)})"
            typed = await self._view.type_text(label, rule)
            if typed is None or not typed.strip():
                return ()
            texts.append(typed.strip())
        return tuple(dict.fromkeys(texts))

    async def choose(self, choice: Choice) -> str | None:
        """The user's answer to a question of the model; None if the user leaves it."""
        async with self._one:
            self._asks("The model asks you something")
            screen = self._view.screen
            text, asked = _parted(choice.question)
            if text:
                shown = partial(markdown_lines, clean(text), screen.theme)
                self._view.painter.folded(shown, shown)
            short = msgspec.structs.replace(choice, question=asked)
            if not choice.options:
                return await self._typed(short)
            foot = "Ctrl+O shows all of it · Esc: no answer" if text else "Esc: no answer"
            dialog = _choice_dialog(short, foot)
            while (pressed := await self._view.open_dialog(dialog)) == _WHOLE:
                whole = partial(markdown_lines, clean(choice.question), screen.theme)
                await Pager(_ASKS, whole).show(screen)
                dialog = _choice_dialog(short, foot)
            if pressed in (_OWN, TYPED):
                return await self._typed(short, dialog.typed)
            answer = None if pressed in (CLOSED, None) else pressed
            self._show_answer(short, answer)
            return answer

    async def _typed(self, choice: Choice, begin: str = "") -> str | None:
        self._show(f"The model asks: {escape(choice.question)}")
        typed = await self._view.type_text("Your answer", begin)
        answer = None if typed is None else parse_choice(typed, choice.options)
        self._show_answer(choice, answer)
        return answer

    def _show_answer(self, choice: Choice, answer: str | None) -> None:
        """Leave a trace of the question and of what was answered."""
        said = "(no answer)" if answer is None else escape(answer)
        self._show(f"The model asked: {escape(choice.question)}\nYou answered: {said}")


def _parted(text: str) -> tuple[str, str]:
    """What a question is about, as a plan, and its last paragraph if that alone asks it, in one line."""
    before, gap, last = text.strip().rpartition("\n\n")
    is_asked = bool(gap and before.strip()) and last.endswith("?") and "\n" not in last
    return (before, last) if is_asked else ("", text)


def _choice_dialog(choice: Choice, foot: str) -> KeyDialog:
    def body(_: Theme, width: int) -> list[str]:
        return [part for line in visible(choice.question).split("\n") for part in wrap(line, width)]

    keys = [Key(str(number), escape(text), text) for number, text in enumerate(choice.options, 1)]
    keys.append(Key(str(len(keys) + 1), "another answer; or just type it", _OWN, short="another"))
    keys.append(Key("v", "", _WHOLE, is_hidden=True))
    dialog = KeyDialog(_ASKS, body, foot, keys)
    dialog.takes_text = True
    return dialog


def _role(question: Question) -> Role:
    """Red where the sandbox is lifted or there is none, else amber."""
    return "frame_danger" if question.grant.outside_sandbox else "frame_warning"


def _keys(question: Question, rules: tuple[str, ...]) -> "Sequence[Key]":
    name = in_line(question.call.name)
    if is_about_a_host(question):
        covered = f"{destinations(question)} for every command, this session"
    elif question.request.stands_alone:
        covered = f"this exact {'command' if question.request.effects.seal else f'{name} call'}, this session"
    else:
        covered = f"every {name} call this session"
    keys = [Key("y", "Yes", "yes", short="yes")]
    scopes = scopes_of(question, rules)
    if "session" in scopes:
        keys.append(Key("a", f"Yes, {covered}", "session", short="session"))
    if "project" in scopes:
        keys.append(Key("p", f"Always here: {escape(', '.join(rules))}", "project", short="always here"))
        keys.append(Key("e", "edit that rule", "rule", short="edit rule"))
    keys.append(Key("n", "No, and say why", "no", short="no"))
    if is_about_a_host(question):
        keys.append(Key("x", "No, and no further host of this command", "no host", short="no host"))
    else:
        keys.append(Key("tab", "Yes, with a note for the model", "note", short="yes + note"))
    keys.append(Key("v", "", "whole", is_hidden=True, short="show all"))
    return keys
