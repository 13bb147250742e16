"""Keys of the client: their source, the origins they may be sent to, and that no other text contains them."""

import json
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_client import BASE_URL, KEY, ONCE, ask, bad, failure_in, good, is_answered, model_of, retries_in

from bradawl.core.errors import SettingsError
from bradawl.core.http import HttpError
from bradawl.core.retry import RetryBudget
from bradawl.providers.chat.codec import OpenAIChat
from bradawl.providers.codec import Endpoint
from bradawl.providers.connection import Connection, ModelEndpoint
from bradawl.providers.keys import FixedKey, misdirected, origin_of
from bradawl.testing.fakes import Cut, FakeClock, FakeIds, Reply, ScriptedHttp

NEW = "sk-anothersecret0987654321"


class ChangingKeys:
    """Supplies the given keys in order: the next one after each refusal."""

    def __init__(self, *keys):
        self._keys = list(keys)
        self.refused = []

    async def key(self, refused=""):
        if refused:
            self.refused.append(refused)
            if len(self._keys) > 1:
                self._keys.pop(0)
        if isinstance(self._keys[0], Exception):
            raise self._keys[0]
        return self._keys[0]


async def run(http, **fields):
    return await ask(model_of(http, **fields), budget=ONCE)


def keys_sent(http):
    return [dict(request.headers).get("authorization", "").removeprefix("Bearer ") for request in http.requests]


# ------------------------------------------------------------------ sources


async def test_the_source_is_asked_before_each_request():
    keys = ChangingKeys(KEY)
    http = ScriptedHttp([good(), good()])
    model = model_of(http, keys=keys)
    await ask(model)
    keys._keys[:] = [NEW]
    await ask(model)
    assert keys_sent(http) == [KEY, NEW]


async def test_a_refused_key_is_replaced_once_without_a_visible_retry():
    http, keys = ScriptedHttp([bad(401), good()]), ChangingKeys(KEY, NEW)
    deltas = await run(http, keys=keys)
    assert is_answered(deltas)
    assert retries_in(deltas) == []
    assert (keys_sent(http), keys.refused) == ([KEY, NEW], [KEY])


async def test_no_third_key_is_tried():
    http = ScriptedHttp([bad(401)] * 5)
    assert failure_in(await run(http, keys=ChangingKeys(KEY, NEW, "sk-third-secret-000000"))).kind == "auth"
    assert keys_sent(http) == [KEY, NEW]


async def test_the_same_key_is_not_tried_again():
    http = ScriptedHttp([bad(401)] * 5)
    assert failure_in(await run(http, keys=FixedKey(KEY))).kind == "auth"
    assert len(http.requests) == 1


async def test_if_the_source_has_no_other_key_the_servers_message_is_shown():
    http = ScriptedHttp([bad(401, "expired")])
    failure = failure_in(await run(http, keys=ChangingKeys(KEY, SettingsError("the command failed"))))
    assert failure.message == "expired"


async def test_a_source_without_a_key_is_a_failure_and_nothing_is_sent():
    http = ScriptedHttp([])
    failure = failure_in(await run(http, keys=ChangingKeys(SettingsError(f"no key, {NEW} was refused"))))
    assert (failure.kind, failure.retryable, http.requests) == ("auth", False, [])
    assert "no key" in failure.message
    assert NEW not in str(failure)


@pytest.mark.parametrize("status", [400, 429, 500])
async def test_only_a_refusal_renews_the_key(status):
    keys = ChangingKeys(KEY, NEW)
    await run(ScriptedHttp([bad(status)]), keys=keys)
    assert keys.refused == []


# ------------------------------------------------------------------ origins

HOSTS = st.sampled_from(
    ["api.demo.example", "API.demo.example", "api.demo.example.", "evil.example", "demo.example", "127.0.0.1", "[::1]"]
)
PLACES = st.builds(
    lambda scheme, user, host, port, path: f"{scheme}://{user}{host}{port}{path}",
    st.sampled_from(["http", "https", "HTTPS", "ftp", ""]),
    st.sampled_from(["", "user@", "api.demo.example@", "a:b@"]),
    HOSTS,
    st.sampled_from(["", ":443", ":80", ":8443", ":", ":x", ":99999999"]),
    st.sampled_from(
        ["", "/", "/v1", "/v1?x=@api.demo.example", "/\\evil.example", "#@evil.example", "\\@evil.example/"]
    ),
)


def reference_origin(url):
    """The origin of a URL by another parser; None if it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    default = {"http": 80, "https": 443}.get(parts.scheme)
    return default and (parts.scheme, parts.hostname, default if port is None else port)


@given(PLACES, PLACES)
async def test_a_key_is_sent_only_to_the_origin_it_was_configured_for(base_url, home):
    http = ScriptedHttp([good()])
    deltas = await run(http, base_url=base_url, key_origin=home)
    for request in http.requests:
        assert reference_origin(request.url) == reference_origin(home) is not None
    if not http.requests:
        failure = failure_in(deltas)
        assert (failure.kind in ("auth", "invalid_request"), failure.retryable) == (True, False)
        assert KEY not in repr(deltas)


@given(PLACES)
def test_an_origin_is_normalized(url):
    origin = origin_of(url)
    if origin:
        assert origin_of(origin) == origin
        assert reference_origin(origin) == reference_origin(url)


async def test_a_key_of_another_origin_is_a_failure_and_nothing_is_sent():
    http = ScriptedHttp([])
    failure = failure_in(await run(http, key_origin="https://api.other.example"))
    assert http.requests == []
    assert failure.kind == "auth"
    assert "belongs to https://api.other.example:443 and is not sent to https://api.demo.example:443" in failure.message


def test_headers_with_credentials_are_bound_to_the_origin_and_other_headers_are_not():
    def problem(*headers):
        endpoint = Endpoint("demo", BASE_URL, "m", key_origin="https://other.example")
        return misdirected(endpoint, BASE_URL, headers)

    assert problem(("Authorization", "Bearer x")) is not None
    assert problem(("X-Api-Key", "x")) is not None
    assert problem(("x-title", "bradawl")) is None


async def test_requests_without_a_key_go_to_any_origin():
    http = ScriptedHttp([good()])
    assert is_answered(await run(http, key="", key_origin="https://api.other.example"))


@pytest.mark.parametrize(
    "url", ["https://user:secret-word@api.demo.example/v1", "https://api.demo.example\\@evil.example"]
)
async def test_a_base_url_with_credentials_or_an_ambiguous_one_is_refused_without_showing_it(url):
    http = ScriptedHttp([])
    failure = failure_in(await run(http, base_url=url))
    assert (failure.kind, http.requests) == ("invalid_request", [])
    assert "secret-word" not in str(failure)


# ------------------------------------------------------------------ no text contains a key

SECRETS = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters='"\\'), min_size=6, max_size=38
).map(lambda text: f"{text}~7")  # or a key could equal one of our own names, which every `repr` shows


@given(SECRETS, st.sampled_from([400, 401, 403, 404, 429, 500]), st.booleans())
async def test_a_key_in_the_servers_reply_is_in_no_delta(key, status, is_code):
    error = {"message": "no", "code": key} if is_code else {"message": f"Incorrect key {key}."}
    http = ScriptedHttp([Reply(status, (json.dumps({"error": error}).encode(),))] * 2)
    deltas = await ask(model_of(http, key=key), budget=RetryBudget(attempts=2))
    assert key not in repr(deltas)


async def test_neither_a_refused_key_nor_the_new_one_is_in_a_delta():
    http = ScriptedHttp([bad(401), bad(401, f"{KEY} and {NEW} are wrong")])
    deltas = await run(http, keys=ChangingKeys(KEY, NEW))
    assert failure_in(deltas).message == "*** and *** are wrong"


@pytest.mark.parametrize("break_in_body", [True, False])
async def test_a_key_in_an_error_of_the_adapter_is_in_no_delta(break_in_body):
    class BreakingHttp(ScriptedHttp):
        def stream(self, request):
            if not break_in_body:
                raise HttpError("connection", f"can't send {dict(request.headers)}")
            return super().stream(request)

    deltas = await run(BreakingHttp([Reply(200, (Cut(),))]))
    assert failure_in(deltas).kind == "connection"
    assert KEY not in repr(deltas)


def test_the_repr_of_objects_with_a_key_hides_it():
    endpoint = Endpoint("demo", BASE_URL, "m", KEY)
    target = ModelEndpoint(OpenAIChat(BASE_URL), endpoint, FixedKey(KEY))
    model = model_of(ScriptedHttp([]))
    connection = Connection(target, ScriptedHttp([]), FakeClock(), FakeIds())
    assert KEY not in f"{endpoint!r} {target!r} {model!r} {FixedKey(KEY)!r} {vars(model)!r} {vars(connection)!r}"
