"""The prefix of all requests: system prompt, tools, and the messages already sent.

A prefix only grows. Whatever else happens to it, such as another model or other tools, opens a new prefix, and the log
says why.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Never, cast

import msgspec

from bradawl.agent.conversation import Conversation
from bradawl.agent.failures import model_failed
from bradawl.core.errors import BradawlError, SessionError
from bradawl.core.events import ModelChosen, PrefixOpened, RequestParams, RequestSent, StateChanged, ToolsChanged
from bradawl.core.messages import Assistant, Message, Origin, ToolResults, User
from bradawl.core.ports import AnyTool, Model, ModelInfo, ModelSession, Prefix, Tool
from bradawl.core.usage import Usage
from bradawl.folds.assembler import Assembler
from bradawl.shaping.context_size import MessageSizes, part_tokens, prefix_tokens
from bradawl.shaping.tokens import estimate
from bradawl.shaping.tool_list import check_tools
from bradawl.shaping.tool_schema import schemas_of

PrefixReason = Literal["start", "model", "compaction", "tools", "changed", "rewound"]
"""The values of `PrefixOpened.reason`."""
_MARK = 16
"""Characters of a hash that are enough to find where two conversations differ."""


class PrefixLedger:
    """Opens the model session, encodes each message once, and checks that nothing already sent ever changes."""

    def __init__(
        self,
        conversation: Conversation,
        model: Model,
        tools: Sequence[Tool[Never]],
        system_prompt: Callable[[], Awaitable[str]],
    ) -> None:
        self._conversation, self._model, self._system_prompt = conversation, model, system_prompt
        self.tools: dict[str, AnyTool] = {}
        """The tools the model is offered, by name, in their order. The mapping is changed in place."""
        self.wanted_tools: tuple[Tool[Never], ...] | None = None
        """The tools `ToolChanges` offers at the next step; None for no change."""
        self.info: ModelInfo = model.info
        """The model that answers the next request, as the log names it."""
        self._prefix = Prefix("", ())
        self.opening_tokens = 0
        """Estimated tokens of the system prompt and the tools."""
        self.economise: Callable[[], None] = lambda: None
        """Called before a prefix opens for another reason than a compaction; may record a `Compacted` event."""
        self._model_session: ModelSession | None = None
        self._encoded = 0
        self._hash = ""
        self._marks: list[str] = []
        """Hashes of the messages encoded so far, from `_first_mark` on."""
        self._first_mark = 0
        self._tokens = 0
        self.sizes = MessageSizes()
        """Of the transcript."""
        self._offer(tools)

    @property
    def model_session(self) -> ModelSession:
        """The conversation with the model. Raises `SessionError` before the first turn."""
        if self._model_session is None:
            raise SessionError("The session has not begun.")
        return self._model_session

    @property
    def system(self) -> str:
        """The system prompt; empty before the first turn."""
        return self._prefix.system

    @property
    def is_open(self) -> bool:
        """True once there is a conversation with the model."""
        return self._model_session is not None

    # -------------------------------------------------------------- opening

    async def open(self) -> None:
        """Continue the prefix of the log if it still fits, otherwise begin a new one and log why."""
        self._log_tools_of_last_run()
        prefix = await self._choose()
        if self._conversation.transcript.awaits_prefix:  # the program ended right after a compaction
            self._log_opened(self.info.origin, "compaction", "messages")
        sent = dict(self._conversation.transcript.sent)
        self._begin(prefix)
        self._encode()
        if sent and (change := self._first_change(sent)):
            self._log_opened(self.info.origin, "changed", change)

    async def reopen(self, reason: PrefixReason, *, tools: Sequence[Tool[Never]] | None = None) -> None:
        """Begin a new prefix with the transcript as it is now; call it between steps, when no call is open.

        `tools` replaces the tools the model is offered; None keeps them. The system prompt stays. Does nothing but
        exchange the tools if their schemas are the same, or before the first prefix is open.
        """
        before = self._conversation.state.prefix
        if tools is not None:
            self._log_tools_changed(self._offer(tools))
        if before is None or not self.is_open:
            return
        schemas = schemas_of(self.tools.values())
        tools_ref = await self._conversation.blobs.put(msgspec.json.encode(schemas))
        if tools is not None and tools_ref == before.tools_ref:
            return
        self._open_again(reason, Prefix(self._prefix.system, schemas), before, tools_ref)

    async def follow_model(self) -> None:
        """Begin a new prefix because the session's model has changed, as `reopen` does; the log has it already."""
        self.info = self._model.info
        await self.reopen("model")

    def open_compacted(self) -> None:
        """Begin a new prefix after a `Compacted` event; no call may be open. It doesn't wait, so nothing comes between.

        Does nothing before the first prefix is open.
        """
        if self.is_open and (before := self._conversation.state.prefix) is not None:
            self._open_again("compaction", self._prefix, before, before.tools_ref)

    def _open_again(self, reason: PrefixReason, prefix: Prefix, before: PrefixOpened, tools_ref: str) -> None:
        if reason != "compaction":
            self.economise()
        self._begin(prefix)
        self._follow_model()
        changed = "tools" if tools_ref != before.tools_ref else "messages"
        self._log_opened(self.info.origin, reason, changed, msgspec.structs.replace(before, tools_ref=tools_ref))

    def _begin(self, prefix: Prefix) -> None:
        """Open the model session. It gets the transcript with the next request, when all notes are in it."""
        self._model_session = None  # if it can't be opened, the next turn begins with `open`
        try:
            self._model_session = self._model.open(prefix, self._conversation.log.session_id)
        except BradawlError:
            raise
        except Exception as error:
            raise model_failed(self._model.info.origin, error) from error
        self._prefix = prefix
        self._tokens = self.opening_tokens = prefix_tokens(prefix)
        self._encoded = 0
        self.sizes.keep(self._conversation.transcript.messages)
        self._begin_marks()

    async def _choose(self) -> Prefix:
        conversation, origin, old = self._conversation, self.info.origin, self._conversation.state.prefix
        tools = schemas_of(self.tools.values())
        tools_ref = await conversation.blobs.put(msgspec.json.encode(tools))
        system = self._stored_system(old)
        is_same_system = system is not None
        if system is None:
            system = await self._system_prompt()
        system_ref = await conversation.blobs.put(system.encode("utf-8", "replace"))
        if old is None:
            conversation.record(PrefixOpened(system_ref, tools_ref, origin.provider, origin.model))
            return Prefix(system, tools)
        opened = msgspec.structs.replace(old, system_ref=system_ref, tools_ref=tools_ref)
        change = ""
        if not is_same_system and system_ref != old.system_ref:
            change = "system"
        elif tools_ref != old.tools_ref:
            change = "tools"
        if change or (old.provider, old.model) != (origin.provider, origin.model):
            self.economise()
        if (old.provider, old.model) != (origin.provider, origin.model):
            conversation.record(StateChanged(ModelChosen(origin.provider, origin.model)))
            self._log_opened(origin, "model", change, opened)
        elif change:
            self._log_opened(origin, "tools" if change == "tools" else "changed", change, opened)
        return Prefix(system, tools)

    def _stored_system(self, opened: PrefixOpened | None) -> str | None:
        if opened is None:
            return None
        conversation = self._conversation
        try:
            return conversation.blobs.get(opened.system_ref).decode()
        except SessionError as error:
            conversation.warn(f"The system prompt of this session is lost, a new one is used: {error}")
            return None

    def _log_opened(
        self, origin: Origin, reason: PrefixReason, change: str = "", opened: PrefixOpened | None = None
    ) -> None:
        """Log a new prefix: with the same system prompt and tools as before unless `opened` names others."""
        conversation = self._conversation
        before = opened or conversation.state.prefix
        if before is None:
            return
        conversation.record(
            msgspec.structs.replace(
                before, provider=origin.provider, model=origin.model, reason=reason, first_change=change
            )
        )

    # -------------------------------------------------------------- tools

    def _offer(self, tools: Sequence[Tool[Never]]) -> ToolsChanged:
        """Exchange the tools; returns the added and the removed names."""
        named = {tool.spec.name: cast("AnyTool", tool) for tool in tools}  # a call passes what `params` decodes
        added = tuple(name for name in named if name not in self.tools)
        removed = tuple(name for name in self.tools if name not in named)
        self.tools.clear()
        self.tools.update(named)
        return ToolsChanged(added, removed)

    def want_tools(self, tools: Sequence[Tool[Never]]) -> None:
        """Have `ToolChanges` offer these tools at the next step. Raises `SettingsError`."""
        check_tools(tools)
        self.wanted_tools = tuple(tools)

    def _log_tools_changed(self, change: ToolsChanged) -> None:
        if change != ToolsChanged():
            self._conversation.record(change)

    def _log_tools_of_last_run(self) -> None:
        """Log how the tools of a resumed session differ from those it had at its end, and warn of missing ones."""
        conversation = self._conversation
        missing = tuple(name for name in conversation.state.added_tools if name not in self.tools)
        back = tuple(name for name in conversation.state.removed_tools if name in self.tools)
        self._log_tools_changed(ToolsChanged(back, missing))
        if missing:
            conversation.warn(f"Tools that this session had are not available any more: {', '.join(missing)}.")

    # -------------------------------------------------------------- comparing

    def _first_change(self, sent: dict[int, str]) -> str:
        """The first message that would now be encoded differently from the logged requests; empty if there is none.

        The hash is cumulative: if it is equal after the last message, all messages before are equal too.
        """
        known = sorted(sent)
        if self._fits(known[-1], sent):
            return ""
        first = next(count for count in known if not self._fits(count, sent))
        if first == 0:
            return "system or tools"
        before = max((count for count in known if count < first), default=0)
        messages = self._conversation.transcript.messages
        if first > len(messages):
            return "messages that are gone"
        named = f"message {before + 1} ({_kind(messages[before])})"
        return named if first == before + 1 else f"{named} or one up to message {first}"

    def _fits(self, count: int, sent: dict[int, str]) -> bool:
        place = count - self._first_mark
        return 0 <= place < len(self._marks) and self._marks[place] == sent[count][:_MARK]

    # -------------------------------------------------------------- requests

    def request(self, step: int, params: RequestParams) -> None:
        """Encode the new messages, and log the request that is about to be sent."""
        conversation = self._conversation
        self._follow()
        self._encode()
        known = next(reversed(conversation.transcript.sent), -1)
        marks = tuple(self._marks[max(0, known + 1 - self._first_mark) :])
        conversation.record(RequestSent(step, self._hash, params, None, self._tokens, marks))

    def _follow(self) -> None:
        """Log a change of the model, or of the encoding of earlier messages, that the model session made by itself."""
        if self._follow_model():
            self._begin_marks()
            self._log_opened(self.info.origin, "model")
        elif self.model_session.prefix_hash() != self._hash:
            self._begin_marks()
            self._log_opened(self.info.origin, "changed", "the encoding of what was already sent")

    def _follow_model(self) -> bool:
        """True if another model answers the next request; that is logged."""
        before, self.info = self.info.origin, self.model_session.info
        now = self.info.origin
        if now == before:
            return False
        self._conversation.record(StateChanged(ModelChosen(now.provider, now.model)))
        return True

    def _begin_marks(self) -> None:
        self._hash = self.model_session.prefix_hash()
        self._marks, self._first_mark = [self._hash[:_MARK]], self._encoded

    def _encode(self) -> None:
        """Append the messages that are new since the last request."""
        messages = self._conversation.transcript.messages
        for message in messages[self._encoded :]:
            try:
                self.model_session.append(message)
            except Exception as error:
                raise model_failed(self.info.origin, error) from error
            self._encoded += 1
            self._hash = self.model_session.prefix_hash()
            self._marks.append(self._hash[:_MARK])
            self._tokens += self.sizes.of(message)

    # -------------------------------------------------------------- tokens

    @property
    def factor(self) -> float:
        """Ratio of reported to estimated tokens; 1.0 before the first report."""
        origin = self.info.origin
        return self._conversation.state.factors.get(f"{origin.provider}/{origin.model}", 1.0)

    def context_tokens(self) -> int:
        """Tokens of the conversation now: those of the last report, and an estimate of the messages after it."""
        state, transcript = self._conversation.state, self._conversation.transcript
        waiting = self.sizes.total(transcript.messages[self._encoded :])
        if not state.is_anchored:
            return round(self.factor * (self._tokens + waiting))
        after = self.sizes.total(transcript.messages[transcript.replied_at :])
        return state.context_tokens + round(self.factor * after)

    def usage_of(self, reply: Assembler) -> Usage | None:
        """The usage that the provider reported, otherwise an estimate; None if nothing of the reply arrived."""
        if reply.usage is not None:
            return reply.usage
        parts = reply.reply().parts
        rest = "".join(reply.unfinished)
        if not (parts or rest or reply.has_ended):
            return None
        output = sum(map(part_tokens, parts)) + estimate(rest)
        return Usage(self.context_tokens(), round(self.factor * output), source="estimated")


def _kind(message: Message) -> str:
    match message:
        case User():
            return "prompt"
        case Assistant():
            return "reply"
        case ToolResults():
            return "results"
