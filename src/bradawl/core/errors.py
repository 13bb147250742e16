"""Every error a caller can act on, in one tree.

    BradawlError
    ├── SettingsError            bad flag, variable or file: exit 2
    ├── SessionError             a session can't be opened
    │   ├── SessionNotFound
    │   ├── SessionBusy          another process holds it
    │   └── SessionDamaged       its first line can't be read
    ├── ToolError                a tool could not do what was asked: the model reads it
    └── ModelFailed              a request failed for good; carries a `Failure`

A provider's failure travels as a value (`Failure`) through the stream, because it is
expected; it becomes an exception only where a library user wants one.
"""

from typing import Literal

import msgspec

FailureKind = Literal[
    "auth",
    "quota",
    "rate_limit",
    "overloaded",
    "context_overflow",
    "invalid_request",
    "timeout",
    "connection",
    "server",
    "content_filter",
    "output_limit",
    "bad_answer",
    "cancelled",
]


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a request failed: what happened, to what, and what to do next."""

    kind: FailureKind
    message: str
    retryable: bool = False
    status: int | None = None
    """HTTP status, also when it came inside a 200 stream."""
    code: str | None = None
    """The provider's own code, as text."""
    retry_after_s: float | None = None
    """The server's wish, in seconds."""
    request_id: str | None = None
    hint: str = ""
    """What the user can do about it, one sentence."""

    def __str__(self) -> str:
        if not self.hint:
            return self.message
        ended = self.message if self.message.endswith((".", "!", "?", ":")) else f"{self.message}."
        return f"{ended} {self.hint}"


class BradawlError(Exception):
    """Base of all; `str(error)` is fit to be shown to a user."""


class SettingsError(BradawlError):
    """A flag, an environment variable or a settings file is wrong."""


class SessionError(BradawlError):
    """A session can't be opened or continued."""


class SessionNotFound(SessionError):
    """No session by that id, or none yet in this folder."""


class SessionBusy(SessionError):
    """Another process is writing this session."""


class SessionDamaged(SessionError):
    """The session's file does not begin like a session."""


class ToolError(BradawlError):
    """A tool could not do what was asked; the text goes to the model and says what to try instead."""


class ModelFailed(BradawlError):
    """A request to the model failed for good."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure
