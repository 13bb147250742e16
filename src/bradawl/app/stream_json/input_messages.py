"""The lines of stdin with `--input-format stream-json`: prompts, and requests and answers of the control channel."""

from base64 import b64decode
from collections.abc import Iterator
from typing import Final, cast

import msgspec

from bradawl.core.arguments import decode, is_object
from bradawl.core.messages import Document, Image, Text

Json = dict[str, object]
_SHOWN: Final = 100


class UnreadableLine(Exception):
    """A line is not a JSON object with a type; nothing that follows it can be trusted to be one."""


class UserPrompt(msgspec.Struct, frozen=True):
    """A message of the user."""

    parts: tuple[Text | Image | Document, ...]
    content: str | tuple[Json, ...]
    """As it came."""
    uuid: str = ""
    is_verbatim: bool = False
    """A text that begins with a slash is no command."""


class WrongPrompt(msgspec.Struct, frozen=True):
    """A message of the user that can't be sent to a model."""

    problem: str
    uuid: str = ""


class Request(msgspec.Struct, frozen=True):
    """A request of the control channel."""

    id: str
    subtype: str
    fields: Json


class Response(msgspec.Struct, frozen=True):
    """The answer to a request of bradawl; `error` is empty if it was carried out."""

    request_id: str
    value: Json
    error: str = ""


class Other(msgspec.Struct, frozen=True):
    """A message of a type that means nothing here."""

    type: str


Incoming = UserPrompt | WrongPrompt | Request | Response | Other


def parse_line(line: bytes) -> Incoming | None:
    """The message on a line; None for a blank line. Raises `UnreadableLine`."""
    text = line.decode("utf-8", "replace").strip()
    if not text:
        return None
    try:
        message = _whole(decode(text))
    except RecursionError as error:
        raise UnreadableLine("it is nested too deeply") from error
    except ValueError as error:
        raise UnreadableLine(f"it is not JSON: {error}") from error
    if not is_object(message) or not isinstance(kind := message.get("type"), str):
        raise UnreadableLine('it is not a JSON object with a text "type"')
    match kind:
        case "user":
            return _prompt(message)
        case "control_request":
            return _request(message)
        case "control_response":
            return _response(message)
        case _:
            return Other(kind)


def _whole(value: object) -> object:
    """The value without half characters, which can't be encoded again."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole(each) for each in cast("list[object]", value)]
    if is_object(value):
        return {str(_whole(key)): _whole(each) for key, each in value.items()}
    return value


def _text(message: Json, name: str) -> str:
    value = message.get(name)
    return value if isinstance(value, str) else ""


def _request(message: Json) -> Request:
    request = message.get("request")
    request_id = _text(message, "request_id")
    if not request_id or not is_object(request) or not isinstance(subtype := request.get("subtype"), str):
        raise UnreadableLine('a control_request needs "request_id" and "request" with a "subtype"')
    return Request(request_id, subtype, {name: value for name, value in request.items() if name != "subtype"})


def _response(message: Json) -> Response:
    response = message.get("response")
    if not is_object(response) or not (request_id := _text(response, "request_id")):
        raise UnreadableLine('a control_response needs "response" with a "request_id"')
    if response.get("subtype") != "success":
        return Response(request_id, {}, _text(response, "error") or "no reason was given")
    value = response.get("response")
    return Response(request_id, value if is_object(value) else {})


# ------------------------------------------------------------------ prompts


class _WrongBlock(Exception):
    """Part of a message is nothing that a user can send."""


def _prompt(message: Json) -> UserPrompt | WrongPrompt:
    uuid = _text(message, "uuid")
    try:
        content = _content(message)
        parts = (Text(content),) if isinstance(content, str) else tuple(_joined(map(_part, content)))
        _check_says_something(parts)
    except _WrongBlock as error:
        return WrongPrompt(f"The message can't be used: {error}.", uuid)
    is_verbatim = message.get("client_composed") is True
    return UserPrompt(
        parts, content if isinstance(content, str) else tuple(cast("list[Json]", content)), uuid, is_verbatim
    )


def _content(message: Json) -> str | list[object]:
    inner = message.get("message")
    if not is_object(inner):
        raise _WrongBlock('it has no "message"')
    if (role := inner.get("role", "user")) != "user":
        raise _WrongBlock(f"its role is {str(role)[:_SHOWN]!r}, and only user is possible")
    content = inner.get("content")
    if not isinstance(content, str | list):
        raise _WrongBlock('its "content" is neither a text nor a list of blocks')
    return content


def _check_says_something(parts: tuple[Text | Image | Document, ...]) -> None:
    if not any(not isinstance(part, Text) or part.text.strip() for part in parts):
        raise _WrongBlock("it is empty")


def _joined(parts: Iterator[Text | Image | Document]) -> Iterator[Text | Image | Document]:
    """The parts, with texts that follow each other as one: further texts of a prompt are material, not its words."""
    text = ""
    for part in parts:
        if isinstance(part, Text):
            text = f"{text}\n{part.text}" if text else part.text
            continue
        if text:
            yield Text(text)
            text = ""
        yield part
    if text:
        yield Text(text)


def _part(block: object) -> Text | Image | Document:
    kind = block.get("type") if is_object(block) else None
    if is_object(block) and kind == "text" and isinstance(text := block.get("text"), str):
        return Text(text)
    if is_object(block) and kind in ("image", "document") and is_object(source := block.get("source")):
        return _file(str(kind), source, _text(block, "title"))
    raise _WrongBlock(f"a block of the type {str(kind)[:_SHOWN]!r} is no text, image or document of a user")


def _file(kind: str, source: Json, title: str) -> Text | Image | Document:
    if kind == "document" and source.get("type") == "text" and (text := _text(source, "data")):
        return Text(text)
    media_type = _text(source, "media_type")
    if source.get("type") != "base64" or not media_type:
        raise _WrongBlock(f'the source of a block of the type {kind} must be of the type base64, with "media_type"')
    try:
        data = b64decode(_text(source, "data"), validate=True)
    except ValueError as error:
        raise _WrongBlock(f"the data of a block of the type {kind} is not base64: {error}") from error
    if not data:
        raise _WrongBlock(f"the data of a block of the type {kind} is empty")
    return Image(media_type, data) if kind == "image" else Document(media_type, data, title)
