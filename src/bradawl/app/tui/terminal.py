"""What the conversation needs of a terminal, whether it draws a live region or prints plain lines."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from bradawl.app.submission import Submission
from bradawl.app.symbols import UNICODE, Symbols
from bradawl.app.terminal_user import TerminalUser
from bradawl.app.tui.turn_end import TurnEnd
from bradawl.core.ports import Approver, Emit, Tool

if TYPE_CHECKING:
    from bradawl.app.context_report import ContextReport
    from bradawl.app.frontend import FrontendSession
    from bradawl.app.remembered_rules import RememberedRules


class Printer(Protocol):
    """Prints texts for the user; they are cleaned."""

    def line(self, text: str) -> None:
        """Print a text of one or several lines."""
        ...

    def dim(self, text: str) -> None:
        """Print what may be skipped."""
        ...

    def error(self, text: str) -> None:
        """Print what went wrong."""
        ...

    def diff(self, text: str) -> None:
        """Print lines, with colours for those that begin like lines of a diff."""
        ...


class Prompts(Protocol):
    """Where prompts come from."""

    async def next_prompt(self) -> Submission | None:
        """The next prompt or command; None to leave."""
        ...

    def begin_session(self, session: "FrontendSession | None") -> None:
        """The session that is open from now on; None after it is closed."""
        ...

    def begin_turn(self, work: str = "") -> None:
        """A turn begins: what is typed reaches the model. Or other `work` begins: what is typed waits for its end."""
        ...

    def end_turn(self) -> None:
        """It ended: what is typed is the next prompt."""
        ...


class Terminal(NamedTuple):
    """A terminal of a conversation."""

    printer: Printer
    prompts: Prompts
    emit: Emit
    learn: Callable[[Iterable[Tool[Any]]], None]
    """Draw calls of these tools as they declare it."""
    user: TerminalUser | None
    """None if no user can answer a command's questions."""
    approver: "Callable[[RememberedRules], Approver]"
    """Asks the user for permissions; rules for the project are saved in the given memory."""
    show_prompt: Callable[[Submission], None]
    """Print a prompt that was sent, unless the terminal shows it already."""
    show_exchange: Callable[[str, str], None]
    """Print a prompt of an earlier run and the reply to it, which is Markdown."""
    show_end: Callable[[TurnEnd], None]
    """Print the last line of a turn."""
    show_context: "Callable[[ContextReport], None] | None"
    """Draw what fills the context window; None if the terminal prints it as text."""
    draft: Callable[[str], None]
    """Put a text into the input line."""
    interrupt: Callable[[], None]
    """Handle SIGINT."""
    keys_help: str
    symbols: Symbols = UNICODE
    """Those that it can show."""
