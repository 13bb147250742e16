"""Saves the rules of an approval for the project, before the call that they allow runs."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from bradawl.core.errors import SettingsError
from bradawl.core.permissions import Question
from bradawl.safety.control_characters import escape

if TYPE_CHECKING:
    from bradawl.app.remembered_rules import RememberedRules


async def save_rules(
    memory: "RememberedRules", question: Question, rules: tuple[str, ...], show: Callable[[str], None]
) -> str:
    """The file in which the rules are now; empty, with the reason shown, if they do not allow the call or can't be
    saved.
    """
    if lack := memory.why_not_allowed(question.request, rules):
        show(f"Nothing was saved: {escape(lack)}")
        return ""
    try:
        return await asyncio.to_thread(memory.add, rules)
    except SettingsError as error:
        show(f"Nothing was saved: {escape(str(error))}")
        return ""
