"""The list of a provider's models, the most suitable first, with windows and prices."""

import re
from collections.abc import Sequence
from typing import Final

from bradawl.app.login.dialogue import Choice, Dialogue
from bradawl.app.model_list import ListedModel, rate_text
from bradawl.app.rendering import one_line
from bradawl.app.text_layout import Column
from bradawl.core.usage import Price

_COLUMNS: Final = (Column("MODEL"), Column("WINDOW", "right"), Column("$ IN", "right"), Column("$ OUT", "right"))
_NO_CHAT: Final = re.compile(
    r"embed|whisper|tts|speech|audio|transcri|realtime|dall-e|image|imagen|veo|sora|video|moderation|rerank|guard|ocr"
    r"|davinci|babbage|similarity|clip",
    re.IGNORECASE,
)
"""Parts of names of models that hold no conversation in text."""
NONE: Final = "-"


def ranked(models: Sequence[ListedModel], preferred: Sequence[str]) -> list[ListedModel]:
    """Preferred models first, in that order, then those with a known price; models that hold no conversation last."""

    def rank(model: ListedModel) -> tuple[int, int]:
        if model.name in preferred:
            return (0, preferred.index(model.name))
        if _NO_CHAT.search(model.name):
            return (3, 0)
        return (1 if model.price is not None or model.is_hourly else 2, 0)

    return sorted(models, key=rank)


def default_of(models: Sequence[ListedModel], preferred: Sequence[str]) -> str:
    """The preferred model that is listed, else the only one that holds conversations; empty if there is neither."""
    names = {model.name for model in models}
    if found := next((name for name in preferred if name in names), ""):
        return found
    chat = [model.name for model in models if not _NO_CHAT.search(model.name)]
    return chat[0] if len(chat) == 1 else ""


def choose_model_of(
    dialogue: Dialogue, models: Sequence[ListedModel], preferred: Sequence[str], *, is_asked: bool = True
) -> str:
    """The name of a model; empty if the user wants none. Raises `EOFError`.

    `is_asked`: the models are those that the endpoint listed when it was asked.
    """
    if not models:
        usual = preferred[0] if preferred and not is_asked else ""
        why = "The endpoint lists no models. " if is_asked else ""
        enter = f"Enter for {one_line(usual)}, {NONE} for none" if usual else f"Enter or {NONE} for none"
        answer = dialogue.ask(f"{why}Name of the model ({enter}):") or usual
        return "" if answer == NONE else answer
    default = default_of(models, preferred)
    assumed = ", ? is assumed" if any(model.is_window_assumed for model in models) else ""
    dialogue.say(f"Models ($ is US dollars per million tokens, - is not known{assumed}):")
    enter = f"Enter for {one_line(default)}, " if default else ""
    question = f"Number, or a part of a name ({enter}{NONE} for none):"
    choices = [_choice(model) for model in ranked(models, preferred)]
    return dialogue.choose(choices, _COLUMNS, question, default=default, none=NONE, takes_other=True)


def _choice(model: ListedModel) -> Choice:
    price = model.price or Price()
    prices = (rate_text(price.input), rate_text(price.output))
    if model.is_hourly and model.price is None:
        prices = ("by the hour", "")
    return Choice(model.name, (one_line(model.name), model.window_text, *prices))
