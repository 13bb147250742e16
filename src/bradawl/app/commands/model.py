"""The slash commands about the model: `/model` and `/effort`."""

from typing import Final, Literal

from bradawl.app.catalog_facts import assumed_window
from bradawl.app.frontend import FrontendSession
from bradawl.app.rendering import one_line, token_count
from bradawl.app.run_models import ChosenModel, KnownModel, RunModels
from bradawl.app.slash_commands import CommandError, command
from bradawl.app.terminal_user import Option
from bradawl.core.usage import Price

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
_USUAL: Final = "default"


@command("model")
async def choose_model(session: FrontendSession, name: str = "") -> str:
    """Show the model that answers, or change it: /model openai/gpt-5.5.

    NAME is [PROVIDER/]MODEL; without a provider it is a model of the present one. Without NAME a list of the models
    of your providers opens, with their windows and prices. The conversation goes on with the new model from the next
    prompt on, also when it is continued later; sub-agents and compactions use it too. The cache of the old model is of
    no use to it, so the first request costs the whole conversation.
    """
    models = session.frontend.request.models
    if not name and models is not None and session.frontend.user is not None:
        name = await _picked(session, models)
        if not name:
            return f"{one_line(session.model_name)} goes on answering."
    if not name:
        return await _description(session)
    if models is None:
        raise CommandError("The model can't be changed here.")
    _check_has_begun(session, f"-m {name}")
    chosen = models.choose(name, session.model)
    if (chosen.settings.provider, chosen.settings.name) == (session.model.provider, session.model.name):
        return f"{one_line(session.model_name)} answers already."
    chosen = await _listed(session, models, chosen)
    if chosen is None:
        return f"{one_line(session.model_name)} goes on answering."
    is_saved = await session.use_model(chosen)
    lines = [f"From the next prompt on {await _description(session)} answers.", *chosen.notes, *_about_window(session)]
    if not is_saved:
        lines.append("The choice could not be saved: a later run of the session does not know it.")
    return "\n".join(map(one_line, lines))


@command("effort")
def choose_effort(session: FrontendSession, level: Effort | Literal["default"] | None = None) -> str:
    """Show how hard the model thinks, or choose it: /effort high.

    `default` is the level of the settings. It holds from the next prompt on, also when the session is continued. A
    model that has no such levels ignores it, or uses its nearest one.
    """
    model = session.session.model
    if level is not None:
        _check_has_begun(session, f"--effort {level}")
        model.choose_effort(None if level == _USUAL else level)
    source = "chosen in this session" if model.chosen_effort else "as the settings have it"
    return f"effort {model.params.effort or 'of the model itself'}, {source}"


def _check_has_begun(session: FrontendSession, flag: str) -> None:
    """Without a user a choice in a session with nothing in it would be lost with the run."""
    if not session.frontend.user_is_there and session.session.conversation.last_event is None:
        raise CommandError(f"There is no session yet to choose that for: add -c or -r ID, or use `{flag}` instead.")


async def _listed(session: FrontendSession, models: RunModels, chosen: ChosenModel) -> ChosenModel | None:
    """The model to change to: another one, or None, if the user says so of a name that the endpoint does not list.

    Raises `CommandError` where no user can be asked.
    """
    found = await models.not_listed(chosen.settings)
    if found is None:
        return chosen
    if not found.listed:
        note = f"{chosen.settings.provider} gives no list of its models, so the name is taken as it is."
        return chosen._replace(notes=(*chosen.notes, note))
    count = f"{len(found.listed)} model{'' if len(found.listed) == 1 else 's'}"
    unlisted = f"{one_line(chosen.name)} is not among the {count} that {chosen.settings.provider} lists"
    user = session.frontend.user
    if user is None:
        meant = f"; did you mean {' or '.join(map(one_line, found.near))}?" if found.near else "."
        see = f" `bradawl models {chosen.settings.provider}` lists them all."
        raise CommandError(f"{unlisted}{meant}{see}")
    options = [Option(name, one_line(name)) for name in dict.fromkeys((*found.near, *found.listed))]
    options.append(Option(chosen.name, f"{one_line(chosen.name)} all the same", "a request may fail"))
    picked = await user.pick(f"{unlisted}. Which one is meant?", options)
    if picked is None or picked == chosen.name:
        return None if picked is None else chosen
    return models.choose(picked, session.model)


async def _picked(session: FrontendSession, models: RunModels) -> str:
    """The name of the model that the user picked; empty for none."""
    user = session.frontend.user
    if user is None:
        return ""
    known = await models.known()
    if not any(one.name == session.model_name for one in known):
        known = (await _present(session), *known)
    options = [Option(one.name, one.name, _detail(one), one.name == session.model_name) for one in known]
    return await user.pick("Which model is to answer from the next prompt on?", options) or ""


def _detail(model: KnownModel) -> str:
    window = f"{token_count(model.context_window)} window" if model.context_window else "window unknown"
    window += " (assumed)" if model.is_window_assumed else ""
    return f"{window}, {price_of(model.price)}"


async def _description(session: FrontendSession) -> str:
    present = await _present(session)
    return f"{one_line(present.name)} ({_detail(present)})"


async def _present(session: FrontendSession) -> KnownModel:
    """The model that answers. A window that is only a usual size counts as unknown."""
    info, origin = session.session.model.info, session.session.model.info.origin
    if info.context_window is not None:
        return KnownModel(session.model_name, info.context_window, info.price)
    assumed = assumed_window(origin.provider, origin.model)
    if assumed is None:
        return KnownModel(session.model_name, None, info.price)
    window = await session.session.model.window()  # the server may know better
    return KnownModel(session.model_name, window.tokens, info.price, window.source == "assumed")


def price_of(price: Price | None) -> str:
    """`$3 in, $15 out per million tokens`."""
    if price is None or price.input is None or price.output is None:
        return "price unknown"
    return f"${price.input:g} in, ${price.output:g} out per million tokens"


def _about_window(session: FrontendSession) -> tuple[str, ...]:
    """What the user should know if the conversation does not fit into the window of the model."""
    inner = session.session
    window, used = inner.model.info.context_window, inner.prefix.context_tokens()
    if window is None or used < window:
        return ()
    is_compacted = session.frontend.settings.auto_compact
    then = "is compacted before the next request" if is_compacted else "does not fit; try /compact"
    return (f"The conversation takes {token_count(used)} tokens, so it {then}.",)
