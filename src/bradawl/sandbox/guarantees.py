"""The guarantees of a sandbox: the names that probes, pages and tests use for them."""

from typing import Final

GUARANTEES: Final = {
    "write_outside": "no file outside the workspace is written, made, renamed or removed",
    "chmod_outside": "mode, owner and times of files outside can't be changed",
    "hard_link_in": "no file from outside can be linked into the workspace and changed there",
    "symlinked_root": "no file outside can be written through a link in the workspace",
    "remount": "no file system can be mounted or remounted",
    "nested_userns": "no user namespace can be opened, in which a program would be root again",
    "tcp": "no TCP connection leaves",
    "udp": "no datagram leaves, and names can't be resolved",
    "icmp": "no ping leaves",
    "domains": "a network that is granted by host reaches no other host",
    "netlink": "no netlink or packet socket can be opened",
    "unix_sockets": "no socket in the file system can be reached, such as that of a container engine or a key agent",
    "abstract_sockets": "no abstract Unix socket of another program can be reached",
    "tiocsti": "nothing can be typed into the user's terminal",
    "proc_root": "no other process's files are reached through /proc",
    "agent_environ": "the agent's environment can't be read",
    "ptrace": "no process can be traced, and none outside signalled",
    "credentials": "keys, passwords and the agent's own data can't be read",
    "symlinked_git": "git's configuration and hooks are protected also where they are reached through a link",
    "new_protected_file": "protected files can't be made where they are missing",
    "rename_protected": "folders of protected files can't be moved away and replaced",
    "protected_file": "git's configuration, hooks, own settings and editors' task files can't be changed",
    "private_tmp": "the folder /tmp is the session's own, and is kept from one command to the next",
    "escapees": "a process that leaves its process group and clears its environment still ends with the command",
    "no_new_privileges": "no program gains privileges when it is started",
}
"""Name and meaning of each guarantee. A probe reports by name which of them a sandbox lacks."""
