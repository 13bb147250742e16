"""Expands `${...}`: variables, parameters and arrays, with the operators that change their values."""

import re

from bradawl.safety.shell.deny.expansion import (
    UNKNOWN_BUT_SET,
    UNKNOWN_VALUE,
    array_items,
    array_value,
    slice_of,
    transformed,
)
from bradawl.safety.shell.deny.parsed_command import CommandVisitor
from bradawl.safety.shell.deny.variable_state import ANY_VALUE, Values, VariableState, widen

EXPANSION = re.compile(
    r"(?P<mark>[!#](?=[A-Za-z_0-9@*]))?(?P<name>[A-Za-z_]\w*|[0-9]+|[@*])?(?:\[(?P<place>[^\]$`{}]{0,40})\])?"
    r"(?P<operator>:?[-=+?]|%%?|##?|/[/#%]?|:|\^\^?|,,?|@)?"
)
_PASSED_ON = frozenset({"", ":-", "-", ":=", "=", ":+", "+", ":?", "?"})


def expanded(match: re.Match[str] | None, rest: Values, variables: VariableState, visitor: CommandVisitor) -> Values:
    """Possible values of `${...}`; `rest` are the possible values of the text after the operator."""
    if match is None or match["name"] is None or match["mark"] == "#":
        return ANY_VALUE
    name, place, operator = match["name"], match["place"], match["operator"] or ""
    values = _values(name, place, variables, visitor)
    if match["mark"] == "!":
        values = _indirect_values(values, visitor) if place is None else ANY_VALUE
    if operator in _PASSED_ON:
        return _with_default(name, values, operator, rest, variables) if operator or rest == ("",) else ANY_VALUE
    return tuple(
        dict.fromkeys(_transformed(value, operator, rest[0], is_list=_is_all(name, place)) for value in values)
    )


def _is_all(name: str, place: str | None) -> bool:
    return place in ("@", "*") or name in ("@", "*")


def _values(name: str, place: str | None, variables: VariableState, visitor: CommandVisitor) -> Values:
    if place is None:
        return visitor.variable_value(name)
    if place == "@":
        return variables.array_values(name)
    if place == "*":
        return tuple(" ".join(array_items(value)) for value in variables.array_values(name))
    if place.isdecimal():
        return variables.element(name, int(place))
    return widen(tuple(each for value in variables.array_values(name) for each in array_items(value)))


def _indirect_values(names: Values, visitor: CommandVisitor) -> Values:
    """Possible values of the variables with these names, as in `${!name}`."""
    return widen(tuple(value for name in names if UNKNOWN_VALUE not in name for value in visitor.variable_value(name)))


def _with_default(name: str, values: Values, operator: str, rest: Values, variables: VariableState) -> Values:
    """Possible values under `-`, `=`, `+` and `?`, which depend on whether the variable is set."""
    match operator.lstrip(":"):
        case "-" | "=":
            if UNKNOWN_VALUE in values or (operator.startswith(":") and "" in values):
                values = widen((*filter(None, values), *rest))
            if operator.endswith("="):
                variables.assign(name, values)
            return values
        case "+":
            return widen(rest)
        case _:  # `?`: bash ends the line if the variable is not set
            return (
                tuple(value.replace(UNKNOWN_VALUE, UNKNOWN_BUT_SET) for value in values) if operator == ":?" else values
            )


def _transformed(value: str, operator: str, rest: str, *, is_list: bool) -> str:
    if not is_list:
        return transformed(value, operator, rest)
    if value == UNKNOWN_VALUE:
        return UNKNOWN_VALUE
    words = array_items(value)
    if operator != ":":
        return array_value(transformed(word, operator, rest) for word in words)
    place = slice_of(rest, len(words) + 1)
    if place is None:
        return UNKNOWN_VALUE
    return array_value(["", *words][place]) or UNKNOWN_VALUE
