"""Tests a key at its endpoint: the list of models, and a tiny request to the chosen model."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Final, Literal

import msgspec

from bradawl.app.model_list import TIMEOUT_S, Connect, ListRefused, NoModelList, fetch_list
from bradawl.app.rendering import one_line
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.core.deltas import ReplyEnded, StreamFailed
from bradawl.core.errors import Failure, SettingsError
from bradawl.core.events import RequestParams
from bradawl.core.http import HttpError
from bradawl.core.messages import Text, User
from bradawl.core.ports import Model, Prefix
from bradawl.core.retry import RetryBudget

Kind = Literal["ok", "no_list", "wrong_key", "unknown_model", "no_credit", "busy", "network", "refused"]
"""`no_list`: the endpoint answers, but has no list of models. `network`: it could not be reached, through a proxy or
TLS included, or it has trouble of its own. `busy`: too many requests, so the key was accepted."""
OpenModel = Callable[[ModelSettings], Model]

_REQUEST: Final = "Reply with the word ok."
_MOST_OUTPUT: Final = 64
"""Tokens. Endpoints have a minimum, 16 at OpenAI's Responses (checked 2026-11)."""
_REQUEST_S: Final = 60.0
_KEY_IS_FINE: Final = ("ok", "no_list", "no_credit", "busy")


class Verdict(msgspec.Struct, frozen=True):
    """The result of a test; the text is for the user."""

    kind: Kind
    text: str = ""
    models: tuple[dict[str, object], ...] = ()
    """The entries of the endpoint's list."""

    @property
    def accepts_key(self) -> bool:
        """Nothing says that the key is wrong."""
        return self.kind in _KEY_IS_FINE


async def check_list(settings: ModelSettings, environ: Mapping[str, str], connect: Connect) -> Verdict:
    """Ask for the list of models with the key of these settings. A failure is a value."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return Verdict("ok", models=tuple(await fetch_list(settings, environ, connect)))
    except NoModelList as error:
        return Verdict("no_list", str(error))
    except TimeoutError:
        return Verdict("network", f"No answer from {settings.base_url} within {TIMEOUT_S:g} s.{_by_proxy(settings)}")
    except HttpError as error:
        from bradawl.providers.advice import failure_of_exchange

        return _verdict_on(failure_of_exchange(error, settings.base_url), settings)
    except ListRefused as error:
        return _verdict_on(error.failure, settings)
    except SettingsError as error:
        return Verdict("refused", _sentence(str(error)))


async def check_model(settings: ModelSettings, open_model: OpenModel) -> Verdict:
    """Send one tiny request to the model of these settings. A failure is a value."""
    model = open_model(settings)
    try:
        async with asyncio.timeout(_REQUEST_S):
            session = model.open(Prefix("", ()))
            session.append(User((Text(_REQUEST),)))
            params, budget = RequestParams(max_output_tokens=_MOST_OUTPUT), RetryBudget(attempts=1)
            async with aclosing(session.stream(params, budget)) as deltas:
                async for delta in deltas:
                    match delta:
                        case ReplyEnded():
                            return Verdict("ok")
                        case StreamFailed(failure=failure):
                            return _verdict_on(failure, settings)
                        case _:
                            pass
        return Verdict("ok")
    except TimeoutError:
        return Verdict("network", f"{settings.name} did not answer within {_REQUEST_S:g} s.")
    finally:
        await model.aclose()


def _verdict_on(failure: Failure, settings: ModelSettings) -> Verdict:
    text = _sentence(str(failure))
    if failure.status == 407:
        return Verdict("network", f"The proxy wants a user and a password: {text}")
    match failure.kind:
        case "auth":
            return Verdict("wrong_key", _sentence(failure.message))  # the hint names a place where the key is not yet
        case "quota":
            return Verdict("no_credit", text)
        case "rate_limit":
            return Verdict("busy", text)
        case "connection" | "timeout" | "server" | "overloaded":
            return Verdict("network", f"{text}{_by_proxy(settings)}")
        case "invalid_request" if failure.status == 404 or "model" in (failure.code or ""):
            return Verdict("unknown_model", text)
        case "output_limit" | "content_filter" | "context_overflow":
            return Verdict("ok")  # the model answered
        case _:
            return Verdict("refused", text)


def _by_proxy(settings: ModelSettings) -> str:
    return " Requests go through a proxy, which can be the cause." if settings.proxy else ""


def _sentence(text: str) -> str:
    line = one_line(text)
    return line if line.endswith((".", "!", "?")) else f"{line}."
