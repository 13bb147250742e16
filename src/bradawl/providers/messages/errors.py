"""The error code of the Messages protocol. Pure."""

from typing import cast

import msgspec

from bradawl.core.errors import Failure


def with_code(failure: Failure, error: object) -> Failure:
    """The failure with the API's own code: `details.error_code` if present, else the error's type.

    `error` is the decoded body or event.
    """
    body = _object(_object(error).get("error"))
    code = _object(body.get("details")).get("error_code") or failure.code or body.get("type")
    return msgspec.structs.replace(failure, code=code) if isinstance(code, str) and code else failure


def _object(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
