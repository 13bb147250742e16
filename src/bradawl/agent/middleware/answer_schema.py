"""Checks the final answer of a turn against a JSON Schema; the model may correct it once."""

from bradawl.agent.middleware import Continue, Finish, Middleware, StepOutcome
from bradawl.core.errors import Failure, SettingsError
from bradawl.core.events import RequestParams, TurnFinished
from bradawl.shaping.json_answer import CheckFor, FindError, NotJson, read_answer

_ASKED_AGAIN = (
    "Your answer does not satisfy the JSON Schema it must satisfy: {wrong}. Answer again, with the whole corrected "
    "JSON value alone: no other words, no code fence. The schema is:\n{schema}"
)


class AnswerSchemaCheck(Middleware):
    """Ends a turn with the value of its answer, or with an error if the corrected answer is still wrong."""

    def __init__(self, check_for: CheckFor | None) -> None:
        self._check_for = check_for
        self._find_error: FindError | None = None
        self._schema = ""
        self._was_asked_again = False

    def begin_turn(self, params: RequestParams) -> None:
        """Make the check for the schema of this turn. Raises `SettingsError`."""
        self._find_error, self._schema, self._was_asked_again = None, params.answer_schema, False
        if not self._schema:
            return
        if self._check_for is None:
            raise SettingsError("This agent can't check answers: give it `check_for`, which makes checks of schemas.")
        self._find_error = self._check_for(self._schema)

    async def after_step(self, outcome: StepOutcome) -> Continue | Finish | None:
        """Check a final answer: finish with its value, or have the model answer once more."""
        if self._find_error is None or outcome.ending is None or outcome.ending.failure is not None:
            return None
        value, text, wrong = _checked(self._find_error, outcome.answer)
        if not wrong:
            return Finish(outcome.ending, text, value)
        if self._was_asked_again:
            message = f"The answer does not satisfy the JSON Schema: {wrong}."
            hint = "Ask again, say in the prompt what the fields mean, or use another model."
            return Finish(TurnFinished("error", Failure("bad_answer", message, hint=hint)))
        self._was_asked_again = True
        return Continue(_ASKED_AGAIN.format(wrong=wrong, schema=self._schema))


def _checked(find_error: FindError, answer: str) -> tuple[object, str, str]:
    """The value of an answer, its JSON, and what is wrong with it."""
    try:
        value, text = read_answer(answer)
    except NotJson as error:
        return None, "", str(error)
    return value, text, find_error(value)
