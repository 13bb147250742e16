"""Whether a file tool would have to ask, or be refused, because of what a path is and not only because of its place."""

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.permissions import Ask, Deny, Policy, Request, decide


def objection_to_write(policy: Policy, path: str) -> str:
    """The reason of the rule or mode that refuses or questions writing this path; empty if there is none.

    The path is judged alone, without what lies below it. That it is outside the workspace is no objection. In the mode
    `bypass` rules that ask count, too: nobody wanted a question, but nobody named the file either.
    """
    effects = Effects(writes=(path,))
    if policy.mode == "bypass":
        policy = msgspec.structs.replace(policy, mode="default")
    match decide(policy, Request("write_file", "", effects, rule_names=("Edit",), read_rules="exact")):
        case Deny(reason) | Ask(reason=reason, by_rule=True):
            return reason
        case _:
            return ""
