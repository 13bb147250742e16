"""The exceptions of bradawl, in one tree, and `Failure`, the value that describes a failed model request.

    BradawlError
    ├── SettingsError            bad flag, variable or file: exit 2
    ├── SessionError             a session can't be opened
    │   ├── SessionNotFound
    │   ├── SessionBusy          another process holds it
    │   └── SessionDamaged       its first line can't be read
    ├── ToolError                a tool call failed; the model reads the message
    └── ModelFailed              a request failed and is not retried; carries a `Failure`

A reply stream carries a `Failure` as a value, because failures are expected. Only library calls raise it.
"""

from typing import Literal

import msgspec

_ByProvider = Literal["auth", "quota", "rate_limit", "overloaded", "context_overflow", "invalid_request", "server"]
_OfAnswer = Literal["content_filter", "output_limit", "bad_answer"]
FailureKind = Literal[_ByProvider, _OfAnswer, "timeout", "connection", "cancelled", "internal"]


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a model request failed; kind `internal`: the exception that ended a turn."""

    kind: FailureKind
    message: str
    retryable: bool = False
    status: int | None = None
    """HTTP status; also of an error that arrived inside a 200 stream."""
    code: str | None = None
    """The provider's error code."""
    retry_after_s: float | None = None
    """Seconds the server asks to wait."""
    request_id: str | None = None
    hint: str = ""
    """One sentence: what the user can do."""

    def __str__(self) -> str:
        if not self.hint:
            return self.message
        ended = self.message if self.message.endswith((".", "!", "?", ":")) else f"{self.message}."
        return f"{ended} {self.hint}"


class BradawlError(Exception):
    """Base class; `str(error)` can be shown to a user."""


class SettingsError(BradawlError):
    """A flag, an environment variable or a settings file is wrong."""


class SessionError(BradawlError):
    """A session can't be opened or continued."""


class SessionNotFound(SessionError):
    """There is no session with that id, or none in this folder."""


class SessionBusy(SessionError):
    """Another process is writing this session."""


class SessionDamaged(SessionError):
    """The first line of the session's file is not valid."""


class ToolError(BradawlError):
    """A tool call failed. The model reads the text, which says what to try instead."""


class ModelFailed(BradawlError):
    """A model request failed and is not retried."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure
