"""The texts of a session's user, and what acts on them before and after a turn."""

from collections.abc import Callable

from bradawl.agent.configuration import AroundTurns
from bradawl.agent.conversation import Conversation
from bradawl.core.messages import Document, Image, Text
from bradawl.core.permissions import Policy

Prompt = str | tuple[Text | Image | Document, ...]


def own_words(prompt: Prompt) -> str:
    """The first text of a prompt. Further texts are material, such as what was piped in, and name no paths."""
    if isinstance(prompt, str):
        return prompt
    return next((part.text for part in prompt if isinstance(part, Text)), "")


class UsersTexts:
    """Passes the texts of the user on to the `AroundTurns` of a session, if it has one."""

    def __init__(
        self,
        around: AroundTurns | None,
        conversation: Conversation,
        policy: Callable[[], Policy],
        earlier: tuple[str, ...] = (),
    ) -> None:
        """`earlier` are the prompts of a resumed session. `policy` returns the session's at that moment."""
        self._around, self._conversation, self._policy = around, conversation, policy
        self._earlier = earlier

    def begin_turn(self, prompt: Prompt) -> None:
        """Called with the prompt of a turn before it runs."""
        if self._around is not None:
            earlier, self._earlier = self._earlier, ()
            self._around.begin_turn((*earlier, own_words(prompt)), self._policy)

    def add(self, text: str) -> None:
        """Called with a message that is sent during a turn."""
        if self._around is not None:
            self._around.begin_turn((text,), self._policy)

    def end_turn(self) -> tuple[str, ...]:
        """Returns what the user asked for and did not get. The user is told now, the model when the session goes on."""
        if self._around is None:
            return ()
        end = self._around.end_turn()
        for text in (*end.notices, *end.failures):
            self._conversation.warn(text)
        if end.failures:
            self._conversation.note("\n".join(end.failures))
        return end.failures
