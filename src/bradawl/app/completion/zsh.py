"""The completion script for zsh."""

from bradawl.app.completion.bash import cases, name_of, quoted, shown_value
from bradawl.app.completion.words import Command, sub_commands

_HEAD = """\
#compdef bradawl
# Completion of bradawl for zsh: eval "$(bradawl completion zsh)", after compinit

# Sets `found` to the words that may follow a command, each as WORD:DESCRIPTION.
_bradawl_commands() {
    found=()
    case "$1" in
@COMMANDS@
    esac
}

# Sets `found` to the flags of a command, each as FLAG:DESCRIPTION.
_bradawl_flags() {
    found=()
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
    local kind=$1 line text
    local -a names partial_names shown partial_shown
    case "$kind" in
    choice:*) compadd -- ${(s:,:)${kind#choice:}} ;;
    folder) _files -/ ;;
    file) _files ;;
    other|'') _message 'a value' ;;
    *) for line in "${(@f)$("$_bradawl_program" __complete "$kind" "${@:3}" "$2" 2>/dev/null)}"; do
           [[ -z $line ]] && continue
           text=${line%%$'\t'*}
           if [[ $text == */ ]]; then
               partial_names+=("$text"); partial_shown+=("${line/$'\t'/  -- }")
           else
               names+=("$text"); shown+=("${line/$'\t'/  -- }")
           fi
       done
       compadd -l -d shown -a names
       compadd -S '' -l -d partial_shown -a partial_names ;;
    esac
}

_bradawl() {
    local command= word key= value= cur=${words[CURRENT]} _bradawl_program=${words[1]}
    local -a found rest
    local -i number=2 count=0
    while (( number < CURRENT )); do
        word=${words[number]}
        _bradawl_commands "$command"
        if [[ $count -eq 0 && -n ${found[(r)$word:*]} && ( -n $command || $number -eq 2 ) ]]; then
            command="${command:+$command }$word"
        elif [[ $word == -* ]]; then
            value=$(_bradawl_value_of "$command" "$word")
            [[ -n $value && $word != *=* ]] && (( number += 1 ))
        else
            (( count == 0 )) && key=$word
            (( count += 1 ))
        fi
        (( number += 1 ))
    done
    if (( number > CURRENT )) && [[ -n $value ]]; then
        _bradawl_add "$value" "$cur"
    elif [[ $cur == --*=* ]]; then
        compset -P '--*='
        _bradawl_add "$(_bradawl_value_of "$command" "${cur%%=*}")" "${cur#*=}"
    elif [[ $cur == -* ]]; then
        _bradawl_flags "$command"
        _describe -o 'option' found
    else
        found=()
        [[ $count -eq 0 && ( -n $command || $CURRENT -eq 2 ) ]] && _bradawl_commands "$command"
        if (( ${#found} )); then
            _describe 'command' found
        else
            value=$(_bradawl_argument "$command" "$count")
            [[ -n $value ]] && _bradawl_add "$value" "$cur" $key || _files
        fi
    fi
}

if [[ ${funcstack[1]} == _bradawl ]]; then
    _bradawl "$@"
else
    compdef _bradawl bradawl
fi
"""


def zsh_script(commands: tuple[Command, ...]) -> str:
    """The script for these commands."""
    above = dict.fromkeys(command.words[:depth] for command in commands for depth in range(len(command.words)))
    followers = {" ".join(words): _array(sub_commands(commands, words)) for words in above}
    flags = {
        name_of(each): _array(tuple((name, flag.help) for flag in each.flags for name in flag.names))
        for each in commands
    }
    values = {
        f"{name_of(each)} {name}": f"echo {quoted(shown_value(flag.value))}"
        for each in commands
        for flag in each.flags
        if flag.value
        for name in flag.names
    }
    arguments = {
        f"{name_of(each)} {number}": f"echo {quoted(shown_value(value))}"
        for each in commands
        for number, value in enumerate(each.arguments)
    }
    head = _HEAD
    for mark, lines in (("COMMANDS", followers), ("FLAGS", flags), ("VALUES", values), ("ARGUMENTS", arguments)):
        head = head.replace(f"@{mark}@", cases(lines))
    return head + _FUNCTION


def _array(pairs: tuple[tuple[str, str], ...]) -> str:
    """An assignment of WORD:DESCRIPTION pairs."""
    return f"found=({' '.join(quoted(f'{word}:{text}') for word, text in pairs)})"
