"""Warns when a conversation outgrows the model's context window, or the size of that window is unknown."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from bradawl.core.deltas import Notice
from bradawl.core.errors import BradawlError
from bradawl.core.events import Envelope, Live, RequestSent
from bradawl.core.ports import Emit, Model
from bradawl.folds.session_state import SessionState

LONG_TOKENS: Final = 16_000
"""Half of the window assumed for a local model; shorter prompts are not worth a request to the server."""
_NEARLY_FULL: Final = 0.9
_SILENTLY_CUT: Final = 0.5
"""A server that counts less than this part of the estimate has dropped some of the conversation."""
_WORTH_SAYING: Final = 2_000

T = TypeVar("T")

_FIXES: Final = {
    "ollama": "start it with `OLLAMA_CONTEXT_LENGTH={tokens} ollama serve`, or set `PARAMETER num_ctx {tokens}` "
    "in a Modelfile",
    "lmstudio": "load the model again with `lms load {model} --context-length {tokens}`",
    "llamacpp": "start it with `llama-server -c {tokens}`",
    "vllm": "start it with `--max-model-len {tokens}`",
    "sglang": "start it with `--context-length {tokens}`",
}


def longer_context(provider: str, model: str, needed: int) -> str:
    """How to start a local server with a context window for twice `needed` tokens."""
    tokens = next((size for size in (16_384, 32_768, 65_536, 131_072) if size >= needed * 2), 262_144)
    fix = _FIXES.get(provider, "start the server with a context of at least {tokens} tokens")
    return fix.format(tokens=tokens, model=model)


class WindowWatch:
    """Checks a conversation during and after its turns; gives each warning once."""

    def __init__(self, model: Model, *, is_local: bool, from_tokens: int, is_compacted: bool = False) -> None:
        """`is_local`: the model runs on this machine. Conversations shorter than `from_tokens` are not checked.

        `is_compacted`: a conversation that fills the window is compacted.
        """
        self._model = model
        self._is_local = is_local
        self._from_tokens = from_tokens
        self._is_compacted = is_compacted
        self._said: set[str] = set()

    async def during(self, run: Callable[[Emit], Awaitable[T]], emit: Emit, notify: Callable[[str], None]) -> T:
        """Run a turn; at its first step pass a warning to `notify` if the window of a local model is too small for it.

        The server is asked while it answers, because the model is loaded then. Only a local server is asked.
        """
        if not self._is_local:
            return await run(emit)
        answered = asyncio.Event()
        estimated = 0

        def note(item: Envelope | Live) -> None:
            nonlocal estimated
            if isinstance(item, Live):
                if not isinstance(item.item, Notice):
                    answered.set()
            elif isinstance(item.event, RequestSent) and not answered.is_set():
                estimated = item.event.estimated_tokens
            emit(item)

        async def check() -> None:
            await answered.wait()
            if estimated < _WORTH_SAYING:
                return
            if (warning := await self._too_small(estimated)) is not None:
                notify(warning)

        failed: BradawlError | None = None
        async with asyncio.TaskGroup() as group:
            checking = group.create_task(check())
            try:
                return await run(note)
            except BradawlError as error:
                failed = error  # not wrapped in a group: callers tell these errors apart
            finally:
                checking.cancel()
        raise failed

    async def after_turn(self, state: SessionState) -> str | None:
        """A warning after a turn, or None; may ask a local server, which takes a second at most."""
        if (cut := self._silently_cut(state)) is not None:
            return cut
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
        if used > window.tokens * _NEARLY_FULL and not self._is_compacted:
            return self._once(
                "full",
                f"The conversation fills {used:,} of {window.tokens:,} tokens of the model's context window; "
                "shorten it with /compact, or begin a new session.",
            )
        return None

    async def _too_small(self, estimated: int) -> str | None:
        window = await self._model.window()
        if window.source != "server" or estimated <= window.tokens:
            return None
        origin = self._model.info.origin
        return self._once(
            "cut",
            f"{origin.model} runs with a context of {window.tokens:,} tokens, and this conversation already takes some "
            f"{estimated:,}: the server may leave out its beginning silently. To give it room, "
            f"{longer_context(origin.provider, origin.model, estimated)}.",
        )

    def _silently_cut(self, state: SessionState) -> str | None:
        """Some local servers drop what does not fit and answer without an error."""
        counted, estimated = state.context_tokens, state.estimated_tokens
        if not self._is_local or not state.is_anchored or not 0 < counted < estimated * _SILENTLY_CUT:
            return None
        if estimated < _WORTH_SAYING:
            return None
        origin = self._model.info.origin
        return self._once(
            "cut",
            f"The server counted {counted:,} tokens of a conversation of some {estimated:,}: it seems to leave out the "
            f"beginning silently. To give it room, {longer_context(origin.provider, origin.model, estimated)}.",
        )

    def _once(self, name: str, text: str) -> str | None:
        if name in self._said:
            return None
        self._said.add(name)
        return text
