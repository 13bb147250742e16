"""Why a call was refused or failed, for the user: the sentence of the model's text without the advice to the model."""

import re
from typing import Final

from bradawl.app.call_details import Shown
from bradawl.core.events import Outcome
from bradawl.core.messages import text_of
from bradawl.safety.control_characters import clean

_NOT_RUN: Final = re.compile(r"^\S+ was not run: ")
_DECLINED: Final = re.compile(r"the user declined\.(?: They said: (.*)| Do something else.*)?", re.DOTALL)
_NEEDED: Final = re.compile(r"it needs permission \((.*)\), and no user is present to give it\..*", re.DOTALL)
_OF_THE_USER: Final = re.compile(r"\b(\w+) of the user\b")
_UNTOLD: Final = ", and what it would change can't be told"
_EXAMPLES: Final = re.compile(r" \(plain ls, [^)]*\)")
_VERBS: Final = (
    "add|ask|call|cd|change|check|do|end|examine|give|go|install|keep|leave|look|make|mend|name|pass|put|read|read_file|"
    "repeat|report|run|say|send|show|take|try|use|work|write"
)
_ADVICE: Final = re.compile(rf"(?:; (?:or |but |so )?|\. )(?:{_VERBS})\b", re.IGNORECASE)


def refusal_reason(text: str) -> str:
    """One sentence: `nothing may change in plan mode`, `you said no: not now`. A hook's words stay as they are."""
    given = clean(text).strip("\n")
    text = _NOT_RUN.sub("", given)
    if text == given:
        return given
    if declined := _DECLINED.fullmatch(text):
        return f"you said no: {declined[1]}" if declined[1] else "you said no"
    if needed := _NEEDED.fullmatch(text):
        return f"it needs permission: {user_words(needed[1])}"
    return user_words(text).removesuffix(".")


def why_asked(reason: str) -> str:
    """The reason of a question, without what the question shows beside it."""
    return user_words(reason.removesuffix(_UNTOLD)).replace("it reaches *", "it reaches any host")


def user_words(reason: str) -> str:
    """A reason of a rule or a mode without advice to the model, and with `your` for what is the user's."""
    return _OF_THE_USER.sub(r"your \1", _EXAMPLES.sub("", without_advice(reason)))


def without_advice(text: str) -> str:
    """The text up to the first advice of what to do instead; a command between backticks is never cut."""
    for found in _ADVICE.finditer(text):
        before = text[: found.start()]
        if before and before.count("`") % 2 == 0:
            return before
    return text


def shown_reason(outcome: Outcome, shown: Shown) -> str:
    """What a screen shows of a call that was refused or failed."""
    text = clean(text_of(shown))
    return refusal_reason(text) if outcome == "refused" else without_advice(text)
