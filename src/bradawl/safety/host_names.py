"""Host names: their syntax, the names that no command may reach, and those that only private networks know. Pure.

Rules and settings, the network proxy and `bradawl permissions check` judge names with these functions.
"""

import re
from typing import Final

WHY_PRIVATE: Final = "a name of a private network, which `network` in the settings does not name"
"""Why a name for which `is_private_name` holds is refused."""
IS_ADDRESS: Final = "that is an address; addresses are not permitted, only host names"
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LONGEST_NAME: Final = 253
_ENCODED: Final = "xn--"
_SEPARATORS: Final = frozenset("./:@\u3002\uff0e\uff61")
_OF_THIS_MACHINE: Final = frozenset({"localhost", "localdomain"})
_METADATA: Final = frozenset({"metadata.google.internal", "metadata.goog", "instance-data.ec2.internal"})
_OF_NETWORKS: Final = frozenset({"local", "internal", "intranet", "lan", "home", "corp", "private", "arpa", "test"})
"""Top-level names that private networks use. A proxy of the user's may resolve them, so that no address is checked."""


def why_not_a_host_name(name: str) -> str:
    """Why a text in lower case, without a dot at the end, is not a host name; empty if it is one."""
    if not name:
        return "an empty text is not the name of a host"
    if not name.isascii():
        return "the host name is not ASCII; international names are sent in their xn-- form"
    if len(name) > _LONGEST_NAME:
        return f"the host name is longer than {_LONGEST_NAME} characters"
    labels = name.split(".")
    # Resolvers read 127.1, 0x7f000001 and 2130706433 as addresses.
    if _NUMBER.fullmatch(labels[-1]):
        return IS_ADDRESS
    if not all(map(_LABEL.fullmatch, labels)):
        return "that is not the name of a host"
    if not all(_is_decodable(label) for label in labels if label.startswith(_ENCODED)):
        return "a part of the name that begins with xn-- is not valid punycode"
    return ""


def _is_decodable(label: str) -> bool:
    """Whether a label in punycode stands for letters that need it."""
    try:
        decoded = label[len(_ENCODED) :].encode().decode("punycode")
    except (UnicodeError, ValueError, OverflowError):
        return False
    return not decoded.isascii() and decoded.isprintable() and not set(decoded) & _SEPARATORS


def why_never_reached(name: str) -> str:
    """Why no command may ever reach a host of this name; empty for all others."""
    if name.rpartition(".")[2] in _OF_THIS_MACHINE:
        return "the name of this machine; inside the sandbox, localhost needs no proxy"
    return "cloud metadata is never reachable" if name in _METADATA else ""


def is_private_name(name: str) -> bool:
    """Whether only private networks know such a name: it has one label, or a top-level name that is not public."""
    return "." not in name or name.rpartition(".")[2] in _OF_NETWORKS
