"""Both HTTP adapters pass the same conformance suite, plain and with TLS."""

import ssl

import pytest
import trustme

from bradawl.providers.http_h11 import DirectHttp
from bradawl.providers.http_httpx2 import Httpx2Http
from bradawl.testing import http_conformance as suite


@pytest.fixture(scope="session")
def authority():
    return trustme.CA()


@pytest.fixture(scope="session")
def ca_file(authority, tmp_path_factory):
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return str(path)


def server_context(authority, *names):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


def trusting(ca_file):
    return DirectHttp(lambda: ssl.create_default_context(cafile=ca_file))


@pytest.fixture
def setup(request, authority, ca_file):
    adapter, transport = request.param
    make = {"direct": lambda: trusting(ca_file), "httpx2": lambda: Httpx2Http(ca_file=ca_file)}[adapter]
    names = ("localhost", "127.0.0.1", "::1")
    return suite.HttpSetup(make, server_context(authority, *names) if transport == "tls" else None)


KINDS = [("direct", "plain"), ("direct", "tls"), ("httpx2", "plain"), ("httpx2", "tls")]


@pytest.mark.parametrize("check", suite.CASES)
@pytest.mark.parametrize("setup", KINDS, ids=["-".join(kind) for kind in KINDS], indirect=True)
async def test_every_adapter_conforms(check, setup):
    await check(setup)
