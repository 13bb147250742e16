"""The registry of slash commands: a command such as `/mode plan` is one function with the decorator `command`.

The function's docstring is the command's help. Its first parameter is the session of the front end; each further one is
an argument, converted and checked by its annotation: `str`, `int`, `float`, `bool`, a `Literal` of texts, a union of
them, `Rest`, or one of them `| None`. `Annotated[Literal[...], ("other name", "choice")]` adds names for choices. A
function that can't be a command is refused where it is defined. `commands` holds bradawl's own.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from bradawl.core.errors import BradawlError, SettingsError

if TYPE_CHECKING:
    from bradawl.app.context_report import ContextReport

Rest = Annotated[str, "rest of the line"]
"""Annotation of a last parameter that takes the rest of the line as it was typed."""

_SHOWN: Final = 40
_NAME: Final = "[a-z0-9?][a-z0-9_-]*"
_NEAR: Final = 0.6
"""Likeness from which an unknown name is taken for a misspelt one."""
_NARROWEST: Final = 8
"""Characters of the column of names in `/help`."""
_EXPECTED: Final[Mapping[object, str]] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


class CommandError(SettingsError):
    """A command is unknown, has wrong arguments, or can't run here; the text is for the user."""


class CommandFailed(BradawlError):
    """A command could not do its work, or has a defect; the text is for the user."""


class CommandResult(NamedTuple):
    """What a front end does after a command."""

    text: str = ""
    """Shown to the user unless empty; may have several lines."""
    then: Literal["stay", "new_session", "open_session", "leave"] = "stay"
    session: str = ""
    """Id of the session that `open_session` opens in place of this one."""
    style: Literal["plain", "diff"] = "plain"
    """`diff`: lines that begin with `+`, `-` or `@` have the colours of a diff."""
    context: "ContextReport | None" = None
    """What the text says, for a screen that draws it itself."""
    exit_code: int = 0
    """Of a run with `-p`; 1 if not everything was done."""
    prompt: str = ""
    """Run as a prompt of the user unless empty."""
    draft: str = ""
    """Put into the input line, to be edited and sent."""
    writes: str = ""
    """The file that the prompt is about, an absolute path: without a user it is written without a question."""


Function = Callable[..., "CommandResult | str | Awaitable[CommandResult | str]"]


class SlashCommand:
    """A command: its names, its help and its arguments, all derived from one function."""

    def __init__(
        self, function: Function, names: tuple[str, ...], *, needs_user: bool = False, is_slow: bool = False
    ) -> None:
        """`names`: the command's name, then its aliases. Raises `TypeError` with what is wrong with the function."""
        _check_names(names)
        self.function = function
        self.name, self.aliases = names[0], names[1:]
        self.is_slow = is_slow
        """It may take long enough to be shown as work."""
        self.needs_user = needs_user
        """True for a command that makes no sense without a user who types the next line."""
        parameters = tuple(inspect.signature(function).parameters.values())
        self._parameters = parameters[1:]
        if not parameters:
            raise TypeError(f"/{self.name}: the first parameter of a command is the session; it has none")
        if not self.summary:
            raise TypeError(f"/{self.name} has no docstring; its first line is the command's line in /help")
        self._check_parameters()

    @property
    def summary(self) -> str:
        """The first line of the docstring, without its full stop."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0].removesuffix(".")

    @property
    def usage(self) -> str:
        """`/mode [MODE]`."""
        words = (
            each.name.upper() if each.default is each.empty else f"[{each.name.upper()}]" for each in self._parameters
        )
        return " ".join((f"/{self.name}", *words))

    @property
    def explanation(self) -> str:
        """The whole docstring."""
        return inspect.getdoc(self.function) or ""

    @property
    def choices(self) -> dict[str, tuple[str, ...]]:
        """The words that an argument may be, by its name in `usage`; without arguments that may be other things too."""
        kinds = {each.name: _alternatives(self._hints().get(each.name, str)) for each in self._parameters}
        found = {name: [_choices(kind) for kind in each] for name, each in kinds.items()}
        return {
            name.upper(): tuple(word for choice in each if choice is not None for word in choice[0])
            for name, each in found.items()
            if all(choice is not None for choice in each)
        }

    @property
    def help(self) -> str:
        """Usage, the whole docstring, the choices and the aliases."""
        choices = (f"{name}: {', '.join(words)}." for name, words in self.choices.items())
        aliases = (f"Also: {', '.join(f'/{alias}' for alias in self.aliases)}.",) if self.aliases else ()
        return "\n".join((self.usage, self.explanation, *choices, *aliases))

    def arguments(self, line: str) -> list[object]:
        """The values for the parameters, from what follows the command's name. Raises `CommandError`."""
        hints = self._hints()
        values: list[object] = []
        rest = line.strip()
        for each in self._parameters:
            if not rest:
                if each.default is each.empty:
                    raise CommandError(f"/{self.name} needs {each.name.upper()}: {self.usage}")
                break
            hint = hints.get(each.name, str)
            word, rest = (rest, "") if _is_rest(hint) else _first_word(rest)
            values.append(self._value(each.name, hint, word))
        if rest:
            takes = f"takes only {self.usage}" if self._parameters else "takes no arguments"
            raise CommandError(f"/{self.name} {takes}; see /help {self.name}.")
        return values

    def _value(self, name: str, hint: object, word: str) -> object:
        kinds = _alternatives(hint)
        for kind in kinds:
            if (choices := _choices(kind)) is not None:
                if (found := _choice(word, *choices)) is not None:
                    return found
                continue
            try:
                return msgspec.convert(word, cast("type[Any]", kind), strict=False)
            except msgspec.ValidationError:
                continue
        if len(kinds) == 1 and (choices := _choices(kinds[0])) is not None:
            known = ", ".join(choices[0])
            there = f"there is only {known}" if len(choices[0]) == 1 else f"there are {known}"
            raise CommandError(f"There is no {name} {word[:_SHOWN]!r} of /{self.name}; {there}.")
        expected = " or ".join(map(_expected, kinds))
        raise CommandError(f"/{self.name}: {name} must be {expected}, not {word[:_SHOWN]!r}.")

    def _hints(self) -> dict[str, object]:
        try:
            return get_type_hints(self.function, include_extras=True)
        except NameError as error:
            raise TypeError(f"/{self.name}: an annotation is not defined where the command is: {error}") from error

    def _check_parameters(self) -> None:
        hints = self._hints()
        for each in self._parameters:
            hint = hints.get(each.name, str)
            if each.kind is not each.POSITIONAL_OR_KEYWORD:
                raise TypeError(f"/{self.name}: every parameter of a command must be positional; {each} is not")
            if _is_rest(hint) and each is not self._parameters[-1]:
                raise TypeError(f"/{self.name}: {each.name} takes the rest of the line, so it must be the last one")
            if not _is_rest(hint) and not all(map(_is_known, _alternatives(hint))):
                raise TypeError(
                    f"/{self.name}: {each.name} is a {hint}; an argument is a str, int, float, bool, Rest, or a "
                    "Literal of texts"
                )


def command(*names: str, needs_user: bool = False, is_slow: bool = False) -> Callable[[Function], SlashCommand]:
    """Make a function a slash command with these names, the first of which is its own.

    Raises `TypeError` with what is wrong with the names or the function.
    """
    _check_names(names)

    def decorate(function: Function) -> SlashCommand:
        return SlashCommand(function, names, needs_user=needs_user, is_slow=is_slow)

    return decorate


def commands_in(namespace: Mapping[str, object]) -> tuple[SlashCommand, ...]:
    """All commands in a module's namespace, in the order of their definition."""
    return tuple(value for value in namespace.values() if isinstance(value, SlashCommand))


class CommandRegistry:
    """The commands of a run, found by name or alias."""

    def __init__(
        self, commands: Iterable[SlashCommand], groups: Mapping[str, Sequence[SlashCommand]] = MappingProxyType({})
    ) -> None:
        """`groups`: the headings of commands in `/help`. Raises `ValueError` where two have a name in common."""
        self.commands = tuple(commands)
        self._groups = groups
        self._by_name: dict[str, SlashCommand] = {}
        for each in self.commands:
            for name in (each.name, *each.aliases):
                if self._by_name.setdefault(name, each) is not each:
                    raise ValueError(f"two slash commands are named /{name}")

    def find(self, name: str) -> SlashCommand:
        """The command with this name, in any case, with or without its slash. Raises `CommandError`."""
        name = name.removeprefix("/")
        found = self._by_name.get(name.lower())
        if found is None:
            near = self._nearest(name.lower())
            meant = f"did you mean /{near}? " if near else ""
            raise CommandError(f"There is no command /{name[:_SHOWN]}; {meant}/help lists those there are.")
        return found

    def _nearest(self, name: str) -> str:
        """The name that an unknown one was probably meant to be; empty for none."""
        from difflib import get_close_matches

        swapped = [each for each in self._by_name if sorted(each) == sorted(name)]
        return next(iter(swapped or get_close_matches(name, self._by_name, 1, _NEAR)), "")

    def is_slow(self, name: str) -> bool:
        """Whether the command with this name may take long; false for an unknown one."""
        found = self._by_name.get(name.removeprefix("/").lower())
        return found is not None and found.is_slow

    async def run(self, session: object, line: str, *, user_is_there: bool) -> CommandResult:
        """Run a line such as `/mode plan` for the session of a front end. Raises `CommandError`."""
        word, rest = _first_word(line.strip())
        found = self.find(word)
        if found.needs_user and not user_is_there:
            raise CommandError(f"/{found.name} works only in a conversation, not with -p.")
        result = found.function(session, *found.arguments(rest))
        if inspect.isawaitable(result):
            result = await result
        if not isinstance(result, str | CommandResult):
            kind = type(result).__name__
            raise CommandFailed(f"/{found.name} failed: it returned {kind}, and not a str or a CommandResult.")
        return CommandResult(result) if isinstance(result, str) else result

    def groups(self, *, user_is_there: bool) -> Iterator[tuple[str, list[SlashCommand]]]:
        """The commands that can run with or without a user, by their headings; those without one last."""
        shown = [each for each in self.commands if user_is_there or not each.needs_user]
        grouped = {each.name for group in self._groups.values() for each in group}
        others = [each for each in shown if each.name not in grouped]
        for title, group in (*self._groups.items(), ("Others", others)):
            if found := [each for each in group if each in shown]:
                yield title, found

    def help_lines(self, *, user_is_there: bool) -> Iterator[str]:
        """One line for each command that can run with or without a user."""
        shown = [each for each in self.commands if user_is_there or not each.needs_user]
        width = max((_NARROWEST, *(len(each.name) for each in shown)))
        for each in shown:
            yield f"/{each.name:<{width}} {each.summary}"


def is_command(text: str) -> bool:
    """True for a text that begins like a command, known or not. A path such as `/etc/hosts` is a prompt."""
    word = text.strip().partition(" ")[0]
    return word.startswith("/") and "/" not in word[1:]


def _first_word(text: str) -> tuple[str, str]:
    word, _, rest = text.partition(" ")
    return word, rest.strip()


def _check_names(names: tuple[object, ...]) -> None:
    if not names or not isinstance(names[0], str):
        raise TypeError('a command has a name: write `@command("name")`, with parentheses, above its function')
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(_NAME, name):
            raise TypeError(f"{name!r} can't be typed as a command; a name has a-z, 0-9, - and _, and no slash")


def _is_rest(hint: object) -> bool:
    return _alternatives(hint) == (Rest,)


def _is_known(kind: object) -> bool:
    """Whether a word can be converted to this type."""
    if (choices := _choices(kind)) is not None:
        return all(isinstance(each, str) for each in choices[0])
    return kind in (str, int, float, bool)


def _expected(kind: object) -> str:
    choices = _choices(kind)
    return ", ".join(choices[0]) if choices is not None else _EXPECTED[kind]


def _alternatives(hint: object) -> tuple[object, ...]:
    """The types a word may have: those of a union, None left out."""
    if get_origin(hint) in (Union, UnionType):
        return tuple(each for each in get_args(hint) if each is not NoneType)
    return (hint,)


def _choices(kind: object) -> tuple[tuple[str, ...], Mapping[str, str]] | None:
    """The words of a `Literal` and their other names; None for any other type."""
    inner, *pairs = get_args(kind) if get_origin(kind) is Annotated else (kind,)
    if get_origin(inner) is not Literal:
        return None
    return get_args(inner), {_plain(other): choice for other, choice in pairs}


def _choice(word: str, choices: tuple[str, ...], other_names: Mapping[str, str]) -> str | None:
    """One of the choices, None if it is none; case, hyphens and underscores of the word do not matter."""
    wanted = other_names.get(_plain(word)) or word
    return next((each for each in choices if _plain(each) == _plain(wanted)), None)


def _plain(word: str) -> str:
    return word.lower().replace("_", "").replace("-", "")
