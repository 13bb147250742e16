"""What a session remembers besides its messages, as a fold over the log."""

from bradawl.core.events import (
    AssistantReplied,
    Cwd,
    Envelope,
    FileSeen,
    PrefixOpened,
    RequestSent,
    SessionForked,
    SessionOpened,
    StateChanged,
    Todo,
    TodosSet,
)
from bradawl.core.messages import Assistant
from bradawl.core.usage import Usage, add_costs


class SessionState:
    """The state of the fold; `remember` changes it in place."""

    def __init__(self) -> None:
        self.project = ""
        self.cwd = ""
        self.prefix: PrefixOpened | None = None
        self.files_seen: dict[str, str] = {}
        """Path to sha256 of the content the model last saw."""
        self.todos: tuple[Todo, ...] = ()
        self.steps = 0
        """Number of the last step."""
        self.replies = 0
        self.last_reply: Assistant | None = None
        self.usage = Usage()
        self.context_tokens = 0
        """Tokens of the last request and its reply, as far as they were reported."""
        self.cost: float | None = 0.0
        """US dollars so far; None as soon as one reply could not be priced."""


def remember(state: SessionState, envelope: Envelope) -> SessionState:
    """Take one event into account; gives back the same state."""
    match envelope.event:
        case SessionOpened() | SessionForked() as opened:
            state.project, state.cwd = opened.project, opened.cwd
        case PrefixOpened() as prefix:
            state.prefix = prefix
        case RequestSent(step):
            state.steps = max(state.steps, step)
        case AssistantReplied(message=message, usage=usage, cost=cost):
            state.replies += 1
            state.last_reply = message
            state.usage += usage or Usage(source="estimated")
            state.cost = add_costs(state.cost, cost)
            if usage is not None:
                state.context_tokens = usage.prompt + usage.output
        case StateChanged(Cwd(path)):
            state.cwd = path
        case StateChanged(FileSeen(path, sha256)):
            state.files_seen[path] = sha256
        case StateChanged(TodosSet(todos)):
            state.todos = todos
        case _:
            pass
    return state
