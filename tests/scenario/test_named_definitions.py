"""Before the first step of a turn the model is told where the project has what the prompt names."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_agent import build

from bradawl.app.named_definitions import NamedDefinitions
from bradawl.app.policies import Policies
from bradawl.app.project_definitions import Place
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.permission_values import RuleText, RuleVerdict
from bradawl.app.settings.settings import Settings
from bradawl.core.messages import User
from bradawl.core.permissions import Sandbox
from patience import no_wait

CODE = "class Cart:\n    def total(self):\n        return self.max_sum\n\n\ndef empty_cart():\n    pass\n"
LONG_S = 60.0


def no_rule(_: str) -> bool:
    return False


async def notes(
    folder: Path, *prompts: str, is_refused: Callable[[str], bool] = no_rule, **given: Any
) -> list[list[str]]:
    """The notes with each prompt, of one session."""
    if not (folder / "shop.py").exists():
        (folder / "shop.py").write_text(CODE)

    def middleware(context: Any) -> NamedDefinitions:
        return NamedDefinitions(context, str(folder), is_refused, **{"time_s": LONG_S, **given})

    agent, _, _ = build([{"text": "done"}] * len(prompts), middleware=(middleware,))
    async with agent.open() as session:
        for prompt in prompts:
            await session.run(prompt)
        return [[note.text for note in one.notes] for one in session.transcript.messages if isinstance(one, User)]


def rules_of(folder: Path, *rules: tuple[RuleVerdict, str]) -> Callable[[str], bool]:
    """What rules of the settings refuse to read."""
    texts = tuple(RuleText(verdict, text, "a flag", str(folder)) for verdict, text in rules)
    settings = Settings(model=ModelSettings("scripted", "x"), cwd=str(folder), home="/h", user_home="/h", rules=texts)
    return Policies(settings, (str(folder),), (), "", Sandbox).refuses_to_read


async def test_the_note_says_where_names_are_defined_and_used(tmp_path):
    assert await notes(tmp_path, "Cart.total() is wrong: max_sum is not set by empty_cart()") == [
        [
            "Where this project has names of the prompt, with lines:\n"
            "shop.py: Cart.total 2-3, empty_cart 6-7; max_sum is used in Cart.total 2-3"
        ]
    ]


async def test_lines_outside_of_definitions_have_no_name(tmp_path):
    (tmp_path / "shop.py").write_text("x = 1\nx.max_sum = 2\n")
    assert await notes(tmp_path, "max_sum") == [
        ["Where this project has names of the prompt, with lines:\nshop.py: max_sum is used in line 2"]
    ]


async def test_what_was_told_is_not_told_again(tmp_path):
    first, second, third = await notes(tmp_path, "Cart.total is wrong", "Cart.total still", "Cart.total, empty_cart()")
    assert len(first) == 1
    assert second == []
    assert third == ["Where this project has names of the prompt, with lines:\nshop.py: empty_cart 6-7"]


async def test_a_prompt_that_names_nothing_has_no_note(tmp_path):
    assert await notes(tmp_path, "The cart is wrong. Mend it.") == [[]]


@pytest.mark.parametrize(
    "rule",
    [("deny", "Read(shop.py)"), ("ask", "Read(shop.py)"), ("deny", "Read(**/*.py)"), ("deny", "Read")],
)
async def test_what_rules_refuse_is_not_told(tmp_path, rule):
    assert await notes(tmp_path, "Cart.total is wrong", is_refused=rules_of(tmp_path, rule)) == [[]]


@pytest.mark.parametrize("rule", [("deny", "Read(other.py)"), ("deny", "Edit(shop.py)"), ("allow", "Read(shop.py)")])
async def test_other_rules_play_no_part(tmp_path, rule):
    assert await notes(tmp_path, "Cart.total is wrong", is_refused=rules_of(tmp_path, rule)) != [[]]


async def test_names_of_files_can_not_end_the_note(tmp_path):
    (tmp_path / "a\n<b>.py").write_text("def empty_cart():\n    pass\n")
    assert await notes(tmp_path, "empty_cart") == [
        ["Where this project has names of the prompt, with lines:\na??b?.py: empty_cart 1-2\nshop.py: empty_cart 6-7"]
    ]


async def test_a_file_system_that_hangs_does_not_hold_up_the_turn(tmp_path):
    def hang(*_: object) -> list[Place]:
        threading.Event().wait()
        return []

    with no_wait():
        assert await notes(tmp_path, "Cart.total", find=hang, time_s=0.01) == [[]]


async def test_names_that_nobody_reads_are_left_out_and_the_note_stays_short(tmp_path):
    names = "".join(f"def {'x' * 110}_{number}():\n    pass\n" for number in range(30))
    (tmp_path / "shop.py").write_text(CODE + f"def {'y' * 5_000}_z():\n    pass\n" + names)
    prompt = " ".join(["Cart.total", f"{'y' * 5_000}_z", *(f"{'x' * 110}_{number}" for number in range(30))])
    ((note,),) = await notes(tmp_path, prompt)
    assert len(note) <= 2_000 and "Cart.total" in note and "yyy" not in note
