"""A helper shell that ends all processes of an agent that was killed."""

import contextlib
import os
import socket
import subprocess
import weakref
from collections.abc import Callable
from typing import Final

# Input: the mark, then leaders of running programs as `+12` and `-12`, and `=/folder` for the folder to remove. At end
# of file, when the agent is gone, the script ends the leaders' sessions and groups, all processes with the mark in
# their environment, and the descendants of both: SIGTERM first, SIGKILL half a second later.
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
  rm -f "$folder"/output-*
  rmdir "$folder"
fi
"""


class Watchdog:
    """A small shell that outlives the agent by a moment. Start it before the first program it guards."""

    def __init__(self, mark: str, path: str | Callable[[], str]) -> None:
        """`mark` is in the environment of all programs; `path` is the PATH for commands of the script.

        The script is not sandboxed, so `path` must not contain a folder of the workspace.
        """
        self._mark = mark
        self._path = path
        self._folder = ""
        self._line: socket.socket | None = None
        self._ending: weakref.finalize[[subprocess.Popen[bytes], socket.socket], Watchdog] | None = None

    def guard(self, leader_pid: int, folder: str) -> None:
        """End the session led by this process when the agent ends, and remove the folder."""
        is_new, self._folder = bool(folder) and folder != self._folder, folder
        self._send(f"+{leader_pid}\n={folder}\n" if is_new else f"+{leader_pid}\n")

    def start(self) -> None:
        """Start it unless it runs. Call it before the program starts, because that program may kill the agent."""
        if not self._is_running():
            self.close()
            self._start()

    def release(self, *leader_pids: int) -> None:
        """The leaders have ended; their PIDs may soon be those of other processes."""
        self._send("".join(f"-{leader_pid}\n" for leader_pid in leader_pids))

    def _is_running(self) -> bool:
        """Whether its end of the line is open. It is not woken for that: it never sends anything."""
        try:
            return self._line is not None and self._line.recv(1, socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def _send(self, text: str) -> bool:
        """Send a line; False if the watchdog is gone. A line that a stopped watchdog can't take is dropped."""
        if self._line is None:
            return False
        try:
            self._line.send(os.fsencode(text), getattr(socket, "MSG_NOSIGNAL", 0) | socket.MSG_DONTWAIT)
        except BlockingIOError:
            self._folder = ""  # the line that was dropped may have named it
            return True
        except OSError:
            self.close()
            return False
        return True

    def _start(self) -> None:
        with contextlib.suppress(OSError):  # without a watchdog everything works; only a kill leaves processes behind
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
            self._send(f"{self._mark}\n")

    def close(self) -> None:
        """Stop the watchdog; it ends no processes. Safe to call twice."""
        if self._ending is not None:
            self._ending()
        self._line = self._ending = None
        self._folder = ""


def _end(process: "subprocess.Popen[bytes]", line: socket.socket) -> None:
    process.kill()  # first: closing the socket would make the script act
    process.wait()
    line.close()
