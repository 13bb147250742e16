"""The agent loop: a turn repeats steps until the model calls no tool; a step is one request and the calls of its reply.

No feature is implemented here. Tools, hooks and middleware add them.
"""

from bradawl.agent.around_step import before_step
from bradawl.agent.middleware import MOST_FAILED_STEPS, Continue, Finish
from bradawl.agent.step import StepEnd, run_step
from bradawl.agent.turn import Turn


async def run_turn(turn: Turn) -> Finish:
    """Run steps until the turn is over. The prompt is already in the transcript."""
    while True:
        if (finish := await before_step(turn.middleware)) is not None:
            return finish
        turn.conversation.deliver_notes()
        if (finish := _decide(turn, await run_step(turn))) is not None:
            return finish


def _decide(turn: Turn, end: StepEnd) -> Finish | None:
    """How the turn ends; None if it goes on."""
    may_continue = turn.count_failed(end.ending) <= MOST_FAILED_STEPS
    match end.answer:
        case Finish():
            return end.answer
        case Continue() if end.ending is not None and not may_continue:
            return Finish(end.ending)
        case Continue(note, keeps_text):
            if keeps_text:
                turn.keep()
            if note:
                turn.conversation.note(note)
            return None
        case None:
            return None if end.ending is None or turn.goes_on_after(end.ending) else Finish(end.ending)
