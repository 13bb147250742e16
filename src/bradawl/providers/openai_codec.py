"""What the codecs of OpenAI's two protocols share: the profile of the server, new ids and the time."""

import time
from collections.abc import Callable, Mapping
from typing import TypedDict, TypeVar, Unpack

from bradawl.core.ports import ModelInfo
from bradawl.providers.compat import CompatProfile
from bradawl.providers.compat_table import for_model, profile_for
from bradawl.providers.deadlines import Deadlines, deadlines_of
from bradawl.providers.encoding import new_call_id


class CodecOptions(TypedDict, total=False):
    """Optional arguments of a codec."""

    profile: CompatProfile | None
    """The profile of server and model; None, the default: the one of the host."""
    new_id: Callable[[], str]
    """Gives ids to calls without one."""
    now_s: Callable[[], float]
    """Gives Unix time in seconds, for retry times sent as a date."""


class OpenAICodec:
    """The codec for the server at `base_url`.

    An optional field that the server refuses is left out of later requests.
    """

    def __init__(self, base_url: str = "", **options: Unpack[CodecOptions]) -> None:
        profile = options.get("profile")
        self._profile = profile or profile_for(base_url)
        self._knows_model = profile is not None
        self._new_id = options.get("new_id", new_call_id)
        self._now_s = options.get("now_s", time.time)

    @property
    def profile(self) -> CompatProfile:
        """The server's profile, without the fields it has refused."""
        return self._profile

    def _fit_profile_to(self, info: ModelInfo) -> None:
        """Change the host's profile to the one of a model, for the first conversation with one."""
        if not self._knows_model:
            self._profile = for_model(self._profile, info.origin.model)
            self._knows_model = True


Made = TypeVar("Made", bound=OpenAICodec)


def open_openai_codec(
    codec: type[Made], base_url: str, model: str, compat: Mapping[str, object]
) -> tuple[Made, Deadlines]:
    """A codec for the server at `base_url`, and its deadlines. Raises `ValueError` for fields that are none."""
    profile = profile_for(base_url, model, compat)
    return codec(base_url, profile=profile), deadlines_of(base_url, profile, compat)
