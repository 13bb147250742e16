"""The model of one session and the effort of its requests, which the user may change between turns."""

import msgspec

from bradawl.agent.prefix import PrefixLedger
from bradawl.agent.users_choices import UsersChoices
from bradawl.core.events import EffortChosen, ModelChosen, RequestParams
from bradawl.core.ports import Model, ModelInfo, ModelSession, Prefix, Window


class SessionModel:
    """`Model` that passes everything on to the present model of a session. It owns no model."""

    def __init__(self, choices: UsersChoices, model: Model, params: RequestParams) -> None:
        self._choices, self._params = choices, params
        self.current = model
        """The model that answers; the session changes it between turns."""

    @property
    def info(self) -> ModelInfo:
        """That of the present model."""
        return self.current.info

    def open(self, prefix: Prefix, session_id: str = "") -> ModelSession:
        """Begin a conversation with the present model."""
        return self.current.open(prefix, session_id)

    async def window(self) -> Window:
        """That of the present model."""
        return await self.current.window()

    async def aclose(self) -> None:
        """Close the connections of the present model."""
        await self.current.aclose()

    # -------------------------------------------------------------- choices

    @property
    def params(self) -> RequestParams:
        """Parameters of the next turn's requests, with the effort that the user chose."""
        return msgspec.structs.replace(self._params, effort=self.chosen_effort or self._params.effort)

    @property
    def chosen_effort(self) -> str | None:
        """The effort that the user chose; None for that of the agent."""
        return self._choices.now.effort

    def choose_effort(self, effort: str | None) -> None:
        """Ask for this effort from the next turn on, in later runs of the session too; None for that of the agent."""
        self._choices.record(EffortChosen(effort))

    async def change(
        self, model: Model, prefix: PrefixLedger, params: RequestParams | None, *, is_choice: bool
    ) -> None:
        """Have another model answer; no turn may run. If it can't begin a conversation, the one before stays.

        `params` replace those of all requests, but for an effort that the user chose. `is_choice`: later runs of the
        session continue with it.
        """
        before, self.current = self.current, model
        params_before, self._params = self._params, params or self._params
        try:
            if is_choice:
                self._choices.record(_chosen(model))
            await prefix.follow_model()
        except BaseException:
            self.current, prefix.info, self._params = before, before.info, params_before
            if is_choice:
                self._choices.record(_chosen(before))
            raise


def _chosen(model: Model) -> ModelChosen:
    origin = model.info.origin
    return ModelChosen(origin.provider, origin.model, by_user=True)
