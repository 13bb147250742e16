# What bash runs before a shell line (as its BASH_ENV): at the line's end, the shell reports its exit codes, working
# directory and exported variables over the descriptor BRADAWL_REPORT, between two copies of a key that only it knows.
#
# bash passes an inherited descriptor to all programs it starts. While a group has that number closed, bash keeps a copy
# with close-on-exec, as descriptor 10 or above; a copy of that copy has the flag, too. The key comes over the
# descriptor because environment and arguments of a process can be read in /proc. The group's redirections keep the
# script's `set -x` out of the report. Builtins are used because a script may define functions of any name, quoted
# because of aliases. PIPESTATUS is not joined because a script may set IFS. `local` succeeds only if a function has
# called `exit`: its local variables then hide the exported ones, so exports can't be reported.
#
# BRADAWL_TRAPS names further traps. `pipelines`: the DEBUG trap runs before each simple command outside of functions
# and subshells, where PIPESTATUS is that of the command before; it keeps the codes of two pipelines whose last part
# succeeded and another failed (141: SIGPIPE), and removes itself. `case` leaves PIPESTATUS as it is, `[[` does not.
# bash parses the text of the trap each time, so most of it is in a function. It runs in the other traps, too: there, `__bradawl_null` has a value since the expansion of their redirection.
# `failures`: the ERR trap keeps the code of the first command that failed where `set -e` would end the shell. bash
# restores PIPESTATUS and $? after a trap, but not $_.
__bradawl_fd=$BRADAWL_REPORT __bradawl_traps=$BRADAWL_TRAPS __bradawl_earlier= __bradawl_failure= __bradawl_null=
if [[ -v BRADAWL_BASH_ENV ]]; then export BASH_ENV=$BRADAWL_BASH_ENV; else unset BASH_ENV; fi
if [[ $BRADAWL_PROCESSES ]]; then ulimit -u "$BRADAWL_PROCESSES" 2>/dev/null; fi
unset BRADAWL_REPORT BRADAWL_BASH_ENV BRADAWL_PROCESSES BRADAWL_TRAPS
for __bradawl_kept in 10 11 12; do
if eval "{ exec 199>&$__bradawl_kept; } $__bradawl_fd>&- 2>/dev/null; \
read -r -N 32 -u 199 __bradawl_key 2>/dev/null && exec $__bradawl_fd>&199"; then break; fi
done
exec 199>&-
[[ $__bradawl_key ]] || read -r -N 32 -u "$__bradawl_fd" __bradawl_key
unset __bradawl_kept
{ printf "\0%s\0" "$__bradawl_key"; export -p; printf "\0"; } >&"$__bradawl_fd"
trap '{ __bradawl_code=$? __bradawl_parts=("${PIPESTATUS[@]}")
\builtin printf "\0%s\0%s\0%s\0%s\0" "$__bradawl_key" "$__bradawl_code" "$__bradawl_earlier" "$__bradawl_failure"
\builtin printf "%s " "${__bradawl_parts[@]}"
\builtin printf "\0"; \builtin pwd -P; \builtin printf "\0"
\builtin local __bradawl_inside || \builtin export -p
\builtin printf "\0%s\0" "$__bradawl_key"; } 2>"/dev/${__bradawl_null:=null}" >&"$__bradawl_fd"' EXIT
if [[ $__bradawl_traps == *failures* ]]; then
trap '{ __bradawl_code=$? __bradawl_last=$_
[[ $__bradawl_failure || $__bradawl_code == 141 ]] || __bradawl_failure=$__bradawl_code
__bradawl_null=
\builtin export -n __bradawl_code __bradawl_last __bradawl_failure __bradawl_null
\builtin : "$__bradawl_last"; } 2>"/dev/${__bradawl_null:=null}"' ERR
fi
if [[ $__bradawl_traps == *pipelines* ]]; then
__bradawl_keep() { { __bradawl_codes=${PIPESTATUS[@]}
[[ $__bradawl_null || $BASH_COMMAND == @(exit|"exit "*) || $__bradawl_codes != *" 0" ||
"$__bradawl_codes " == +(@(0|141)" ") || ",$__bradawl_earlier" == *",$__bradawl_codes,"* ]] || {
[[ ! $__bradawl_earlier ]] || \builtin trap - DEBUG
__bradawl_earlier+="$__bradawl_codes,"; }
\builtin export -n __bradawl_codes __bradawl_earlier
\builtin : "$1"; } 2>/dev/null; }
trap 'case ${PIPESTATUS[1]+${PIPESTATUS[@]}} in *[1-9]*) __bradawl_keep "$_";; esac' DEBUG
fi
