"""How calls that nobody could allow would be allowed in another run: by which flag, mode or rule."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from bradawl.app.tui.render import one_line
from bradawl.core.effects import Effects, is_within
from bradawl.core.permissions import Question

if TYPE_CHECKING:
    from bradawl.core.permissions import Policy

RERUN: Final = "Nobody is there to be asked"
_EVERYTHING: Final = "--yolo (asks nothing, and nothing holds what runs)"
_RULES_SHOWN: Final = 5


def how_to_allow(questions: Sequence[Question], policy: "Policy", *, cwd: str, home: str) -> str:
    """A sentence: rerun with these flags. `cwd` is where rules begin; `questions` are those that were refused."""
    flags = [*_mode_flags(questions, policy), *_rule_flags(questions, policy, cwd, home), *_sandbox_flags(questions)]
    if not flags:
        return f"{RERUN}; to allow such calls rerun with {_EVERYTHING}."
    return f"{RERUN}; to allow such calls rerun with {' '.join(flags)}, or all calls with {_EVERYTHING}."


def _is_edit(effects: Effects, roots: Sequence[str]) -> bool:
    """Whether `accept-edits` would have let it pass."""
    inside = all(any(is_within(path, root) for root in roots) for path in effects.writes)
    return bool(effects.writes) and inside and not effects.commands and not effects.unknown


def _mode_flags(questions: Iterable[Question], policy: "Policy") -> Iterable[str]:
    if policy.mode == "default" and any(_is_edit(one.request.effects, policy.roots) for one in questions):
        yield "--permission-mode accept-edits"


def _rule_flags(questions: Sequence[Question], policy: "Policy", cwd: str, home: str) -> Iterable[str]:
    import shlex

    from bradawl.safety.proposals import proposals

    rules: dict[str, None] = {}
    for question in questions:
        if policy.mode != "default" or not _is_edit(question.request.effects, policy.roots):
            rules.update(dict.fromkeys(proposals(question.request, cwd=cwd, home=home, roots=policy.roots)))
    if rules:
        more = f" (and {len(rules) - _RULES_SHOWN} more rules)" if len(rules) > _RULES_SHOWN else ""
        yield f"--allowed-tools {shlex.quote(one_line(', '.join(list(rules)[:_RULES_SHOWN])))}{more}"


def _sandbox_flags(questions: Iterable[Question]) -> Iterable[str]:
    """Several words for one flag: what asks for the network is named by its program in the settings."""
    lifts = {lift for question in questions for lift in question.request.effects.lifts}
    if "sandbox" in lifts:
        yield "--sandbox off"
    elif "network" in lifts:
        commands = (words for question in questions for words in question.request.effects.commands)
        names = dict.fromkeys(one_line(" ".join(words[:2])) for words in commands)
        if names:
            yield f"network_commands = {[f'{name} *' for name in list(names)[:_RULES_SHOWN]]} in config.toml"
