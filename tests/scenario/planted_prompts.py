"""The words of a user: prompts of one line, of several paragraphs, and with a pasted log or specification."""

import random
from collections.abc import Sequence
from typing import NamedTuple

from planted_servers import PROGRAMS
from planted_words import Words

from bradawl.shaping.tokens import estimate

_LONG_TOKENS = 2_200
_SPECIFICATION = (
    "The {subject} {role} accepts up to {n3} entries. Entries beyond that are refused with code {n4}.",
    "A {subject} has an id, a {adjective} flag and a list of {subject}s. The id is assigned by the {role}.",
    "When a {subject} is {past}, its {role} is told once. Delivery may be late but not out of order.",
    "Field `{snake}`: optional, at most {n3} characters, trimmed. Field `{snake}`: required, one of {n1} values.",
    "The {role} runs every {n2} minutes and stops after {n3} {subject}s; the rest waits for the next run.",
    "Reports are rounded to {n1} digits. The {subject} report lists {adjective} {subject}s at its end.",
)


class Planted(NamedTuple):
    """What a prompt says that must be found again."""

    requests: tuple[str, ...]
    constraints: tuple[str, ...]


def constraint_place(chance: random.Random) -> str:
    """Where a constraint is stated."""
    places = ("prompt", "note", "answer", "instructions", "plan")
    return chance.choices(places, (46, 20, 14, 12, 8))[0]


def prompt_text(words: Words, planted: Planted, others: Sequence[str], *, is_long: bool) -> str:
    """A prompt with these requests and constraints; `others` are templates of what is said besides."""
    chance = words.chance
    chatter = [words.fill(text) for text in chance.sample(others, chance.choice((0, 0, 1, 2, 3, 4)))]
    text = _laid_out(words, planted, chatter)
    if not is_long:
        return text
    pasted = _pasted(words)
    if chance.random() < 0.5:
        return f"{text}\n\n{pasted}"
    if chance.random() < 0.5:
        return f"{words.fill('This is what we have so far.')}\n\n{pasted}\n\n{text}"
    half = pasted.find("\n", len(pasted) // 2)
    return f"{pasted[:half]}\n\n{text}\n\n{pasted[half:].lstrip()}"


def _laid_out(words: Words, planted: Planted, chatter: list[str]) -> str:
    chance = words.chance
    layout = chance.choice(("paragraph", "paragraph", "list", "mixed"))
    if layout == "list" and planted.constraints:
        mark = chance.choice(("- ", "* ", "• "))
        items = [f"{mark}{text}" for text in planted.constraints]
        return "\n".join([*chatter, *planted.requests, "", *items])
    texts = [*planted.requests, *planted.constraints]
    if layout == "mixed":
        chance.shuffle(texts)
    for text in chatter:
        texts.insert(chance.randint(0, len(texts)), text)
    return ("\n\n" if layout == "paragraph" and len(texts) > 3 and chance.random() < 0.6 else " ").join(texts)


def _pasted(words: Words) -> str:
    """A log or a specification of several thousand tokens."""
    chance = words.chance
    wanted = chance.randint(_LONG_TOKENS, 5_000)
    lines = [*PROGRAMS[words.one_of(words.world.programs)].lines] if chance.random() < 0.6 else [*_SPECIFICATION]
    text: list[str] = []
    tokens = 0
    while tokens < wanted:
        text.append(words.fill(words.one_of(lines)))
        tokens += estimate(text[-1])
    body = "\n".join(text)
    return f"```\n{body}\n```" if chance.random() < 0.5 else body
