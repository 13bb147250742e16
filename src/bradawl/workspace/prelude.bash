# What bash runs before a shell line (as its BASH_ENV): at the line's end, the shell reports its exit codes, working
# directory and exported variables over the descriptor BRADAWL_REPORT, between two copies of a key that only it knows.
#
# bash passes an inherited descriptor to all programs it starts. While a group has that number closed, bash keeps a copy
# with close-on-exec, as descriptor 10 or above; a copy of that copy has the flag, too. The key comes over the
# descriptor because environment and arguments of a process can be read in /proc. The group's redirections keep the
# script's `set -x` out of the report. Builtins are used because a script may define functions of any name, quoted
# because of aliases. PIPESTATUS is not joined because a script may set IFS. `local` succeeds only if a function has
# called `exit`: its local variables then hide the exported ones, so exports can't be reported.
__bradawl_fd=$BRADAWL_REPORT
if [[ -v BRADAWL_BASH_ENV ]]; then export BASH_ENV=$BRADAWL_BASH_ENV; else unset BASH_ENV; fi
if [[ $BRADAWL_PROCESSES ]]; then ulimit -u "$BRADAWL_PROCESSES" 2>/dev/null; fi
unset BRADAWL_REPORT BRADAWL_BASH_ENV BRADAWL_PROCESSES
for __bradawl_kept in 10 11 12; do
if eval "{ exec 199>&$__bradawl_kept; } $__bradawl_fd>&- 2>/dev/null; \
read -r -N 32 -u 199 __bradawl_key 2>/dev/null && exec $__bradawl_fd>&199"; then break; fi
done
exec 199>&-
[[ $__bradawl_key ]] || read -r -N 32 -u "$__bradawl_fd" __bradawl_key
unset __bradawl_kept
{ printf "\0%s\0" "$__bradawl_key"; export -p; printf "\0"; } >&"$__bradawl_fd"
trap '{ __bradawl_code=$? __bradawl_parts=("${PIPESTATUS[@]}")
\builtin printf "\0%s\0%s\0" "$__bradawl_key" "$__bradawl_code"
\builtin printf "%s " "${__bradawl_parts[@]}"
\builtin printf "\0"; \builtin pwd -P; \builtin printf "\0"
\builtin local __bradawl_inside || \builtin export -p
\builtin printf "\0%s\0" "$__bradawl_key"; } 2>/dev/null >&"$__bradawl_fd"' EXIT
