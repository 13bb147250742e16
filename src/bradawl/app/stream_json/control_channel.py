"""The control channel: requests of the program that started bradawl, and requests to it that wait for an answer."""

import asyncio
from collections.abc import Callable
from typing import Final

from bradawl.app.json_values import new_uuid
from bradawl.app.stream_json.input_messages import Json, Request, Response
from bradawl.app.stream_json.lines import (
    CanUseTool,
    ControlCancel,
    ControlRequest,
    ControlResponse,
    Error,
    Line,
    Success,
)
from bradawl.core.errors import BradawlError

_SHOWN: Final = 60


class RequestFailed(BradawlError):
    """A request of the control channel was not carried out; the text says why."""


Handler = Callable[[Json], Json]
"""Carries out a request: takes its fields and returns those of the answer. Raises `BradawlError`."""


class ControlChannel:
    """Both directions of the channel."""

    def __init__(self, write: Callable[[Line], None]) -> None:
        self._write = write
        self.handlers: dict[str, Handler] = {}
        """By the subtype of the request."""
        self._waiting: dict[str, asyncio.Future[Json]] = {}
        self.is_open = True
        """Answers can still arrive."""

    def handle(self, request: Request) -> None:
        """Carry out a request and answer it, with an error if its subtype is unknown."""
        handler = self.handlers.get(request.subtype)
        try:
            if handler is None:
                known = ", ".join(sorted(self.handlers))
                raise RequestFailed(f"bradawl has no request {request.subtype[:_SHOWN]!r}; it has {known}.")
            answer = Success(request.id, handler(request.fields))
        except BradawlError as error:
            answer = Error(request.id, str(error))
        self._write(ControlResponse(response=answer))

    async def ask(self, request: CanUseTool) -> Json:
        """Send a request and wait for its answer. Raises `RequestFailed` for an error, and if the input ends.

        If the caller is cancelled, the other side is told that no answer is needed any more.
        """
        if not self.is_open:
            raise RequestFailed("stdin is closed, so no answer can arrive.")
        request_id = new_uuid()
        answer = self._waiting[request_id] = asyncio.get_running_loop().create_future()
        self._write(ControlRequest(request_id=request_id, request=request))
        try:
            return await answer
        except asyncio.CancelledError:
            self._write(ControlCancel(request_id=request_id))
            raise
        finally:
            self._waiting.pop(request_id, None)

    def answered(self, response: Response) -> bool:
        """Pass an answer on to who waits for it; false if nothing waits for it any more."""
        answer = self._waiting.get(response.request_id)
        if answer is None or answer.done():
            return False
        if response.error:
            answer.set_exception(RequestFailed(response.error))
        else:
            answer.set_result(response.value)
        return True

    def close(self) -> None:
        """No more answers arrive: fail the requests that wait."""
        self.is_open = False
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(RequestFailed("stdin was closed before an answer arrived."))
