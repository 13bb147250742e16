"""Why a text must never run, whether or not anything else understood it; and the commands it would start in turn.

Best effort, and only ever held against a call: what is not found here still has to be allowed by somebody.
"""

import re
from collections.abc import Sequence

import msgspec

from bradawl.safety.shell_drafts import Draft, TooMuch
from bradawl.safety.shell_expansion import LISTED, UNTOLD, elements, listed
from bradawl.safety.shell_flow import Flow, in_doubt
from bradawl.safety.shell_ground import SECRET, Ground
from bradawl.safety.shell_hazards import JUDGES, Scene, hazard
from bradawl.safety.shell_leaks import NETWORK, Heard, code_hazard, leak, scripts_in, tells_secret
from bradawl.safety.shell_loose import LooseReader
from bradawl.safety.shell_outputs import found_by, output_of
from bradawl.safety.shell_wrappers import SHELLS, Argv, Started, name_of, started_by

_MOST_COMMANDS = 150
_COST_OF_A_PATH = 3  # tokens
_DEEPEST = 8  # scripts in scripts
_LONGEST_CODE = 4_000


class Seen(msgspec.Struct, frozen=True):
    """What a text shows to somebody who doesn't have to understand it."""

    danger: str = ""
    argvs: tuple[Argv, ...] = ()
    """Of all commands at any depth; `$` stands for what can't be told."""
    is_whole: bool = True
    """Whether all of the text was looked at."""
    leaves: bool = False
    """Whether it goes to a folder that is not the workspace's, or can't be told."""
    opened: tuple[str, ...] = ()
    """Targets of redirections, and values that variables are given."""
    folders: tuple[str, ...] = ()
    """Working directories of its commands, as far as they are known."""


def look_through(text: str, *, cwd: str, ground: Ground) -> Seen:
    """Read all there is in a text. Never raises; takes a few milliseconds at most, however long the text is."""
    walk = _Walk(ground, cwd)
    is_whole = True
    try:
        walk.read(text)
    except _Found as found:
        return Seen(found.why, walk.argvs(), True, walk.leaves, *walk.opened())
    except TooMuch:
        is_whole = False
    return Seen("" if is_whole else _at_a_glance(text, ground), walk.argvs(), is_whole, walk.leaves, *walk.opened())


class _Found(Exception):
    """A reason; nothing more is looked for."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class _Walk:
    """Hears commands in their order, and remembers where they stand."""

    def __init__(self, ground: Ground, cwd: str) -> None:
        self.leaves = False
        self._ground = ground
        self._cwd: str | None = cwd
        self._flow = Flow(HOME=ground.home or UNTOLD)
        self._found: dict[Argv, str | None] = {}
        self._outer: list[str | None] = []
        self._opened: dict[str, None] = {}
        self._folders: dict[str, None] = {cwd: None}
        self._reader = LooseReader(self, self._flow)
        self._written: dict[str, str] = {}
        self._of_calls = 0
        self._aliases: dict[str, str] = {}
        self._depth = 0

    def read(self, text: str) -> None:
        """A text for bash."""
        self._reader.read(text)

    def argvs(self) -> tuple[Argv, ...]:
        """All that was heard."""
        return tuple(tuple(_shown(word) for word in words) for words in self._found)

    def opened(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Targets and values, and the working directories."""
        return tuple(map(_shown, self._opened)), tuple(self._folders)

    # -------------------------------------------------------------- the listener

    def subshell(self, *, begins: bool) -> None:
        """Where it stands is forgotten at the end of a subshell."""
        if begins:
            self._outer.append(self._cwd)
            self._flow.begin()
        else:
            self._cwd = self._outer.pop()
            self._flow.end_apart()

    def _end_apart(self, *, may_stay: bool) -> None:
        """The end of a part of a pipeline; some shells run the last one themselves, and bash does if it is told to."""
        before = self._outer.pop()
        if may_stay:
            self._flow.end_maybe()
        else:
            self._cwd = before
            self._flow.end_apart()

    def value(self, name: str) -> tuple[str, ...]:
        """What a variable may hold."""
        if name == "PWD":
            return (self._cwd or UNTOLD,)
        return self._flow.value(name)

    def printed(self, commands: Sequence[Draft]) -> str:
        """What a substitution gives: text if it is plain, else a mark."""
        if commands and (output := commands[-1].output) is not None:
            return output.rstrip("\n")
        heard = (Heard(name_of(one.words), tuple(one.words), tuple(one.redirects), self._cwd) for one in commands)
        return SECRET if any(tells_secret(self._ground, one) for one in heard) else UNTOLD

    def pipeline(self, commands: Sequence[Draft], bodies: Sequence[str], *, in_background: bool) -> None:
        """Commands joined by `|`."""
        text: str | None = None
        printed: str | None = None
        heard: list[Heard] = []
        for draft in commands:
            draft.said = printed if draft.text is None else draft.text
            draft.text = text if draft.text is None else draft.text
            # What follows a loop's head in the pipeline is told after this, and knows of the loop's variable.
            is_apart = (in_background or len(commands) > 1) and draft.words[:1] not in _HEADS
            if is_apart:
                self.subshell(begins=True)
            heard += self._command(draft)
            if is_apart:
                self._end_apart(may_stay=draft is commands[-1] and not in_background)
            words = tuple(draft.words)
            draft.output = f"{self._cwd or UNTOLD}\n" if words == ("pwd",) else output_of(words, draft.text)
            printed = draft.output
            text = found_by(words) if printed is None else printed
            if printed is None and len(commands) > 1 and any(tells_secret(self._ground, one) for one in heard):
                printed = SECRET
            self._remember(draft, heard)
        if any(one.name in _MAY_LEAK or any("/dev/" in target for _, target in one.redirects) for one in heard):
            self._stop_if(leak(self._ground, heard))
        self._stop_if(_bomb([one.name for one in heard], bodies, in_background=in_background))

    def _remember(self, draft: Draft, heard: Sequence[Heard]) -> None:
        """What is written to a file here may be run from it later, or sent away."""
        targets = [target for operator, target in draft.redirects if ">" in operator]
        if draft.words[:1] == ["tee"]:
            targets += [word for word in draft.words[1:] if word[:1] != "-"]
        if draft.output:
            self._written |= dict.fromkeys(targets, draft.output)
        if draft.words[:1] in (["cp"], ["mv"], ["ln"], ["install"]) and len(draft.words) > 2:
            *sources, target = draft.words[1:]
            targets = [target] if any(self._ground.is_secret(one, self._cwd) for one in sources) else []
        elif not (targets and any(tells_secret(self._ground, one) for one in heard)):
            return
        for target in targets:
            self._ground = self._ground.holding(target, self._cwd)

    def _stop_if(self, why: str) -> None:
        if why:
            raise _Found(why)

    # -------------------------------------------------------------- one command

    def _command(self, draft: Draft) -> list[Heard]:
        """What runs in the end, behind all that starts others."""
        heard = [one for inner in draft.inside for one in self._plain(inner)]
        self._opened |= dict.fromkeys(value for _, values in draft.assignments for value in values)
        for operator, target in draft.redirects:
            self._opened[target] = None
            if ">" in operator:
                self._stop_if(self._ground.guard(target, self._cwd, adds=operator == ">>"))
        if not draft.words:
            self._assign(draft)
            return heard or [Heard("", (), tuple(draft.redirects), self._cwd)]
        is_apart = bool(draft.assignments) and draft.words[:1] not in _HEADS
        if is_apart:
            self._flow.begin()
            for name, values in draft.assignments:
                self._flow.assign(name, values)
        for words in draft.ways():
            heard += self._program(words, draft, 0)
        for words in draft.calls() if draft.either else ():
            self._program(words, draft, 0)
        if is_apart:
            self._flow.end_apart()
        return heard or [Heard("", (), tuple(draft.redirects), self._cwd)]

    def _plain(self, draft: Draft) -> list[Heard]:
        words = tuple(draft.words)
        return [Heard(name_of(words), words, tuple(draft.redirects), self._cwd)] if words else []

    def _assign(self, draft: Draft) -> None:
        for name, values in draft.assignments:
            self._flow.assign(name, values)
            self._stop_if(self._about_variable(name, values))

    def _about_variable(self, name: str, values: tuple[str, ...]) -> str:
        for value in values if name in _PROMPTS else ():
            if name == "PROMPT_COMMAND" or "$(" in value or "`" in value:
                self._reader.read(value)
        is_lost = name == "HISTFILE" and any(value in ("", "/dev/null") for value in values)
        return "it would stop the shell from keeping its history" if is_lost else ""

    def _program(self, words: Argv, draft: Draft, depth: int) -> list[Heard]:
        name = name_of(words)
        if not words or depth > _DEEPEST:
            return []
        if name in self._aliases and depth < _DEEPEST and not self._aliases[name].startswith(f"{name} "):
            self._reader.read(" ".join((self._aliases[name], *map(_quoted, words[1:]))))
        if name in self._reader.functions and not (draft.either and words == tuple(draft.words)):
            self._calls(name, words)
        if name in _ON_THE_SHELL:
            self._on_the_shell(name, words, draft)
        if self._found.get(words, "") == self._cwd and not draft.text:
            return [Heard(name, words, tuple(draft.redirects), self._cwd)]
        self._count(words)
        self._found[words] = self._cwd
        if name in JUDGES:
            self._reader.tick(_COST_OF_A_PATH * len(words))
        self._stop_if(hazard(Scene(self._ground, self._cwd), name, words))
        started = started_by(words, draft.text)
        heard = [Heard(name, words, tuple(draft.redirects), self._cwd)]
        for argv in started.argvs:
            heard += self._program(argv, draft, depth + 1)
        self._scripts(started, is_here=name == "eval")
        if name in _READ_HERE:
            self._flow.doubt()
        behind = words if "/" in words[0] else words[1:]
        self._scripts(
            Started(scripts=tuple(self._written.pop(word, "") for word in _run_from(name, words)), arguments=behind),
            is_here=False,
        )
        return heard

    def _count(self, words: Argv) -> None:
        is_called = self._reader.is_in_a_call
        self._of_calls += is_called and words not in self._found
        if (self._of_calls if is_called else len(self._found) - self._of_calls) >= _MOST_COMMANDS:
            raise TooMuch

    def _calls(self, name: str, words: Argv) -> None:
        """A function that the text defines."""
        cwd, depth = self._cwd, len(self._outer)
        if not self._reader.call(name, words[1:]):
            self._cwd = cwd
            del self._outer[depth:]

    def _scripts(self, started: Started, *, is_here: bool) -> None:
        """Read what is run by this very shell, or by one that knows only some of its variables."""
        if not (started.scripts or started.codes) or self._depth > _DEEPEST:
            return
        self._depth += 1
        for script in started.scripts:
            if is_here:
                self._reader.read(script)
                continue
            self.subshell(begins=True)
            self._flow.doubt()
            zero, *others = started.arguments or ("",)
            self._flow.parameters(others, zero)
            self._reader.read(script)
            self.subshell(begins=False)
        for code in started.codes:
            self._stop_if(code_hazard(self._ground, code[:_LONGEST_CODE], self._cwd))
            for script in scripts_in(code[:_LONGEST_CODE]):
                self._reader.read(script)
        self._depth -= 1

    def _on_the_shell(self, name: str, words: Argv, draft: Draft) -> None:
        match name:
            case "cd" | "pushd" | "popd":
                self._reader.tick(_COST_OF_A_PATH)
                self._change_folder(words)
            case "for" | "select" if len(words) > 1:
                each = words[3:] or tuple(one for all_ in self._flow.elements("@") for one in elements(all_))
                self._flow.assign(words[1], in_doubt(each))  # which of them, nobody can tell
            case "set" | "shift":
                self._set_parameters(words)
            case "alias" | "hash":
                self._rename(words)
            case "export" | "declare" | "typeset" | "local" | "readonly":
                self._declare(words)
            case "printf" if words[1:2] == ("-v",) and len(words) > 3:
                self._flow.assign(words[2], (output_of(("printf", *words[3:]), None) or "",))
            case "read" | "mapfile" | "readarray" if draft.said and len(words) > 1:
                self._read_into(words[-1], draft.said, is_list=name != "read")
            case _:
                for word in words[1:]:  # `read` and its like
                    self._flow.forget(word)

    def _set_parameters(self, words: Argv) -> None:
        if words[0] == "shift":
            self._flow.shift(int(words[1]) if len(words) > 1 and words[1].isdecimal() else 1)
        elif (parameters := _parameters(words)) is not None:
            self._flow.parameters(parameters)

    def _rename(self, words: Argv) -> None:
        """From here on a name means other words."""
        if words[0] == "hash":
            self._aliases |= {words[3]: words[2]} if words[1:2] == ("-p",) and len(words) > 3 else {}
            return
        for word in words[1:]:
            name, equals, value = word.partition("=")
            self._aliases |= {name: value} if equals else {}

    def _declare(self, words: Argv) -> None:
        is_name = any(word[:1] == "-" and "n" in word for word in words[1:])
        for word in words[1:]:
            variable, equals, value = word.partition("=")
            if equals:
                values = self._flow.elements(value) if is_name else (value,)
                self._flow.assign(variable, values)
                self._stop_if(self._about_variable(variable, values))

    def _read_into(self, name: str, text: str, *, is_list: bool) -> None:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        values = (listed(lines),) if is_list else tuple(lines)
        if name.isidentifier() and lines:
            self._flow.assign(name, in_doubt(values))

    def _change_folder(self, words: Argv) -> None:
        targets = [word for word in words[1:] if word[:1] != "-" or word == "-"]
        target = targets[0] if targets else self._ground.home
        places = () if words[0] == "popd" or target == "-" else self._ground.places(target, self._cwd)
        self._cwd = places[0] if places else None
        self._folders |= dict.fromkeys(places)
        roots = self._ground.roots
        self.leaves = self.leaves or not any(_is_in(place, roots) for place in places[-1:])


def _is_in(place: str, roots: tuple[str, ...]) -> bool:
    return any(place == root or place.startswith(root.rstrip("/") + "/") for root in roots)


def _shown(word: str) -> str:
    return word.replace(UNTOLD, "$").replace(SECRET, "$").replace(LISTED, " ")


def _run_from(name: str, words: Argv) -> Argv:
    """Files that a command runs as scripts."""
    if name in SHELLS or name in (".", "source"):
        return words[1:]
    return (words[0], words[0].removeprefix("./")) if "/" in words[0] else ()


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _parameters(words: Argv) -> Argv | None:
    """What `set` makes of the parameters; None if it leaves them alone."""
    place = 1
    while place < len(words) and words[place][:1] in ("-", "+") and words[place] != "-":
        if words[place] == "--":
            return words[place + 1 :]
        place += 2 if words[place][-1] == "o" else 1
    return words[place:] or None


def _bomb(names: list[str], bodies: Sequence[str], *, in_background: bool) -> str:
    """A function that starts itself twice at once."""
    again = max((names.count(body) for body in bodies if body), default=0)
    is_bomb = again > 1 or (again and in_background)
    return "it would start processes without end" if is_bomb else ""


_ON_THE_SHELL = frozenset(
    {"set", "shift", "alias", "hash", "cd", "pushd", "popd", "for", "select", "export", "declare", "typeset", "local"}
    | {"readonly", "read", "unset", "printf", "mapfile", "readarray", "getopts", "let", "wait"}
)
_PROMPTS = frozenset({"PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4"})
_HEADS = (["for"], ["select"], ["read"], ["mapfile"], ["readarray"])
_READ_HERE = frozenset({"eval", ".", "source", "trap"})
_MAY_LEAK = NETWORK | {"exec"}

# ------------------------------------------------------------------ texts nobody reads to the end

# Each begins with letters, so that the search passes over the rest at once.
_AT_A_GLANCE = (
    (
        r"rm(?<![\w.-]rm)[ \t]{1,9}(?:-\S{1,20}[ \t]{1,9}){1,4}(?:/|~|\$HOME|\$\{HOME\}|/(?:usr|etc|home|bin|var)\b)"
        r"/?\*?(?=[\s;&|)]|\Z)",
        "it would delete folders that must stay",
    ),
    (r"find[ \t]{1,9}(?:/|~|\$HOME)[ \t][^\n;|&/]{0,60}-delete\b", "it would delete folders that must stay"),
    (r"mkfs(?:\.\w{1,9})?[ \t][^\n;|&]{0,100}/dev/", "it would overwrite a disk"),
    (r"of=/dev/(?:[shv]d|xvd|nvme|mmcblk|mapper|dm-|md|r?disk)", "it would overwrite a disk"),
)


def _at_a_glance(text: str, ground: Ground) -> str:
    """For what is too long to be read: the plainest cases, wherever they stand."""
    dequoted = text.replace("'", "").replace('"', "").replace("\\", "")
    return next((why for pattern, why in _AT_A_GLANCE if re.search(pattern, dequoted)), "")
