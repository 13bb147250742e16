"""SHA-256 digests as the port `Files` takes and gives them."""

from hashlib import sha256


def sha(data: bytes) -> str:
    return sha256(data).hexdigest()
