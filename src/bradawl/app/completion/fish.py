"""The completion script for fish."""

from collections.abc import Iterator

from bradawl.app.completion.words import Command, Flag, Value, sub_commands

_HEAD = """\
# Completion of bradawl for fish: bradawl completion fish | source

# The words of the command that is typed, without flags; arguments follow its name.
function __bradawl_is
    set -l words (commandline -opc)[2..-1]
    set -l typed
    for word in $words
        string match -q -- '-*' $word; and continue
        set -a typed $word
    end
    test (count $typed) -ge (count $argv); or return 1
    set -l number 0
    for word in $argv
        set number (math $number + 1)
        test "$typed[$number]" = "$word"; or return 1
    end
end

# Whether no command is typed yet.
function __bradawl_is_run
    set -l first (commandline -opc)[2]
    not contains -- "$first" @NAMES@
end

# Whether the next word is the first argument of the command.
function __bradawl_is_first
    set -l words (commandline -opc)[2..-1]
    __bradawl_is $argv; and test (count $words) -eq (count $argv)
end

# Whether an argument of the command with this number is next.
function __bradawl_is_argument
    set -l number $argv[1]
    set -l words (string match -v -- '-*' (commandline -opc)[2..-1])
    __bradawl_is $argv[2..-1]; and test (count $words) -eq (math (count $argv) - 1 + $number)
end

function __bradawl_ask
    set -l words (string match -v -- '-*' (commandline -opc)[2..-1])
    set -l key
    test $argv[1] = value; and set key $words[3]
    bradawl __complete $argv[1] $key (commandline -ct | string replace -r '^--[\\w-]+=' '') 2>/dev/null
end

complete -c bradawl -e
"""


def fish_script(commands: tuple[Command, ...]) -> str:
    """The script for these commands."""
    names = " ".join(name for name, _ in sub_commands(commands))
    return "\n".join((_HEAD.replace("@NAMES@", names), *_lines(commands), ""))


def _lines(commands: tuple[Command, ...]) -> Iterator[str]:
    above = dict.fromkeys(command.words[:depth] for command in commands for depth in range(len(command.words)))
    for words in above:
        for name, text in sub_commands(commands, words):
            condition = _call("__bradawl_is_first", *words)
            yield f"complete -c bradawl -n {condition} -f -a {_quoted(name)} -d {_quoted(text)}"
    for command in commands:
        condition = _call("__bradawl_is", *command.words) if command.words else "__bradawl_is_run"
        for flag in command.flags:
            yield _flag_line(flag, condition)
        for number, value in enumerate(command.arguments):
            at = _call("__bradawl_is_argument", str(number), *command.words)
            yield f"complete -c bradawl -n {at} {_candidates(value)}"


def _flag_line(flag: Flag, condition: str) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names)
    value = f" -r {_candidates(flag.value)}" if flag.value else ""
    return f"complete -c bradawl -n {condition} {names}{value} -d {_quoted(flag.help)}"


def _candidates(value: Value) -> str:
    """The options of `complete` for a value."""
    if value.kind == "choice":
        return f"-f -a {_quoted(' '.join(value.choices))}"
    if value.kind == "folder":
        return "-f -a '(__fish_complete_directories (commandline -ct))'"
    if value.kind == "file":
        return "-F"
    return "-f" if value.kind == "other" else f"-f -k -a '(__bradawl_ask {value.kind})'"


def _call(function: str, *words: str) -> str:
    return _quoted(" ".join((function, *words)))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
