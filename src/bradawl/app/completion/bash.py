"""The completion script for bash. It needs neither bash-completion nor a bash newer than 3.2."""

from collections.abc import Mapping

from bradawl.app.completion.words import Command, Value, Words, sub_commands

_HEAD = """\
# Completion of bradawl for bash: eval "$(bradawl completion bash)"

# Prints the words that may follow a command.
_bradawl_commands() {
    case "$1" in
@COMMANDS@
    esac
}

# Prints the flags of a command.
_bradawl_flags() {
    case "$1" in
@FLAGS@
    esac
}

# Prints what a flag of a command takes: nothing for a switch.
_bradawl_value_of() {
    case "$1 $2" in
@VALUES@
    esac
}

# Prints what the argument of a command with a number takes.
_bradawl_argument() {
    case "$1 $2" in
@ARGUMENTS@
    esac
}
"""
_FUNCTION = r"""
# Adds candidates for a value: its kind, then what is typed, then the words before it.
_bradawl_add() {
    local kind=$1 cur=$2 line
    case "$kind" in
    choice:*) kind=${kind#choice:}; COMPREPLY=($(compgen -W "${kind//,/ }" -- "$cur")) ;;
    folder) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$cur")) ;;
    file) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur")) ;;
    other|'') ;;
    *) while IFS= read -r line; do COMPREPLY+=("${line%%$'\t'*}")
       done < <("$_bradawl_program" __complete "$kind" "${@:3}" "$cur" 2>/dev/null) ;;
    esac
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ && $kind != folder && $kind != file ]] &&
        compopt -o nospace 2>/dev/null
}

_bradawl() {
    local IFS=$' \t\n' line=${COMP_LINE:0:COMP_POINT} command= flag= value= cut_at key=
    local -a typed
    local _bradawl_program=$1 number=1 count=0 cur word next
    COMPREPLY=()
    # bash splits words at : and =, which names of models and flags have in them.
    read -ra typed <<< "$line"
    [[ $line == *[[:blank:]] || ${#typed[@]} -eq 0 ]] && typed+=('')
    local last=$((${#typed[@]} - 1))
    cur=${typed[last]}
    while [[ $number -lt $last ]]; do
        word=${typed[number]}
        next=" $(_bradawl_commands "$command") "
        if [[ $count -eq 0 && $next == *" $word "* && ( -n $command || $number -eq 1 ) ]]; then
            command="${command:+$command }$word"
        elif [[ $word == -* ]]; then
            value=$(_bradawl_value_of "$command" "$word")
            [[ -n $value && $word != *=* ]] && number=$((number + 1))
        else
            [[ $count -eq 0 ]] && key=$word
            count=$((count + 1))
        fi
        number=$((number + 1))
    done
    if [[ $number -gt $last && -n $value ]]; then
        _bradawl_add "$value" "$cur"
    elif [[ $cur == --*=* ]]; then
        flag=${cur%%=*}
        _bradawl_add "$(_bradawl_value_of "$command" "$flag")" "${cur#*=}"
        COMPREPLY=("${COMPREPLY[@]/#/$flag=}")
    elif [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$(_bradawl_flags "$command")" -- "$cur"))
    else
        [[ $count -eq 0 && ( -n $command || $last -eq 1 ) ]] &&
            COMPREPLY=($(compgen -W "$(_bradawl_commands "$command")" -- "$cur"))
        [[ ${#COMPREPLY[@]} -eq 0 ]] && _bradawl_add "$(_bradawl_argument "$command" "$count")" "$cur" $key
    fi
    # bash puts a candidate in the place of what follows the last : or = alone.
    cut_at=${cur%"${cur##*[:=]}"}
    if [[ -n $cut_at && $COMP_WORDBREAKS == *:* && $COMP_WORDBREAKS == *=* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"$cut_at"}")
    fi
}

complete -o bashdefault -o default -F _bradawl bradawl
"""


def bash_script(commands: tuple[Command, ...]) -> str:
    """The script for these commands."""
    flags = {name_of(each): " ".join(name for flag in each.flags for name in flag.names) for each in commands}
    values = {
        f"{name_of(each)} {name}": shown_value(flag.value)
        for each in commands
        for flag in each.flags
        if flag.value
        for name in flag.names
    }
    head = _HEAD
    for mark, lines in (
        ("COMMANDS", {" ".join(above): " ".join(words) for above, words in _followers(commands).items()}),
        ("FLAGS", flags),
        ("VALUES", values),
        ("ARGUMENTS", _arguments(commands)),
    ):
        head = head.replace(f"@{mark}@", cases({key: f"echo {quoted(text)}" for key, text in lines.items() if text}))
    return head + _FUNCTION


def name_of(command: Command) -> str:
    """The words of a command as one text."""
    return " ".join(command.words)


def _followers(commands: tuple[Command, ...]) -> dict[Words, list[str]]:
    """The words that may follow the beginning of a command."""
    above = dict.fromkeys(command.words[:depth] for command in commands for depth in range(len(command.words)))
    return {words: [name for name, _ in sub_commands(commands, words)] for words in above}


def _arguments(commands: tuple[Command, ...]) -> dict[str, str]:
    return {
        f"{name_of(command)} {number}": shown_value(value)
        for command in commands
        for number, value in enumerate(command.arguments)
    }


def shown_value(value: Value) -> str:
    """The kind of a value as the scripts of bash and zsh name it."""
    return f"choice:{','.join(value.choices)}" if value.kind == "choice" else value.kind


def cases(lines: Mapping[str, str]) -> str:
    """Branches of a `case` with a command for each pattern; those with the same command are one."""
    by_text: dict[str, list[str]] = {}
    for pattern, text in lines.items():
        if text:
            by_text.setdefault(text, []).append(pattern)
    shown = (f"    {'|'.join(quoted(each) for each in found)}) {text} ;;" for text, found in by_text.items())
    return "\n".join(shown) or "    *) ;;"


def quoted(text: str) -> str:
    """The text between single quotation marks."""
    escaped = text.replace("'", "'\\''")
    return f"'{escaped}'"
