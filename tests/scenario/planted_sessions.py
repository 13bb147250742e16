"""Long sessions of coding, generated from a seed, with facts that must be found again later.

A fact is a phrase that a developer would write down for the one who continues the work: what was asked for and
forbidden, what was decided and why, which files were changed, what failed, and what was measured.
"""

import random
from collections.abc import Callable
from typing import Literal

import msgspec
from planted_actions import Actions
from planted_languages import SPEECHES
from planted_log import Call, SessionLog
from planted_measures import measuring
from planted_prompts import Planted, constraint_place, prompt_text
from planted_servers import PROGRAMS
from planted_statements import (
    ANALYSIS,
    DECISIONS,
    INSTRUCTIONS,
    MEASURED,
    PLAN_STEPS,
    QUESTIONS,
    SUMMARY_OF_MODEL,
    TEXT_OF_MODEL,
)
from planted_words import WORLDS, Words
from planted_work import OrdinaryWork

from bradawl.core.events import Event, ModeChosen
from bradawl.core.messages import Image, Text
from bradawl.shaping.tokens import estimate

Kind = Literal["request", "constraint", "decision", "path", "error", "number"]
KINDS: tuple[Kind, ...] = ("request", "constraint", "decision", "path", "error", "number")
PINNED_TOKENS = 1_500
"""Requests and constraints in a longer prompt are not pinned."""
_PLAN_MODE = "Plan mode is on: look around, but nothing may change; calls that would change something are refused."
_PLAN_OVER = "Plan mode is over: changes may be made again."
_NOTE_STARTS = ("", "", "btw ", "Wait. ", "Forgot to say: ", "stop for a moment. ", "New information: ", "And: ")
_CHANGING_COMMANDS = (
    "sed -i 's/{snake}/{snake}/g' «{path}»",
    "git mv {path} «{path}»",
    "cp {path} «{path}» && git add -A",
    "cat > «{otherpath}» <<'EOF'\n{kebab}: {n3}\nEOF",
    "patch -p1 «{path}» < /tmp/{kebab}.patch",
    "perl -0pi -e 's/{camel}/{camel}/g' «{test}»",
    "git rm -q «{path}»",
    "python - <<'EOF'\nfrom pathlib import Path\n\np = Path('«{path}»')\n"
    "p.write_text(p.read_text().replace('{camel}', '{camel}'))\nEOF",
    "mkdir -p build && mv {otherpath} «{otherpath}»",
    "git checkout main -- «{path}»",
)
_EDITED = ("«{path}»", "«{path}»", "«{path}»", "«{path}»", "«{test}»", "«{otherpath}»")


class Fact(msgspec.Struct, frozen=True):
    """A phrase of a session; `text` is in it verbatim."""

    kind: Kind
    text: str
    is_pinned: bool
    """The user stated it in a prompt, note or answer of at most 1,500 tokens: it must survive every tier."""
    place: str
    """Where it was planted: `prompt`, `long prompt`, `note`, `answer`, `instructions`, `plan`, `reply`, `call`,
    `result`.
    """
    template: str
    """Kind and text of the template that it was made from."""
    step: int
    """Number of requests before it."""


class PlantedSession(msgspec.Struct, frozen=True):
    """A session's log, the facts in it, and a context window of which the transcript takes 70 to 80 %."""

    events: tuple[Event, ...]
    facts: tuple[Fact, ...]
    window: int


def planted_session(seed: int) -> PlantedSession:
    """The session of a seed."""
    return _Author(random.Random(seed)).write()  # noqa: S311 - test data


class _Author:
    """Writes one session."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._words = Words(chance, chance.choice(WORLDS))
        self._speech = chance.choice(SPEECHES)
        self._log = SessionLog(self._words)
        steps = chance.randint(52, 146)
        low, high = max(29_000, steps * 210), min(73_000, steps * 1_000)
        self._actions = Actions(self._words, self._log, steps, int(chance.uniform(low, max(low, high))))
        self._work = OrdinaryWork(self._actions)
        self._facts: list[Fact] = []
        self._decks: dict[str, list[str]] = {}
        self._beats: list[tuple[float, Callable[[], None]]] = []

    def write(self) -> PlantedSession:
        """The whole session."""
        self._schedule()
        steps = self._actions.steps
        while self._beats or self._log.steps < steps - 1:
            if self._beats and self._beats[0][0] * steps <= self._log.steps:
                self._beats.pop(0)[1]()
            else:
                self._work.do_something()
        self._end_turn()
        window = round(self._log.tokens / self._chance.uniform(0.71, 0.79))
        return PlantedSession(tuple(self._log.events), tuple(self._facts), window)

    # ------------------------------------------------------------------ facts

    def _drawn(self, deck: str, templates: tuple[str, ...]) -> str:
        """A template; each is used once before one is used again."""
        left = self._decks.setdefault(deck, [])
        if not left:
            left += self._chance.sample(templates, len(templates))
        return left.pop()

    def _plant(self, kind: Kind, place: str, template: str, *, is_pinned: bool = False) -> str:
        """The filled template; its fact is added."""
        while True:
            text, fact = self._words.planted(template, is_fresh=kind == "path")
            if not any(fact in other.text or other.text in fact for other in self._facts):
                break
        self._facts.append(Fact(kind, fact, is_pinned, place, f"{kind}: {template}", self._log.steps))
        return text

    def _request(self, place: str, *, is_pinned: bool = True) -> str:
        return self._plant("request", place, self._drawn("request", self._speech.requests), is_pinned=is_pinned)

    def _constraint(self, place: str, *, is_pinned: bool = True) -> str:
        return self._plant(
            "constraint", place, self._drawn("constraint", self._speech.constraints), is_pinned=is_pinned
        )

    # ------------------------------------------------------------------ order

    def _schedule(self) -> None:
        chance = self._chance
        turns = [0.0, *sorted(chance.uniform(0.06, 0.9) for _ in range(chance.randint(2, 5)))]
        long_turn = chance.randrange(len(turns)) if chance.random() < 0.4 else -1
        in_prompts = [0] * len(turns)
        counts = dict.fromkeys(("instructions", "note", "answer", "plan"), 0)
        for _ in range(chance.randint(4, 8)):
            place = constraint_place(chance)
            if place == "prompt":
                in_prompts[int(len(turns) * chance.random() ** 1.6)] += 1
            else:
                counts[place] += 1
        for number, position in enumerate(turns):
            self._at(
                position, self._turn, in_prompts[number], number == long_turn, counts["instructions"] * (number == 0)
            )
        for place, beat in (("note", self._note), ("answer", self._answer), ("plan", self._plan)):
            for position in self._positions(counts[place]):
                self._at(position, beat)
        for position in self._positions(chance.randint(0, 1)):
            self._at(position, self._note, self._request)
        beats: tuple[tuple[Callable[[], None], int, int], ...] = (
            (self._decide, 3, 7),
            (self._change_file, 3, 6),
            (self._fail, 4, 6),
            (self._measure, 3, 6),
        )
        for beat, least, most in beats:
            for position in self._positions(chance.randint(least, most)):
                self._at(position, beat)
        self._beats.sort(key=lambda beat: beat[0])

    def _at(self, position: float, beat: Callable[..., None], *arguments: object) -> None:
        self._beats.append((position, lambda: beat(*arguments)))

    def _positions(self, count: int) -> list[float]:
        chance = self._chance
        return [
            chance.uniform(0.02, 0.68) if chance.random() < 0.8 else chance.uniform(0.7, 0.95) for _ in range(count)
        ]

    # ------------------------------------------------------------------ the user

    def _turn(self, constraints: int, is_long: bool, in_instructions: int) -> None:
        if self._facts:
            self._end_turn()
        place = "long prompt" if is_long else "prompt"
        requests = [self._request(place, is_pinned=not is_long) for _ in range(1 + (self._chance.random() < 0.15))]
        limits = [self._constraint(place, is_pinned=not is_long) for _ in range(constraints)]
        text = prompt_text(self._words, Planted(tuple(requests), tuple(limits)), self._speech.others, is_long=is_long)
        assert is_long == (estimate(text) > PINNED_TOKENS)
        image = (Image("image/png", b"\x89PNG\r\n\x1a\n" + self._chance.randbytes(30)),)
        self._log.prompt(Text(text), *(image if self._chance.random() < 0.05 else ()))
        if in_instructions or (len(self._log.events) < 5 and self._chance.random() < 0.3):
            sections = [self._words.fill(section) for section in self._chance.sample(INSTRUCTIONS, 3)]
            rules = [f"- {self._constraint('instructions', is_pinned=False)}" for _ in range(in_instructions)]
            sections.insert(self._chance.randint(1, 3), "\n".join(["## Rules", "", *rules]))
            self._log.note("\n\n".join(sections), "instructions")

    def _end_turn(self) -> None:
        chance, words = self._chance, self._words
        if chance.random() < 0.08:
            stopped = "[cancelled while it was running; it may have done part of its work]"
            call = Call("bash", {"command": words.fill("make {subject}-{verb}")}, (Text(stopped),), "cancelled")
            self._actions.step(call)
            self._log.finish("cancelled")
            return
        sentences = [words.fill(words.one_of(SUMMARY_OF_MODEL))]
        sentences += [words.fill(words.one_of(ANALYSIS)) for _ in range(chance.randint(0, 3))]
        self._log.step("\n\n".join(sentences))
        self._log.finish()

    def _note(self, plant: Callable[[str], str] | None = None) -> None:
        """The user says something while the model works, or just when it was about to end."""
        if self._chance.random() < 0.25:
            self._log.step(self._words.fill(self._words.one_of(SUMMARY_OF_MODEL)))
        said = (plant or self._constraint)("note")
        self._log.note(f"{self._words.one_of(_NOTE_STARTS)}{said}", "user")
        self._work.do_something()

    def _answer(self) -> None:
        """The model asks, and the user answers."""
        question = self._words.fill(self._words.one_of(QUESTIONS))
        arguments: dict[str, object] = {"question": question}
        if self._chance.random() < 0.5:
            arguments["options"] = [self._words.fill("Keep the {role}"), self._words.fill("Drop it")]
        self._actions.step(Call("ask_user", arguments, (Text(f"The user says: {self._constraint('answer')}"),)))

    def _plan(self) -> None:
        """The model looks around in plan mode and shows its plan; the user approves it with a remark."""
        words = self._words
        self._log.state(ModeChosen("plan"))
        self._log.note(_PLAN_MODE, "mode")
        self._work.read()
        self._work.grep()
        steps = [words.fill(step) for step in self._chance.sample(PLAN_STEPS, self._chance.randint(3, 6))]
        steps.insert(self._chance.randint(0, len(steps)), self._decision("plan"))
        plan = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
        said = f"yes, {self._constraint('plan', is_pinned=False)}"
        text = f"The user approved the plan: carry it out. They said: {said}"
        self._actions.step(Call("exit_plan", {"plan": plan}, (Text(text),), states=(ModeChosen("default"),)))
        self._log.note(_PLAN_OVER, "mode")

    # ------------------------------------------------------------------ the work

    def _decision(self, place: str) -> str:
        return self._plant("decision", place, self._drawn("decision", DECISIONS))

    def _said(self, planted: str) -> str:
        """A reply's text with the planted sentence in it."""
        words, chance = self._words, self._chance
        before = [words.fill(words.one_of(ANALYSIS)) for _ in range(chance.choice((0, 0, 0, 1, 2, 6)))]
        after = [words.fill(words.one_of((*TEXT_OF_MODEL[:-3], *ANALYSIS))) for _ in range(chance.choice((0, 0, 1, 2)))]
        return chance.choice((" ", " ", "\n\n")).join([*before, planted, *after])

    def _decide(self) -> None:
        text = self._said(self._decision("reply"))
        if self._chance.random() < 0.5:
            self._actions.step(self._actions.editing(self._words.path()), text=text)
        else:
            self._actions.step(self._actions.running(self._actions.program()), text=text)

    def _change_file(self) -> None:
        if self._chance.random() < 0.25:
            command = self._plant("path", "call", self._drawn("command", _CHANGING_COMMANDS))
            self._actions.step(Call("bash", {"command": command}, (Text("(no output)"), Text("\n[exit code 0]"))))
            return
        path = self._plant("path", "call", self._drawn("edited", _EDITED))
        if self._chance.random() < 0.4:
            self._actions.step(self._actions.reading(path, self._words.fill("{upper} = {n3}\n" * 5)))
        self._actions.step(self._actions.editing(path))

    def _fail(self) -> None:
        name = self._words.one_of(self._words.world.programs)
        program = PROGRAMS[name]
        block = self._plant("error", "result", self._drawn(name, program.failures))
        draw = self._chance.random()
        if draw < 0.1:
            self._work.read_log(block)
        elif draw < 0.15:
            self._work.grep(block)
        else:
            self._actions.step(self._actions.running(program, block, fails=True))

    def _measure(self) -> None:
        if self._chance.random() < 0.5:
            text = self._said(self._plant("number", "reply", self._drawn("measured", MEASURED)))
            self._actions.step(self._actions.editing(self._words.path()), text=text)
            return
        program = self._words.one_of(measuring(self._words.world.name))
        block = self._plant("number", "result", self._drawn(program.commands[0], program.failures))
        self._actions.step(self._actions.running(program, block))
