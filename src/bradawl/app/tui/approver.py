"""Asks the user at the terminal: for permission before a call, and questions of the model."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final

from bradawl.core.arguments import parse_arguments
from bradawl.core.effects import Effects
from bradawl.core.errors import SettingsError
from bradawl.core.permissions import Answer, Choice, Grant, Question
from bradawl.safety.control_characters import escape

if TYPE_CHECKING:
    from bradawl.app.remembered_rules import RememberedRules

ASKED: Final = "Allow? "
WANTED: Final = "Your answer: "
RULE: Final = "Enter = save it so, other text = save that instead, n = back: "
_LONG: Final = frozenset({"content", "old_string", "new_string"})
_LINES_SHOWN: Final = 20
_VARIABLES_SHOWN: Final = 20
_HOSTS_SHOWN: Final = 10
_VALUE_SHOWN: Final = 500
# Blanks that push the following text out of sight; an indentation may be longer than a gap.
_GAP: Final = r"(?<=[^ \t\n])[ \t]{20,}|(?m:^)[ \t]{80,}"
_EMPTY_LINES: Final = r"\n(?:[ \t]*\n){4,}"


def parse_answer(text: str) -> Answer | None:
    """The typed answer; None if it is unclear, so that nothing runs by mistake."""
    word, _, rest = text.strip().partition(" ")
    match word.lower().rstrip(",.:;"):
        case "y" | "yes" if not rest:
            return Answer(True, by="user")
        case "a" | "always" if not rest:
            return Answer(True, by="user", scope="session")
        case "p" | "project" if not rest:
            return Answer(True, by="user", scope="project")
        case "n" | "no":
            return Answer(False, by="user", message=rest.strip())
        case "x" | "none":
            return Answer(False, by="user", scope="session", message=rest.strip())
        case _:
            return None


def question_text(question: Question, *, whole: bool = False) -> str:
    """The tool, the reason for the question, and all arguments.

    Unless `whole`, a long text that is written to a file is cut, with the number of lines left; nothing else is.
    """
    call = question.call
    arguments, _ = parse_arguments(call.raw_arguments)
    lines = [f"{_in_line(call.name)} wants to run ({_in_line(question.reason)}):"]
    if _is_about_a_host(question):
        lines = [f"This command wants to connect to {_destinations(question)} ({_in_line(question.reason)}):"]
    if arguments is None:
        return "\n".join([*lines, *_indented(call.raw_arguments)])
    if isinstance(command := arguments.get("command"), str):
        lines += _indented(command)
        arguments = {key: value for key, value in arguments.items() if key != "command"}
    for key, value in arguments.items():
        lines += _argument(key, value if isinstance(value, str) else repr(value), whole=whole)
    return "\n".join(lines)


def granted_text(question: Question) -> str:
    """The declared effects of the call, with real paths, and what a yes would grant; empty if there are none."""
    effects, grant = question.request.effects, question.grant
    if _is_about_a_host(question):
        return "\n".join(_connection_lines(effects))
    lines = [f"  {verb} {_in_line(name)}" for verb, names in _touched(effects) for name in names]
    if effects.seal:
        lines += [f"  in the folder {_in_line(question.place)}"] * bool(question.place)
        lines += _held(effects, grant)
        if grant.outside_sandbox or grant.network:
            lines += _exported(question)
    elif effects.unknown or effects.external:
        lines.append("  no sandbox holds what this tool does")
    if grant.uncovered:
        lines.append(f"  this is protected otherwise: {', '.join(map(_in_line, grant.uncovered))}")
    if effects.session and grant.environment:
        lines.append(f"  changes for all later commands: {', '.join(map(_in_line, grant.environment))}")
    return "\n".join(lines)


def _destinations(question: Question) -> str:
    """Each host with its port, as `example.org, port 80 or 443`."""
    found = (host.partition(":") for host in question.request.effects.hosts)
    return "; ".join(f"{_in_line(name)}, port {_in_line(port) or '80 or 443'}" for name, _, port in found)


def _connection_lines(effects: Effects) -> Iterator[str]:
    yield "  it can send there what it can read; where the connection is encrypted, bradawl can't see what it sends"
    if any(label.startswith("xn--") for host in effects.hosts for label in host.split(".")):
        yield "  xn-- stands for letters that may look like others: check that you know this name"


def _named_hosts(effects: Effects) -> tuple[str, ...]:
    """Hosts of the URLs in the words of a command."""
    words = "\n".join(word for argv in (*effects.commands, *effects.inner) for word in argv)
    found = re.findall(r"(?:https?|ftp|ssh|git)://(?:[^\s/@]*@)?([A-Za-z0-9._-]+)", words)
    return tuple(dict.fromkeys(found))[:_HOSTS_SHOWN]


def _touched(effects: Effects) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "writes", effects.writes
    yield "reads", effects.reads
    yield "reaches", tuple("any host" if host == "*" else host for host in effects.hosts)


def _exported(question: Question) -> Iterator[str]:
    """Variables changed by earlier commands of the session; first those that name programs or hosts."""
    first = question.request.effects.variables
    names = (*first, *(name for name in question.variables if name not in (*first, "PWD", "OLDPWD")))
    for name in names[: max(len(first), _VARIABLES_SHOWN)]:
        value = question.variables.get(name)
        if value is None:
            yield f"  without the variable {_in_line(name)}, which an earlier command took away"
            continue
        more = f" [{len(value) - _VALUE_SHOWN} more characters]" if len(value) > _VALUE_SHOWN else ""
        yield f"  with {_in_line(name)}={_in_line(value[:_VALUE_SHOWN])}{more}, from an earlier command"
    if left := names[max(len(first), _VARIABLES_SHOWN) :]:
        yield f"  and with {', '.join(map(_in_line, left))}, from earlier commands"


def _held(effects: Effects, grant: Grant) -> Iterator[str]:
    if grant.outside_sandbox and "sandbox" in effects.lifts:
        yield "  it asks to run WITHOUT the sandbox: it can change what you can, and reach the network"
    elif grant.outside_sandbox:
        yield "  there is NO SANDBOX: it can change what you can, and reach the network"
    else:
        writes = ", ".join(map(_in_line, grant.writable))
        yield f"  in the sandbox it may write to: {writes}" if writes else "  in the sandbox it may write nowhere"
        asked = ", as it asks" if "network" in effects.lifts else ""
        if not grant.network:
            yield "  without network"
            return
        yield f"  with network{asked}: it can send what it can read, to any host"
        if hosts := _named_hosts(effects):
            yield f"  hosts that it names: {', '.join(map(_in_line, hosts))}"


def choices_text(question: Question, rules: tuple[str, ...] = (), *, is_cut: bool = False) -> str:
    """The possible answers; each lasting one names what it covers. `rules`: the rules offered for the project."""
    name = _in_line(question.call.name)
    if _is_about_a_host(question):
        covered = f"{_destinations(question)}, for every command"
    elif question.request.stands_alone:
        covered = f"this exact {'command' if question.request.effects.seal else f'{name} call'}"
    else:
        covered = f"every {name} call"
    project = f"  p = always in this project: {escape(', '.join(rules))}\n" if rules else ""
    no = f"{'v = show all of it, ' if is_cut else ''}n = no (a reason may follow)"
    no += ", x = no, and no further host of this command" * _is_about_a_host(question)
    yes = "  y = once"
    if "session" in _scopes(question, rules):
        yes += f", a = {covered} for the rest of the session"
    return f"{yes}\n{project}  {no}" if project else f"{yes}, {no}"


def _is_about_a_host(question: Question) -> bool:
    """Whether a running command wants to connect."""
    return question.request.effects.lifts == ("host",)


def _is_offered(answer: Answer, question: Question, scopes: tuple[str, ...]) -> bool:
    """Whether the question has this answer."""
    if answer.allowed:
        return answer.scope in scopes
    return answer.scope == "once" or _is_about_a_host(question)


def _scopes(question: Question, rules: tuple[str, ...]) -> tuple[str, ...]:
    """The scopes that a yes can have."""
    session = () if question.request.effects.unsealed else ("session",)
    return ("once", *session, *(("project",) if rules else ()))


_ANSWERS: Final = {
    ("once",): "y",
    ("once", "session"): "y, a",
    ("once", "project"): "y, p",
    ("once", "session", "project"): "y, a, p",
}


def choice_text(choice: Choice) -> str:
    """The question with its numbered options, and how to answer."""
    options = [f"    {number}. {escape(option)}" for number, option in enumerate(choice.options, 1)]
    how = "a number, or an answer of your own" if options else "an answer in your own words"
    return "\n".join(["The model asks:", *_indented(choice.question), *options, f"  {how}; nothing = no answer"])


def parse_choice(text: str, options: tuple[str, ...]) -> str | None:
    """The chosen option or the typed text; None for none. A number selects its option, unless it is the text of an
    option.
    """
    said = text.strip()
    same = next((option for option in options if option.casefold() == said.casefold()), None)
    number = int(said) if said.isascii() and said.isdigit() and len(said) < 3 else 0
    if same is None and 0 < number <= len(options):
        return options[number - 1]
    return same or said or None


def _argument(key: str, value: str, *, whole: bool) -> list[str]:
    lines = _indented(value.removesuffix("\n"))
    if len(lines) == 1:
        return [f"    {_in_line(key)}: {lines[0].strip()}"]
    if key in _LONG and len(lines) > _LINES_SHOWN and not whole:
        lines = [*lines[:_LINES_SHOWN], f"      ... {len(lines) - _LINES_SHOWN} more lines"]
    return [f"    {_in_line(key)}:", *("  " + line for line in lines)]


def _indented(text: str) -> list[str]:
    return ["    " + line for line in _visible(text).split("\n")]


def _visible(text: str) -> str:
    """The text with invisible characters escaped, and long gaps replaced by their length."""
    shown = escape(text)
    if "\n\n" in shown or "\n " in shown or "\n\t" in shown:
        shown = re.sub(_EMPTY_LINES, lambda gap: f"\n[{gap[0].count(chr(10)) - 1} empty lines]\n", shown)
    return re.sub(_GAP, lambda gap: f" [{len(gap[0])} blanks] ", shown)


def _in_line(text: str) -> str:
    """`_visible` on one line, for names."""
    return _visible(text).replace("\n", "\\n").replace("\t", "\\t")


class TerminalApprover:
    """`Approver` that asks at the terminal until the answer is clear."""

    def __init__(
        self,
        show: Callable[[str], None],
        read: Callable[[str], Awaitable[str]],
        cancel: Callable[[], None],
        hold: Callable[[], AbstractContextManager[None]] = nullcontext,
        memory: "RememberedRules | None" = None,
    ) -> None:
        """`read` returns one line or raises EOFError or KeyboardInterrupt; `cancel` ends the running turn.

        `hold()` reserves the terminal for the question. Without `memory` no answer lasts longer than the session.
        """
        self._show = show
        self._read = read
        self._cancel = cancel
        self._hold = hold
        self._memory = memory

    async def ask(self, question: Question) -> Answer:
        """The user's answer. Ctrl+C is a no that also ends the turn; a closed input is a no by `nobody`.

        A yes for the project is saved before it is returned; if it can't be saved, the question is asked again.
        """
        with self._hold():
            try:
                return await self._answer(question)
            except EOFError:
                return Answer(False, by="nobody", message="No answer: the input is closed.")
            except KeyboardInterrupt:
                self._cancel()
                return Answer(False, by="user", message="The user ended the turn.")
            except asyncio.CancelledError:
                if _is_about_a_host(question):  # what is typed now would be the next prompt
                    self._show("The command has ended: this needs no answer any more.")
                raise

    async def _answer(self, question: Question) -> Answer:
        shown, whole = question_text(question), question_text(question, whole=True)
        rules = self._memory.proposals(question.request) if self._memory else ()
        parts = (shown, granted_text(question), choices_text(question, rules, is_cut=shown != whole))
        self._show("\n".join(filter(None, parts)))
        scopes = _scopes(question, rules)
        while True:
            typed = await self._read(ASKED)
            answer = parse_answer(typed)
            if typed.strip().lower() == "v" and shown != whole:
                self._show(whole)
            elif answer is None or not _is_offered(answer, question, scopes):
                no = ", n or x" if _is_about_a_host(question) else " or n"
                self._show(f"Please answer {_ANSWERS[scopes]}{no}.")
            elif answer.scope != "project" or (answer := await self._saved(question, rules)):
                return answer

    async def _saved(self, question: Question, rules: tuple[str, ...]) -> Answer | None:
        """A yes for the project, once its rules are on disk; None to ask again."""
        memory = self._memory
        texts = await self._edited(rules)
        if memory is None or not texts:
            return None
        if lack := memory.why_not_allowed(question.request, texts):
            self._show(f"Nothing was saved: {escape(lack)}")
            return None
        try:
            path = await asyncio.to_thread(memory.add, texts)
        except SettingsError as error:
            self._show(f"Nothing was saved: {escape(str(error))}")
            return None
        self._show(f"Saved in {escape(path)}")
        return Answer(True, by="user", scope="project", rules=texts)

    async def _edited(self, rules: tuple[str, ...]) -> tuple[str, ...]:
        """The rules as the user edits them; none to ask again."""
        where = escape(self._memory.path) if self._memory else ""
        self._show(f"For this project it will be saved in {where}:")
        texts: list[str] = []
        for number, rule in enumerate(rules, 1):
            self._show(f"  {escape(rule)}" + (f"  ({number} of {len(rules)})" if len(rules) > 1 else ""))
            typed = (await self._read(RULE)).strip()
            if typed.lower() in ("n", "no"):
                return ()
            texts.append(typed or rule)
        return tuple(dict.fromkeys(texts))

    async def choose(self, choice: Choice) -> str | None:
        """The user's answer to a question of the model; None for an empty line, Ctrl+C or a closed input."""
        with self._hold():
            self._show(choice_text(choice))
            try:
                return parse_choice(await self._read(WANTED), choice.options)
            except (EOFError, KeyboardInterrupt):
                return None
