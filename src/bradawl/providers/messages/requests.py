"""The encoder of Messages requests; blocks are encoded once, and cache markers inserted for each request. Pure."""

import hashlib
import re
from collections.abc import Callable, Sequence

from bradawl.core.events import RequestParams
from bradawl.core.messages import Assistant, Message, Note, Text, Thinking, ToolCall, ToolResult, ToolResults, User
from bradawl.core.ports import ModelInfo, Prefix
from bradawl.providers.encoding import UNANSWERED, Json, digest_of, encode_json, note_text, schema_in_words
from bradawl.providers.messages.blocks import Block, block, narrated, reply_block, result_block, shown, text_block
from bradawl.providers.messages.cache import breakpoints
from bradawl.providers.messages.options import Options, options, takes_schema
from bradawl.providers.messages.profile import MessagesProfile, family_of
from bradawl.providers.messages.tools import encode_tools

_MARK = b',"cache_control":{"type":"ephemeral"}'
_MOST_MARKS = 4
_GO_ON = block({"type": "text", "text": "Go on."})
"""The inserted user message where the API requires one."""
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class MessagesRequests:
    """Encodes the requests of one conversation.

    `profile` is called for each body, because it changes when the server refuses a field.
    """

    def __init__(self, prefix: Prefix, info: ModelInfo, profile: Callable[[], MessagesProfile]) -> None:
        self._info = info
        self._profile = profile
        self._family = family_of(info.origin.model)
        self._head = b'{"model":' + encode_json(info.origin.model)
        self._system = encode_json([text_block(prefix.system)]) if prefix.system.strip() else b""
        self._tools, self._eager_tools = encode_tools(prefix.tools)
        self._turns = _Turns(self._tools, self._system)
        self._ids = _Ids()
        self._unanswered: tuple[tuple[ToolCall, str], ...] = ()
        """The calls of the last reply and their ids as sent."""
        self._calls_to_narrate: tuple[ToolCall, ...] = ()
        """The calls of a reply that can't be replayed; they are sent as text with their results."""
        self._settled: Options | None = None

    def append(self, message: Message) -> None:
        """Encode the next message of the conversation."""
        match message:
            case User():
                self._answer_open_calls()
                self._settled = None
                self._turns.add("user", map(block, [*shown(message.parts), *_notes(message.notes)]))
            case Assistant():
                self._answer_open_calls()
                self._add_reply(message)
            case ToolResults():
                self._add_results(message)

    def body(self, params: RequestParams) -> tuple[bytes, ...]:
        """The request's JSON in pieces; encoded blocks are reused."""
        self._answer_open_calls()
        profile = self._profile()
        # Fixed for the whole turn: thinking must not change between a call and its result.
        self._settled = options(
            params, self._info, self._family, profile, self._settled, may_begin_thinking=self._turns.may_begin_thinking
        )
        tools = self._eager_tools if profile.has_eager_input else self._tools
        marks, marks_tools = self._marks(profile)
        pieces = [self._head]
        if system := self._system_with(params, profile):
            pieces += [b',"system":', *_marked_list(system, is_marked=bool(marks))]
        if tools:
            pieces += [b',"tools":', *_marked_list(tools, is_marked=marks_tools)]
        pieces.append(b',"messages":[')
        pieces += self._turns.pieces(marks)
        pieces += [self._turns.end(), b"],", self._settled.encoded, b',"stream":true}']
        return tuple(pieces)

    def _system_with(self, params: RequestParams, profile: MessagesProfile) -> bytes:
        """The system prompt, with the schema of the answer if it is not in the request's options."""
        if not params.answer_schema or takes_schema(self._family, profile):
            return self._system
        instruction = encode_json(text_block(schema_in_words(params.answer_schema)))
        return self._system[:-1] + b"," + instruction + b"]" if self._system else b"[" + instruction + b"]"

    def prefix_hash(self) -> str:
        """sha256 in hex of tools, system and messages as encoded."""
        return self._turns.hash.hexdigest()

    def _marks(self, profile: MessagesProfile) -> tuple[tuple[int, ...], bool]:
        """The blocks to mark, and whether the last tool is marked too.

        The marker on the system prompt also covers the tools, so theirs is used only if one is left over.
        """
        if not profile.takes_cache_control or not (profile.has_claude or self._family is not None):
            return (), False
        slots = _MOST_MARKS - (1 if self._system or self._tools else 0)
        marks = self._turns.marks(slots)
        used = len(marks) + (1 if self._system else 0)
        return marks, bool(self._tools) and used < _MOST_MARKS

    # -------------------------------------------------------------- replies

    def _add_reply(self, reply: Assistant) -> None:
        is_own = reply.origin == self._info.origin
        parts = reply.parts
        needs_signature = self._profile().has_claude or self._family is not None
        if not reply.complete:
            last_call = max((place for place, part in enumerate(parts) if isinstance(part, ToolCall)), default=-1)
            if last_call < 0:
                parts = tuple(part for part in parts if not isinstance(part, Thinking))
            elif is_own and needs_signature and not all(map(_is_signed, parts[:last_call])):
                self._calls_to_narrate = tuple(part for part in parts if isinstance(part, ToolCall))
                parts = tuple(part for part in parts if isinstance(part, Text))
            else:
                parts = parts[: last_call + 1]
        calls: list[tuple[ToolCall, str]] = []
        blocks: list[Block] = []
        for part in parts:
            call_id = self._ids.for_call(part.id) if isinstance(part, ToolCall) else ""
            if isinstance(part, ToolCall):
                calls.append((part, call_id))
            encoded = reply_block(part, is_own=is_own, needs_signature=needs_signature, call_id=call_id)
            if encoded is not None:
                blocks.append(encoded)
        while blocks and blocks[-1].is_thinking:
            blocks.pop()  # the API rejects a reply that ends in thinking
        self._turns.add("assistant", blocks)
        self._unanswered = tuple(calls)

    # -------------------------------------------------------------- results

    def _add_results(self, message: ToolResults) -> None:
        """Encode one result for each call of the last reply, in call order; missing results are filled in."""
        by_id = {result.call_id: result for result in message.results}
        notes = _notes(message.notes)
        blocks: list[Block] = []
        behind: list[Json] = []
        takes_documents = self._profile().has_claude or self._family is not None
        for place, (call, call_id) in enumerate(self._unanswered):
            result = by_id.get(call.id) or _no_result(call)
            inside = notes if place == len(self._unanswered) - 1 else []
            encoded, more = result_block(result, call_id, inside, takes_documents=takes_documents)
            blocks.append(encoded)
            behind.extend(more)
        if self._calls_to_narrate:
            behind = narrated([(call, by_id.get(call.id) or _no_result(call)) for call in self._calls_to_narrate])
        if not self._unanswered:
            behind.extend(notes)
        self._unanswered, self._calls_to_narrate = (), ()
        self._turns.add("user", [*blocks, *map(block, behind)])

    def _answer_open_calls(self) -> None:
        if self._unanswered or self._calls_to_narrate:
            self._add_results(ToolResults(()))


def _notes(notes: Sequence[Note]) -> list[Json]:
    return [{"type": "text", "text": note_text(note)} for note in notes]


def _no_result(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, call.name, (Text(UNANSWERED),), is_error=True)


def _is_signed(part: object) -> bool:
    return not isinstance(part, Thinking) or part.redacted or part.signature is not None


def _marked_list(encoded: bytes, *, is_marked: bool) -> tuple[bytes, ...]:
    """A JSON list of objects, with a cache marker in the last one if `is_marked`."""
    return (encoded[:-2], _MARK, encoded[-2:]) if is_marked else (encoded,)


def _turn_of(role: str) -> bytes:
    return b'{"role":"' + role.encode() + b'","content":['


class _Ids:
    """Maps call ids to ids as sent: valid, unique, and the same in every replay."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def for_call(self, call_id: str) -> str:
        sent, attempt = call_id, 0
        while not _ID.fullmatch(sent) or sent in self._used:
            attempt += 1
            sent = f"call_{digest_of(f'{call_id} {attempt}'):024x}"
        self._used.add(sent)
        return sent


class _Turns:
    """The encoded messages. The last one is left open, so that it can grow without changing sent bytes."""

    def __init__(self, *hashed: bytes) -> None:
        self.hash = hashlib.sha256()
        for encoded in hashed:
            self.hash.update(encoded + b"\n")
        self._bytes = bytearray()
        self._role = ""
        self._ends: list[int] = []
        """For each block the byte offset for a marker; -1 where none is allowed."""
        self._ends_blank = False
        self.may_begin_thinking = True
        """False in a tool loop whose first reply does not begin with thinking. A compaction or another model may have
        dropped it, and then the API refuses thinking with a budget until the next prompt.
        """
        self._is_loop = False
        self._answered = -1
        """The last block of the request that the last reply answered."""
        self._sent = self._current = -1

    def add(self, role: str, blocks: "Sequence[Block] | map[Block]") -> None:
        """Add blocks to the open message, or begin one of this role."""
        if role == "assistant":
            self._answered = len(self._ends) - 1
        needs_word = role == "assistant" and self._wants_user
        for encoded in blocks:
            if needs_word:
                needs_word = False
                self._begin("user", _GO_ON)  # as `end` sent it in the request that this reply answers
            if self._role == role:
                self._bytes += b","
                self._put(encoded)
            else:
                self._begin(role, encoded)

    def _begin(self, role: str, first: Block) -> None:
        self._bytes += (b"]}," if self._role else b"") + _turn_of(role)
        self.hash.update(role.encode() + b"\n")
        self._role = role
        self._follow_loop(role, first)
        self._put(first)

    def _follow_loop(self, role: str, first: Block) -> None:
        if role == "user":
            self._is_loop = self._is_loop and first.is_result
            self.may_begin_thinking = self.may_begin_thinking or not self._is_loop
        elif not self._is_loop:
            self._is_loop, self.may_begin_thinking = True, first.is_thinking

    def _put(self, encoded: Block) -> None:
        self._bytes += encoded.encoded
        self._ends.append(len(self._bytes) - 1 if encoded.is_markable else -1)
        self._ends_blank = encoded.ends_blank
        self.hash.update(encoded.encoded + b"\n")

    @property
    def _wants_user(self) -> bool:
        """True if a user message must follow: without messages, or after a reply that ends in white space."""
        return not self._role or (self._role == "assistant" and self._ends_blank)

    def end(self) -> bytes:
        """The bytes that close the last message of a request. They are not kept: the next message may extend it."""
        if not self._wants_user:
            return b"]}"
        return (b"]}," if self._role else b"") + _turn_of("user") + _GO_ON.encoded + b"]}"

    def marks(self, slots: int) -> tuple[int, ...]:
        """The indexes of the blocks to mark in a request that ends here."""
        end = len(self._ends) - 1
        if end != self._current:
            self._sent, self._current = self._current, end
        places = [self._markable(place) for place in (end, self._sent, self._answered)]
        earlier = sorted({place for place in places[1:] if 0 <= place < places[0]}, reverse=True)
        if places[0] < 0:
            return ()
        return tuple(sorted({self._markable(place) for place in breakpoints(places[0], earlier, slots)}))

    def _markable(self, place: int) -> int:
        while place >= 0 and self._ends[place] < 0:
            place -= 1
        return place

    def pieces(self, marks: Sequence[int]) -> list[bytes]:
        """The encoded messages with cache markers inserted."""
        found: list[bytes] = []
        start = 0
        for mark in marks:
            end = self._ends[mark]
            found += [bytes(self._bytes[start:end]), _MARK]
            start = end
        found.append(bytes(self._bytes[start:]))
        return found
