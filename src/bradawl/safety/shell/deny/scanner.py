"""Why a text must never run, whether or not anything else understood it; and the commands it would start in turn.

Best effort, and only ever held against a call: what is not found here still has to be allowed by somebody.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import msgspec

from bradawl.safety.shell.deny.deletions import hidden_deletions, hidden_shells, making_links
from bradawl.safety.shell.deny.destructive import JUDGES, hazard
from bradawl.safety.shell.deny.disk_lookups import programs_named, told_output
from bradawl.safety.shell.deny.exfiltration import NETWORK, Heard, code_hazard, leak, scripts_in, tells_secret
from bradawl.safety.shell.deny.expansion import DOUBT, LISTED, UNTOLD
from bradawl.safety.shell.deny.lenient_parser import LooseReader
from bradawl.safety.shell.deny.operands import Scene
from bradawl.safety.shell.deny.oversized_text import at_a_glance
from bradawl.safety.shell.deny.parsed_command import Draft, TooMuch
from bradawl.safety.shell.deny.program_output import found_by, prints_paths
from bradawl.safety.shell.deny.protected_targets import SECRET, Ground
from bradawl.safety.shell.deny.shell_state import ON_THE_SHELL, ShellState
from bradawl.safety.shell.deny.variable_state import Flow
from bradawl.safety.shell.deny.wrappers import NOTHING, SHELLS, Argv, Started, folder_of, name_of, started_by

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
    links: tuple[tuple[str, str], ...] = ()
    """Links that it makes, and where they lead."""
    outputs: tuple[str, ...] = ()
    """Targets of redirections that write."""


def look_through(text: str, *, cwd: str, ground: Ground) -> Seen:
    """Read all there is in a text. Never raises; takes a few milliseconds at most, however long the text is."""
    walk = _Walk(ground, cwd)
    is_whole = True
    try:
        walk.read(text)
        if walk.inputs:
            _Walk(ground, cwd, "\n".join(walk.inputs)).read(text)
    except _Found as found:
        return walk.seen(found.why, is_whole=True)
    except TooMuch:
        is_whole = False
    return walk.seen("" if is_whole else at_a_glance(text), is_whole=is_whole)


class _Found(Exception):
    """A reason; nothing more is looked for."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class _Walk:
    """Hears commands in their order, and remembers where they stand."""

    def __init__(self, ground: Ground, cwd: str, loop_input: str = "") -> None:
        """`loop_input` is what `read` may read in a loop that is redirected where it ends."""
        self.inputs: list[str] = []
        """Of loops, as found where they end."""
        self._loop_input = loop_input
        self._is_sourced = False
        """Whether a script that was not read may have set variables."""
        self._ground = ground
        self._flow = Flow(HOME=ground.home or UNTOLD, OLDPWD=(ground.environment or {}).get("OLDPWD") or UNTOLD)
        self._found: dict[Argv, str | None] = {}
        self._opened: dict[str, None] = {}
        self._outputs: dict[str, None] = {}
        self._reader = LooseReader(self, self._flow)
        self._shell = ShellState(self._flow, cwd, self._set)
        self._written: dict[str, str] = {}
        self._printed: set[str] = set()
        """Outputs of substitutions."""
        self._of_calls = 0
        self._depth = 0

    def read(self, text: str) -> None:
        """A text for bash."""
        self._reader.read(text)

    def seen(self, why: str, *, is_whole: bool) -> Seen:
        """All that was heard, with a reason why no mode lets it run."""
        return Seen(
            why,
            tuple(tuple(_shown(word) for word in words) for words in self._found),
            is_whole,
            self._shell.leaves,
            tuple(map(_shown, self._opened)),
            tuple(self._shell.folders),
            self._ground.links,
            tuple(map(_shown, self._outputs)),
        )

    # -------------------------------------------------------------- the listener

    def subshell(self, *, begins: bool) -> None:
        """Where it stands is forgotten at the end of a subshell."""
        if begins:
            self._shell.outer.append(self._shell.cwd)
            self._flow.begin()
        else:
            self._shell.cwd = self._shell.outer.pop()
            self._flow.end_apart()

    def _end_apart(self, *, may_stay: bool) -> None:
        """The end of a part of a pipeline; some shells run the last one themselves, and bash does if it is told to."""
        before = self._shell.outer.pop()
        if may_stay:
            self._flow.end_maybe()
        else:
            self._shell.cwd = before
            self._flow.end_apart()

    def value(self, name: str) -> tuple[str, ...]:
        """What a variable may hold."""
        if name == "PWD":
            return (self._shell.cwd or UNTOLD,)
        values = self._known(name)
        if name == "IFS" or not self._flow.is_known("IFS"):
            return values
        marks = "".join(self._flow.value("IFS")).replace(UNTOLD, "")
        apart = (value.translate(dict.fromkeys(map(ord, marks), " ")) for value in values)
        return tuple(dict.fromkeys((*values, *apart)))

    def _known(self, name: str) -> tuple[str, ...]:
        if self._flow.is_known(name) or not name.isidentifier() or name in _OF_BASH or self._is_sourced:
            return self._flow.value(name)
        return self._ground.variable(name)

    def printed(self, commands: Sequence[Draft]) -> tuple[str, ...]:
        """What a substitution gives: text if it is plain, else a mark."""
        if commands and (output := commands[-1].output) is not None:
            self._printed.add(output.rstrip("\n"))
            return (output.rstrip("\n"),)
        heard = (Heard(name_of(one.words), tuple(one.words), tuple(one.redirects), self._shell.cwd) for one in commands)
        if any(tells_secret(self._ground, one) for one in heard):
            return (SECRET,)
        guess = found_by(tuple(commands[0].words)) if len(commands) == 1 else None
        self._printed |= {guess} if guess else set()
        return (guess, UNTOLD) if guess else (UNTOLD,)

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
            draft.output = told_output(words, draft.text, self._shell.cwd, self._ground, self.value)
            printed = draft.output
            text = found_by(words) if printed is None else printed
            printed = text if printed is None and prints_paths(words) else printed
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
            targets = [target] if any(self._ground.is_secret(one, self._shell.cwd) for one in sources) else []
        elif not (targets and any(tells_secret(self._ground, one) for one in heard)):
            return
        for target in targets:
            self._ground = self._ground.holding(target, self._shell.cwd)

    def _stop_if(self, why: str) -> None:
        if why:
            raise _Found(why)

    # -------------------------------------------------------------- one command

    def _command(self, draft: Draft) -> list[Heard]:
        """What runs in the end, behind all that starts others."""
        heard = [one for inner in draft.inside for one in self._plain(inner)]
        self._find_input(draft)
        self._opened |= dict.fromkeys(value for _, values in draft.assignments for value in values)
        for operator, target in draft.redirects:
            self._opened[target] = None
            if ">" in operator:
                self._outputs[target] = None
                self._stop_if(self._ground.guard(target, self._shell.cwd, adds=operator == ">>"))
        if not draft.words:
            self._assign(draft)
            self._note_input(draft)
            return heard or [Heard("", (), tuple(draft.redirects), self._shell.cwd)]
        is_apart = bool(draft.assignments) and draft.words[:1] not in _HEADS
        if is_apart:
            self._flow.begin()
            for name, values in draft.assignments:
                self._set(name, values)
        for words in (each for way in draft.ways() for each in programs_named(way, self._shell.cwd)):
            heard += self._program(words, draft, 0)
        for words in draft.calls() if draft.either else ():
            self._program(words, draft, 0)
        if is_apart:
            self._flow.end_apart()
        return heard or [Heard("", (), tuple(draft.redirects), self._shell.cwd)]

    def _find_input(self, draft: Draft) -> None:
        """The text of a file that the line wrote before, or what a substitution in place of a file prints."""
        if draft.text is None:
            sources = [target for operator, target in draft.redirects if operator == "<"]
            sources += [after for word, after in pairwise(draft.words) if word in ("-a", "--arg-file")]
            texts = (name if name in self._printed else self._written.get(name) for name in sources)
            draft.text = next(filter(None, texts), None)
            draft.said = draft.said or draft.text

    def _note_input(self, draft: Draft) -> None:
        """What a compound command may read, which is known only where it ends."""
        if draft.text and not self._loop_input:
            self.inputs.append(draft.text)

    def _plain(self, draft: Draft) -> list[Heard]:
        words = tuple(draft.words)
        return [Heard(name_of(words), words, tuple(draft.redirects), self._shell.cwd)] if words else []

    def _assign(self, draft: Draft) -> None:
        for name, values in draft.assignments:
            self._set(name, values)

    def _set(self, name: str, values: tuple[str, ...]) -> None:
        self._flow.assign(name, values)
        self._stop_if(self._about_variable(name, values))
        for value in values:
            self._evaluate(value)
            if name in _RUN_LATER and " " in value:
                self._reader.read(value)

    def _evaluate(self, word: str) -> None:
        """The subscript of an array, of which bash makes commands even if it is quoted."""
        if "[" in word and ("$(" in word or "`" in word):
            self._reader.read(": " + word.partition("[")[2].replace("]", " "))

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
        if name in self._shell.aliases and depth < _DEEPEST and not self._shell.aliases[name].startswith(f"{name} "):
            self._reader.read(" ".join((self._shell.aliases[name], *map(_quoted, words[1:]))))
        if name in self._reader.functions and not (draft.either and words == tuple(draft.words)):
            self._calls(name, words)
        self._on_the_shell(name, words, draft)
        is_told = not (self._reader.is_in_a_call and any(UNTOLD in word for word in words))
        if self._found.get(words, "") == self._shell.cwd and not draft.text and is_told:
            return [Heard(name, words, tuple(draft.redirects), self._shell.cwd)]
        self._count(words)
        self._found[words] = self._shell.cwd
        if name in JUDGES:
            self._reader.tick(_COST_OF_A_PATH * len(words))
        self._judge(name, words)
        started = started_by(words, draft.text)
        heard = [Heard(name, words, tuple(draft.redirects), self._shell.cwd)]
        for argv in started.argvs if started is not NOTHING else hidden_shells(name, words):
            with self._in_folder(folder_of(words)):
                heard += self._program(argv, draft, depth + 1)
        self._scripts(started, is_here=name == "eval")
        if name in _READ_HERE:
            self._flow.doubt()
            self._is_sourced = self._is_sourced or name != "trap"
        behind = words if "/" in words[0] else words[1:]
        self._scripts(
            Started(scripts=tuple(self._written.pop(word, "") for word in _run_from(name, words)), arguments=behind),
            is_here=False,
        )
        return heard

    def _on_the_shell(self, name: str, words: Argv, draft: Draft) -> None:
        for word in words[1:] if name in _EVALUATE else ():
            self._evaluate(word)
        if name in ON_THE_SHELL:
            self._reader.tick(_COST_OF_A_PATH if name in ("cd", "pushd", "popd") else 0)
            self._shell.run(name, words, draft.said or self._loop_input, self._ground)

    @contextmanager
    def _in_folder(self, folder: str) -> Iterator[None]:
        """The folder in which a command starts another; none keeps the one at hand."""
        before = self._shell.cwd
        if folder:
            self._shell.cwd = next(iter(self._ground.places(folder, before)), None)
        yield
        if folder:
            self._shell.cwd = before

    def _judge(self, name: str, words: Argv) -> None:
        """Stop at a command that must not run, also behind a program that is not known to start others."""
        if any(self._reader.bodies) and not self._reader.is_in_a_call:
            words = tuple(word.replace(UNTOLD, DOUBT) for word in words)  # its calls say what `$1` is
        if name == "git" and self._flow.is_known("GIT_WORK_TREE"):
            words = (words[0], f"--work-tree={self._flow.value('GIT_WORK_TREE')[0]}", *words[1:])
        self._ground = making_links(self._ground, name, words, self._shell.cwd)
        scene = Scene(self._ground, self._shell.cwd)
        self._stop_if(hazard(scene, name, words))
        for behind in hidden_deletions(name, words):
            self._stop_if(hazard(scene, "rm", behind))

    def _count(self, words: Argv) -> None:
        is_called = self._reader.is_in_a_call
        self._of_calls += is_called and words not in self._found
        if (self._of_calls if is_called else len(self._found) - self._of_calls) >= _MOST_COMMANDS:
            raise TooMuch

    def _calls(self, name: str, words: Argv) -> None:
        """A function that the text defines."""
        cwd, depth = self._shell.cwd, len(self._shell.outer)
        if not self._reader.call(name, words[1:]):
            self._shell.cwd = cwd
            del self._shell.outer[depth:]

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
            self._stop_if(code_hazard(self._ground, code[:_LONGEST_CODE], self._shell.cwd))
            for script in scripts_in(code[:_LONGEST_CODE]):
                self._reader.read(script)
        self._depth -= 1


def _shown(word: str) -> str:
    return word.replace(UNTOLD, "$").replace(DOUBT, "$").replace(SECRET, "$").replace(LISTED, " ")


def _run_from(name: str, words: Argv) -> Argv:
    """Files that a command runs as scripts."""
    if name in SHELLS or name in (".", "source"):
        return words[1:]
    return (words[0], words[0].removeprefix("./")) if "/" in words[0] else ()


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _bomb(names: list[str], bodies: Sequence[str], *, in_background: bool) -> str:
    """A function that starts itself twice at once."""
    again = max((names.count(body) for body in bodies if body), default=0)
    is_bomb = again > 1 or (again and in_background)
    return "it would start processes without end" if is_bomb else ""


_PROMPTS = frozenset({"PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4"})
_HEADS = (["for"], ["select"], ["read"], ["mapfile"], ["readarray"])
_READ_HERE = frozenset({"eval", ".", "source", "trap"})
_MAY_LEAK = NETWORK | {"exec"}
_EVALUATE = frozenset({"test", "[", "[[", "let", "printf", "read", "declare", "typeset", "local", "export", "unset"})
_RUN_LATER = frozenset(
    {"PAGER", "GIT_PAGER", "MANPAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_SSH_COMMAND"}
    | {"GIT_EXTERNAL_DIFF", "LESSOPEN", "LESSCLOSE", "BROWSER", "SUDO_ASKPASS", "GIT_ASKPASS", "GIT_PROXY_COMMAND"}
)
"""Variables that hold commands."""
_OF_BASH = frozenset(
    {"BASHPID", "BASH_VERSION", "BASH", "COLUMNS", "COMP_LINE", "DIRSTACK", "EPOCHREALTIME", "EPOCHSECONDS", "EUID"}
    | {
        "FUNCNAME",
        "GROUPS",
        "HOSTNAME",
        "HOSTTYPE",
        "IFS",
        "LINENO",
        "LINES",
        "MACHTYPE",
        "MAPFILE",
        "OLDPWD",
        "OPTARG",
    }
    | {
        "OPTIND",
        "OSTYPE",
        "PIPESTATUS",
        "PPID",
        "PS1",
        "PS4",
        "PWD",
        "RANDOM",
        "REPLY",
        "SECONDS",
        "SHELLOPTS",
        "SHLVL",
    }
    | {"SRANDOM", "UID", "_", "PATH", "TERM", "COPROC", "BASH_SOURCE", "BASH_REMATCH", "BASH_ENV"}
)
"""Variables that bash sets by itself."""
