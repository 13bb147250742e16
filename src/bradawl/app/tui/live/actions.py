"""The actions of keys that need the session: modes, the transcript in full, the list of todos, jobs, rewinding."""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from bradawl.app.modes import mode_text, next_mode
from bradawl.app.slash_commands import CommandFailed
from bradawl.app.tui.live.keys import KeyTable
from bradawl.app.tui.live.lazy_lines import LazyLines
from bradawl.app.tui.live.pager import Pager
from bradawl.app.tui.live.painter import LivePainter
from bradawl.app.tui.live.view import LiveView
from bradawl.app.tui.render import blocks
from bradawl.core.errors import SessionError, SettingsError

if TYPE_CHECKING:
    from bradawl.app.frontend import FrontendSession
    from bradawl.app.tui.live.printed import DrawnBlock


_ROWS_OF_RUNNING: Final = 200
"""Lines of the output of a running command that are shown with the rest in full."""


class Actions:
    """Carries out what a key stands for."""

    def __init__(
        self,
        view: LiveView,
        painter: LivePainter,
        keys: KeyTable,
        draw_again: Callable[[], None],
        begin: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self.session: FrontendSession | None = None
        self._view, self._painter, self._keys, self._draw_again = view, painter, keys, draw_again
        self._begin = begin

    def table(self) -> Mapping[str, Callable[[], object]]:
        """What each action of the table of keys does."""
        view = self._view
        return {
            "send": view.submit,
            "newline": lambda: view.screen.editor.insert("\n"),
            "queue": view.queue,
            "interrupt": view.escape,
            "rewind": self._rewind,
            "clear": view.clear,
            "leave": view.leave,
            "mode": self._next_mode,
            "open": lambda: self._begin(self._open()),
            "todos": self._show_todos,
            "background": self._to_background,
            "history": self._search_history,
            "editor": lambda: self._begin(self._open_editor()),
            "paste_image": lambda: self._begin(self._paste_image()),
            "redraw": self._draw_again,
            "suspend": lambda: self._begin(self._suspend()),
            "help": lambda: self._painter.line(self._keys.help()),
        }

    def _rewind(self) -> None:
        view = self._view
        if view.screen.editor.text:
            view.screen.editor.take()
        elif not view.is_running:
            view.submit_line("/rewind")

    def _next_mode(self) -> None:
        if self.session is None:
            return
        try:
            self.session.choose_mode(next_mode(self.session.mode, self.session.frontend.settings))
        except (SettingsError, CommandFailed) as error:
            self._painter.hint.show(str(error), 3.0)
        else:
            self._painter.hint.show(f"mode {mode_text(self.session.mode)}", 3.0)
        self._view.screen.refresh()

    async def _open(self) -> None:
        painter = self._painter
        before, own, begin = painter.printed.kept()
        earlier = await asyncio.to_thread(self._earlier, begin)

        def running(width: int) -> list[str]:
            return painter.calls.running_lines(painter.theme, width, _ROWS_OF_RUNNING)

        shown = [*before, *earlier, *own, ("call", running)]
        pager = Pager("the conversation in full", lambda width: LazyLines(shown, width), at_end=True)
        await pager.show(self._view.screen)

    def _earlier(self, begin: int | None) -> "list[DrawnBlock]":
        """Blocks of the open session from earlier runs."""
        from bradawl.app.tui.live.journal import earlier_blocks

        painter = self._painter
        if self.session is None or begin == 0:
            return []
        try:
            return earlier_blocks(self.session.session, begin, painter.calls.specs, painter.theme)
        except SessionError as error:
            text = f"Earlier parts of the session can't be shown: {error}"
            return [("error", lambda width: blocks.notice_lines(text, painter.theme, width, kind="error"))]

    async def _suspend(self) -> None:
        """Give the terminal to the shell until `fg`."""
        from prompt_toolkit.application.run_in_terminal import in_terminal

        output = self._view.screen.output
        async with in_terminal():
            output.modes_off()
            os.killpg(0, signal.SIGTSTP)
            output.modes_on()
        self._view.screen.refresh()

    def _show_todos(self) -> None:
        self._painter.show_todos()

    def _to_background(self) -> None:
        if self.session is not None and self._painter.calls.run_a_command:
            self.session.session.jobs.ask_for_background()
        else:
            self._painter.hint.show("no command runs that could go to the background", 3.0)
            self._view.screen.refresh()

    def _search_history(self) -> None:
        from prompt_toolkit.search import SearchDirection, start_search

        start_search(direction=SearchDirection.BACKWARD)

    async def _open_editor(self) -> None:
        """Edit the text in the user's editor, which has the terminal as other programs expect it."""
        from prompt_toolkit.application.run_in_terminal import in_terminal

        from bradawl.app.tui.live.external_editor import edit

        screen = self._view.screen
        async with in_terminal():
            screen.output.modes_off()
            try:
                edited = await edit(screen.editor.text, os.environ)
            finally:
                screen.output.modes_on()
        if edited is not None:
            screen.editor.take_edited(edited)
        screen.refresh()

    async def _paste_image(self) -> None:
        from bradawl.app.tui.live.clipboard import image_on_clipboard

        path = await asyncio.to_thread(image_on_clipboard)
        if path:
            self._view.screen.editor.attach_image(path)
        else:
            self._painter.hint.show("no image is on the clipboard (wl-paste, xclip or pngpaste reads it)", 3.0)
        self._view.screen.refresh()
