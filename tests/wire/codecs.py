"""The wire formats under test: every table of cases and every recorded stream goes through all of them."""

from collections.abc import Callable
from typing import NamedTuple

from bradawl.core.messages import Origin
from bradawl.providers.codec import Codec
from wire import anthropic_checker, responses_checker
from wire.anthropic_streams import messages
from wire.replay import chat
from wire.request_checker import check_request
from wire.responses_checker import responses


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


FORMATS = (
    Format("openai_chat", "openai_chat", chat, check_request),
    Format("openai_responses", "openai_responses", responses, responses_checker.check_request),
    Format("anthropic_messages", "anthropic", messages, anthropic_checker.check_request),
)
BY_API = {one.api: one for one in FORMATS}
BY_SAMPLE_API = {one.sample_api: one for one in FORMATS}
