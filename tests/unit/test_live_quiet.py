"""Keys that are on their way when a question appears are no part of the answer."""

import asyncio

import pytest
from prompt_toolkit.history import InMemoryHistory

from bradawl.app.tui.live.editor import Editor
from bradawl.app.tui.live.view import PAUSE_S, QUIET_S, LiveView


class BareScreen:
    """What a view needs of a screen for an answer that is typed."""

    def __init__(self):
        self.editor = Editor(InMemoryHistory(), None, when_changed=lambda: None)
        self.label = ""
        self.compose = None
        self.labelled = asyncio.Event()

    def refresh(self):
        if self.label:
            self.labelled.set()


def test_a_typed_answer_begins_after_the_keys_that_were_on_their_way():
    """Defect: `y` and Enter, typed before the question about trust was on the screen, answered it."""

    async def asked():
        view, screen = LiveView(None), BareScreen()
        view.attach(screen)
        loop = asyncio.get_running_loop()
        screen.editor.type("y")
        view.touched()
        began = loop.time()
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(view.type_text("Trust it?", waits=True))
            for _ in range(5):
                await asyncio.sleep(0)
            assert screen.label == "" and not answer.done()
            screen.editor.type("y")
            view.touched()
            await screen.labelled.wait()
            waited = loop.time() - began
            assert screen.editor.text == ""
            screen.editor.type("n")
            view.submit()
        return answer.result(), screen.editor.text, waited

    answer, draft, waited = asyncio.run(asked())
    assert (answer, draft) == ("n", "yy") and waited >= PAUSE_S


@pytest.mark.parametrize("draft", ["", "a draft"])
def test_how_long_a_question_waits_depends_on_the_draft(draft):
    async def waited():
        view, screen = LiveView(None), BareScreen()
        view.attach(screen)
        screen.editor.set_text(draft)
        view.touched()
        began = asyncio.get_running_loop().time()
        await view._quiet()
        return asyncio.get_running_loop().time() - began

    assert asyncio.run(waited()) >= (PAUSE_S if draft else QUIET_S) - 0.01
