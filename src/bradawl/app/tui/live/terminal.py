"""Puts the live terminal together: input line, screen, painter, questions, and the modes of the terminal."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bradawl.app.console import Console
from bradawl.app.submission import Submission
from bradawl.app.symbols import ASCII, UNICODE, Symbols
from bradawl.app.terminal_user import Dialogs, Option
from bradawl.app.tui.live.actions import Actions
from bradawl.app.tui.live.application import does_reflow
from bradawl.app.tui.live.bindings import key_bindings
from bradawl.app.tui.live.completion import InputCompleter
from bradawl.app.tui.live.editor import Editor
from bradawl.app.tui.live.history import open_history
from bradawl.app.tui.live.input import TerminalInput, TerminalReply
from bradawl.app.tui.live.journal import reader_of
from bradawl.app.tui.live.keys import load_keys
from bradawl.app.tui.live.notices import Attention
from bradawl.app.tui.live.output import FrameOutput, size_of
from bradawl.app.tui.live.painter import LivePainter
from bradawl.app.tui.live.picker import Picker
from bradawl.app.tui.live.screen import Screen
from bradawl.app.tui.live.status import StatusLine
from bradawl.app.tui.live.user_dialogs import LiveDialogs
from bradawl.app.tui.live.view import LiveView
from bradawl.app.tui.render.palettes import Depth
from bradawl.app.tui.render.theme import ThemeName, theme_for_background, theme_named
from bradawl.app.tui.terminal import Terminal

if TYPE_CHECKING:
    from bradawl.app.frontend import FrontendSession
    from bradawl.app.remembered_rules import RememberedRules
    from bradawl.app.settings.settings import Settings
    from bradawl.core.events import Envelope, Live
    from bradawl.core.ports import Approver

_TICK_S: Final = 0.1
_LAST_S: Final = 5.0
"""Seconds that cancelled work has to give the terminal back."""
_INTERRUPTS_TO_EXIT: Final = 3
"""SIGINT this often during one turn exits at once, in case ending the turn does not work."""


async def with_live_terminal(
    console: Console, settings: "Settings", work: Callable[[Terminal], Coroutine[Any, Any, int]]
) -> int:
    """Do `work` at a terminal with a live region, which is on the screen from the first moment.

    At the end the terminal is as it was before, whatever ended the work.
    """
    return await LiveTerminal(console, settings).run(work)


class LiveTerminal:
    """`Prompts` and `TerminalUser` with a live region."""

    def __init__(self, console: Console, settings: "Settings") -> None:
        environ = settings.environment
        self._settings = settings
        self._depth: Depth = depth_of(environ, has_colour=console.stdout_colour)
        self._symbols = symbols_of(environ)
        self._is_auto = settings.theme == "auto"
        theme = theme_named("dark" if settings.theme == "auto" else settings.theme, self._depth, self._symbols)
        self.painter = LivePainter(theme, self._width, self._refresh)
        self.view = LiveView(self.painter)
        self.keys = load_keys(Path(settings.config_home or settings.home, "keys.toml"))
        self._session: FrontendSession | None = None
        self._is_turn = False
        """What runs, or ran last, is a turn, which takes messages."""
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._interrupts = 0
        self._ticker: asyncio.TimerHandle | None = None
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        term = environ.get("TERM", "")
        self._output = FrameOutput(
            console.stdout,
            size_of(console.stdout),
            term,
            has_xterm_keys=bool(environ.get("XTERM_VERSION") or environ.get("TMUX")),
        )
        self.attention = Attention(self._output, settings.notify, settings.cwd, environ)
        self._completer = InputCompleter(settings.cwd)
        editor = Editor(open_history(Path(settings.home, "history")), self._completer, when_changed=self._refresh)
        self._actions = Actions(self.view, self.painter, self.keys, self.draw_again, self.begin)
        keyboard = TerminalInput(console.stdin, self._replied)
        self.screen = Screen(editor, self._output, keyboard, theme, depth=self._depth, reflows=does_reflow(environ))
        self.screen.bind(
            key_bindings(
                self.screen,
                self.keys,
                self._actions.table(),
                self.view.has_waiting,
                self.view.edit_waiting,
                self.painter.error,
            ),
            self._touched,
        )
        self.view.attach(self.screen)
        self.dialogs: Dialogs | None = LiveDialogs(self.view, self.painter)
        self.status = StatusLine(settings.model.name, settings.cwd, self.begin, self._refresh)
        self.painter.status = self.status.lines
        self.painter.activity.model = settings.model.name

    def terminal(self) -> Terminal:
        """What the conversation needs of it."""
        return Terminal(
            printer=self.painter,
            prompts=self,
            emit=self._emit,
            learn=self.painter.learn,
            user=self,
            approver=self._approver,
            show_prompt=self._show_prompt,
            show_exchange=self.painter.exchange,
            show_end=self.painter.end,
            show_context=self.painter.context,
            draft=self.view.draft,
            interrupt=self.interrupted,
            keys_help=self.keys.help(),
            symbols=self._symbols,
        )

    async def run(self, work: Callable[[Terminal], Coroutine[Any, Any, int]]) -> int:
        """Show the region and read keys while `work` is done; returns its result."""
        self._output.on_gone = self.view.leave
        async with asyncio.TaskGroup() as group:
            self._group = group
            application = group.create_task(self._run())
            await asyncio.sleep(0)  # the first frame
            for problem in self.keys.problems:
                self.painter.error(problem)
            try:
                return await work(self.terminal())
            finally:
                self._stop_ticker()
                for task in self._tasks:
                    task.cancel()
                if self._tasks:
                    await asyncio.wait(self._tasks, timeout=_LAST_S)  # they have the terminal until then
                self.screen.editor.take()  # what was not sent is in the history
                await self._close(application)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do some work beside the conversation; it ends with it at the latest."""
        if self._group is None:
            work.close()
            return
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self) -> None:
        self._output.modes_on()
        try:
            self.screen.app.after_render += self._drawn_first
            await self.screen.app.run_async(set_exception_handler=False, handle_sigint=False)
        except EOFError:
            self.view.leave()  # the terminal is gone
        finally:
            self._output.modes_off()

    def _drawn_first(self, app: object) -> None:
        """Ask the terminal what it can do, once it echoes nothing any more."""
        self.screen.app.after_render -= self._drawn_first
        self._output.ask_terminal()

    async def _close(self, application: asyncio.Task[None]) -> None:
        app = self.screen.app
        if app.is_running and not app.is_done:
            self.screen.end()
            app.exit()
        with contextlib.suppress(EOFError, OSError):
            await application

    # -------------------------------------------------------------- prompts

    def _emit(self, item: "Envelope | Live") -> None:
        """`Emit`. The agent is built in a thread of its own, and warns from there."""
        if threading.get_ident() == self._thread:
            self.painter.emit(item)
        else:
            self._loop.call_soon_threadsafe(self.painter.emit, item)

    async def next_prompt(self) -> Submission | None:
        """See `Prompts`."""
        return await self.view.next_prompt()

    def begin_session(self, session: "FrontendSession | None") -> None:
        """See `Prompts`."""
        self._session = session
        self._actions.session = session
        if session is not None:
            self.painter.printed.begin_session()
            self.painter.read_kept = reader_of(session.session)
        self.status.follow(session)
        self._completer.follow(session)
        if session is not None and self.screen.editor.text.startswith("/"):
            self.screen.editor.buffer.start_completion()  # what was typed before could not be completed
        self.view.cancel = self._cancel
        self.view.send = self._send
        self.view.take_back = self._take_back
        self.screen.refresh()

    def begin_turn(self, work: str = "") -> None:
        """See `Prompts`."""
        self._interrupts = 0
        self._is_turn = not work
        self.view.is_running = True
        self.painter.activity.begins(work or "Starting")
        self.attention.title("working")
        self._tick()

    def end_turn(self) -> None:
        """See `Prompts`. What the model has not seen comes back into the input line."""
        self.view.is_running = False
        self.attention.turn_ended(self.painter.activity.seconds)
        self.painter.activity.ends()
        texts = []
        while text := self._take_back():
            texts.append(text)
        if texts:
            self.view.draft("\n".join(reversed(texts)))
        self.screen.refresh()

    def _show_prompt(self, submission: Submission) -> None:
        self.painter.prompt(submission.typed)

    def _send(self, submission: Submission) -> bool:
        return self._is_turn and self._session is not None and self._session.send(submission.text)

    def _take_back(self) -> str:
        return self._session.session.conversation.take_back_note() if self._session is not None else ""

    def _cancel(self) -> bool:
        if self._session is None or not self._session.is_running:
            return False
        self._session.cancel()
        return True

    def interrupted(self) -> None:
        """SIGINT from elsewhere: like Ctrl+C, which is a key here."""
        if self._session is not None and self._session.is_running:
            self._interrupts += 1
            if self._interrupts >= _INTERRUPTS_TO_EXIT:
                self._output.modes_off()
                os._exit(130)
        self.view.clear()

    # -------------------------------------------------------------- questions

    def _approver(self, memory: "RememberedRules") -> "Approver":
        from bradawl.app.tui.live.approver import LiveApprover

        return LiveApprover(self.view, memory, self.painter.line, self._send_text, self.attention.asks)

    def _send_text(self, text: str) -> None:
        if self._session is not None:
            self._session.send(text)

    async def ask(self, text: str, question: str) -> str:
        """See `TerminalUser`."""
        if text:
            self.painter.diff(text)
        return (await self.view.type_text(question.strip(), waits=True)) or ""

    async def pick(self, title: str, options: Sequence[Option]) -> str | None:
        """See `TerminalUser`."""
        return await self.view.open_dialog(Picker(title, options)) if options else None

    def use_theme(self, name: str) -> None:
        """See `TerminalUser`."""
        self._is_auto = name == "auto"
        if name == "auto":
            self._output.ask_terminal()
        elif name in ("dark", "light", "plain"):
            self._set_theme(name)

    def copy(self, text: str) -> bool:
        """See `TerminalUser`."""
        from base64 import b64encode

        self._output.write_raw(f"\x1b]52;c;{b64encode(text.encode('utf-8', 'replace')).decode()}\x07")
        self._output.flush()
        return not self._output.is_limited

    # -------------------------------------------------------------- the terminal

    def _replied(self, reply: TerminalReply) -> None:
        match reply.kind:
            case "background":
                if self._is_auto:
                    self._set_theme(theme_for_background(reply.rgb))
            case "synchronised":
                self._output.is_synchronised = reply.value
            case "kitty keys":
                self._output.use_kitty_keys()
            case "focus":
                self.attention.has_focus = reply.value
            case "answered":
                pass

    def _set_theme(self, name: ThemeName) -> None:
        self.painter.theme = self.screen.theme = theme_named(name, self._depth, self._symbols)
        self.draw_again()

    def draw_again(self) -> None:
        """Draw the region anew, where something else wrote into it."""
        self.screen.app.renderer.erase()
        self.screen.refresh()

    def _touched(self) -> None:
        self.view.touched()
        self.attention.key_pressed()

    def _width(self) -> int:
        return self.screen.width

    def _refresh(self) -> None:
        self.screen.refresh()

    def _tick(self) -> None:
        """Draw a frame ten times a second while something moves."""
        self._ticker = None
        if self.painter.is_active:
            self.screen.refresh()
            self._ticker = asyncio.get_running_loop().call_later(_TICK_S, self._tick)

    def _stop_ticker(self) -> None:
        if self._ticker is not None:
            self._ticker.cancel()


def depth_of(environ: Mapping[str, str], *, has_colour: bool) -> Depth:
    """The colours of the terminal, as its environment tells."""
    if not has_colour:
        return "none"
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "true"
    term = environ.get("TERM", "")
    return "256" if "256color" in term or term.startswith(("xterm-kitty", "alacritty", "foot", "tmux")) else "16"


def symbols_of(environ: Mapping[str, str]) -> Symbols:
    """Symbols that the terminal's character set has."""
    locale = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or ""
    is_plain = environ.get("TERM") == "linux" or locale.upper() in ("C", "POSIX") or "8859" in locale
    return ASCII if is_plain else UNICODE
