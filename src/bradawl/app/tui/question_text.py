"""The texts of a question whether a call may run: what it would do, and what a yes would grant."""

import re
from collections.abc import Iterator
from typing import Final

from bradawl.app.refusal_reasons import user_words
from bradawl.core.arguments import Arguments, parse_arguments
from bradawl.core.effects import Effects, is_within
from bradawl.core.permissions import Grant, Question
from bradawl.safety.control_characters import escape
from bradawl.safety.permissions.protected_paths import is_scratch

_LONG: Final = frozenset({"content", "old_string", "new_string"})
_LINES_SHOWN: Final = 20
_VARIABLES_SHOWN: Final = 20
_HOSTS_SHOWN: Final = 10
_VALUE_SHOWN: Final = 500
_TMP: Final = "/tmp"  # noqa: S108 - as commands name it
# Blanks that push the following text out of sight; an indentation may be longer than a gap.
_GAP: Final = r"(?<=[^ \t\n])[ \t]{20,}|(?m:^)[ \t]{80,}"
_EMPTY_LINES: Final = r"\n(?:[ \t]*\n){4,}"


def question_text(question: Question, *, whole: bool = False, rest: Arguments | None = None) -> str:
    """The tool, the reason for the question, and all arguments, or those of `rest` where the others are shown already.

    Unless `whole`, a long text that is written to a file is cut, with the number of lines left; nothing else is.
    """
    call = question.call
    arguments = rest if rest is not None else parse_arguments(call.raw_arguments)[0]
    lines = [f"{in_line(call.name)} wants to run ({in_line(user_words(question.reason))}):"]
    if is_about_a_host(question):
        lines = [f"This command wants to connect to {destinations(question)} ({in_line(user_words(question.reason))}):"]
    if arguments is None:
        return "\n".join([*lines, *indented(call.raw_arguments)])
    if isinstance(command := arguments.get("command"), str):
        lines += indented(command)
        arguments = {key: value for key, value in arguments.items() if key != "command"}
    for key, value in arguments.items():
        lines += _argument(key, value if isinstance(value, str) else repr(value), whole=whole)
    return "\n".join(lines)


def granted_text(question: Question) -> str:
    """The declared effects of the call, with real paths, and what a yes would grant; empty if there are none."""
    effects, grant = question.request.effects, question.grant
    if is_about_a_host(question):
        return "\n".join(_connection_lines(effects))
    lines = [f"  {verb} {_named(name, _own_tmp(question))}" for verb, names in _touched(effects) for name in names]
    if effects.seal:
        lines += [f"  in the folder {in_line(question.place)}"] * bool(question.place)
        lines += _held(effects, grant, _own_tmp(question))
        if grant.outside_sandbox or grant.network:
            lines += _exported(question)
    elif effects.unknown or effects.external:
        lines.append("  no sandbox holds what this tool does")
    if grant.uncovered:
        lines.append(f"  this is protected otherwise: {', '.join(map(in_line, grant.uncovered))}")
    if effects.session and grant.environment:
        lines.append(f"  changes for all later commands: {', '.join(map(in_line, grant.environment))}")
    return "\n".join(lines)


def is_dangerous(question: Question) -> bool:
    """Whether a yes grants more than an ordinary command gets: a question then says all of it at once."""
    effects, grant = question.request.effects, question.grant
    lifts = grant.outside_sandbox and "sandbox" in effects.lifts
    is_changing = bool(effects.session and grant.environment)
    return bool(lifts or grant.uncovered or is_changing or effects.forced or effects.discards)


def brief_text(question: Question) -> str:
    """What an ordinary command touches, in one line; what of it is unusual follows. For other calls as
    `granted_text`.
    """
    effects, grant = question.request.effects, question.grant
    if not effects.seal or is_about_a_host(question) or is_dangerous(question):
        return granted_text(question)
    own = _own_tmp(question)
    below = f"{question.place}/" if question.place else ""
    inside = [_named(path, own).removeprefix(below) for path in effects.writes]
    reads = [_named(path, own) for path in effects.reads if not is_within(path, question.place)]
    parts = [f"writes {', '.join(inside)}"] if inside else []
    if not inside and effects.unknown:
        parts.append("may change anything you can" if grant.outside_sandbox else "may change files in the project")
    parts += [f"reads {', '.join(reads)}"] if reads else []
    parts += [f"in {in_line(question.place)}"] if question.place else []
    hosts = [*_connection_hosts(effects, grant)]
    exported = _exported(question) if grant.outside_sandbox or grant.network else ()
    return "\n".join(("; ".join(parts), *hosts, *exported))


def _connection_hosts(effects: Effects, grant: Grant) -> Iterator[str]:
    """What a command that asks for the whole network can do."""
    if not grant.outside_sandbox and grant.network:
        named = ", ".join(map(in_line, _named_hosts(effects)))
        yield "it can send what it can read, to any host" + (f"; it names {named}" if named else "")


def destinations(question: Question) -> str:
    """Each host with its port, as `example.org, port 80 or 443`."""
    found = (host.partition(":") for host in question.request.effects.hosts)
    return "; ".join(f"{in_line(name)}, port {in_line(port) or '80 or 443'}" for name, _, port in found)


def _connection_lines(effects: Effects) -> Iterator[str]:
    yield "  it can send there what it can read; where the connection is encrypted, bradawl can't see what it sends"
    if any(label.startswith("xn--") for host in effects.hosts for label in host.split(".")):
        yield "  xn-- stands for letters that may look like others: check that you know this name"


def _named_hosts(effects: Effects) -> tuple[str, ...]:
    """Hosts of the URLs in the words of a command."""
    words = "\n".join(word for argv in (*effects.commands, *effects.inner) for word in argv)
    found = re.findall(r"(?:https?|ftp|ssh|git)://(?:[^\s/@]*@)?([A-Za-z0-9._-]+)", words)
    return tuple(dict.fromkeys(found))[:_HOSTS_SHOWN]


def _own_tmp(question: Question) -> str:
    """The folder that commands of this session call `/tmp`; empty if the sandbox grants none."""
    writes = question.request.effects.writes
    return next((path for path in question.grant.writable if is_scratch(path) and path not in writes), "")


def _named(path: str, own_tmp: str) -> str:
    """A path; one in the session's own `/tmp` as commands name it."""
    return in_line(f"{_TMP}{path[len(own_tmp) :]}" if own_tmp and is_within(path, own_tmp) else path)


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
            yield f"  without the variable {in_line(name)}, which an earlier command took away"
            continue
        more = f" [{len(value) - _VALUE_SHOWN} more characters]" if len(value) > _VALUE_SHOWN else ""
        yield f"  with {in_line(name)}={in_line(value[:_VALUE_SHOWN])}{more}, from an earlier command"
    if left := names[max(len(first), _VARIABLES_SHOWN) :]:
        yield f"  and with {', '.join(map(in_line, left))}, from earlier commands"


def _held(effects: Effects, grant: Grant, own: str) -> Iterator[str]:
    if grant.outside_sandbox and "sandbox" in effects.lifts:
        yield "  it asks to run WITHOUT the sandbox: it can change what you can, and reach the network"
    elif grant.outside_sandbox:
        yield "  there is NO SANDBOX: it can change what you can, and reach the network"
    else:
        writes = ", ".join(_named(path, own) for path in grant.writable)
        yield f"  in the sandbox it may write to: {writes}" if writes else "  in the sandbox it may write nowhere"
        asked = ", as it asks" if "network" in effects.lifts else ""
        if not grant.network:
            yield "  without network"
            return
        yield f"  with network{asked}: it can send what it can read, to any host"
        if hosts := _named_hosts(effects):
            yield f"  hosts that it names: {', '.join(map(in_line, hosts))}"


def is_about_a_host(question: Question) -> bool:
    """Whether a running command wants to connect."""
    return question.request.effects.lifts == ("host",)


def scopes_of(question: Question, rules: tuple[str, ...]) -> tuple[str, ...]:
    """The scopes that a yes can have."""
    session = () if question.request.effects.unsealed else ("session",)
    return ("once", *session, *(("project",) if rules else ()))


def _argument(key: str, value: str, *, whole: bool) -> list[str]:
    lines = indented(value.removesuffix("\n"))
    if len(lines) == 1:
        return [f"    {in_line(key)}: {lines[0][4:]}"]
    if key in _LONG and len(lines) > _LINES_SHOWN and not whole:
        lines = [*lines[:_LINES_SHOWN], f"      ... {len(lines) - _LINES_SHOWN} more lines"]
    return [f"    {in_line(key)}:", *("  " + line for line in lines)]


def indented(text: str) -> list[str]:
    """The lines of a text, indented, with invisible characters escaped."""
    return ["    " + line for line in visible(text).split("\n")]


def visible(text: str) -> str:
    """The text with invisible characters escaped, and long gaps replaced by their length."""
    shown = escape(text)
    if "\n\n" in shown or "\n " in shown or "\n\t" in shown:
        shown = re.sub(_EMPTY_LINES, lambda gap: f"\n[{gap[0].count(chr(10)) - 1} empty lines]\n", shown)
    return re.sub(_GAP, lambda gap: f" [{len(gap[0])} blanks] ", shown)


def in_line(text: str) -> str:
    """`visible` on one line, for names."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")
