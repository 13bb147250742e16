"""The estimate of tokens: proportions that apply to any tokenizer, its calibration, and its cost."""

import base64
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.messages import (
    Assistant,
    Document,
    Image,
    Note,
    Opaque,
    Origin,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolResults,
    User,
)
from bradawl.core.ports import Prefix, ToolSchema
from bradawl.folds.session_state import calibrated
from bradawl.shaping.context_size import message_tokens, part_tokens, prefix_tokens
from bradawl.shaping.tokens import estimate
from patience import cpu_limit

ENGLISH = "The agent reads the file, changes two lines and runs the tests again before it answers. " * 20
CODE = "    def apply(self, event: Event) -> None:\n        self._items[event.key] = event.value  # kept\n" * 20
CHINESE = "助手先读文件再修改两行代码然后重新运行测试。" * 20
BASE64 = base64.b64encode(random.Random(7).randbytes(2_000)).decode()  # noqa: S311 - not used for secrets


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [(ENGLISH, 3.8, 5.5), (CODE, 2.4, 4.5), (CHINESE, 1.2, 1.9), (BASE64, 1.2, 1.7), ("1234567 " * 50, 1.2, 3.0)],
    ids=["english", "code", "chinese", "base64", "digits"],
)
def test_characters_per_token_depend_on_the_kind_of_text(text: str, least: float, most: float):
    assert least <= len(text) / estimate(text) <= most


@pytest.mark.parametrize("name", ["test_a_long_name_in_snake_case_is_made_of_words", "AClassNameInCamelCaseIsToo"])
def test_a_long_identifier_is_counted_as_words(name: str):
    assert estimate(name) < len(name) / 3


def test_an_empty_text_has_no_tokens_and_indentation_few():
    assert estimate("") == 0
    assert estimate("\n" + " " * 400) <= 3


@given(st.text(max_size=300), st.text(max_size=300))
def test_joining_texts_reduces_the_estimate_only_by_what_joins(first: str, second: str):
    assert 0 <= estimate(first) <= 6 * len(first) + 1
    assert abs(estimate(first + "\n" + second) - estimate(first) - estimate(second)) <= 40


def test_a_long_text_is_estimated_from_samples():
    whole = ENGLISH * 1_000
    assert estimate(whole) == pytest.approx(1_000 * estimate(ENGLISH), rel=0.05)


@pytest.mark.parametrize("text", ["a1B" * 40_000, "\n" * 131_000, "=" * 5_000_000, ("x1" * 13 + "\n") * 4_800])
def test_no_text_takes_long(text: str):
    with cpu_limit(1.0):
        estimate(text)


# ------------------------------------------------------------------ calibration


def test_the_first_report_sets_the_factor_and_later_ones_adjust_it():
    factor = calibrated(None, 1_300, 1_000)
    assert factor == 1.3
    for _ in range(20):
        factor = calibrated(factor, 1_000, 1_000)
    assert factor == pytest.approx(1.0, abs=0.001)


@pytest.mark.parametrize(("reported", "estimated", "factor"), [(10_000, 10, 1.8), (1, 10_000, 0.6)])
def test_an_implausible_report_changes_the_factor_by_a_limited_amount(reported: int, estimated: int, factor: float):
    assert calibrated(None, reported, estimated) == factor


@pytest.mark.parametrize(("reported", "estimated"), [(0, 100), (100, 0)])
def test_empty_reports_do_not_change_the_factor(reported: int, estimated: int):
    assert calibrated(1.2, reported, estimated) == 1.2 and calibrated(None, reported, estimated) == 1.0


# ------------------------------------------------------------------ messages


def png(width: int, height: int) -> bytes:
    size = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + size


@pytest.mark.parametrize(
    ("data", "tokens"),
    [
        (png(750, 750), 750),
        (png(10, 10), 85),
        (png(9_000, 9_000), 1_600),
        (b"\xff\xd8\xff", 1_600),
        (png(1, 1)[:20], 1_600),
    ],
)
def test_the_tokens_of_an_image_depend_on_its_size(data: bytes, tokens: int):
    assert part_tokens(Image("image/png", data)) == tokens


def test_every_kind_of_message_and_part_counts():
    origin = Origin("openai_chat", "p", "m")
    parts = (
        Text(ENGLISH),
        Thinking(ENGLISH),
        ToolCall("c", "bash", '{"command": "ls"}'),
        Refusal("No."),
        Opaque('{"a": 1}'),
    )
    assert message_tokens(Assistant(parts, origin)) == 4 + sum(map(part_tokens, parts))
    result = ToolResult("c", "bash", (Text(ENGLISH),))
    note = Note("n", ENGLISH)
    assert message_tokens(ToolResults((result, result), (note,))) > 3 * estimate(ENGLISH)
    assert message_tokens(User((Text(ENGLISH), Document("application/pdf", b"x" * 60_000)), (note,))) > 1_500
    schema = ToolSchema("bash", ENGLISH, msgspec.Raw(b'{"type":"object","properties":{}}'))
    assert prefix_tokens(Prefix(ENGLISH, (schema,))) > 2 * estimate(ENGLISH)
