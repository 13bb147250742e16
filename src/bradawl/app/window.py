"""Tells the user when a conversation grows and nobody has said how much the model holds."""

from typing import Final

from bradawl.core.ports import Model
from bradawl.core.state import SessionState

LONG_TOKENS: Final = 16_000
"""Half of what is assumed of a local model; below it one prompt is not worth asking a server for."""
_NEARLY_FULL: Final = 0.9


class WindowWatch:
    """Looks at a conversation after each turn; says each thing once."""

    def __init__(self, model: Model, *, is_local: bool, from_tokens: int) -> None:
        """`is_local`: the model runs on this machine. Shorter conversations than `from_tokens` are not looked at."""
        self._model = model
        self._is_local = is_local
        self._from_tokens = from_tokens
        self._said: set[str] = set()

    async def look(self, state: SessionState) -> str | None:
        """What the user should know now, if anything; may ask a local server once, for a second at most."""
        used = state.context_tokens
        if used < self._from_tokens:
            return None
        window = await self._model.window()
        if window.source == "assumed":
            if not self._is_local:
                return None
            return self._once(
                "assumed",
                f"The server does not say how long a context {self._model.info.origin.model} runs with; "
                f"{window.tokens:,} tokens are assumed. Set it with --context-window N.",
            )
        if used > window.tokens * _NEARLY_FULL:
            return self._once(
                "full",
                f"The conversation fills {used:,} of {window.tokens:,} tokens of the model's context window; "
                "begin a new session soon.",
            )
        return None

    def _once(self, name: str, text: str) -> str | None:
        if name in self._said:
            return None
        self._said.add(name)
        return text
