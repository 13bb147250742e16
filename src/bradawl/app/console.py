"""stdin, stdout and stderr of a run: cleaned output that survives closed or broken streams."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TextIO

from bradawl.safety.control_characters import clean

STDIN_LIMIT: Final = 10_000_000
"""Characters; more would not fit into any model's context window."""
STDIN_PATIENCE_S: Final = 3.0
MODEL_PATIENCE_S: Final = 30.0
_STDOUT: Final = 1
_STDERR: Final = 2


class OutputError(Exception):
    """The answer could not be written to stdout; the text says why."""


class Console:
    """The streams of a run. A closed pipe is not an error."""

    def __init__(
        self,
        stdin: TextIO,
        stdout: TextIO,
        stderr: TextIO,
        environ: Mapping[str, str],
        patience_s: float = STDIN_PATIENCE_S,
        model_patience_s: float = MODEL_PATIENCE_S,
    ) -> None:
        """`patience_s`: seconds to wait for a silent pipe on stdin if there is a prompt without it. `model_patience_s`:
        seconds without an answer after which a line says that the run waits for the model.
        """
        self.model_patience_s = model_patience_s
        self._patience_s = patience_s
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self._environ = environ
        self.is_dumb = environ.get("TERM", "") in ("", "dumb")
        """The terminal supports no escape sequences."""
        self._no_colour = bool(environ.get("NO_COLOR")) or self.is_dumb

    @property
    def colour(self) -> bool:
        """True when stderr may be coloured."""
        return not self._no_colour and _is_terminal(self.stderr)

    @property
    def stdout_colour(self) -> bool:
        """True when stdout may be coloured."""
        return not self._no_colour and _is_terminal(self.stdout)

    @property
    def has_user(self) -> bool:
        """True when stdin is a terminal."""
        return _is_terminal(self.stdin)

    @property
    def is_interactive(self) -> bool:
        """True when stdin and stdout are terminals."""
        return _is_terminal(self.stdin) and _is_terminal(self.stdout)

    @contextmanager
    def reserving_stdout(self) -> Iterator[None]:
        """While it is entered, this console alone writes to the process's stdout.

        What tools of the user and the programs they start print goes to stderr. Does nothing for other streams.
        """
        import os

        process, own = self.stdout, _copy_of_stdout(self.stdout)
        if own is None:
            yield
            return
        with os.fdopen(own, "w", encoding=process.encoding, errors=process.errors) as self.stdout:
            os.dup2(_STDERR, _STDOUT)
            try:
                yield
            finally:
                _flush(process)  # what was printed meanwhile is for stderr
                os.dup2(own, _STDOUT)
                self.stdout = process

    @contextmanager
    def marking_pastes(self) -> Iterator[None]:
        """While it is entered, a terminal that can marks what is pasted (bracketed paste); a dumb one is left alone."""
        if self.is_dumb:
            yield
            return
        self.draw("\x1b[?2004h")
        try:
            yield
        finally:
            self.draw("\x1b[?2004l")

    def answer(self, text: str) -> None:
        """Write a text to stdout, cleaned; JSON must have been through `json_for_terminals`.

        Raises `OutputError`, but not for a closed pipe.
        """
        self.draw(clean(text))

    def draw(self, text: str) -> None:
        """Write to stdout without cleaning: the output of a `StreamCleaner`, with colours. Raises like `answer`."""
        try:
            self.stdout.write(text)
            self.stdout.flush()
        except BrokenPipeError:
            silence(self.stdout)
        except OSError as error:
            silence(self.stdout)
            raise OutputError(f"The answer could not be written: {error.strerror or error}.") from error

    def report(self, text: str) -> None:
        """`answer` for a message: at a terminal, lines that are too wide for it are wrapped by words."""
        self.answer(f"{self._fitted(clean(text), self.stdout)}\n")

    def say(self, text: str) -> None:
        """Write a message to stderr, cleaned. Errors are ignored.

        At a terminal, lines that are too wide for it are wrapped by words; elsewhere they stay one line each.
        """
        try:
            self.stderr.write(f"{self._fitted(clean(text), self.stderr)}\n")
            self.stderr.flush()
        except (OSError, ValueError):
            silence(self.stderr)

    def _fitted(self, text: str, stream: TextIO) -> str:
        if not _is_terminal(stream):
            return text
        from bradawl.app.terminal_size import terminal_width
        from bradawl.app.text_layout import fitted

        return fitted(text, terminal_width(stream, self._environ))

    def piped_input(self, notify: Callable[[str], None], *, wait: bool) -> str | None:
        """All of stdin; None at a terminal.

        Without `wait` a pipe that stays silent for `patience_s` counts as empty, because the program that started
        bradawl may leave one open; `notify` then gets a warning.
        Raises `ValueError` for more than `STDIN_LIMIT` characters.
        """
        if _is_terminal(self.stdin):
            return None
        if not wait and not _has_input(self.stdin, self._patience_s):
            notify(f"nothing came on stdin within {self._patience_s:g} s; going on without it.")
            return None
        try:
            text = self.stdin.read(STDIN_LIMIT + 1)
        except (OSError, ValueError):
            return None
        if len(text) > STDIN_LIMIT:
            raise ValueError(f"stdin has more than {STDIN_LIMIT:,} characters")
        return text


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:
        return False


def _has_input(stream: TextIO, patience_s: float) -> bool:
    """True when a read returns at once, or the stream is neither a pipe nor a socket."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError, AttributeError):
        return True
    import os
    import select
    import stat

    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISFIFO(mode) and not stat.S_ISSOCK(mode):
            return True
        return bool(select.select([descriptor], [], [], patience_s)[0])
    except (OSError, ValueError):
        return True


def _copy_of_stdout(stream: TextIO) -> int | None:
    """A new descriptor of the process's stdout; None if the stream is another one, or stderr is closed."""
    import os

    try:
        if stream.fileno() != _STDOUT:
            return None
        stream.flush()
        os.fstat(_STDERR)
        return os.dup(_STDOUT)
    except (OSError, ValueError, AttributeError):
        return None


def _flush(stream: TextIO) -> None:
    try:
        stream.flush()
    except (OSError, ValueError):
        silence(stream)


def silence(stream: TextIO) -> None:
    """Redirect a broken stream to /dev/null, so that the interpreter's flush at exit raises no error."""
    import os

    try:
        descriptor = stream.fileno()
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, descriptor)
        os.close(nothing)
    except (OSError, ValueError, AttributeError):
        pass
