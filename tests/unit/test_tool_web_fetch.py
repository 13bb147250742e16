"""The tool `web_fetch`: shown content, limits, redirects and refused addresses, with servers on loopback or fakes."""

import asyncio
import gzip

import pytest

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.http import HttpError, HttpRequest
from bradawl.core.messages import Image, text_of
from bradawl.providers.http_h11 import DirectHttp
from bradawl.providers.http_httpx2 import Httpx2Http
from bradawl.testing.fakes import Cut, Reply, ScriptedHttp
from bradawl.testing.raw_server import RawServer
from bradawl.tools.web.addresses import PublicAddresses, parse_url, why_not_public, why_not_public_address
from bradawl.tools.web_fetch import WebFetch

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
ADAPTERS = {
    "h11": lambda _url, addresses: DirectHttp(addresses=addresses, redirects=0),
    "httpx2": lambda _url, _addresses: Httpx2Http(redirects=0),
}


async def fetch(place, answer, path="/", adapter="h11", **options):
    """The tool's output for the answer of a server on loopback."""
    arguments = {name: options.pop(name) for name in ("offset", "limit") if name in options}
    async with RawServer(answer) as server:
        tool = WebFetch(ADAPTERS[adapter], allow_private=True, **options)
        return await place.call(tool, url=server.url + path, **arguments)


async def fetched_text(place, body: bytes, *headers: str, status="200 OK", **options) -> str:
    async def answer(exchange):
        await exchange.answer(body, status, *headers)

    return text_of((await fetch(place, answer, **options)).parts)


def scripted(*replies) -> tuple[WebFetch, ScriptedHttp]:
    http = ScriptedHttp(replies)
    return WebFetch(lambda _url, _addresses: http), http


def page(body: bytes = b"<p>there", content_type="text/html", status=200, **headers: str) -> Reply:
    pairs = (("content-type", content_type), *((name.replace("_", "-"), value) for name, value in headers.items()))
    return Reply(status, (body,), pairs)


# ------------------------------------------------------------------ content


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_page_is_shown_as_markdown_with_title_and_url(place, adapter):
    html = b"<title>A page</title><nav>menu</nav><h1>Head</h1><p>See <a href='/x'>there</a>.<script>no()</script>"
    shown = await fetched_text(place, html, "content-type: text/html", path="/a?b=c#d", adapter=adapter)
    head, title, _, *body = shown.split("\n")
    assert "/a?b=c (text/html): material from the web" in head
    assert title == "Title: A page"
    assert "\n".join(body).startswith("# Head\n\nSee [there](http://127.0.0.1:")


@pytest.mark.parametrize("content_type", ["application/json", "application/ld+json", "text/plain", "image/svg+xml", ""])
async def test_plain_text_is_shown_unchanged(place, content_type):
    body = b'{"a": ["<p>", 1]}'
    assert (await fetched_text(place, body, f"content-type: {content_type}")).split("\n\n", 1)[1] == body.decode()


async def test_a_page_without_a_content_type_is_recognised(place):
    assert "# Head" in await fetched_text(place, b" <!DOCTYPE html><h1>Head</h1>")


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("Grüße €".encode(), "text/html"),
        ("Grüße €".encode("cp1252"), "text/html"),
        ("Grüße €".encode("cp1252"), "text/html; charset=ISO-8859-1"),
        ("Grüße €".encode("utf-16"), "text/html"),
        (b"<meta charset='windows-1252'>" + "Grüße €".encode("cp1252"), "text/html"),
        (b"<meta charset='utf-16'>" + "Grüße €".encode(), "text/html"),
        ("Grüße €".encode(), "text/html; charset=no-such-thing"),
        ("Grüße €".encode(), "text/html; charset=unicode_escape"),
        ("Grüße €".encode(), 'text/html; CHARSET="utf8"'),
        ("\ufeffGrüße €".encode(), "text/html; charset=latin-1"),
    ],
)
async def test_the_encoding_is_detected_as_browsers_do(place, body, content_type):
    assert (await fetched_text(place, body, f"content-type: {content_type}")).endswith("Grüße €")


async def test_content_is_shown_as_an_image_only_if_it_is_one(place):
    async def answer(exchange):
        await exchange.answer(PNG if exchange.path == "/ok" else b"<p>no image", "200 OK", "content-type: image/png")

    assert (await fetch(place, answer, "/ok")).parts[1] == Image("image/png", PNG)
    assert not any(isinstance(part, Image) for part in (await fetch(place, answer, "/not")).parts)


@pytest.mark.parametrize(
    ("body", "content_type", "message"),
    [
        (b"%PDF-1.7", "application/pdf", "application/pdf, 8 bytes"),
        (b"%PDF-1.7", "application/octet-stream", "application/pdf, 8 bytes"),
        (b"PK\x03\x04" + bytes(99), "text/plain", "a zip archive"),
        (bytes(100), "text/html", "binary data, 100 bytes"),
        (b"x", "video/mp4", "video/mp4, 1 bytes"),
        (b"x", "application/vnd.ms-excel", "application/vnd.ms-excel"),
    ],
)
async def test_other_content_is_refused_with_its_kind_its_size_and_a_command(place, body, content_type, message):
    with pytest.raises(ToolError, match="curl -LO http://127") as refusal:
        await fetched_text(place, body, f"content-type: {content_type}")
    assert message in str(refusal.value)


async def test_an_error_status_gives_a_result_with_the_beginning_of_the_body(place):
    async def answer(exchange):
        await exchange.answer(b"<p>slow down " + b"x" * 9_000, "429 Busy", "content-type: text/html", "retry-after: 7")

    output = await fetch(place, answer)
    assert output.is_error
    assert "HTTP 429 Too Many Requests, retry after 7" in text_of(output.parts)
    assert "slow down" in text_of(output.parts)
    assert len(text_of(output.parts)) < 2_300


async def test_an_empty_answer_says_so(place):
    assert "nothing to read" in await fetched_text(place, b"", "content-type: text/html")
    assert "nothing to read" in await fetched_text(
        place, b"<div id=root></div><script>app()</script>", "content-type: text/html"
    )


async def test_offset_and_limit_select_lines(place):
    body = b"".join(b"line %d\n" % number for number in range(1, 101))
    assert (await fetched_text(place, body, offset=3, limit=2)).endswith("\n\nline 3\nline 4\n[lines 3-4 of 101]")
    assert (await fetched_text(place, body, offset=99)).endswith("line 99\nline 100\n\n[lines 99-101 of 101]")
    with pytest.raises(ToolError, match="has 101 lines"):
        await fetched_text(place, body, offset=200)


# ------------------------------------------------------------------ limits


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_body_without_end_is_cut_and_the_connection_closed(place, adapter):
    async def answer(exchange):
        await exchange.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        exchange.hang_up()
        while True:
            await exchange.send(b"x" * 100_000)

    output = await fetch(place, answer, adapter=adapter)
    assert len(output.parts[1].text) == 5_000_000
    assert "only the first 5 MB" in output.parts[2].text


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_decompression_bomb_is_cut_like_any_other_body(place, adapter):
    bomb = gzip.compress(bytes([32]) * 60_000_000)
    shown = await fetched_text(place, bomb, "content-type: text/plain", "content-encoding: gzip", adapter=adapter)
    assert "only the first 5 MB" in shown
    with pytest.raises(ToolError, match=r"compressed in a way that was not asked for \(br\)"):
        await fetched_text(place, b"x", "content-encoding: br", adapter=adapter)


async def test_a_silent_server_is_a_timeout(place):
    async def answer(exchange):
        await exchange.until_client_closed()

    with pytest.raises(ToolError, match=r"took longer than 0\.2 s"):
        await fetch(place, answer, timeout_s=0.2)


async def test_a_server_that_sends_slowly_is_a_timeout(place):
    async def answer(exchange):
        await exchange.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        while not exchange._writer.is_closing():
            await exchange.send(b"x")
            await asyncio.sleep(0.01)

    with pytest.raises(ToolError, match="took longer"):
        await fetch(place, answer, timeout_s=0.2)


async def test_converting_a_large_page_does_not_block_the_loop_and_can_be_cancelled(place):
    tool, http = scripted(page(b"<p><b>x</b>" * 400_000))
    call = asyncio.ensure_future(place.call(tool, url="https://example.com"))
    ticks = 0
    while ticks < 20:
        await asyncio.sleep(0.001)
        assert not call.done()
        ticks += 1
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert http.open == 0
    assert http.is_closed


async def test_a_broken_connection_is_a_tool_error(place):
    for reply in (Cut(), Reply(200, (b"<p>a", Cut()), (("content-type", "text/html"),))):
        tool, http = scripted(reply)
        with pytest.raises(ToolError, match="cuts the exchange"):
            await place.call(tool, url="https://example.com/")
        assert http.is_closed


# ------------------------------------------------------------------ redirects


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed_and_reported(place, status, adapter):
    async def answer(exchange):
        where = {"/": "a/b", "/a/b": "/c?d#e"}.get(exchange.path)
        if where:
            await exchange.answer(b"", f"{status} Moved", f"location: {where}")
        else:
            await exchange.answer(b"<a href=f>g</a>", "200 OK", "content-type: text/html")

    shown = text_of((await fetch(place, answer, adapter=adapter)).parts)
    assert "/c?d (text/html, after 2 redirects)" in shown
    assert "/f)" in shown


async def test_circular_redirects_are_an_error(place):
    tool, http = scripted(*[page(status=302, location="https://example.com/again")] * 9)
    with pytest.raises(ToolError, match="more than 5 redirects"):
        await place.call(tool, url="https://example.com/")
    assert len(http.requests) == 6


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1/",
        "//169.254.169.254/latest/meta-data/",
        "https://[::1]/",
        "http://localhost:8080/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "http://me:secret@example.com/",
        "http://[",
        "http://2130706433/",
    ],
)
async def test_the_target_of_each_redirect_is_checked(place, location):
    tool, http = scripted(page(status=302, location=location), page())
    with pytest.raises(ToolError, match="redirects to an address that is not fetched"):
        await place.call(tool, url="https://example.com/")
    assert len(http.requests) == 1


async def test_only_a_get_without_credentials_is_sent(place):
    tool, http = scripted(page())
    await place.call(tool, url="https://example.com/")
    (asked,) = http.requests
    assert (asked.method, asked.body) == ("GET", ())
    assert {name for name, _ in asked.headers} == {"user-agent", "accept"}


# ------------------------------------------------------------------ refused addresses


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "file:///etc/passwd",
        "ftp://example.com/",
        "javascript:alert(1)",
        "http://",
        "http:///x",
        "http://?x",
        "http://me@example.com/",
        "http://me:secret@example.com/",
        "http://example.com\\@127.0.0.1/",
        "http://example.com:99999/",
        "http://example.com:0/",
        "http://example.com:x/",
        "http://exa mple.com/",
        "http://example..com/",
        "http://example.com\0.evil.example/",
        "http://example.com/\r\nhost: x",
        "http://[::1",
        "http://[fe80::1%25eth0]/",
        "http://%6c%6fcalhost/",
        "http://1.2.3.4.5/",
        "http://0x/" + "a" * 9_000,
        "https://" + "a" * 64 + ".com/",
    ],
)
def test_an_invalid_url_is_refused_before_the_permission_question(place, url):
    tool, http = scripted(page())
    with pytest.raises(ToolError) as refusal:
        tool.effects(tool.params(url=url), place.context())
    assert "secret" not in str(refusal.value)
    assert not http.requests


PRIVATE = [
    *("127.0.0.1", "127.1", "0x7f.1", "0177.0.0.1", "2130706433", "0", "0.0.0.1", "127.0.0.1.", "\uff11\uff12\uff17.1"),
    *("10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200"),
    *("224.0.0.1", "255.255.255.255", "240.1.1.1", "192.0.2.1", "198.18.0.1", "168.63.129.16", "192.0.0.192"),
    *("[::1]", "[::]", "[fe80::1]", "[fd00:ec2::254]", "[ff02::1]", "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]"),
    *("[64:ff9b::a00:1]", "[64:ff9b:1::1]", "[2002:7f00:1::]", "[2002:c0a8:101::1]", "[2001::1]", "[2001:db8::1]"),
    *("[::127.0.0.1]", "[0:0:0:0:0:ffff:10.0.0.1]", "[4000::1]", "[fec0::1]"),
    *("localhost", "LOCALHOST", "localhost.", "a.localhost", "metadata.google.internal", "printer.local", "router"),
    *("nas.lan", "x.home.arpa", "1.0.0.127.in-addr.arpa"),
]


@pytest.mark.parametrize("host", PRIVATE)
def test_private_hosts_are_refused_in_every_notation(place, host):
    tool, _ = scripted(page())
    with pytest.raises(ToolError, match="public web addresses only"):
        tool.effects(tool.params(url=f"http://{host}/"), place.context())


@pytest.mark.parametrize(
    "host",
    [
        *(
            "example.com",
            "example.com.",
            "a_b.example.co.uk",
            "xn--bcher-kva.example",
            "b\u00fccher.example",
            "8.8.8.8",
        ),
        *("172.32.0.1", "100.128.0.1", "[2606:4700::1111]", "[::ffff:8.8.8.8]", "[64:ff9b::808:808]", "localhost.com"),
        *("internal.example.com", "[2002:808:808::1]", "127.0.0.1.example.com", "0x7f.example"),
    ],
)
def test_public_hosts_are_not_refused(host):
    assert why_not_public(parse_url(f"http://{host}/").host) == ""


def test_a_url_is_sent_as_it_was_checked():
    assert str(parse_url(" HTTP://B\u00fccher.Example:80/a%20b?c=d#e ")) == "http://xn--bcher-kva.example/a%20b?c=d"
    assert str(parse_url("https://0x08.8.8.8:8443")) == "https://8.8.8.8:8443/"
    assert str(parse_url("https://[2606:4700:0::1111]?x")) == "https://[2606:4700::1111]/?x"
    assert str(parse_url("https://example.com/a:b@c\\d")) == "https://example.com/a:b@c\\d"


def test_the_call_declares_the_host_it_reaches(place):
    tool, _ = scripted(page())
    assert tool.effects(tool.params(url="https://Example.com/x"), place.context()) == Effects(hosts=("example.com",))
    for url, host in (
        ("http://Example.com.:80/", "example.com"),
        ("http://example.com:443/", "example.com"),
        ("https://Example.com.:8443/x", "example.com:8443"),
        ("https://8.8.8.8:22/", "8.8.8.8:22"),
        ("https://[2606:4700:4700::1111]:8443/", "2606:4700:4700::1111"),
    ):
        assert tool.effects(tool.params(url=url), place.context()).hosts == (host,)


def resolver_of(*addresses: str):
    """A resolver that always returns these addresses and records the hosts it was asked for."""

    async def resolve(host: str, port: int):
        resolve.asked.append(host)
        return addresses

    resolve.asked = []
    return resolve


@pytest.mark.parametrize("addresses", [("127.0.0.1",), ("8.8.8.8", "10.0.0.1"), ("::1",), ("fe80::1%eth0",)])
async def test_a_host_with_a_private_address_is_not_connected_to(place, addresses):
    async with RawServer(lambda exchange: exchange.answer(b"secret")) as server:
        tool = WebFetch(ADAPTERS["h11"], resolve=resolver_of(*addresses))
        with pytest.raises(ToolError, match=r"pages\.example\.org is at .*only public web addresses"):
            await place.call(tool, url=f"http://pages.example.org:{server.port}/")
        assert server.connections == 0


async def test_a_host_at_an_address_of_this_machine_is_not_connected_to(place):
    tool = WebFetch(ADAPTERS["h11"], resolve=resolver_of("8.8.8.8", "9.9.9.9"), is_own="9.9.9.9".__eq__)
    with pytest.raises(
        ToolError, match=r"pages\.example\.org is at 9\.9\.9\.9, an address of this machine's own network"
    ):
        await place.call(tool, url="http://pages.example.org/")


def test_an_address_of_this_machine_is_refused_at_once_and_so_is_one_that_can_not_be_checked(place):
    tool = WebFetch(ADAPTERS["h11"], is_own="9.9.9.9".__eq__)
    with pytest.raises(ToolError, match=r"9\.9\.9\.9 is an address of this machine's own network interfaces"):
        tool.effects(tool.params(url="http://9.9.9.9/"), place.context())
    assert tool.effects(tool.params(url="http://8.8.8.8/"), place.context()).hosts == ("8.8.8.8",)

    def fails(address: str) -> bool:
        raise OSError(24, "Too many open files")

    tool = WebFetch(ADAPTERS["h11"], is_own=fails)
    with pytest.raises(ToolError, match=r"could not be checked \(Too many open files\)"):
        tool.effects(tool.params(url="http://9.9.9.9/"), place.context())
    own = WebFetch(ADAPTERS["h11"], is_own="9.9.9.9".__eq__, allow_private=True)
    assert own.effects(own.params(url="http://9.9.9.9/"), place.context()).hosts == ("9.9.9.9",)


async def test_the_adapter_connects_to_the_given_addresses_and_resolves_once():
    async with RawServer(lambda exchange: exchange.answer(exchange.header("host").encode())) as server:
        http = DirectHttp(addresses=(resolve := resolver_of("127.0.0.2", "127.0.0.1")))
        try:
            request = HttpRequest("GET", f"http://pages.example.org:{server.port}/", ())
            for _ in range(2):
                async with http.stream(request) as response:
                    message = b"".join([piece async for piece in response.chunks()])
            assert message == f"pages.example.org:{server.port}".encode()
            assert resolve.asked == ["pages.example.org"]
        finally:
            await http.aclose()


async def test_the_certificate_is_checked_against_the_host_name():
    import ssl

    import trustme

    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("pages.example.org").configure_cert(context)

    def trusting() -> ssl.SSLContext:
        made = ssl.create_default_context()
        authority.configure_trust(made)
        return made

    async def status(name: str) -> int:
        async with RawServer(lambda exchange: exchange.answer(b"x"), tls=context) as server:
            http = DirectHttp(trusting, addresses=resolver_of("127.0.0.1"))
            try:
                async with http.stream(HttpRequest("GET", f"https://{name}:{server.port}/", ())) as response:
                    return response.status
            finally:
                await http.aclose()

    assert (await status("pages.example.org")) == 200
    with pytest.raises(HttpError, match="certificate"):
        await status("other.example.org")


async def test_a_host_without_an_address_is_an_error():
    http = DirectHttp(addresses=PublicAddresses(resolver_of()))
    with pytest.raises(HttpError, match=r"no\.example can't be reached: it has no address"):
        async with http.stream(HttpRequest("GET", "http://no.example/", ())):
            pass


def test_every_special_purpose_address_is_refused():
    for address in ("192.88.99.1", "203.0.113.9", "198.51.100.1", "3fff::1", "5f00::1", "100::1", "fc00::1"):
        assert why_not_public_address(address), address
