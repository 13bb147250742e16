"""What a compaction keeps word for word: requests, instructions, the plan, open todos, and the files that changed."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from bradawl.core.arguments import parse_arguments
from bradawl.core.events import Pin, PinKind, Todo
from bradawl.core.messages import Assistant, Message, Note, Text, ToolCall, ToolResults, User, calls_of
from bradawl.shaping.compaction.lines import cut_line, shape_of, shapes_of
from bradawl.shaping.compaction.record import Record, attachment_text
from bradawl.shaping.compaction.snip import text_of_result
from bradawl.shaping.compaction.summary import harmless
from bradawl.shaping.reminder_notes import PLAN_TOOL
from bradawl.shaping.tokens import estimate

LONGEST_REQUEST: Final = 2_000
"""Tokens; of a longer request beginning, constraints and end are kept."""
_LEFT_OF_LONG: Final = 1_200
_SHOWN: Final = 160
"""Characters of a reference."""
_LOOKED_AT: Final = 250_000
"""Characters at either end of a long text in which sentences are looked for."""
_NEVER_CUT: Final = 400
"""Characters of a text that is never cut in itself."""
_PER_TOKEN: Final = 3.3
_ASK_TOOL: Final = "ask_user"
_APPROVED: Final = "The user approved the plan"
_OWN_PLAN: Final = "The user approved this plan of their own"
_ANSWER: Final = "The user says: "
_OF_PLAN: Final = "They said: "
_LONGEST_QUESTION: Final = 300
_CONSTRAINT: Final = (
    r"(?i)\b(?:never|must|mustn't|don't|do not|does not|doesn't|only|always|without|at most|at least|no more|no less|"
    r"avoid|except|unless|required?|requires|exactly|shall|should|may not|can't|cannot|keep|stay|leave|not allowed|"
    r"forbidden|important|careful|under no|instead of|before you|make sure|ensure|no new)\b"
)
_TASK: Final = (
    r"(?i)(?:[-*\d.)\s]*)(?:(?:then|also|and|please|finally|next|first|second|third|now|last)[,:]?\s+)*"
    r"(?:add|write|make|replace|fix|remove|move|rename|update|change|implement|use|create|delete|split|check|test|"
    r"run|keep|document|extend|handle|support|convert|migrate|port|refactor|find|measure|show|print|return|send|store|"
    r"i (?:want|need|would)|we (?:want|need)|you should|the goal|todo|task)\b"
)
_SENTENCES: Final = r"(?<=[.!?;])\s+|\n+"
_MOST_CONSTRAINTS: Final = 12
_REPEATED: Final = 3
"""Sentences of the same shape; more of them are data."""
_NUMBER: Final = r"request-(\d+)$"
_SHARES: Final[dict[PinKind, float]] = {"plan": 0.3, "todos": 0.2, "files": 0.2, "instructions": 0.4, "request": 0.5}
"""The most that one pin of a kind takes of the room for pins."""
_FIRST: Final[tuple[PinKind, ...]] = ("state", "todos", "plan", "files")
"""Kinds that come before the older requests; instructions come after them."""


class Stated(NamedTuple):
    """Something that is to be pinned."""

    id: str
    kind: PinKind
    text: str
    """The words that must not change."""
    frame: str
    """`<request id="request-1">`; empty for a text that is a pin of an earlier compaction already."""
    where: str
    """The place of the whole; empty if it is not on the disk."""

    def pin(self, text: str | None = None) -> Pin:
        """The pin, with its own text or another one."""
        body = self.text if text is None else text
        if self.frame:
            name = self.frame[1:].partition(" ")[0].rstrip(">")
            body = f"{self.frame}\n{body}\n</{name}>"
        return Pin(self.id, self.kind, body)


def stated_in(messages: Sequence[Message], end: int, pins: Sequence[Pin], record: Record) -> list[Stated]:
    """What is to be pinned of the messages before `end`, the oldest first; `pins` are those in the first message."""
    found = list(_carried(pins, record))
    number = max((int(match[1]) for each in found if (match := re.search(_NUMBER, each.id))), default=0)
    for place in range(1 if pins else 0, end):
        message = messages[place]
        for text, frame, where in _requests(messages, place, record):
            number += 1
            head = f'<{frame[0]} id="request-{number}"{frame[1]}>'
            found.append(Stated(f"request-{number}", "request", text, head, where))
        if not isinstance(message, Assistant):
            found += _instructions(message.notes, record.where((place, -1)))
        if (plan := _plan(messages, place, record)) is not None:
            found = [each for each in found if each.kind != "plan"] + [plan]
    unique: dict[tuple[PinKind, str], Stated] = {}
    for each in found:
        unique.pop((each.kind, each.text), None)  # said again, it counts where it was said last
        unique[each.kind, each.text] = each
    return list(unique.values())


def _carried(pins: Sequence[Pin], record: Record) -> Iterator[Stated]:
    part = 1  # the summary is before them
    for pin in pins:
        where = record.where((0, -1 if pin.kind == "instructions" else part))
        part += pin.kind != "instructions"
        if pin.kind in ("request", "instructions", "plan"):
            yield Stated(pin.id, pin.kind, pin.text, "", where)


def _requests(messages: Sequence[Message], place: int, record: Record) -> Iterator[tuple[str, tuple[str, str], str]]:
    message = messages[place]
    match message:
        case User(parts, notes):
            text = "\n".join(part.text if isinstance(part, Text) else attachment_text(part) for part in parts)
            if text.strip():
                yield text, ("request", ""), record.where((place, 0) if len(parts) == 1 else (place, -1))
        case ToolResults(_, notes):
            yield from _answers(messages, place, record)
        case _:
            return
    for note in notes:
        if note.source == "user":
            yield note.text, ("request", ' sent="during the work"'), record.where((place, -1))


def _answers(messages: Sequence[Message], place: int, record: Record) -> Iterator[tuple[str, tuple[str, str], str]]:
    """What the user answered to a question of the agent, or said about a plan."""
    for number, (call, text) in enumerate(_answered(messages, place)):
        if (call.name == _ASK_TOOL and text.startswith(_ANSWER)) or (call.name == PLAN_TOOL and _OF_PLAN in text):
            question = str((parse_arguments(call.raw_arguments)[0] or {}).get("question", ""))
            asked = f"{harmless(' '.join(question.split())[-_LONGEST_QUESTION:])}\n" if question else ""
            yield f"{asked}{text}", ("answer", ""), record.where((place, number))


def _answered(messages: Sequence[Message], place: int) -> Iterator[tuple[ToolCall, str]]:
    message, before = messages[place], messages[place - 1] if place else None
    if isinstance(message, ToolResults) and isinstance(before, Assistant):
        for call, result in zip(calls_of(before), message.results, strict=False):
            if call.id == result.call_id and not result.is_error:  # an error may repeat what the model wrote
                yield call, text_of_result(result)


def _plan(messages: Sequence[Message], place: int, record: Record) -> Stated | None:
    for call, text in _answered(messages, place):
        if call.name == PLAN_TOOL and text.startswith(_OWN_PLAN):
            plan = text.partition("\n")[2]
            return Stated("plan", "plan", harmless(plan.strip()), "<plan>", record.where((place, -1)))
        if call.name == PLAN_TOOL and text.startswith(_APPROVED):
            plan = str((parse_arguments(call.raw_arguments)[0] or {}).get("plan", ""))
            return Stated("plan", "plan", harmless(plan.strip()), "<plan>", record.where((place - 1, -1)))
    return None


def _instructions(notes: Iterable[Note], where: str) -> Iterator[Stated]:
    for note in notes:
        if note.source == "instructions":
            yield Stated(note.id, "instructions", note.text, "", where)


def todos_stated(todos: Sequence[Todo]) -> list[Stated]:
    """The open todos; nothing if all are done."""
    rest = [f"[{todo.status}] {todo.content}" for todo in todos if todo.status != "completed"]
    done = len(todos) - len(rest)
    if not rest:
        return []
    text = "\n".join((*rest, *([f"({done} completed)"] if done else ())))
    return [Stated("todos", "todos", harmless(text), "<todos>", "")]


def files_stated(lines: Sequence[str]) -> list[Stated]:
    """The files that changed, one a line, the last first."""
    text = "\n".join(harmless(" ".join(line.split())) for line in lines)
    return [Stated("files", "files", text, "<files_changed>", "")] if lines else []


def state_stated(lines: Sequence[str]) -> list[Stated]:
    """The working directory, exported variables and jobs, one a line."""
    text = "\n".join(harmless(cut_line(" ".join(line.split()))) for line in lines)
    return [Stated("state", "state", text, "<state>", "")] if lines else []


# ------------------------------------------------------------------ the room


def pinned(stated: Sequence[Stated], room: int) -> list[Pin]:
    """The pins, with at most `room` tokens together: what has no room becomes a reference, the oldest first.

    Instructions of folders are whole or left out: they are told again when the folder is touched. A part of them could
    lose the mark that says whose words they are.
    """
    chosen: dict[int, Pin] = {}
    rest = room
    requests = [number for number, each in enumerate(stated) if each.kind == "request"]
    others = [number for kind in _FIRST for number, each in enumerate(stated) if each.kind == kind]
    notes = [number for number, each in enumerate(stated) if each.kind == "instructions"]
    waiting: list[int] = []
    for place, number in enumerate((*requests[-1:], *others, *requests[-2::-1], *reversed(notes))):
        pin = _pin(stated[number], room, is_newest=place == 0)
        needed = room + 1 if pin is None else estimate(pin.text)
        if pin is not None and (needed <= rest or (place == 0 and requests)):
            chosen[number], rest = pin, rest - needed
        elif stated[number].kind != "instructions":
            waiting.append(number)
    chosen |= _references(stated, sorted(waiting, reverse=True), rest)
    return [chosen[number] for number in sorted(chosen)]


def _pin(each: Stated, room: int, *, is_newest: bool) -> Pin | None:
    """The pin, shortened if it is long; None if it has to be whole and has no room."""
    most = int(min(_most(each.kind), room * _SHARES.get(each.kind, 0.5)))
    if len(each.text) <= _NEVER_CUT or estimate(each.text) <= most:
        return each.pin()
    is_short_already = not each.frame and not is_newest  # shortened again and again nothing would be left
    if each.kind == "instructions" or is_short_already:
        return None
    return each.pin(shortened(each.text, most, each.where))


def _most(kind: PinKind) -> int:
    return LONGEST_REQUEST if kind == "request" else 4 * LONGEST_REQUEST


def _references(stated: Sequence[Stated], newest_first: Sequence[int], room: int) -> dict[int, Pin]:
    found: dict[int, Pin] = {}
    merged: list[int] = []
    for number in newest_first:
        each = stated[number]
        pin = Pin(each.id, each.kind, _reference(each))
        needed = estimate(pin.text)
        if needed > room and each.kind == "request":
            merged.append(number)
            continue
        found[number], room = pin, room - needed
    if merged:
        oldest = stated[merged[-1]]
        found[merged[-1]] = Pin(oldest.id, oldest.kind, _merged([stated[number] for number in merged]))
    return found


def _reference(each: Stated) -> str:
    whole = f", whole: {each.where}" if each.where else ""
    tag = re.match(r"<(\w+)", each.frame or each.text)
    name = tag[1] if tag else each.kind
    words = " ".join(re.sub(r"^<\w+[^>\n]*>\n|\n</\w+>$", "", each.text).split())
    # The end of an answer is what the user said; before it stands the question of the agent.
    shown = words[-_SHOWN:] if name == "answer" else words[:_SHOWN]
    stated = "" if name == "answer" else "".join(f"\n- {sentence}" for sentence in constraints(each.text)[:4])
    return f'<{name} id="{each.id}" shortened="yes"{whole}>\n{shown}{stated}\n</{name}>'


def _merged(older: Sequence[Stated]) -> str:
    if len(older) == 1 and not older[0].frame and older[0].text.startswith("[request-"):
        return older[0].text  # merged by an earlier compaction
    names = older[0].id if len(older) == 1 else f"{older[-1].id} to {older[0].id}"
    return f"[{names}: {_from_to([each.where for each in older if each.where]) or 'no longer here'}]"


def _from_to(places: Sequence[str]) -> str:
    """The place from the last to the first of these, which are in one file: the oldest may itself name a file."""
    if not places:
        return ""
    file, _, first = places[-1].rpartition(" lines ")
    last = places[0].rpartition("-")[2]
    return f"{file} lines {first.partition('-')[0]}-{last}"


def shortened(text: str, most: int, where: str) -> str:
    """Beginning, constraints and end of a text that is too long, with the place of the whole."""
    size = int(min(most, _LEFT_OF_LONG) * _PER_TOKEN)
    begin, end = text[: size * 2 // 5], text[len(text) - size // 3 :]
    middle = text[len(begin) : len(text) - len(end)]
    room = size - len(begin) - len(end)
    kept: list[str] = []
    for sentence in telling(middle):
        if len(sentence) < room:
            kept.append(sentence)
            room -= len(sentence) + 2
    whole = f"; whole: {where}" if where else ""
    between = "".join(f"\n- {sentence}" for sentence in sorted(kept, key=middle.find))
    return f"{begin}\n[... {len(middle):,} characters left out{whole}]{between}\n[...] {end}"


def telling(text: str) -> list[str]:
    """The sentences of a text that say most: what must or must not be, and what is to be done. The first say most."""
    sentences = _sentences(text)
    shapes = shapes_of(sentences)
    rated = {
        sentence: 2 * bool(re.search(_CONSTRAINT, sentence)) + 2 * bool(re.match(_TASK, sentence)) - math.log2(same)
        for sentence in sentences
        if sentence and (same := shapes[shape_of(sentence)]) <= _REPEATED
    }
    return [cut_line(sentence) for sentence in sorted(rated, key=lambda each: -rated[each])]


def constraints(text: str) -> list[str]:
    """The sentences of a text that say what must or must not be; rows of a table and the like are left out."""
    sentences = _sentences(text)
    found = [cut_line(sentence) for sentence in sentences if re.search(_CONSTRAINT, sentence)]
    shapes = shapes_of(found)
    return [each for each in dict.fromkeys(found) if shapes[shape_of(each)] <= _REPEATED][:_MOST_CONSTRAINTS]


def _sentences(text: str) -> list[str]:
    if len(text) > 2 * _LOOKED_AT:
        text = f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"
    return [" ".join(sentence[:1_000].split()) for sentence in re.split(_SENTENCES, text)]


# ------------------------------------------------------------------ the check


class Checked(NamedTuple):
    """What became of all that was to be pinned, by id."""

    pinned: tuple[str, ...]
    """Present word for word."""
    dropped: tuple[str, ...]
    """Only referred to, or shortened."""
    missing: tuple[str, ...]
    """Neither: the compaction must not take effect."""


def checked(stated: Sequence[Stated], pins: Sequence[Pin], messages: Sequence[Message]) -> Checked:
    """Searches the new messages for everything that was to be pinned."""
    shown = "\0".join(_shown(messages))
    by_id = {pin.id: pin.text for pin in pins}
    merged = " ".join(text for text in by_id.values() if text.startswith("["))
    found = Checked((), (), ())
    for each in stated:
        if each.text in shown:
            found = found._replace(pinned=(*found.pinned, each.id))
        elif each.kind == "instructions" or by_id.get(each.id, "\0") in shown or _is_merged(each.id, merged):
            found = found._replace(dropped=(*found.dropped, each.id))
        else:
            found = found._replace(missing=(*found.missing, each.id))
    return found


def _shown(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        if isinstance(message, User):
            yield from (part.text for part in message.parts if isinstance(part, Text))
        if not isinstance(message, Assistant):
            yield from (note.text for note in message.notes)


def _is_merged(pin_id: str, merged: str) -> bool:
    own = re.search(_NUMBER, pin_id)
    ranges = re.findall(r"request-(\d+) to request-(\d+)", merged)
    return own is not None and any(int(first) <= int(own[1]) <= int(last) for first, last in ranges)
