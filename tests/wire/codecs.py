"""The wire formats under test, from the table of protocols. Every table of cases runs with each of them."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from bradawl.core.messages import Origin
from bradawl.providers.codec import Codec
from bradawl.providers.protocols import PROTOCOLS, WireProtocol
from wire.replay import SAMPLES, read_sample


class Format(NamedTuple):
    """A wire format with its codec, its request checker and the origin of its replies."""

    api: str
    """Name of the format, and of the folder of its snapshots."""
    sample_api: str
    """The format's name in recorded streams."""
    new: Callable[..., Codec]
    """Returns a codec with predictable ids for the server at `base_url` (keyword, optional)."""
    check: Callable[[bytes], list[str]]
    """Violations in a request body; empty if a strict server would accept it."""

    @property
    def origin(self) -> Origin:
        """Origin of a reply in this format."""
        return Origin(self.api, "demo", "demo-model")


def _format_of(protocol: WireProtocol) -> Format:
    """The format of a protocol, from its test module `wire/FOLDER_checker.py`."""
    module = import_module(f"wire.{protocol.folder}_checker")
    return Format(protocol.name, module.SAMPLE_API, module.new_codec, module.check_request)


def has_checker(protocol: WireProtocol) -> bool:
    """Whether the protocol can go through the tables of cases; `test_every_protocol_has_a_checker` fails otherwise."""
    return find_spec(f"wire.{protocol.folder}_checker") is not None


FORMATS = tuple(_format_of(protocol) for protocol in PROTOCOLS if has_checker(protocol))
BY_API = {one.api: one for one in FORMATS}
BY_SAMPLE_API = {one.sample_api: one for one in FORMATS}


def sample_names() -> list[str]:
    """Names of the recorded streams of all formats, sorted."""
    return sorted(path.stem for path in SAMPLES.glob("*.json") if read_sample(path.stem)["api"] in BY_SAMPLE_API)
