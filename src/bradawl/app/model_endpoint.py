"""Makes the endpoint of the configured model: wire protocol, address, source of the key, deadlines."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bradawl.app.settings.model_settings import ModelSettings
from bradawl.providers.protocols import PROTOCOLS, WireProtocol, protocol_named

if TYPE_CHECKING:
    from bradawl.providers.connection import ModelEndpoint
    from bradawl.providers.keys import KeySource


def model_endpoint(
    chosen: ModelSettings, environment: Mapping[str, str], protocols: Sequence[WireProtocol] = PROTOCOLS
) -> "ModelEndpoint":
    """The endpoint of a model that is not scripted: its codec, address, key and deadlines."""
    from bradawl.providers.codec import Endpoint
    from bradawl.providers.connection import ModelEndpoint
    from bradawl.providers.keys import FixedKey

    keys: KeySource = FixedKey(chosen.api_key)
    if chosen.key_command:
        from bradawl.app.program_paths import key_command_environment
        from bradawl.app.settings.credentials import CommandKey

        keys = CommandKey(chosen.key_command, chosen.provider, key_command_environment(environment))
    elif chosen.key_in_keyring:
        from bradawl.app.settings.system_keyring import KeyringKey

        keys = KeyringKey(chosen.provider)
    endpoint = Endpoint(
        chosen.provider,
        chosen.base_url,
        chosen.name,
        chosen.api_key,
        chosen.headers,
        chosen.key_name,
        chosen.key_origin,
    )
    protocol = protocol_named(chosen.api, protocols)
    codec, deadlines = protocol.open_codec(chosen.base_url, chosen.name, chosen.compat)

    def assumed() -> int | None:
        from bradawl.app.catalog_facts import assumed_window  # only where nothing else tells the window

        return assumed_window(chosen.provider, chosen.name)

    return ModelEndpoint(codec, endpoint, keys, deadlines, assumed)
