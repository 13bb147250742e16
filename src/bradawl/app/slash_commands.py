"""The registry of slash commands: a command such as `/mode plan` is one function with the decorator `command`.

The function's docstring is the command's help. Its first parameter is the session of the front end; each further one is
an argument, converted and checked by its annotation: `str`, `int`, `float`, `bool`, a `Literal`, `Rest`, or one of them
`| None`. `Annotated[Literal[...], ("other name", "choice")]` adds names for choices. `builtin_commands` holds bradawl's
own commands.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from bradawl.core.errors import SettingsError

Rest = Annotated[str, "rest of the line"]
"""Annotation of a last parameter that takes the rest of the line as it was typed."""

_SHOWN: Final = 40
_EXPECTED: Final[Mapping[object, str]] = {int: "a whole number", float: "a number", bool: "true or false"}


class CommandError(SettingsError):
    """A command is unknown, has wrong arguments, or can't run here; the text is for the user."""


class CommandResult(NamedTuple):
    """What a front end does after a command."""

    text: str = ""
    """Shown to the user unless empty; may have several lines."""
    then: Literal["stay", "new_session", "leave"] = "stay"


Function = Callable[..., "CommandResult | str | Awaitable[CommandResult | str]"]


class SlashCommand:
    """A command: its names, its help and its arguments, all derived from one function."""

    def __init__(self, function: Function, names: tuple[str, ...], *, needs_user: bool = False) -> None:
        """`names`: the command's name, then its aliases. Raises `TypeError` for a parameter that is not positional."""
        self.function = function
        self.name, self.aliases = names[0], names[1:]
        self.needs_user = needs_user
        """True for a command that makes no sense without a user who types the next line."""
        self._parameters = tuple(inspect.signature(function).parameters.values())[1:]
        if any(each.kind is not each.POSITIONAL_OR_KEYWORD for each in self._parameters):
            raise TypeError(f"/{self.name}: every parameter of a command must be positional")

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
    def help(self) -> str:
        """Usage, the whole docstring, and the aliases."""
        aliases = (f"Also: {', '.join(f'/{alias}' for alias in self.aliases)}.",) if self.aliases else ()
        return "\n".join((self.usage, inspect.getdoc(self.function) or "", *aliases))

    def arguments(self, line: str) -> list[object]:
        """The values for the parameters, from what follows the command's name. Raises `CommandError`."""
        hints = get_type_hints(self.function, include_extras=True)
        values: list[object] = []
        rest = line.strip()
        for each in self._parameters:
            if not rest:
                if each.default is each.empty:
                    raise CommandError(f"/{self.name} needs {each.name.upper()}: {self.usage}")
                break
            hint = hints.get(each.name, str)
            word, rest = (rest, "") if hint == Rest else _first_word(rest)
            values.append(self._value(each.name, hint, word))
        if rest:
            takes = f"takes only {self.usage}" if self._parameters else "takes no arguments"
            raise CommandError(f"/{self.name} {takes}; see /help {self.name}.")
        return values

    def _value(self, name: str, hint: object, word: str) -> object:
        for kind in _alternatives(hint):
            if (choices := _choices(kind)) is not None:
                return _choice(name, word, *choices)
            try:
                return msgspec.convert(word, cast("type[Any]", kind), strict=False)
            except msgspec.ValidationError:
                continue
        expected = " or ".join(_EXPECTED.get(kind, str(kind)) for kind in _alternatives(hint))
        raise CommandError(f"/{self.name}: {name} must be {expected}, not {word[:_SHOWN]!r}.")


def command(*names: str, needs_user: bool = False) -> Callable[[Function], SlashCommand]:
    """Make a function a slash command with these names, the first of which is its own."""

    def decorate(function: Function) -> SlashCommand:
        return SlashCommand(function, names, needs_user=needs_user)

    return decorate


def commands_in(namespace: Mapping[str, object]) -> tuple[SlashCommand, ...]:
    """All commands in a module's namespace, in the order of their definition."""
    return tuple(value for value in namespace.values() if isinstance(value, SlashCommand))


class CommandRegistry:
    """The commands of a run, found by name or alias."""

    def __init__(self, commands: Iterable[SlashCommand]) -> None:
        """Raises `ValueError` where two commands have a name in common."""
        self.commands = tuple(commands)
        self._by_name: dict[str, SlashCommand] = {}
        for each in self.commands:
            for name in (each.name, *each.aliases):
                if self._by_name.setdefault(name, each) is not each:
                    raise ValueError(f"two slash commands are named /{name}")

    def find(self, name: str) -> SlashCommand:
        """The command with this name, in any case, with or without its slash. Raises `CommandError`."""
        found = self._by_name.get(name.removeprefix("/").lower())
        if found is None:
            raise CommandError(f"There is no command /{name.removeprefix('/')[:_SHOWN]}; /help lists those there are.")
        return found

    async def run(self, session: object, line: str, *, user_is_there: bool) -> CommandResult:
        """Run a line such as `/mode plan` for the session of a front end. Raises `CommandError`."""
        word, rest = _first_word(line.strip())
        found = self.find(word)
        if found.needs_user and not user_is_there:
            raise CommandError(f"/{found.name} works only in a conversation, not with -p.")
        result = found.function(session, *found.arguments(rest))
        if inspect.isawaitable(result):
            result = await result
        return CommandResult(result) if isinstance(result, str) else result

    def help_lines(self, *, user_is_there: bool) -> Iterator[str]:
        """One line for each command that can run with or without a user."""
        for each in self.commands:
            if user_is_there or not each.needs_user:
                yield f"/{each.name:<9}{each.summary}"


def is_command(text: str) -> bool:
    """True for a text that begins like a command, known or not. A path such as `/etc/hosts` is a prompt."""
    word = text.strip().partition(" ")[0]
    return word.startswith("/") and "/" not in word[1:]


def _first_word(text: str) -> tuple[str, str]:
    word, _, rest = text.partition(" ")
    return word, rest.strip()


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


def _choice(name: str, word: str, choices: tuple[str, ...], other_names: Mapping[str, str]) -> str:
    """One of the choices; case, hyphens and underscores of the word do not matter."""
    wanted = other_names.get(_plain(word)) or word
    found = next((each for each in choices if _plain(each) == _plain(wanted)), None)
    if found is None:
        raise CommandError(f"There is no {name} {word[:_SHOWN]}; there are {', '.join(choices)}.")
    return found


def _plain(word: str) -> str:
    return word.lower().replace("_", "").replace("-", "")
