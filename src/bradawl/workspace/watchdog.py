"""Ends what a killed agent has left running."""

import contextlib
import os
import socket
import subprocess
import weakref
from collections.abc import Callable
from typing import Final

# Reads the mark, then the ids of the programs that run now, as `+12` and `-12`, and `=/folder` for the one to remove.
# At the end of its input, which comes when the agent is gone, it ends their sessions and groups, whoever carries the
# mark in the environment, and all descendants of either: asked first, killed half a second later.
_SCRIPT: Final = r"""
unset BRADAWL_WATCHDOG
leaders= folder= PATH=${PATH:+$PATH:}/usr/bin:/bin
IFS= read -r mark || exit
while IFS= read -r line; do
  case $line in
  +*) leaders="$leaders ${line#+}" ;;
  -*) rest=
      for leader in $leaders; do [ "$leader" = "${line#-}" ] || rest="$rest $leader"; done
      leaders=$rest ;;
  =*) folder=${line#=} ;;
  esac
done
look() {
  roots=" $leaders $(grep -slaF -e "$mark" /proc/[0-9]*/environ | tr -dc '0-9\n' | tr '\n' ' ') "
  found=' ' grown=1
  while [ "$grown" ]; do
    grown=
    for stat in /proc/[0-9]*/stat; do
      IFS= read -r fields <"$stat" || continue
      id=${stat#/proc/} id=${id%/stat}
      set -- ${fields##*) }
      case $1 in Z | X) continue ;; esac
      case $found$$\  in *" $id "*) continue ;; esac
      case $roots in
      *" $id "* | *" $3 "* | *" $4 "*) ;;
      *) case $found in *" $2 "*) ;; *) continue ;; esac ;;
      esac
      found="$found$id " grown=1
    done
  done
}
end() {
  for leader in $leaders; do kill "-$1" -- "-$leader"; done
  [ "$found" = ' ' ] || kill "-$1" $found
}
look
leaders="$leaders $found"
end TERM
round=0
while [ "$round" -lt 20 ]; do
  sleep 0.1 || sleep 1
  look
  [ "$found" = ' ' ] && break
  round=$((round + 1))
  [ "$round" -lt 5 ] || end KILL
done
[ "$round" -gt 0 ] || end KILL
if [ "$folder" ]; then
  rm -f "$folder"/prelude.bash "$folder"/output-*
  rmdir "$folder"
fi
"""


class Watchdog:
    """A small shell beside the agent that outlives it by a moment. Started before the first program it is to guard."""

    def __init__(self, mark: str, path: str | Callable[[], str]) -> None:
        """`mark` is what all programs carry in their environment; `path` is where commands are looked for.

        It outlives commands and is held by nothing, so no folder of the workspace belongs there.
        """
        self._mark = mark
        self._path = path
        self._line: socket.socket | None = None
        self._ending: weakref.finalize[[subprocess.Popen[bytes], socket.socket], Watchdog] | None = None

    def guard(self, leader: int, folder: str) -> None:
        """From now on the session this process leads ends with the agent, and the folder is removed."""
        self._say(f"+{leader}\n={folder}\n" if folder else f"+{leader}\n")

    def start(self) -> None:
        """Start it unless it runs: before the program, which may be the one that kills the agent."""
        if not self._say("\n"):
            self._start()

    def release(self, leader: int) -> None:
        """It has ended; its id may be another's soon."""
        self._say(f"-{leader}\n")

    def _say(self, text: str) -> bool:
        """False when nobody listens. One that is stopped, so that the line is full, is not waited for."""
        if self._line is None:
            return False
        try:
            self._line.send(os.fsencode(text), getattr(socket, "MSG_NOSIGNAL", 0) | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            self.close()
            return False
        return True

    def _start(self) -> None:
        with contextlib.suppress(OSError):  # without one everything works, as long as nobody kills the agent
            ours, theirs = socket.socketpair()
            with theirs:
                try:
                    process = subprocess.Popen(
                        ("/bin/sh", "-c", 'eval "$BRADAWL_WATCHDOG"'),
                        cwd="/",
                        env={
                            "PATH": self._path if isinstance(self._path, str) else self._path(),
                            "BRADAWL_WATCHDOG": _SCRIPT,
                        },
                        stdin=theirs.fileno(),
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        start_new_session=True,
                    )
                except OSError:
                    ours.close()
                    raise
            self._line = ours
            self._ending = weakref.finalize(self, _end, process, ours)
            self._say(f"{self._mark}\n")

    def close(self) -> None:
        """End it; nothing else is touched. Safe to call twice."""
        if self._ending is not None:
            self._ending()
        self._line = self._ending = None


def _end(process: "subprocess.Popen[bytes]", line: socket.socket) -> None:
    process.kill()  # first: a closed line would set it to work
    process.wait()
    line.close()
