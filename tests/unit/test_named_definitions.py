"""Before the first step of a turn the model is told where the project has what the prompt names."""

import json
import threading
from pathlib import Path

import pytest

from bradawl import ModelSettings, Settings, build_agent
from bradawl.app import named_definitions
from bradawl.app.project_definitions import Place
from bradawl.app.settings.permission_values import RuleText, RuleVerdict
from bradawl.core.messages import User
from patience import no_wait

CODE = "class Cart:\n    def total(self):\n        return self.max_sum\n\n\ndef empty_cart():\n    pass\n"


@pytest.fixture(autouse=True)
def _time_enough(monkeypatch):
    monkeypatch.setattr(named_definitions, "TIME_S", 60.0)
    monkeypatch.setattr(named_definitions, "PATIENCE_S", 120.0)


async def notes(folder: Path, *prompts: str, rules: tuple[tuple[RuleVerdict, str], ...] = ()) -> list[list[str]]:
    """The notes with each prompt, of one session."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    if not (work / "shop.py").exists():
        (work / "shop.py").write_text(CODE)
    (folder / "script.json").write_text(json.dumps([{"text": "done"}] * len(prompts)))
    model = ModelSettings("scripted", str(folder / "script.json"))
    settings = Settings(
        model=model,
        cwd=str(work),
        home=str(folder / "data"),
        user_home=str(folder),
        sandbox="off",
        headless=True,
        environment={},
        rules=tuple(RuleText(verdict, text, "a flag", "/") for verdict, text in rules),
    )
    agent = build_agent(settings)
    try:
        async with agent.open() as session:
            for prompt in prompts:
                await session.run(prompt)
            return [[note.text for note in one.notes] for one in session.transcript.messages if isinstance(one, User)]
    finally:
        await agent.aclose()


async def test_the_note_says_where_names_are_defined_and_used(tmp_path):
    assert await notes(tmp_path, "Cart.total() is wrong: max_sum is not set by empty_cart()") == [
        [
            "Where this project has names of the prompt, with lines:\n"
            "shop.py: Cart.total 2-3, empty_cart 6-7; max_sum is used in Cart.total 2-3"
        ]
    ]


async def test_lines_outside_of_definitions_have_no_name(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "shop.py").write_text("x = 1\nx.max_sum = 2\n")
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
    assert await notes(tmp_path, "Cart.total is wrong", rules=(rule,)) == [[]]


async def test_names_of_files_can_not_end_the_note(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a\n<b>.py").write_text("def empty_cart():\n    pass\n")
    assert await notes(tmp_path, "empty_cart") == [
        ["Where this project has names of the prompt, with lines:\na??b?.py: empty_cart 1-2\nshop.py: empty_cart 6-7"]
    ]


async def test_a_file_system_that_hangs_does_not_hold_up_the_turn(tmp_path, monkeypatch):
    def hang(*_: object) -> list[Place]:
        threading.Event().wait()
        return []

    monkeypatch.setattr(named_definitions, "places_named", hang)
    monkeypatch.setattr(named_definitions, "PATIENCE_S", 0.1)
    with no_wait():
        assert await notes(tmp_path, "Cart.total") == [[]]
