"""Converts values of parameters as other agents define them. A value with two readings raises `AmbiguousValue`."""

import posixpath
import re
import shlex
import typing
from collections.abc import Callable
from typing import Final

from bradawl.core.arguments import Arguments, is_object


class AmbiguousValue(ValueError):
    """Arguments that contradict each other, or that would mean something else here; the text tells the model."""


class Contradiction(AmbiguousValue):
    """Two names of one parameter with different values."""


CONTEXT: Final = "context"
_FLAGS: Final = "/"
"""Begins names of flags that change the pattern of a search. No argument can have such a name in the table."""
_SURELY_MS: Final = 10_000
_MOST_SECONDS: Final = 600
_BLOCK_S: Final = 30
_MODES: Final = {
    "files_with_matches": "files",
    "filenames": "files",
    "file_names": "files",
    "names": "files",
    "paths": "files",
    "file_paths_only": "files",
    "files_only": "files",
    "count_matches": "count",
    "counts": "count",
    "matches": "content",
    "lines": "content",
    "text": "content",
}
_KINDS: Final = {"explorer": "explore", "search": "explore", "general_purpose": "general", "default": "general"}
_STATUS: Final = {"done": "completed", "complete": "completed", "finished": "completed", "doing": "in_progress"}
_STATUS_MORE: Final = {"todo": "pending", "open": "pending", "not_started": "pending", "active": "in_progress"}
_SHELLS: Final = ("bash", "sh", "zsh")


def nothing(_: object) -> Arguments:
    """A value that changes nothing here."""
    return {}


def only(*allowed: object) -> Callable[[object], Arguments]:
    """Accepts the values that say what happens anyway, and refuses all others."""

    def read(value: object) -> Arguments:
        if any(type(value) is type(each) and value == each for each in allowed):
            return {}
        raise AmbiguousValue(f"this can't be {_shown(value)} here; leave it out")

    return read


def _shown(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def number(value: object) -> int:
    """A whole number, also from text; raises `AmbiguousValue` for any other value."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and re.fullmatch(r" *-?[0-9]{1,18} *", value):
        return int(value)
    raise AmbiguousValue(f"this has to be a whole number, not {_shown(value)}")


def is_true(value: object) -> bool:
    """A boolean, also from text; raises `AmbiguousValue` for any other value."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise AmbiguousValue(f"this has to be true or false, not {_shown(value)}")


def is_list(value: object) -> bool:
    """Whether it is a JSON list."""
    return isinstance(value, list)


# ------------------------------------------------------------------ commands and jobs


def in_seconds(value: object) -> object:
    """A time in seconds; from 10,000 on in milliseconds, as other agents count. Raises `AmbiguousValue` in between."""
    try:
        given = number(value)
    except AmbiguousValue:
        return value
    if given <= _MOST_SECONDS or given % 1_000:
        return value
    if given >= _SURELY_MS:
        return -(-given // 1_000)
    raise AmbiguousValue(
        f"the time is in seconds, at most {_MOST_SECONDS}; {given} may mean {given // 1_000} s in milliseconds: give "
        f"{given // 1_000}, or {_MOST_SECONDS}"
    )


def seconds(name: str) -> Callable[[object], Arguments]:
    """Reads a time, as `in_seconds`, for the parameter `name`."""
    return lambda value: {name: in_seconds(value)}


def milliseconds(name: str) -> Callable[[object], Arguments]:
    """Reads milliseconds for the parameter `name`, which is in seconds."""
    return lambda value: {name: -(-number(value) // 1_000)}


def wait_if_true(value: object) -> Arguments:
    """Waits for the end of a job."""
    return {"wait": _BLOCK_S} if is_true(value) else {}


def command_line(value: object) -> object:
    """A command, which is not a list of words: quoting decides what a line does."""
    if is_list(value):
        raise AmbiguousValue("command is one line of bash, not a list of words")
    return value


def own_folder(name: str, value: object, cwd: str) -> Arguments:
    """Accepts the working directory as the folder of a command."""
    if not value or (isinstance(value, str) and posixpath.normpath(posixpath.join(cwd, value)) == cwd):
        return {}
    raise AmbiguousValue(
        f"there is no parameter {name}: begin the command with cd {shlex.quote(str(value))} &&, or cd once"
    )


def no_if_true(value: object) -> Arguments:
    """A wish to run without limits says nothing if it is not made; if it is made, the name is unknown."""
    return {"": value} if is_true(value) else {}


def no_if_not(*usual: object) -> Callable[[object], Arguments]:
    """As `no_if_true`, for a parameter whose `usual` values wish for nothing."""
    return lambda value: {} if value in usual else {"": value}


# ------------------------------------------------------------------ files


def one_replacement(value: object) -> Arguments:
    """One replacement is what is made anyway."""
    if number(value) == 1:
        return {}
    raise AmbiguousValue("old_string has to be unique; set replace_all=true to change every place")


def last_line(value: object) -> Arguments:
    """The last line to read; a negative one is the end of the file."""
    return {"/last": number(value)} if number(value) >= 0 else {}


def view_range(value: object) -> Arguments:
    """The first and the last line to read."""
    given = typing.cast("list[object]", value) if isinstance(value, list) else []
    if len(given) != 2:
        raise AmbiguousValue("this has to be a list of the first and the last line")
    return {"offset": number(given[0]), **last_line(given[1])}


def with_last_line(found: Arguments) -> Arguments:
    """The arguments with a number of lines in place of the last line, which must not be before the first."""
    if "/last" not in found:
        return found
    kept = {name: value for name, value in found.items() if name != "/last"}
    lines = number(found["/last"]) - number(kept.get("offset", 1)) + 1
    if lines < 1:
        raise AmbiguousValue("the last line to read is before the first one")
    return {"limit": lines, **kept}


def file_of_edits(value: object) -> Arguments:
    """The file of all edits; it belongs into each of them."""
    raise AmbiguousValue(f"give it in each edit, which has its own file_path; it was {_shown(value)}")


# ------------------------------------------------------------------ searches


def context(value: object) -> Arguments:
    """Lines around a match."""
    return {CONTEXT: number(value)}


def limit(value: object) -> Arguments:
    """Most results; 0 is no limit, as elsewhere."""
    return {"limit": number(value)} if number(value) else {}


def ignore_case(value: object) -> Arguments:
    """Upper and lower case are the same."""
    return {"/i": True} if is_true(value) else {}


def case_sensitive(value: object) -> Arguments:
    """Upper and lower case are different."""
    return {} if is_true(value) else {"/i": True}


def literal(value: object) -> Arguments:
    """The pattern is a plain text."""
    return {"/literal": True} if is_true(value) else {}


def is_regex(value: object) -> Arguments:
    """The pattern is a regular expression."""
    return {} if is_true(value) else {"/literal": True}


def whole_word(value: object) -> Arguments:
    """Only whole words."""
    return {"/word": True} if is_true(value) else {}


def names_only(value: object) -> Arguments:
    """Only names of files."""
    return {"output_mode": "files"} if is_true(value) else {}


def output_mode(value: object) -> object:
    """The mode in the words of other agents."""
    return _MODES.get(_word(value), value)


def only_one(value: object) -> object:
    """The one item of a list."""
    items = typing.cast("list[object]", value) if isinstance(value, list) else [value]
    if len(items) == 1:
        return items[0]
    raise AmbiguousValue("path is one file or folder; search each in a call of its own, or the folder above them")


def with_pattern_flags(found: Arguments) -> Arguments:
    """The arguments of a search with its flags in the pattern."""
    flags = {name for name in found if name.startswith(_FLAGS)}
    kept = {name: value for name, value in found.items() if name not in flags}
    pattern = kept.get("pattern")
    if not flags or not isinstance(pattern, str):
        return kept
    if "/literal" in flags:
        pattern = re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", pattern)
    if "/word" in flags:
        pattern = rf"\b(?:{pattern})\b"
    if "/i" in flags:
        pattern = f"(?i){pattern}"
    return {**kept, "pattern": pattern}


# ------------------------------------------------------------------ the others


def _word(value: object) -> str:
    return value.strip().lower().replace("-", "_").replace(" ", "_") if isinstance(value, str) else ""


def agent_kind(value: object) -> object:
    """The kind of a sub-agent in the words of other agents."""
    word = _word(value)
    return word if word in ("explore", "general") else _KINDS.get(word, value)


def todo_status(value: object) -> object:
    """The status of a todo in the words of other agents."""
    return {**_STATUS, **_STATUS_MORE}.get(_word(value), value)


def option_texts(value: object) -> object:
    """Options that have a label and a description, as texts."""
    if not isinstance(value, list):
        return value
    return [_option(each) for each in typing.cast("list[object]", value)]


def _option(value: object) -> object:
    if not is_object(value) or not isinstance(label := value.get("label"), str):
        return value
    said = value.get("description")
    return f"{label}: {said}" if isinstance(said, str) and said else label


def one_question(arguments: Arguments) -> Arguments:
    """The one question of a list of questions. Raises `AmbiguousValue` for several."""
    found = arguments.get("questions")
    if not isinstance(found, list) or "question" in arguments:
        return arguments
    questions = typing.cast("list[object]", found)
    if len(questions) != 1:
        raise AmbiguousValue("questions: ask one question in a call, as question and options")
    (one,) = questions
    if not is_object(one):
        return {"question": one}
    if one.get("multiSelect") is True:
        raise AmbiguousValue("multiSelect: one answer is given to a question; ask in several calls")
    return {name: value for name, value in one.items() if name in ("question", "options")}
