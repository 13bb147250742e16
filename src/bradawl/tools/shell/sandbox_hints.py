"""Recognises in the output of a command what the sandbox blocked, and says how to ask for it."""

import re
import sys
from collections.abc import Iterator
from functools import partial
from typing import Final

from bradawl.core.effects import is_within
from bradawl.core.permissions import Grant
from bradawl.core.workspace import CommandResult
from bradawl.safety.control_characters import in_remark
from bradawl.shaping.restored_paths import first_paths, restored_lines
from bradawl.tools.shell.network_errors import (
    NO_NETWORK,
    NOTHING_FOUND,
    errors_in,
    host_in,
    own_errors,
    reached_no_local_server,
)

_LOOKED_AT = 6_000

_PROXY_REFUSED: Final = (
    r"CONNECT tunnel failed, response 403|Received HTTP code 403 from proxy|Tunnel connection failed: 403"
    r"|Proxy response \(403\)|statusCode=403|Proxy tunneling failed: Forbidden"
    r"|Invalid response from proxy: HTTP/1\.1 403|proxyconnect tcp: [^\n]*Forbidden|the network proxy refused "
)
"""Messages of curl, git, cargo, Python, Node, npm, wget, apt and Go if a proxy answers CONNECT with 403."""
_REFUSED_NOTE: Final = "the network proxy refused "
"""The beginning of the note of a sandbox about a refused host."""
_NOT_REACHED: Final = " can't be reached: "
"""A part of the note of a sandbox about a host to which no connection could be made."""
_SSH_FAILED: Final = r"(?m)^ssh: Could not resolve hostname "
"""Also explained where the line goes on and ends with success."""
_GIT_WENT_ON: Final = (
    r"(?m)^(?:error|warning|fatal): could not (?:write|lock) config file [^\n]*"
    r"(?:Device or resource busy|Read-only file system)"
)
"""Also explained after a success: git exits with 0 where it could not register a submodule or an upstream branch."""
_GIT_CONFIG: Final = r"\bgit\b[^;&|\n]* config\b"
"""A command that only writes the configuration has failed, and not gone on."""
_GIT_KEPT: Final = (
    r"(?m)^(?:error|warning|fatal): unable to (?:unlink(?: old)? '(?P<old>[^\n]+)'|create file (?P<new>[^\n]+?)):"
    r" (?:Device or resource busy|Read-only file system)$"
)
"""Files of the working tree that git could not replace. `git checkout` exits with 0 then; others stop midway."""
_OVER_SSH: Final = r"ssh: |Could not resolve hostname|git@[\w.-]+:|Could not read from remote repository"
_OWN_LOOPBACK: Final = (
    r"(?i:(?:localhost|127\.0\.0\.1|\[?::1\]?)[^\n]{0,120}(?:connection refused|couldn't connect|could not connect)"
    r"|ECONNREFUSED (?:127\.0\.0\.1|::1)"
    r"|(?:connection refused|failed to connect)[^\n]{0,120}(?:localhost|127\.0\.0\.1))"
)
_OF_FOLDERS: Final = (
    r"(?:[Cc](?:annot|an't|ould not) (?:move|rename|remove)|renaming|git rm:)[^\n]{0,300}Device or resource busy"
    r"|Device or resource busy: [^\n]{1,300} -> |\bEBUSY\b[^\n]{0,60}\brename"
)
"""Errors of commands that move or remove a folder above hidden files, or a file with a mount of its own."""
# A file with a bind mount over itself can't be replaced.
_READ_ONLY: Final = (
    r"Read-only file system|\bEROFS\b|\(os error 30\)|Filesystem is read-only"
    r"|\.(?:git|mcp|vscode|idea|zed|envrc|bradawl|venv)\b[^\n]{0,120}Device or resource busy"
    rf"|{_OF_FOLDERS}"
)
_READ_ONLY_FILE: Final = r"Read-only file system|\bEROFS\b|\(os error 30\)"
"""Also explained after a success: the line went on without what it could not write."""
_UNWRITTEN: Final = (
    r"(?:'([^'\n]+)'|\u2018([^\u2019\n]+)\u2019|((?=[^\s:'\"`()]*[/.])[^\s:'\"`()]+)): "
    r"(?:Read-only file system|Device or resource busy)"
    r"|(?:Read-only file system|Device or resource busy): '([^'\n]+)'|\bEROFS\b[^\n]*?'([^'\n]+)'"
    r"|(/[^\s:'\"`()]+) - \w+ \(30: Read-only file system\)"  # apt-get
)
"""The path in a message about a file that could not be written."""
_LONGEST_PATH: Final = 300
_GIT_KEPT_FOLDER: Final = (
    r"(?m)cannot remove '(?P<folder>[^\n']+)/\.git/[^\n']+': (?:Read-only file system|Device or resource busy)"
)
"""A repository in a folder that rm could not remove."""
_GIT_KEPT_TREE: Final = (
    r"(?m)^error: failed to delete '(?P<folder>[^\n]+)': (?:Read-only file system|Device or resource busy)"
)
"""A linked working tree that git could not remove."""
_NO_SIGNATURE: Final = (
    r"(?m)^(?:error: )?(?:gpg failed to sign the data|Couldn't load public key |Load key \"[^\n]*\": "
    r"|gpg: signing failed)"
)
"""Messages of git, gpg and ssh-keygen, also where the line goes on and ends with success."""
_PATH: Final = r"(?<![\w.])(/[^\s'\"`\u2018\u2019:,()\[\]]+)"
_DENIED_TEXT: Final = r"(?:[Pp]ermission denied|Operation not permitted)"
_DENIED: Final = rf"{_PATH}['\"`\u2019]?: {_DENIED_TEXT}|{_DENIED_TEXT}(?:,|:)[^\n/]{{0,60}}['\"\u2018]?{_PATH}"
# The socket of a container engine can't be reached even with the network.
_ENGINES: Final = r"(?:[Dd]ocker|containerd|podman)(?:\.sock| daemon)"
# Without network only TCP sockets exist; output names the refused address beside the error or in a traceback.
_SOCKETS: Final = (
    r"_socket\.socket\.__init__\([^\n]*\n(?:[ ^~]*\n)?PermissionError: \[Errno 1\]"
    r"|(?i:\b(?:bind|listen|socket)\b[^\n]{0,60}(?:\bEPERM\b|operation not permitted))"
)
_RIGHTS: Final = (
    r"no new privileges|\bbwrap: |unshare failed|[Uu]nshare: Operation not permitted"
    r"|mount: [^\n]*(?:permission denied|must be superuser)|ptrace[^\n]{0,60}Operation not permitted"
    r"|[Ff]ailed to connect to (?:system |session |user )*(?:scope )?bus|[Cc]ould not open a connection to your auth"
    r"|changing (?:ownership|group) of [^\n]*: Invalid argument"
)
_ONLY_READ: Final = "bubblewrap"
"""Backends that mount protected paths read-only: there a denied permission has an ordinary cause."""
_UNGUARDED: Final = ("/proc", "/sys", "/dev")
"""Folders in which a denied permission says nothing about the sandbox."""

_NETWORK = "commands have no network here, {reason}"
_LOOPBACK = (
    "each command has a loopback network of its own here, so servers of other commands can't be reached. Start the "
    "server in the command that needs it (server & client)"
)
_NO_SOCKETS = "commands without network can open no Unix and no UDP sockets here"
_NEVER_SOCKETS = "commands can open no Unix and no UDP sockets here"
_NOT_BY_PROXY = (
    "commands reach other machines only over HTTP and HTTPS, through the proxy that HTTP_PROXY and HTTPS_PROXY name; "
    "this program does not use it, or looks up names itself"
)
_NOT_BY_SSH = "ssh can't leave the sandbox, only HTTP and HTTPS can. git works with https:// addresses"
_REFUSED = "the network proxy refused a host, so no connection was made; the output names it"
_FILES = "{path}commands can write only in the workspace, /tmp and their caches here, and not to protected files"
_FOLDERS = (
    "{path}commands can't move or remove folders that contain protected or hidden files; the other files in them can "
    "be moved one by one"
)
_NOT_WRITTEN = (
    "git could not write its configuration and went on without it: what it would have registered is missing, although "
    "it reports success"
)
_NOT_CHECKED_OUT = (
    "git could not replace {files}, which commands may not change: the working tree still has the old content there, "
    "and git status shows it as a modification, although git reports success. Don't commit it: git commit -a would "
    "undo what the new branch changed. To go back: git restore --staged --source=@{{-1}} FILE for each of them, then "
    "git checkout -"
)
_PARTLY_REMOVED = (
    "no command made the repository {files}, so its git data are protected: only a part of it and of the folders above "
    "was removed. A command that does nothing but remove the outer folder (rm -rf FOLDER), while no job runs, removes "
    "the rest"
)
_NOT_REMOVED = (
    "no command made the repository {files}, so its git data are protected and stay, with the folders above: only the "
    "other files were removed"
)
_REMOVES_ONE: Final = r"\s*rm(?:\s+-\S+)*\s+[^\s;&|]+\s*"
_TREE_PARTLY_REMOVED = (
    "the user made the working tree {files}, so commands can't remove its .git file and git's data for it: the rest is "
    "removed already. Let the user run git worktree remove --force, or run it outside the sandbox"
)
_NOT_SIGNED = (
    "keys and key agents are hidden from commands, so git can sign nothing. Commit without a signature (git -c "
    "commit.gpgsign=false commit, rebase, merge; git -c tag.gpgsign=false tag) and say so: the user can sign later "
    "(git rebase --exec 'git commit --amend --no-edit -S')"
)
_STOPPED_MIDWAY = (
    "git could not replace {files}, which commands may not change, and stopped midway: HEAD is where it was, but other "
    "files may have the new content already, and new files may be there (git status shows both). To go back, restore "
    "what you have not changed yourself: git restore --staged --worktree FILE"
)
_OWN_PROGRAM = (
    "bradawl itself runs from {prefix}, so commands can't change it. Make another environment for the project "
    "(python3 -m venv), or let the user install bradawl outside of it (pipx, uv tool)"
)
_HIDDEN = "commands can't use {path} here"
_POWERS = "commands here get no further rights, and no sockets of other programs"


def notes_on(
    result: CommandResult,
    grant: Grant | None,
    *,
    user_is_there: bool,
    by_domain: bool = False,
    command: str = "",
) -> tuple[str, ...]:
    """The result's remarks, and what the sandbox blocked or restored, one line each.

    `by_domain`: the sandbox gives commands a proxy that decides about each host, and no other network. Output that the
    `command` only shows, such as that of a log, is not taken for its errors.
    """
    put_back = tuple(f"[{each}]" for each in (*result.notes, *restored_lines(result.restored, in_remark)))
    if grant is None or not result.sandbox:
        return put_back
    is_success = not (result.exit_code or any(result.pipe_status) or result.earlier_failures)
    if of_git := _of_git(result, command, is_success=is_success):
        found = ((of_git, "off"),)
    elif is_success and re.search(_GIT_WENT_ON, errors := result.stderr[-_LOOKED_AT:].decode("utf-8", "replace")):
        found = ((_not_writable(errors, grant) if re.search(_GIT_CONFIG, command) else _NOT_WRITTEN, "off"),)
    elif is_success and (denied := re.search(_READ_ONLY_FILE, errors_in(command, b"", result.stderr[-_LOOKED_AT:]))):
        found = ((_not_writable(denied.string, grant), "off"),)
    elif is_success and not (by_domain and re.search(_SSH_FAILED, _end_of(result))):
        return put_back
    else:
        text = errors_in(command, result.stdout[-_LOOKED_AT:], result.stderr[-_LOOKED_AT:])
        found = tuple(_reasons(result, grant, text, own_errors(command, text), by_domain=by_domain))
    if not any(what for what, _ in found) and reached_no_local_server(command, (result.exit_code, *result.pipe_status)):
        found = ((_LOOPBACK, "both off" if by_domain else "both"),)
    how = partial(_how, user_is_there=user_is_there)
    return (*put_back, *(f"[{result.sandbox} sandbox: {what}. {how(lift)}]" for what, lift in found if what))


def _of_git(result: CommandResult, command: str, *, is_success: bool) -> str:
    """What git, or `rm` in a repository, left half done, also in a line that ends with success; empty if nothing."""
    if kept := _names(_GIT_KEPT_FOLDER, result):
        return (_NOT_REMOVED if re.fullmatch(_REMOVES_ONE, command) else _PARTLY_REMOVED).format(files=kept)
    if kept := _names(_GIT_KEPT_TREE, result):
        return _TREE_PARTLY_REMOVED.format(files=kept)
    if kept := _names(_GIT_KEPT, result):
        return (_NOT_CHECKED_OUT if is_success else _STOPPED_MIDWAY).format(files=kept)
    return _NOT_SIGNED if re.search(_NO_SIGNATURE, _end_of(result)) else ""


def _names(pattern: str, result: CommandResult) -> str:
    """What the groups of a pattern match in the output; empty if nothing does."""
    found = re.finditer(pattern, _end_of(result))
    return first_paths(tuple(dict.fromkeys(name for each in found for name in each.groups() if name)), in_remark)


def _how(lift: str, *, user_is_there: bool) -> str:
    match lift, user_is_there:
        case "both" | "both off", False:
            return "No user is present to lift that"
        case _, False:
            return "No user is present to lift that: do without, and say in the end what is left undone"
        case "both", True:
            return 'If that can\'t be, send both calls with sandbox: "network"; the user is then asked'
        case "both off", True:
            return 'If that can\'t be, send both calls with sandbox: "off"; the user is then asked'
        case "", True:
            return "Ask the user if the task needs it"
        case _:
            return f'If the task needs it, send the call again with sandbox: "{lift}"; the user is then asked'


def _reasons(result: CommandResult, grant: Grant, text: str, own: str, *, by_domain: bool) -> Iterator[tuple[str, str]]:
    """What the sandbox blocked, and which of its limits to lift, as far as the errors show it.

    `own` are the errors in which words about the network and about files count. A line may have failed by both.
    """
    if re.search(_ENGINES, text):
        yield _POWERS, "off"
        return
    if (of_network := _by_network(result, grant, own, by_domain=by_domain)) is not None:
        yield of_network
    if re.search(_READ_ONLY, own):
        yield _not_writable(own, grant), "off"
    elif of_network is None:
        yield _other_reason(result, grant, text, by_domain=by_domain)


def _by_network(result: CommandResult, grant: Grant, text: str, *, by_domain: bool) -> tuple[str, str] | None:
    if by_domain:
        return _by_proxy(result, text)
    if grant.network or not re.search(f"{NO_NETWORK}|{NOTHING_FOUND}", text):
        return None
    host = host_in(text)
    reason = f"so {in_remark(host)} can't be reached" if host else "which is probably why it failed"
    return _NETWORK.format(reason=reason), "network"


def _other_reason(result: CommandResult, grant: Grant, text: str, *, by_domain: bool) -> tuple[str, str]:
    if re.search(_RIGHTS, text):
        return _POWERS, "off"
    if result.sandbox != _ONLY_READ and (path := _refused_outside(text, grant)):
        return _HIDDEN.format(path=path), "off"
    if by_domain:
        return _in_own_network(text)
    return ("", "") if grant.network else _without_network(text)


def _not_writable(text: str, grant: Grant) -> str:
    """Why a file could not be written, with its path where the errors name it."""
    if _is_own(text, grant):
        return _OWN_PROGRAM.format(prefix=sys.prefix)
    found = re.search(_UNWRITTEN, text)
    path = next(filter(None, found.groups()), "") if found else ""
    text = _FOLDERS if re.search(_OF_FOLDERS, text) else _FILES
    return text.format(path=f"{in_remark(path[:_LONGEST_PATH])} can't be changed: " if path else "")


def _by_proxy(result: CommandResult, text: str) -> tuple[str, str] | None:
    """What the proxy refused, or what does not use it; None if the output shows neither.

    A note that names the refused host says all there is to say.
    """
    if any(note.startswith(_REFUSED_NOTE) or _NOT_REACHED in note for note in result.notes):
        return "", ""
    if re.search(_PROXY_REFUSED, text):
        return _REFUSED, ""
    if re.search(NO_NETWORK, text):
        return (_NOT_BY_SSH if re.search(_OVER_SSH, text) else _NOT_BY_PROXY), "off"
    return None


def _in_own_network(text: str) -> tuple[str, str]:
    if re.search(_SOCKETS, text):
        return _NEVER_SOCKETS, "off"
    return (_LOOPBACK, "both off") if re.search(_OWN_LOOPBACK, text) else ("", "")


def _is_own(text: str, grant: Grant) -> bool:
    """Whether the output names bradawl's own environment in the workspace, by an absolute or a relative path."""
    if not any(is_within(sys.prefix, folder) for folder in grant.writable):
        return False
    name = sys.prefix.rpartition("/")[2]
    return sys.prefix in text or re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", text) is not None


def _without_network(text: str) -> tuple[str, str]:
    if re.search(_SOCKETS, text):
        return _NO_SOCKETS, "network"
    return (_LOOPBACK, "both") if re.search(_OWN_LOOPBACK, text) else ("", "")


def _refused_outside(text: str, grant: Grant) -> str:
    """A refused path that the command may not use; empty if there is none. In the workspace and in the system's folders
    a refusal has an ordinary cause.
    """
    for found in re.finditer(_DENIED, text):
        path = found[1] or found[2]
        if not any(is_within(path, folder) for folder in (*grant.writable, *_UNGUARDED)):
            return path[:200]
    return ""


def _end_of(result: CommandResult) -> str:
    ends = (result.stderr[-_LOOKED_AT:], result.stdout[-_LOOKED_AT:])
    return "\n".join(end.decode("utf-8", "replace") for end in ends)
