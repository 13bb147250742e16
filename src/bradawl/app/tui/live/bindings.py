"""What each key does: actions of the table of keys, and the keys that text editing needs."""

import re
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from prompt_toolkit.application.current import get_app
from prompt_toolkit.filters import Condition, has_completions, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.bindings.search import abort_search, accept_search
from prompt_toolkit.keys import Keys

from bradawl.app.tui.live.history import remember
from bradawl.app.tui.live.keys import KeyTable
from bradawl.app.tui.live.screen import Screen, key_of

if TYPE_CHECKING:
    from bradawl.app.tui.live.editor import Editor

Act = Callable[[], object]
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_TWICE: Final = 2
_TWICE_S: Final = 0.6
"""Seconds within which Esc has to be pressed again."""
_WITHOUT_TEXT: Final = frozenset({"leave", "help"})
"""Actions of keys that type or edit while there is a text."""


def key_bindings(
    screen: Screen,
    table: KeyTable,
    actions: Mapping[str, Act],
    waiting: Callable[[], bool],
    take_back: Act,
    refuse: Callable[[str], object],
) -> KeyBindings:
    """All keys.

    `take_back` puts what is `waiting` for the model back into the input line; `refuse` tells why a paste was refused.
    """
    keys = KeyBindings()
    editor = screen.editor
    in_dialog = Condition(lambda: screen.is_asking)
    in_line = ~in_dialog & ~is_searching
    is_empty = Condition(lambda: not editor.text)

    @keys.add(Keys.Any, filter=in_dialog, eager=True)
    def _(event: KeyPressEvent) -> None:
        # A paste is never an answer.
        if screen.dialog is not None and event.key_sequence[-1].key != Keys.BracketedPaste:
            screen.dialog.press(*key_of(event))

    keys.add(Keys.Any, filter=~in_dialog)(_type(editor))
    escape = _EscapeKey()
    keys.add("escape", filter=in_line)(escape.handle)
    for name, act in actions.items():
        for sequence in table.sequences(name):
            if escape.takes(sequence, act):
                continue
            condition = in_line & is_empty if name in _WITHOUT_TEXT else in_line
            keys.add(*sequence, filter=condition)(_run(act))
    keys.add("up", filter=in_line & is_empty & Condition(waiting))(_run(take_back))
    keys.add("tab", filter=in_line & ~has_completions)(_complete(editor))
    for key in ("enter", "escape"):
        keys.add(key, filter=is_searching, eager=True)(_take_match(editor))
    keys.add("c-c", filter=is_searching, eager=True)(abort_search)
    keys.add("escape", filter=has_completions & in_line)(_close_completions)
    keys.add("backspace", filter=in_line)(_backspace(editor))
    keys.add(Keys.BracketedPaste, filter=~in_dialog)(_paste(editor, refuse))
    keys.add(Keys.SIGINT)(_run(actions["clear"]))
    return keys


class _EscapeKey:
    """Esc, and Esc twice: a user takes longer to press it again than the rest of a terminal's sequence may take."""

    def __init__(self) -> None:
        self._once: list[Act] = []
        self._twice: list[Act] = []
        self._pressed_at = -_TWICE_S

    def takes(self, sequence: tuple[str, ...], act: Act) -> bool:
        """Whether this class does the action; false for other keys."""
        if set(sequence) != {"escape"} or len(sequence) > _TWICE:
            return False
        (self._once if len(sequence) == 1 else self._twice).append(act)
        return True

    def handle(self, event: KeyPressEvent) -> None:
        """An Esc that ended something is not the first of two: it may be pressed again in impatience."""
        now = time.monotonic()
        was_before = [press.key for press in event.previous_key_sequence] == [Keys.Escape]
        if self._twice and was_before and now - self._pressed_at < _TWICE_S:
            self._pressed_at = -_TWICE_S
            for act in self._twice:
                act()
        else:
            has_ended = [act() for act in self._once]
            self._pressed_at = -_TWICE_S if any(has_ended) else now


def _run(act: Act) -> Callable[[KeyPressEvent], None]:
    def handle(_: KeyPressEvent) -> None:
        act()

    return handle


def _type(editor: "Editor") -> Callable[[KeyPressEvent], None]:
    """Insert a character. A key without a meaning is ignored: its data would be a terminal's sequence."""

    def handle(event: KeyPressEvent) -> None:
        if _CONTROL.match(event.data):
            return
        if event.current_buffer is editor.buffer:
            editor.type(event.data * event.arg)
        else:
            event.current_buffer.insert_text(event.data * event.arg)  # the search

    return handle


def _complete(editor: "Editor") -> Callable[[KeyPressEvent], None]:
    def handle(_: KeyPressEvent) -> None:
        if not editor.unfold():
            editor.buffer.start_completion(select_first=True)

    return handle


def _take_match(editor: "Editor") -> Callable[[KeyPressEvent], None]:
    """Take the text that was found into the input line; Enter once more sends it. A draft goes to the history."""

    def handle(event: KeyPressEvent) -> None:
        draft = editor.text
        accept_search.call(event)
        if draft.strip() and draft != editor.text:
            remember(editor.buffer.history, draft, draft)
        editor.buffer.cursor_position = len(editor.text)

    return handle


def _close_completions(_: KeyPressEvent) -> None:
    get_app().current_buffer.cancel_completion()


def _backspace(editor: "Editor") -> Callable[[KeyPressEvent], None]:
    def handle(_: KeyPressEvent) -> None:
        if not editor.delete_mark_before_cursor():
            editor.buffer.delete_before_cursor()

    return handle


def _paste(editor: "Editor", refuse: Callable[[str], object]) -> Callable[[KeyPressEvent], None]:
    def handle(event: KeyPressEvent) -> None:
        if problem := editor.paste(event.data):
            refuse(problem)

    return handle
