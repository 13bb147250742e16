"""The wire protocols under test, as the table of protocols has them: each goes through all tables of cases."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from bradawl.core.messages import Origin
from bradawl.providers.codec import Codec
from bradawl.providers.protocols import PROTOCOLS, WireProtocol
from wire.replay import SAMPLES, read_sample


class Format(NamedTuple):
    """A wire format as the tests need it."""

    api: str
    """Its name, which is also the folder of its snapshots."""
    sample_api: str
    """What recorded streams call it."""
    new: Callable[..., Codec]
    """A codec for the server at `base_url` (a keyword, optional), whose ids can be foretold."""
    check: Callable[[bytes], list[str]]
    """What a strict server would say against a request body; empty when it would take it."""

    @property
    def origin(self) -> Origin:
        """Of a reply in this format."""
        return Origin(self.api, "demo", "demo-model")


def _format_of(protocol: WireProtocol) -> Format:
    """From the module of tests that belongs to the protocol, `wire/FOLDER_checker.py`."""
    module = import_module(f"wire.{protocol.folder}_checker")
    return Format(protocol.name, module.SAMPLE_API, module.new_codec, module.check_request)


def has_checker(protocol: WireProtocol) -> bool:
    """Whether the protocol can go through the tables of cases; `test_every_protocol_has_a_checker` fails otherwise."""
    return find_spec(f"wire.{protocol.folder}_checker") is not None


FORMATS = tuple(_format_of(protocol) for protocol in PROTOCOLS if has_checker(protocol))
BY_API = {one.api: one for one in FORMATS}
BY_SAMPLE_API = {one.sample_api: one for one in FORMATS}


def sample_names() -> list[str]:
    """The recorded streams of all formats, sorted."""
    return sorted(path.stem for path in SAMPLES.glob("*.json") if read_sample(path.stem)["api"] in BY_SAMPLE_API)
