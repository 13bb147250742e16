"""What all requests of a session begin with. It only ever grows; whatever else happens to it is said in the log."""

from typing import TYPE_CHECKING

import msgspec

from bradawl.core.errors import SessionError
from bradawl.core.events import ModelChosen, PrefixOpened, RequestParams, RequestSent, StateChanged
from bradawl.core.messages import Assistant, Message, Origin, ToolResults, User
from bradawl.core.ports import ModelInfo, ModelSession, Prefix
from bradawl.core.usage import Usage
from bradawl.folds.assembler import Assembler
from bradawl.shaping.context import message_tokens, part_tokens, prefix_tokens
from bradawl.shaping.tokens import estimate
from bradawl.shaping.tool_schema import schemas_of

if TYPE_CHECKING:
    from bradawl.agent.session import Session

_MARK = 16
"""Characters of a hash that are enough to tell where two conversations part."""


class PrefixLedger:
    """Opens the conversation with the model, encodes each message once, and watches that nothing sent ever changes."""

    def __init__(self, session: "Session", info: ModelInfo) -> None:
        self._session = session
        self.info = info
        """The model that answers the next request, as the log knows it."""
        self._conversation: ModelSession | None = None
        self._encoded = 0
        self._hash = ""
        self._marks: list[str] = []
        """Of the messages encoded so far, from `_first_mark` on."""
        self._first_mark = 0
        self._tokens = 0

    @property
    def conversation(self) -> ModelSession:
        """The conversation with the model; there is one as soon as a turn runs."""
        if self._conversation is None:
            raise SessionError("The session has not begun.")
        return self._conversation

    @property
    def is_open(self) -> bool:
        """True once there is a conversation with the model."""
        return self._conversation is not None

    # -------------------------------------------------------------- opening

    async def open(self) -> None:
        """Continue the prefix of the log if it still fits, otherwise begin a new one, and say so."""
        session = self._session
        prefix = await self._choose()
        sent = dict(session.transcript.sent)
        self._conversation = session.agent.model.open(prefix, session.id)
        self._tokens = prefix_tokens(prefix)
        self._begin_marks()
        self._encode()
        if sent and (change := self._first_change(sent)):
            self._say(self.info.origin, "changed", change)

    async def _choose(self) -> Prefix:
        session, origin, old = self._session, self.info.origin, self._session.state.prefix
        tools = schemas_of(session.agent.tools)
        tools_ref = await session.blobs.put(msgspec.json.encode(tools))
        system = self._stored_system(old)
        is_same_system = system is not None
        if system is None:
            system = await session.agent.system_prompt()
        system_ref = await session.blobs.put(system.encode("utf-8", "replace"))
        if old is None:
            session.record(PrefixOpened(system_ref, tools_ref, origin.provider, origin.model))
            return Prefix(system, tools)
        opened = msgspec.structs.replace(old, system_ref=system_ref, tools_ref=tools_ref)
        change = ""
        if not is_same_system and system_ref != old.system_ref:
            change = "system"
        elif tools_ref != old.tools_ref:
            change = "tools"
        if (old.provider, old.model) != (origin.provider, origin.model):
            self._say(origin, "model", change, opened)
        elif change:
            self._say(origin, "tools" if change == "tools" else "changed", change, opened)
        return Prefix(system, tools)

    def _stored_system(self, opened: PrefixOpened | None) -> str | None:
        if opened is None:
            return None
        session = self._session
        try:
            return session.blobs.get(opened.system_ref).decode()
        except SessionError as error:
            notice = f"The system prompt of this session is lost, a new one is used: {error}"
            session.notices = (*session.notices, notice)
            return None

    def _say(self, origin: Origin, reason: str, change: str = "", opened: PrefixOpened | None = None) -> None:
        """A new prefix begins: with the same system and tools, unless others are given."""
        session = self._session
        before = opened or session.state.prefix
        if before is None:
            return
        if reason == "model":
            session.record(StateChanged(ModelChosen(origin.provider, origin.model)))
        session.record(
            msgspec.structs.replace(
                before, provider=origin.provider, model=origin.model, reason=reason, first_change=change
            )
        )

    # -------------------------------------------------------------- comparing

    def _first_change(self, sent: dict[int, str]) -> str:
        """What would now be sent in another form than the log's requests had it; empty if nothing is.

        The hash runs, so that an equal one behind the last message stands for all before.
        """
        known = sorted(sent)
        if self._fits(known[-1], sent):
            return ""
        first = next(count for count in known if not self._fits(count, sent))
        if first == 0:
            return "system or tools"
        before = max((count for count in known if count < first), default=0)
        messages = self._session.transcript.messages
        if first > len(messages):
            return "messages that are gone"
        named = f"message {before + 1} ({_kind(messages[before])})"
        return named if first == before + 1 else f"{named} or one up to message {first}"

    def _fits(self, count: int, sent: dict[int, str]) -> bool:
        place = count - self._first_mark
        return 0 <= place < len(self._marks) and self._marks[place] == sent[count][:_MARK]

    # -------------------------------------------------------------- requests

    def request(self, step: int, params: RequestParams) -> None:
        """Bring the conversation up to date, and put the request that is about to leave into the log."""
        session = self._session
        self._follow()
        self._encode()
        known = next(reversed(session.transcript.sent), -1)
        marks = tuple(self._marks[max(0, known + 1 - self._first_mark) :])
        session.record(RequestSent(step, self._hash, params, None, self._tokens, marks))

    def _follow(self) -> None:
        """Another model may answer from here on, or the server may have forced another encoding."""
        info = self.conversation.info
        if info.origin != self.info.origin:
            self.info = info
            self._begin_marks()
            self._say(info.origin, "model")
            return
        self.info = info
        if self.conversation.prefix_hash() != self._hash:
            self._begin_marks()
            self._say(info.origin, "changed", "the encoding of what was already sent")

    def _begin_marks(self) -> None:
        self._hash = self.conversation.prefix_hash()
        self._marks, self._first_mark = [self._hash[:_MARK]], self._encoded

    def _encode(self) -> None:
        """Give the conversation what came since the last request."""
        messages = self._session.transcript.messages
        for message in messages[self._encoded :]:
            self.conversation.append(message)
            self._hash = self.conversation.prefix_hash()
            self._marks.append(self._hash[:_MARK])
            self._tokens += message_tokens(message)
        self._encoded = len(messages)

    # -------------------------------------------------------------- tokens

    @property
    def factor(self) -> float:
        """Tokens the model counts for an estimated one, as far as it has told."""
        origin = self.info.origin
        return self._session.state.factors.get(f"{origin.provider}/{origin.model}", 1.0)

    def context_tokens(self) -> int:
        """Tokens of the conversation as it stands: the last report, and an estimate of what came after."""
        state, transcript = self._session.state, self._session.transcript
        waiting = sum(map(message_tokens, transcript.messages[self._encoded :]))
        if not state.is_anchored:
            return round(self.factor * (self._tokens + waiting))
        after = sum(map(message_tokens, transcript.messages[transcript.replied_at :]))
        return state.context_tokens + round(self.factor * after)

    def usage_of(self, reply: Assembler) -> Usage | None:
        """What the provider reported, else an estimate; None if nothing of the reply had come."""
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
