"""An answer that must satisfy a JSON Schema: always checked, asked for once more, then an error."""

from typing import TYPE_CHECKING

from bradawl.core.errors import Failure, SettingsError
from bradawl.core.events import TurnFinished
from bradawl.shaping.json_answer import FindError, NotJson, read_answer

if TYPE_CHECKING:
    from bradawl.agent.session import Session


class AnswerCheck:
    """Looks at the final answer of each turn of a session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._find_error: FindError | None = None
        self._was_asked_again = False
        self.value: object = None
        """The answer of this turn once it has been found good."""
        self.text = ""
        """Its JSON."""

    def begin_turn(self, schema: str) -> None:
        """Check against this schema from now on; empty means that any text will do. Raises `SettingsError`."""
        self._find_error, self._was_asked_again, self.value, self.text = None, False, None, ""
        if not schema:
            return
        check_for = self._session.agent.check_for
        if check_for is None:
            raise SettingsError("This agent can't check answers: give it `check_for`, which makes checks of schemas.")
        self._find_error = check_for(schema)

    def look(self, finished: TurnFinished) -> TurnFinished | None:
        """Let the turn go on once when its answer is not as it must be; the second time it ends with an error."""
        if self._find_error is None or finished.failure is not None:
            return finished
        wrong = self._judge(self._find_error, self._session.output_limit.text())
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

    def _judge(self, find_error: FindError, text: str) -> str:
        try:
            value, written = read_answer(text)
        except NotJson as error:
            return str(error)
        wrong = find_error(value)
        if not wrong:
            self.value, self.text = value, written
        return wrong
