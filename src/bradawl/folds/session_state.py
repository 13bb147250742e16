"""The state of a session besides its messages, as a fold over the log: files seen, variables, mode, cost."""

from collections.abc import Iterable

import msgspec

from bradawl.core.events import (
    AgentEnded,
    AssistantReplied,
    Compacted,
    Cwd,
    Env,
    Envelope,
    Event,
    FileSeen,
    LimitReached,
    ModeChosen,
    PrefixOpened,
    ReplyWithdrawn,
    RequestSent,
    ResultAmended,
    SessionForked,
    SessionOpened,
    State,
    StateChanged,
    Todo,
    TodosSet,
    ToolsChanged,
)
from bradawl.core.messages import Assistant, StopReason
from bradawl.core.permissions import Mode
from bradawl.core.usage import Usage, add_costs
from bradawl.folds.choices import Choices, choose
from bradawl.folds.work import Work


class FileShown(msgspec.Struct, frozen=True):
    """What the model has seen of a file."""

    contents: frozenset[tuple[str, str]] = frozenset()
    """sha256 of each content that it saw at any time, with the name of the part; empty for the whole."""
    parts: frozenset[str] = frozenset()
    """Parts of the content that it saw last. The conversation holds a result with each, and no later one shows another
    content of the file.
    """


class SessionState:
    """The state of the fold; `remember` updates it in place."""

    def __init__(self) -> None:
        self.project = ""
        self.cwd = ""
        self.prefix: PrefixOpened | None = None
        self.files_seen: dict[str, str] = {}
        """Path to sha256 of the content the model last saw, the path seen last at the end."""
        self.files_shown: dict[str, FileShown] = {}
        """Path to all contents that the model saw, and the parts of the last one that the conversation holds."""
        self.seen_before: dict[str, tuple[str | None, FileShown | None]] = {}
        """The previous values of each file seen since the last request; None if it had not been seen."""
        self.work = Work()
        """The files that calls changed, and the jobs that run."""
        self.env: dict[str, str | None] = {}
        """Variables that commands exported, in addition to the program's environment; None for one they unset."""
        self.todos: tuple[Todo, ...] = ()
        self.mode: Mode | None = None
        """The permission mode chosen in the session; None for that of the settings."""
        self.choices = Choices()
        """The user's model, effort, name and folders for the session."""
        self.added_tools: set[str] = set()
        """Names of tools that were added after the first prefix was opened."""
        self.removed_tools: set[str] = set()
        """Names of tools that were removed after the first prefix was opened and not added again."""
        self.steps = 0
        """Number of the last step."""
        self.replies = 0
        self.last_reply: Assistant | None = None
        self.last_stop: StopReason | None = None
        self.usage = Usage()
        self.context_tokens = 0
        """Reported tokens of the last request and its reply."""
        self.is_anchored = False
        """True if `context_tokens` was reported, for the current prefix."""
        self.estimated_tokens = 0
        """Estimated tokens of the last request, not calibrated."""
        self.factors: dict[str, float] = {}
        """Ratio of reported to estimated tokens by `provider/model`, updated with each report."""
        self.limit: LimitReached | None = None
        """The last limit that ended a turn."""
        self.cost: float | None = 0.0
        """US dollars so far; None once a reply had no known price."""

    def replace(self, other: "SessionState") -> None:
        """Become what `other` is, for all who hold this state; `other` must not be used any more."""
        files_seen, files_shown = self.files_seen, self.files_shown
        vars(self).update(vars(other))
        self.files_seen, self.files_shown = files_seen, files_shown
        files_seen.clear()
        files_seen.update(other.files_seen)
        files_shown.clear()
        files_shown.update(other.files_shown)


def remember(state: SessionState, envelope: Envelope) -> SessionState:
    """Apply one event; returns the same state."""
    state.work.take(envelope.event)
    state.choices = choose(state.choices, envelope.event)
    match envelope.event:
        case SessionOpened() | SessionForked() as opened:
            state.project, state.cwd = opened.project, opened.cwd
        case PrefixOpened() as prefix:
            state.prefix, state.is_anchored = prefix, False
        case RequestSent(step, estimated_tokens=estimated):
            state.steps = max(state.steps, step)
            state.estimated_tokens = estimated
            state.seen_before.clear()
        case ReplyWithdrawn(usage=usage, cost=cost):
            _forget_files_of_withdrawn_reply(state)
            _spend(state, usage, cost)
        case AgentEnded(usage=usage, cost=cost):
            _spend(state, usage, cost)
        case AssistantReplied() as replied:
            _count(state, replied)
        case StateChanged(change):
            _change(state, change)
        case event:
            _remember_other(state, event)
    return state


def _remember_other(state: SessionState, event: Event) -> None:
    match event:
        case Compacted(usage=usage, cost=cost):
            _forget_parts(state, state.files_shown)
            _spend(state, usage, cost)
            state.is_anchored = False
        case ResultAmended():  # which of the files the result showed is not known
            _forget_parts(state, state.seen_before)
        case LimitReached():
            state.limit = event
        case ToolsChanged(added, removed):
            state.added_tools = (state.added_tools | set(added)) - set(removed)
            state.removed_tools = (state.removed_tools - set(added)) | set(removed)
        case _:
            pass


def add_spending(state: SessionState, abandoned: Iterable[Envelope]) -> SessionState:
    """Add the replies, tokens and cost of entries that the branch of `state` left out; returns the same state."""
    for envelope in abandoned:
        match envelope.event:
            case RequestSent(step):
                state.steps = max(state.steps, step)
            case AssistantReplied(usage=usage, cost=cost):
                state.replies += 1
                _spend(state, usage or Usage(source="estimated"), cost)
            case ReplyWithdrawn(usage=usage, cost=cost) | AgentEnded(usage=usage, cost=cost):
                _spend(state, usage, cost)
            case Compacted(usage=usage, cost=cost):
                _spend(state, usage, cost)
            case _:
                pass
    return state


def _spend(state: SessionState, usage: Usage | None, cost: float | None) -> None:
    if usage is not None:
        state.usage += usage
        state.cost = add_costs(state.cost, cost)


def _forget_files_of_withdrawn_reply(state: SessionState) -> None:
    """Undo the files seen by a withdrawn reply: the model never got their content."""
    for path, (seen, shown) in state.seen_before.items():
        del state.files_seen[path]
        del state.files_shown[path]
        state.files_seen |= {} if seen is None else {path: seen}
        state.files_shown |= {} if shown is None else {path: shown}
    state.seen_before.clear()


def _forget_parts(state: SessionState, paths: Iterable[str]) -> None:
    for path in tuple(path for path in paths if state.files_shown[path].parts):
        state.files_shown[path] = msgspec.structs.replace(state.files_shown[path], parts=frozenset())


def _change(state: SessionState, change: State) -> None:
    match change:
        case Cwd(path):
            state.cwd = path
        case Env(variables):
            state.env |= variables
        case FileSeen(path, sha256, part):
            seen, shown = state.files_seen.get(path), state.files_shown.get(path)
            state.seen_before.setdefault(path, (seen, shown))
            state.files_seen.pop(path, None)
            state.files_seen[path] = sha256
            parts = shown.parts if shown and seen == sha256 else frozenset[str]()
            contents = shown.contents if shown else frozenset[tuple[str, str]]()
            state.files_shown[path] = FileShown(contents | {(sha256, part)}, parts | {part} if part else parts)
        case TodosSet(todos):
            state.todos = todos
        case ModeChosen(mode):
            state.mode = mode
        case _:
            pass


def calibrated(known: float | None, reported: int, estimated: int) -> float:
    """The ratio of reported to estimated tokens after one more report; `known` is None before the first."""
    if estimated <= 0 or reported <= 0:
        return 1.0 if known is None else known
    seen = min(1.8, max(0.6, reported / estimated))
    return seen if known is None else known + 0.3 * (seen - known)


def _count(state: SessionState, replied: AssistantReplied) -> None:
    usage = replied.usage
    state.replies += 1
    state.last_reply, state.last_stop = replied.message, replied.stop
    state.usage += usage or Usage(source="estimated")
    state.cost = add_costs(state.cost, replied.cost)
    state.is_anchored = usage is not None and usage.source == "reported"
    if usage is None:
        return
    state.context_tokens = usage.prompt + usage.output
    if state.is_anchored and state.prefix is not None:
        model = f"{state.prefix.provider}/{state.prefix.model}"
        state.factors[model] = calibrated(state.factors.get(model), usage.prompt, state.estimated_tokens)
