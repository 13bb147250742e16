"""Hints for the user about a failed request, and the failures that are detected without a server."""

import re

import msgspec

from bradawl.core.errors import Failure
from bradawl.core.http import HttpError
from bradawl.providers.codec import Endpoint
from bradawl.providers.failures import ConnectionRefused, plain_text, scrub
from bradawl.providers.hosts import host_of, is_loopback

_KEY_HEADERS = frozenset({"authorization", "api-key", "x-api-key"})
KEY_COMMAND = "api_key_command"
"""The `key_name` of an endpoint whose key a command of the user prints."""


def key_variable(provider: str) -> str:
    """The usual name of the environment variable for a provider's key."""
    return re.sub(r"[^A-Z0-9]+", "_", provider.upper()).strip("_") + "_API_KEY"


def shown_url(url: str) -> str:
    """A URL without the parts that may be secret: user, password, query and fragment."""
    scheme, has_scheme, rest = url.partition("://")
    if not has_scheme:
        return scrub(url.partition("?")[0].partition("#")[0].rpartition("@")[2])
    rest = rest.partition("?")[0].partition("#")[0]
    authority, slash, path = rest.partition("/")
    return scrub(f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}")


def advise(failure: Failure, endpoint: Endpoint, *old_keys: str) -> Failure:
    """The failure with a hint for this endpoint. The endpoint's current and refused keys are removed from its text."""
    message, code, hint = failure.message, failure.code, failure.hint or _hint(failure, endpoint)
    for key in (endpoint.api_key, *old_keys):
        message, hint = scrub(message, key), scrub(hint, key)
        code = None if code is None else scrub(code, key)
    return msgspec.structs.replace(failure, message=message, code=code, hint=hint)


def _hint(failure: Failure, endpoint: Endpoint) -> str:
    place = endpoint.provider
    match failure.kind:
        case "connection":
            if is_loopback(endpoint.base_url) and not failure.retryable:
                return f"Is the server at {shown_url(endpoint.base_url)} running?"
            return "Check the network, the proxy settings and the base URL."
        case "auth":
            return _hint_about_key(failure, endpoint)
        case "quota":
            return f"Check your account at {place}, or choose another model with -m."
        case "context_overflow":
            return (
                "Shorten the conversation with /compact, begin a new session, or choose a model with a larger window."
            )
        case "content_filter":
            return f"The filter of {place} stopped it: say it in other words, or choose another model with -m."
        case "invalid_request":
            return _hint_about_request(failure, endpoint)
        case _:
            return _hint_about_trouble(failure, place)


def _hint_about_key(failure: Failure, endpoint: Endpoint) -> str:
    if endpoint.key_name == KEY_COMMAND:
        # Without a status nothing was sent, and the failure already describes what the command did wrong.
        return f"Check what the {KEY_COMMAND} of {endpoint.provider} prints." if failure.status else ""
    variable = endpoint.key_name or key_variable(endpoint.provider)
    return f"Check the key in {variable}." if endpoint.api_key else f"Set {variable} to your key."


def _hint_about_request(failure: Failure, endpoint: Endpoint) -> str:
    url = shown_url(endpoint.base_url)
    if failure.status == 404:
        return f"Check the model name {endpoint.model!r} (-m) and the base URL {url}."
    if failure.status == 405:
        return f"Check the base URL {url}."
    message = f"{endpoint.provider} refused the request"
    where = f" with HTTP {failure.status}" if failure.status else ""
    return f"{message}{where}: check the base URL {url} and the model; --debug logs what is sent, in shapes."


def _hint_about_trouble(failure: Failure, place: str) -> str:
    """A hint for failures of the server. It is also shown with the notice that the request is retried."""
    if failure.retry_after_s:
        return f"The server asks to wait {duration_text(failure.retry_after_s)}."
    if failure.kind == "timeout" and failure.status is None:
        return f"If {place} is only slow, raise first_byte_s, idle_s or content_s in [providers.{place}.compat]."
    message = (
        f"{place} answered with HTTP {failure.status}" if failure.status else f"{place} reported an error in its reply"
    )
    return f"{message}; if this continues, --fallback-model lets another model take over."


def duration_text(seconds: float) -> str:
    """A duration for the user, for example `40 s` or `3 hours`, rounded up."""
    for size, unit, limit in ((1, "s", 120), (60, "minutes", 120), (3600, "hours", 48), (86400, "days", 366)):
        count = -(-seconds // size)
        if count <= limit:
            return f"{max(1, int(count))} {unit}"
    return "more than a year"


def failure_of_exchange(error: HttpError, url: str) -> Failure:
    """The failure for an exchange that broke. A refused connection to a local server and a TLS error that will
    come again are not retryable.
    """
    is_gone = isinstance(error, ConnectionRefused) and is_loopback(url)
    hint = _hint_about_tls(error)
    return Failure(error.kind, scrub(str(error)), retryable=not is_gone and not hint, hint=hint)


def _hint_about_tls(error: BaseException) -> str:
    """The hint for a permanent TLS error; empty for other errors."""
    import ssl

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return (
                "Check the base URL and the clock; certificates of your own authority go into a file that "
                "SSL_CERT_FILE or `ca_file` names."
            )
        if isinstance(cause, ssl.SSLError):
            return _TLS_HINTS.get(cause.reason or "", "")
        cause = cause.__cause__ or cause.__context__
    return ""


_PLAIN_HTTP = "The server, or the proxy, seems to speak plain http there: begin its URL with http://."
_NO_CERTIFICATES = "Name a file of certificates in PEM in SSL_CERT_FILE or `ca_file`."
_TLS_HINTS = {
    "WRONG_VERSION_NUMBER": _PLAIN_HTTP,
    "HTTP_REQUEST": _PLAIN_HTTP,
    "NO_CERTIFICATE_OR_CRL_FOUND": _NO_CERTIFICATES,
    "PEM_LIB": _NO_CERTIFICATES,
    "NO_START_LINE": _NO_CERTIFICATES,
}
"""Keys are OpenSSL's names of the reason."""


def unsendable(endpoint: Endpoint, url: str, headers: tuple[tuple[str, str], ...]) -> Failure | None:
    """The failure if a request with this URL and these headers can't be sent; else None."""
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
    """The failure for a web page as a reply: the base URL is wrong."""
    text = plain_text(body.decode("utf-8", "replace"))
    return Failure(
        "server",
        f"The answer is a web page, not an API endpoint's: {text}",
        hint="Check the base URL; it usually ends in /v1.",
    )


def empty_reply(status: int | None = None) -> Failure:
    """The failure for a reply without content, or for a response with `status` and an empty body."""
    what = "The model sent an empty reply." if status is None else f"The server answered {status} with an empty body."
    return Failure("server", what, retryable=True, hint="A local server may do so when its context is full.")
