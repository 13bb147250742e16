"""What the user can do about a failure, and failures that need no server to happen."""

import re

import msgspec

from bradawl.core.errors import Failure
from bradawl.core.ports import HttpError
from bradawl.providers.codec import Endpoint
from bradawl.providers.compat import host_of, is_loopback
from bradawl.providers.failures import ConnectionRefused, plain_text, scrub

_KEY_HEADERS = frozenset({"authorization", "api-key", "x-api-key"})


def key_variable(provider: str) -> str:
    """The environment variable that holds a provider's key."""
    return re.sub(r"[^A-Z0-9]+", "_", provider.upper()).strip("_") + "_API_KEY"


def shown_url(url: str) -> str:
    """A URL without what may be secret in it: user, password, query and fragment."""
    scheme, has_scheme, rest = url.partition("://")
    if not has_scheme:
        return scrub(url.partition("?")[0].partition("#")[0].rpartition("@")[2])
    rest = rest.partition("?")[0].partition("#")[0]
    authority, slash, path = rest.partition("/")
    return scrub(f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}")


def advise(failure: Failure, endpoint: Endpoint, *old_keys: str) -> Failure:
    """The failure with a hint for this endpoint, and without its key and those it had before."""
    message, code, hint = failure.message, failure.code, failure.hint or _hint(failure, endpoint)
    for key in (endpoint.api_key, *old_keys):
        message, hint = scrub(message, key), scrub(hint, key)
        code = None if code is None else scrub(code, key)
    return msgspec.structs.replace(failure, message=message, code=code, hint=hint)


def _hint(failure: Failure, endpoint: Endpoint) -> str:
    if failure.kind == "connection":
        if is_loopback(endpoint.base_url) and not failure.retryable:
            return f"Is the server at {shown_url(endpoint.base_url)} running?"
        return "Check the network, the proxy settings and the base URL."
    if failure.kind == "auth":
        variable = endpoint.key_name or key_variable(endpoint.provider)
        return f"Check the key in {variable}." if endpoint.api_key else f"Set {variable} to your key."
    if failure.status == 404:
        return f"Check the model name {endpoint.model!r} (-m) and the base URL {shown_url(endpoint.base_url)}."
    if failure.kind == "quota":
        return f"Check your account at {endpoint.provider}, or choose another model with -m."
    if failure.kind == "context_overflow":
        return "Start a new session, or choose a model with a larger context window."
    if failure.retry_after_s:
        return f"The server asks to wait {duration_text(failure.retry_after_s)}."
    return ""


def duration_text(seconds: float) -> str:
    """A time to wait as one reads it, for example `40 s` or `3 hours`; never less than it is."""
    for size, unit, limit in ((1, "s", 120), (60, "minutes", 120), (3600, "hours", 48), (86400, "days", 366)):
        count = -(-seconds // size)
        if count <= limit:
            return f"{max(1, int(count))} {unit}"
    return "more than a year"


def failure_of_exchange(error: HttpError, url: str) -> Failure:
    """An exchange that broke. A local server that isn't there won't be there a second later."""
    is_gone = isinstance(error, ConnectionRefused) and is_loopback(url)
    return Failure(error.kind, scrub(str(error)), retryable=not is_gone)


def unsendable(endpoint: Endpoint, url: str, headers: tuple[tuple[str, str], ...]) -> Failure | None:
    """Why a request with this URL and these headers can't be sent; None if it can."""
    base_url = endpoint.base_url
    if not url.startswith(("http://", "https://")) or not host_of(url) or not url.isprintable() or " " in url:
        return Failure(
            "invalid_request",
            f"The base URL {shown_url(base_url)!r} is not an http(s) URL.",
            hint="Set one such as https://api.example.com/v1.",
        )
    if "@" in url.partition("://")[2].partition("/")[0].partition("?")[0] or "\\" in url:
        return Failure(
            "invalid_request",
            f"The base URL {shown_url(base_url)!r} has credentials or a backslash in it, which is not sent.",
            hint="Put the key into the provider's variable instead.",
        )
    for name, value in headers:
        if not (name.isascii() and value.isascii() and value.isprintable() and name.isprintable()):
            what = "The API key" if name in _KEY_HEADERS else f"The header {name!r}"
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


def empty_reply(status: int | None = None) -> Failure:
    """A reply without anything in it, or a success with `status` whose body is empty."""
    what = "The model sent an empty reply." if status is None else f"The server answered {status} with an empty body."
    return Failure("server", what, retryable=True, hint="A local server may do so when its context is full.")
