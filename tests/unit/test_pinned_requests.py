"""Requests that have no room any more are found again by the place that stands for them."""

import re

from bradawl.core.events import Pin
from bradawl.core.messages import Message, Text, User
from bradawl.shaping.compaction.pins import Stated, pinned, stated_in
from bradawl.shaping.compaction.record import Record, record_of

ROOM = 150
"""Tokens, enough for two or three requests."""


def text_of(number: int) -> str:
    return f"Task {number}: write the module number {number}, and never touch the folder legacy_{number} while you do."


def compact_each_time(count: int) -> tuple[tuple[Pin, ...], dict[str, list[str]]]:
    """The pins after that many requests with a compaction after each, and the lines of the records by file."""
    files: dict[str, list[str]] = {}
    pins: tuple[Pin, ...] = ()
    for number in range(1, count + 1):
        head: list[Message] = [User((Text("the summary"), *(Text(pin.text) for pin in pins)))] if pins else []
        messages = [*head, User((Text(text_of(number)),))]
        made = record_of(messages)
        record = Record(made.text, made.places, f"record-{number}")
        files[record.file] = made.text.splitlines()
        stated: list[Stated] = stated_in(messages, len(messages), pins, record)
        pins = tuple(pinned(stated, ROOM))
    return pins, files


def files_to(number: int, text: str, files: dict[str, list[str]]) -> int:
    """The number of files that lead from a text to a request; fails if none does."""
    for count in range(len(files) + 1):
        if text_of(number) in text:
            return count
        places = re.findall(r"\[request-(\d+)(?: to request-(\d+))?: (\S+) lines (\d+)-(\d+)\]", text)
        file, first, last = next(each[2:] for each in places if int(each[0]) <= number <= int(each[1] or each[0]))
        text = "\n".join(files[file][int(first) - 1 : int(last)])
    raise AssertionError(f"request {number} can't be found")


def test_every_older_request_is_found_by_the_places_that_the_pins_name() -> None:
    pins, files = compact_each_time(30)
    shown = "\n".join(pin.text for pin in pins)
    assert text_of(30) in shown and text_of(1) not in shown
    assert max(files_to(number, shown, files) for number in range(1, 31)) > 1


def test_requests_that_are_merged_already_keep_their_place() -> None:
    merged = "[request-1 to request-9: record-4 lines 3-8]"
    messages = [User((Text("the summary"), Text(merged)))]
    made = record_of(messages)
    record = Record(made.text, made.places, "record-5")
    stated = stated_in(messages, 1, (Pin("request-1", "request", merged),), record)
    newest = Stated("request-10", "request", text_of(10), '<request id="request-10">', "record-5 lines 9-9")
    pins = pinned([*stated, newest], 1)
    assert [pin.text for pin in pins if pin.id == "request-1"] == [merged]
