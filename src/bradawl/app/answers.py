"""The last answers of an open session."""

from typing import TYPE_CHECKING

from bradawl.core.errors import SessionError
from bradawl.core.events import AssistantReplied, PromptSubmitted
from bradawl.core.messages import Assistant, User
from bradawl.folds.answers import Answers, answers_in

if TYPE_CHECKING:
    from bradawl.app.frontend import FrontendSession


def answers_of(session: "FrontendSession") -> Answers:
    """What the model said last, from the log, or from the transcript if the log can't be read."""
    try:
        return answers_in(session.session.conversation.entries())
    except SessionError:
        answers = Answers()
    for message in session.messages:
        match message:
            case User(parts) if parts:
                answers.take(PromptSubmitted(parts))
            case Assistant():
                answers.take(AssistantReplied(0, message, "end_turn"))
            case _:
                pass
    return answers
