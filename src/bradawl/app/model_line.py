"""How the model of the settings is reached: wire format, endpoint, key and deadlines."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from bradawl.app.model_settings import ModelSettings

if TYPE_CHECKING:
    from bradawl.providers.codec import Codec
    from bradawl.providers.compat import CompatProfile
    from bradawl.providers.connection import ModelEndpoint
    from bradawl.providers.deadlines import Deadlines
    from bradawl.providers.keys import KeySource


def build_line(chosen: ModelSettings, environment: Mapping[str, str]) -> "ModelEndpoint":
    """How a model that is no script is reached: wire format, endpoint, key and patience."""
    from bradawl.providers.codec import Endpoint
    from bradawl.providers.connection import ModelEndpoint
    from bradawl.providers.keys import FixedKey

    keys: KeySource = FixedKey(chosen.api_key)
    if chosen.key_command:
        from bradawl.app.keys import CommandKey
        from bradawl.app.own_programs import for_key_command

        keys = CommandKey(chosen.key_command, chosen.provider, for_key_command(environment))
    endpoint = Endpoint(
        chosen.provider,
        chosen.base_url,
        chosen.name,
        chosen.api_key,
        chosen.headers,
        chosen.key_name,
        chosen.key_origin,
    )
    codec, deadlines = _codec(chosen)
    return ModelEndpoint(codec, endpoint, keys, deadlines)


def _codec(chosen: ModelSettings) -> "tuple[Codec, Deadlines]":
    if chosen.api == "anthropic_messages":
        from bradawl.providers.compat import WAITS
        from bradawl.providers.deadlines import deadlines_for
        from bradawl.providers.messages.codec import AnthropicMessages
        from bradawl.providers.messages.profile import messages_profile_for

        own = {name: value for name, value in chosen.compat.items() if name not in WAITS}
        waits = {name: value for name, value in chosen.compat.items() if name in WAITS}
        messages = msgspec.structs.replace(messages_profile_for(chosen.base_url), **own)
        deadlines = msgspec.structs.replace(deadlines_for(chosen.base_url), **waits)
        return AnthropicMessages(chosen.base_url, profile=messages), deadlines
    from bradawl.providers.compat_table import profile_for

    profile = profile_for(chosen.base_url, chosen.name, chosen.compat)
    if chosen.api == "openai_responses":
        from bradawl.providers.responses.codec import OpenAIResponses

        return OpenAIResponses(chosen.base_url, profile=profile), _deadlines(chosen, profile)
    from bradawl.providers.chat.codec import OpenAIChat

    return OpenAIChat(chosen.base_url, profile=profile), _deadlines(chosen, profile)


def _deadlines(chosen: ModelSettings, profile: "CompatProfile") -> "Deadlines":
    """The user's word where there is one, else the longer of what place and family of the server need."""
    from bradawl.providers.deadlines import deadlines_for

    place = deadlines_for(chosen.base_url)
    said = chosen.compat.keys()
    return msgspec.structs.replace(
        place,
        first_byte_s=profile.first_byte_s if "first_byte_s" in said else max(place.first_byte_s, profile.first_byte_s),
        idle_s=profile.idle_s if "idle_s" in said else max(place.idle_s, profile.idle_s),
        content_s=profile.content_s if "content_s" in said else max(place.content_s, profile.content_s),
    )
