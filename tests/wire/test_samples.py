"""Every recorded stream has its described outcome, in pieces of any size."""

import itertools
import random

import pytest

from wire.codecs import BY_SAMPLE_API, sample_names
from wire.replay import SAMPLES, compared, decode, outcome, read_sample

NAMES = sample_names()


def _load(name: str) -> tuple[bytes, dict[str, object], list[int]]:
    sample = read_sample(name)
    return (SAMPLES / f"{name}.sse").read_bytes(), sample["expect"], sample["feed"].get("split_at", [])


def _cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def _seen(name: str, places: list[int] | None = None) -> dict[str, object]:
    data, _, split_at = _load(name)
    codec = BY_SAMPLE_API[read_sample(name)["api"]].new()
    return outcome(decode(codec, _cut(data, split_at if places is None else places)))


def _check(name: str, places: list[int] | None = None) -> None:
    ours, theirs = compared(_seen(name, places), _load(name)[1])
    assert ours == theirs


def test_there_are_samples_of_every_format():
    assert len(NAMES) >= 30


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_has_its_described_outcome(name):
    _check(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_warnings_of_a_sample_are_those_described(name):
    assert _seen(name)["warnings"] == _load(name)[1]["warnings"]


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_fed_byte_by_byte_has_the_same_outcome(name):
    size = len(_load(name)[0])
    _check(name, list(range(1, size)))


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_in_any_pieces_has_the_same_outcome(name):
    size = len(_load(name)[0])
    dice = random.Random(name)  # noqa: S311  cuts need not be secret
    for _ in range(20):
        _check(name, sorted(dice.sample(range(1, size), min(size - 1, dice.randint(1, 12)))))
