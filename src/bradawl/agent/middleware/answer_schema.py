"""An answer that must satisfy a JSON Schema: always checked, asked for once more, then an error."""

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from bradawl.core.errors import Failure, SettingsError
from bradawl.core.events import TurnFinished

if TYPE_CHECKING:
    from bradawl.agent.session import Session

WhatIsWrong = Callable[[object], str]
"""Says what is wrong with a value; nothing if it satisfies the schema."""
CheckFor = Callable[[str], WhatIsWrong]
"""Makes the check for a JSON Schema given as text. Raises `SettingsError` if it is none."""
AnswerSchema = str | Mapping[str, object]
"""A JSON Schema as text or as an object."""

_FENCED = r"(?msi)^[ \t]*(`{3,}|~{3,})[ \t]*(?:json)?[ \t]*\r?\n(.*?)^[ \t]*\1[ \t]*$"

_ALL_FENCED = r"(?si)\s*(`{3,}|~{3,})[ \t]*(?:json)?[ \t]*\r?\n(.*)\n[ \t]*\1\s*"


class NotJson(ValueError):
    """A text holds no JSON value, or more than one."""


def schema_text(schema: AnswerSchema) -> str:
    """The schema as requests carry it. Raises `SettingsError`."""
    if isinstance(schema, str):
        return schema
    try:
        return json.dumps(schema, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"The answer's JSON Schema can't be written as JSON: {error}.") from error


def read_answer(text: str) -> tuple[object, str]:
    """The value an answer holds, and its JSON as the model wrote it; a code fence around it is taken off.

    Words around one fenced block are passed over. Raises `NotJson`.
    """
    try:
        return _value(text), text.strip()
    except NotJson as error:
        inner = _unwrapped(text)
        if inner is None:
            raise
        if not isinstance(inner, str):
            raise NotJson("it holds more than one block of code") from error
    return _value(inner), inner.strip()


def _unwrapped(text: str) -> str | list[str] | None:
    """What stands in the one fence there is; of several what each holds; None if there is none."""
    blocks = [block[2] for block in re.finditer(_FENCED, text)]
    if len(blocks) == 1:
        return blocks[0]
    # The JSON itself may hold fences, so the outermost two are tried as well.
    whole = re.fullmatch(_ALL_FENCED, text)
    if whole and not any(map(_is_json, blocks)):
        return whole[2]
    return blocks or None


def _is_json(text: str) -> bool:
    try:
        _value(text)
    except NotJson:
        return False
    return True


def _value(text: str) -> object:
    if not text.strip():
        raise NotJson("it is empty")
    try:
        return msgspec.json.decode(text)
    except RecursionError as error:
        raise NotJson("it is nested too deeply") from error
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise NotJson(f"it is not JSON alone: {error}") from error


class AnswerCheck:
    """Looks at the final answer of each turn of a session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._what_is_wrong: WhatIsWrong | None = None
        self._was_asked_again = False
        self.value: object = None
        """The answer of this turn once it has been found good."""
        self.text = ""
        """Its JSON."""

    def begin_turn(self, schema: str) -> None:
        """Check against this schema from now on; empty means that any text will do. Raises `SettingsError`."""
        self._what_is_wrong, self._was_asked_again, self.value, self.text = None, False, None, ""
        if not schema:
            return
        check_for = self._session.agent.check_for
        if check_for is None:
            raise SettingsError("This agent can't check answers: give it `check_for`, which makes checks of schemas.")
        self._what_is_wrong = check_for(schema)

    def look(self, finished: TurnFinished) -> TurnFinished | None:
        """Let the turn go on once when its answer is not as it must be; the second time it ends with an error."""
        if self._what_is_wrong is None or finished.failure is not None:
            return finished
        wrong = self._judge(self._what_is_wrong, self._session.output_limit.text())
        if not wrong:
            return finished
        if self._was_asked_again:
            text = f"The answer does not satisfy the JSON Schema: {wrong}."
            hint = "Ask again, say in the prompt what the fields mean, or use another model."
            return TurnFinished("error", Failure("bad_answer", text, hint=hint))
        self._was_asked_again = True
        self._session.output_limit.begin_answer()
        self._session.note(
            f"Your answer does not satisfy the JSON Schema it must satisfy: {wrong}. Answer again, with the whole "
            "corrected JSON value alone: no other words, no code fence. The schema is:\n"
            + self._session.params.answer_schema
        )
        return None

    def _judge(self, what_is_wrong: WhatIsWrong, text: str) -> str:
        try:
            value, written = read_answer(text)
        except NotJson as error:
            return str(error)
        wrong = what_is_wrong(value)
        if not wrong:
            self.value, self.text = value, written
        return wrong
