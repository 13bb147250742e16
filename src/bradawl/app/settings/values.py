"""Parsers for the value of one setting. Each takes the value and its place (flag, variable or file and key).

Every parser raises a `SettingsError` that names the place. `--help` imports this module, so it must stay cheap.
"""

from collections.abc import Callable, Mapping
from math import isfinite
from re import ASCII, fullmatch
from typing import TYPE_CHECKING, Final, NamedTuple, cast

if TYPE_CHECKING:
    from bradawl.core.errors import SettingsError

EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""How hard a model may be asked to think."""


_LONGEST_UNREAD: Final = 200


def _error(message: str) -> "SettingsError":
    from bradawl.core.errors import SettingsError  # loads msgspec, which costs `--help` more than all else

    return SettingsError(message)


def parse_table(value: object, place: str) -> dict[str, object]:
    """A TOML table. Raises `SettingsError`."""
    if not isinstance(value, dict):
        raise _error(f"{place} must be a table.")
    return cast("dict[str, object]", value)


def parse_text(value: object, place: str, *, may_be_empty: bool = False) -> str:
    """A text without control characters, stripped. Raises `SettingsError`."""
    if not isinstance(value, str):
        raise _error(f"{place} must be a text, not {value!r}.")
    text = value.strip()
    if not text and not may_be_empty:
        raise _error(f"{place} is empty.")
    if not is_utf8(text):
        raise _error(f"{place} is not UTF-8: {_spelled(text)}. Rename what it names, or use something else.")
    if not text.isprintable():
        raise _error(f"{place} has a control character in it: {text!r}.")
    return text


def parse_prose(value: object, place: str) -> str:
    """A text of one or more lines, stripped. Raises `SettingsError`."""
    if not isinstance(value, str):
        raise _error(f"{place} must be a text, not {value!r}.")
    text = value.replace("\r\n", "\n").strip()
    if not text:
        raise _error(f"{place} is empty; give a text, or leave it out.")
    if not is_utf8(text):
        raise _error(f"{place} is not UTF-8 text.")
    if control := next((char for char in text if ord(char) < 32 and char not in "\n\t"), ""):
        raise _error(f"{place} is not a text: it has the control character {control!r} in it.")
    return text


def check_utf8_path(path: str, place: str) -> str:
    """The path, if its names are UTF-8, which requests and session files need. Raises `SettingsError`."""
    if is_utf8(path):
        return path
    raise _error(
        f"{place}: the name of {_spelled(path)} is not UTF-8, so bradawl can't work there. Rename it, or use another "
        "folder."
    )


def is_utf8(text: str) -> bool:
    """Whether a text can be encoded; bytes that are not UTF-8 arrive as lone surrogates, which can't."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _spelled(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def parse_count(value: object, place: str) -> int:
    """A whole number of at least 1. Raises `SettingsError`."""
    text = value.strip().replace("_", "") if isinstance(value, str) else ""
    if text.isascii() and text.isdigit() and len(text) < 16:
        value = int(text)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _error(f"{place} must be a whole number of at least 1, not {value!r}.")
    return value


def parse_amount(value: object, place: str) -> float:
    """A number that is not negative. Raises `SettingsError`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or not isfinite(value):
        raise _error(f"{place} must be a number of at least 0, not {value!r}.")
    return float(value)


def parse_amount_text(value: object, place: str) -> float:
    """The same, also as the text of a flag or variable. Raises `SettingsError`."""
    is_number = isinstance(value, str) and fullmatch(r"\d{1,12}(\.\d{1,12})?", value.strip(), ASCII)
    return parse_amount(float(value) if is_number and isinstance(value, str) else value, place)


_WORDS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


def parse_bool(value: object, place: str) -> bool:
    """A boolean; `yes`, `on`, `1` and their opposites are accepted. Raises `SettingsError`."""
    answer = value if isinstance(value, bool) else _WORDS.get(str(value).strip().lower())
    if answer is None:
        raise _error(f"{place} must be true or false, not {value!r}.")
    return answer


def parse_choice(value: object, place: str, choices: tuple[str, ...]) -> str:
    """One of the choices, in lower case. Raises `SettingsError`."""
    text = parse_text(value, place).lower()
    if text not in choices:
        raise _error(f"{place} must be one of {', '.join(choices)}, not {text!r}.")
    return text


def refuse_unknown(table: Mapping[str, object], known: frozenset[str], before: str) -> None:
    """Raises `SettingsError` for the first unknown key and names the nearest known one.

    `before` precedes the key in messages: `config.toml: providers.x.`
    """
    for key in table:
        if key not in known:
            from difflib import get_close_matches

            near = get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}."
            raise _error(f"{before}{key} is no setting; {hint}")


def flatten(table: Mapping[str, object], known: frozenset[str]) -> dict[str, object]:
    """Settings by their whole names: `allow` in the table `permissions` is `permissions.allow`."""
    tables = {name.partition(".")[0] for name in known if "." in name}
    found: dict[str, object] = {}
    for key, value in table.items():
        if key in tables and isinstance(value, dict):
            found |= {f"{key}.{name}": each for name, each in cast("dict[str, object]", value).items()}
        else:
            found[key] = value
    return found


# ------------------------------------------------------------------ lists


def parse_texts(value: object, place: str, separator: str = ",") -> tuple[str, ...]:
    """A list of texts, or one text with several; without a separator a text is one. Raises `SettingsError`."""
    if isinstance(value, str):
        parts = value.split(separator) if separator else [value]
        return tuple(parse_text(part, place) for part in parts if part.strip())
    if not isinstance(value, list | tuple):
        raise _error(f"{place} must be a list of texts, not {value!r}.")
    return tuple(parse_text(one, place) for one in cast("list[object]", value))


def parse_variable_names(value: object, place: str) -> tuple[str, ...]:
    """Names of environment variables. Raises `SettingsError`."""
    names = parse_texts(value, place)
    for name in names:
        if not name.isascii() or not name.isidentifier():
            raise _error(f"{place}: {name!r} can't be the name of an environment variable.")
    return names


def split_rules(value: object, place: str, *, is_forgiving: bool = False) -> tuple[str, ...]:
    """Permission rules: a list, or texts with several rules between commas or blanks. Raises `SettingsError`.

    Text in parentheses belongs to its rule: `Edit, Bash(git log *)` are two rules. With `is_forgiving` nothing is
    raised: text that can't be split, or an entry that is not text, becomes one rule, which is invalid and so refuses
    its tool.
    """
    if is_forgiving:
        found = value if isinstance(value, list | tuple) else [value]
        return tuple(rule for one in cast("list[object]", found) for rule in _forgiven_rules(one, place))
    if isinstance(value, str):
        return _split_rules(value, place, is_forgiving=is_forgiving)
    if not isinstance(value, list | tuple):
        raise _error(f"{place} must be a list of rules, not {value!r}.")
    texts = cast("list[object]", value)
    words = (parse_text(text, place, may_be_empty=True) for text in texts)
    return tuple(rule for text in words for rule in _split_rules(text, place, is_forgiving=is_forgiving))


def _forgiven_rules(value: object, place: str) -> tuple[str, ...]:
    if not isinstance(value, str):
        return (f"({value!r}"[:_LONGEST_UNREAD],)  # no valid rule begins with a parenthesis
    return _split_rules(value, place, is_forgiving=True) if value.strip().isprintable() else (value,)


def _split_rules(text: str, place: str, *, is_forgiving: bool) -> tuple[str, ...]:
    rules: list[str] = []
    start, depth, quote = 0, 0, ""
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif depth and character in "'\"":
            quote = character
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif not depth and (character == "," or character.isspace()):
            rules.append(text[start:index])
            start = index + 1
        if depth < 0:
            break
    if (depth or quote) and is_forgiving:
        # An unclosed rule refuses its tool. A rule with a parenthesis too many must stay invalid. Where the rest holds
        # several rules, their tools are unknown: it begins with a parenthesis, which refuses every tool.
        rest = (text[start:].rstrip(")") if depth < 0 else text[start:]) or ")"
        return (*filter(None, rules), f"({rest}" if rest.count("(") > 1 else rest)
    if depth or quote:
        what = f"the quotation mark {quote}" if quote else "a parenthesis"
        raise _error(f"{place}: {what} is never closed, or never opened, in {text!r}.")
    return tuple(rule for rule in (*rules, text[start:]) if rule)


def parse_rule_texts(value: object, place: str) -> tuple[str, ...]:
    """Texts that hold permission rules, not yet split. Raises `SettingsError`."""
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in cast("list[object]", texts)):
        raise _error(f"{place} must be a list of rules, not {value!r}.")
    return tuple(cast("list[str]", texts))


# ------------------------------------------------------------------ kinds of values


_LIST_SCHEMA: Final[Mapping[str, object]] = {"type": "array", "items": {"type": "string"}}


class ValueKind(NamedTuple):
    """The kind of values that a setting may have."""

    parse: Callable[[object, str], object]
    """Takes a value and its place; raises `SettingsError`."""
    form: str
    """The required form, for messages: `a whole number of at least 1`."""
    schema: Mapping[str, object] = {"type": "string"}
    """JSON Schema of the value in a file."""

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that the value may be; empty if there are others."""
        return tuple(map(str, cast("list[object]", self.schema.get("enum", ()))))


AMOUNT: Final = ValueKind(parse_amount_text, "a number of at least 0", {"type": "number", "minimum": 0})
COUNT: Final = ValueKind(parse_count, "a whole number of at least 1", {"type": "integer", "minimum": 1})
SWITCH: Final = ValueKind(parse_bool, "true or false", {"type": "boolean"})
TEXT: Final = ValueKind(parse_text, "a text")
PROSE: Final = ValueKind(parse_prose, "a text that is not empty", {"type": "string", "minLength": 1})
TEXTS: Final = ValueKind(parse_texts, "a list of texts", _LIST_SCHEMA)
RULES: Final = ValueKind(parse_rule_texts, "a list of texts", _LIST_SCHEMA)
VARIABLE_NAMES: Final = ValueKind(parse_variable_names, "a list of names of environment variables", _LIST_SCHEMA)


def count_up_to(most: int) -> ValueKind:
    """The kind of a setting whose value is a whole number from 1 to `most`."""
    form = f"a whole number from 1 to {most:,}"

    def parse(value: object, place: str) -> int:
        number = parse_count(value, place)
        if number > most:
            raise _error(f"{place} must be {form}, not {number}.")
        return number

    return ValueKind(parse, form, {"type": "integer", "minimum": 1, "maximum": most})


def one_of(*choices: str) -> ValueKind:
    """The kind of a setting whose value is one of some words."""
    return ValueKind(
        lambda value, place: parse_choice(value, place, choices),
        f"one of {', '.join(choices)}",
        {"type": "string", "enum": list(choices)},
    )
