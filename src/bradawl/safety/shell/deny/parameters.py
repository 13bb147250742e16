"""What stands in braces behind a dollar: a variable, a parameter or an array, and what is done to its value."""

import re

from bradawl.safety.shell.deny.expansion import DOUBT, UNTOLD, changed, cut_at, elements, listed
from bradawl.safety.shell.deny.parsed_command import Listener
from bradawl.safety.shell.deny.variable_state import ANYTHING, Flow, Values, in_doubt

EXPANSION = re.compile(
    r"(?P<mark>[!#](?=[A-Za-z_0-9@*]))?(?P<name>[A-Za-z_]\w*|[0-9]+|[@*])?(?:\[(?P<place>[^\]$`{}]{0,40})\])?"
    r"(?P<operator>:?[-=+?]|%%?|##?|/[/#%]?|:|\^\^?|,,?|@)?"
)
_PASSED_ON = frozenset({"", ":-", "-", ":=", "=", ":+", "+", ":?", "?"})


def expanded(match: re.Match[str] | None, rest: tuple[str, ...], flow: Flow, listener: Listener) -> Values:
    """What `${...}` may be; `rest` is what stands behind the operator."""
    if match is None or match["name"] is None or match["mark"] == "#":
        return ANYTHING
    name, place, operator = match["name"], match["place"], match["operator"] or ""
    values = _values(name, place, flow, listener)
    if match["mark"] == "!":
        values = _meant(values, listener) if place is None else ANYTHING
    if operator in _PASSED_ON:
        return _or_else(name, values, operator, rest, flow) if operator or rest == ("",) else ANYTHING
    return tuple(dict.fromkeys(_done_to(value, operator, rest[0], is_list=_is_all(name, place)) for value in values))


def _is_all(name: str, place: str | None) -> bool:
    return place in ("@", "*") or name in ("@", "*")


def _values(name: str, place: str | None, flow: Flow, listener: Listener) -> Values:
    if place is None:
        return listener.value(name)
    if place == "@":
        return flow.elements(name)
    if place == "*":
        return tuple(" ".join(elements(value)) for value in flow.elements(name))
    if place.isdecimal():
        return flow.element(name, int(place))
    return in_doubt(tuple(each for value in flow.elements(name) for each in elements(value)))


def _meant(names: Values, listener: Listener) -> Values:
    """The values of the variables whose names these are."""
    return in_doubt(tuple(value for name in names if UNTOLD not in name for value in listener.value(name)))


def _or_else(name: str, values: Values, operator: str, rest: Values, flow: Flow) -> Values:
    """What stands there for a variable that is missing, or isn't."""
    match operator.lstrip(":"):
        case "-" | "=":
            if UNTOLD in values or (operator.startswith(":") and "" in values):
                values = in_doubt((*filter(None, values), *rest))
            if operator.endswith("="):
                flow.assign(name, values)
            return values
        case "+":
            return in_doubt(rest)
        case _:  # `?`: bash ends the line where it is missing
            return tuple(value.replace(UNTOLD, DOUBT) for value in values) if operator == ":?" else values


def _done_to(value: str, operator: str, rest: str, *, is_list: bool) -> str:
    if not is_list:
        return changed(value, operator, rest)
    if value == UNTOLD:
        return UNTOLD
    words = elements(value)
    if operator != ":":
        return listed(changed(word, operator, rest) for word in words)
    place = cut_at(rest, len(words) + 1)
    if place is None:
        return UNTOLD
    return listed(["", *words][place]) or UNTOLD
