"""How much room a conversation has: the model's window, if it is known, without what the reply needs."""

from bradawl.agent.prefix import PrefixLedger
from bradawl.core.ports import Model
from bradawl.shaping.compaction.limits import Room, reserved_output

_WORTH_ASKING = 2_500
"""Tokens; a server is not asked for its window before."""
_LESS = 0.7
"""What the window is taken to be after each overflow: the estimate may be wrong."""


class RoomInWindow:
    """The room of one conversation, asked for before each step."""

    def __init__(self, prefix: PrefixLedger, model: Model) -> None:
        self._prefix, self._model = prefix, model
        self._window: int | None = None
        self._ask_from = _WORTH_ASKING

    async def known(self, tokens: int, asked_output: int | None) -> Room | None:
        """The room in the real window; None if it is not known. `tokens` is the size of the conversation now."""
        window = self._prefix.info.context_window or self._window
        if window is None and tokens >= self._ask_from:
            # A local server says it once the model is loaded. It is asked rarely, because many never do.
            self._ask_from = 2 * tokens
            found = await self._model.window()
            window = self._window = None if found.source == "assumed" else found.tokens
        return None if window is None else self._room(window, asked_output)

    def after_overflow(self, tokens: int, times: int) -> Room:
        """The room if a request with this many tokens was too long, for the `times`-th time in a row."""
        window = self._prefix.info.context_window or self._window or tokens
        return self._room(round(min(window, tokens) * _LESS**times), 0)

    def _room(self, window: int, asked_output: int | None) -> Room:
        reserved, factor = reserved_output(window, asked_output, self._prefix.info.max_output), self._prefix.factor
        return Room(round(window / factor), round((window - reserved) / factor), self._prefix.opening_tokens)
