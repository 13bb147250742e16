"""What the user can do about a failure, and failures that need no server to happen."""

import re

import msgspec

from bradawl.core.errors import Failure
from bradawl.core.ports import HttpError
from bradawl.providers.codec import Endpoint
from bradawl.providers.compat import host_of, is_loopback
from bradawl.providers.failures import ConnectionRefused, plain_text, scrub

_NOT_IN_NAMES = re.compile(r"[^A-Z0-9]+")


def key_variable(provider: str) -> str:
    """The environment variable that holds a provider's key."""
    return _NOT_IN_NAMES.sub("_", provider.upper()).strip("_") + "_API_KEY"


def advise(failure: Failure, endpoint: Endpoint) -> Failure:
    """The failure with a hint for this endpoint, and without its key."""
    return msgspec.structs.replace(
        failure,
        message=scrub(failure.message, endpoint.api_key),
        hint=scrub(failure.hint or _hint(failure, endpoint), endpoint.api_key),
    )


def _hint(failure: Failure, endpoint: Endpoint) -> str:
    if failure.kind == "connection":
        if is_loopback(endpoint.base_url) and not failure.retryable:
            return f"Is the server at {endpoint.base_url} running?"
        return "Check the network, the proxy settings and the base URL."
    if failure.kind == "auth":
        variable = endpoint.key_name or key_variable(endpoint.provider)
        return f"Check the key in {variable}." if endpoint.api_key else f"Set {variable} to your key."
    if failure.status == 404:
        return f"Check the model name {endpoint.model!r} (-m) and the base URL {endpoint.base_url}."
    if failure.retry_after_s and failure.kind in ("rate_limit", "overloaded"):
        return f"The server asks to wait {failure.retry_after_s:.0f} s."
    if failure.kind == "quota":
        return f"Check your account at {endpoint.provider}, or choose another model with -m."
    if failure.kind == "context_overflow":
        return "Start a new session, or choose a model with a larger context window."
    return ""


def failure_of_exchange(error: HttpError, url: str) -> Failure:
    """An exchange that broke. A local server that isn't there won't be there a second later."""
    is_gone = isinstance(error, ConnectionRefused) and is_loopback(url)
    return Failure(error.kind, scrub(str(error)), retryable=not is_gone)


def unsendable(url: str, headers: tuple[tuple[str, str], ...]) -> Failure | None:
    """Why a request with this URL and these headers can't be sent; None if it can."""
    if not url.startswith(("http://", "https://")) or not host_of(url) or not url.isprintable() or " " in url:
        shown = scrub(url.removesuffix("/chat/completions"))
        return Failure(
            "invalid_request",
            f"The base URL {shown!r} is not an http(s) URL.",
            hint="Set one such as https://api.example.com/v1.",
        )
    for name, value in headers:
        if not (name.isascii() and value.isascii() and value.isprintable() and name.isprintable()):
            what = "The API key" if name in ("authorization", "api-key", "x-api-key") else f"The header {name!r}"
            return Failure("auth", f"{what} has characters that can't be sent, for example a line break.")
    return None


def web_page(body: bytes) -> Failure:
    """A success that is a web page: the base URL leads somewhere else."""
    text = plain_text(body.decode("utf-8", "replace"))
    return Failure(
        "server",
        f"The answer is a web page, not an API endpoint's: {text}",
        hint="Check the base URL; it usually ends in /v1.",
    )
