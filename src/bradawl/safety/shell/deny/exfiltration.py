"""Checks pipelines and code for secrets sent to other machines and for shells that another machine controls."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from posixpath import basename

import msgspec

from bradawl.safety.shell.argv import SHELLS, Argv, names
from bradawl.safety.shell.deny.protected_targets import SECRET, ProtectedTargets

# ------------------------------------------------------------------ programs that reach other machines

_SOCKETS = frozenset({"nc", "ncat", "netcat", "socat", "telnet", "openssl", "nc.openbsd", "nc.traditional"})
"""Programs that connect their input and output to another machine."""
_SENDERS = _SOCKETS | {"curl", "wget", "ssh", "http", "https", "xh", "mail", "sendmail", "mutt", "ftp", "lftp", "tftp"}
"""Programs that send their input, or files that an option names."""
_CARRIERS = frozenset({"scp", "sftp", "rsync", "rclone", "aws", "gsutil", "s3cmd"})
"""Programs that send files among their operands."""
_TAKE_FILES = frozenset({("gh", "gist"), ("kubectl", "cp"), ("oc", "cp")})
"""Subcommands that send files among their operands."""
_REMOTE_GIT_COMMANDS = frozenset({("push",), ("fetch",), ("pull",), ("clone",), ("ls-remote",), ("remote",)})
_LOOKUPS = frozenset({"dig", "nslookup", "host", "ping", "ping6", "traceroute", "drill", "whois", "resolvectl"})
"""Programs that send the names among their operands."""
NETWORK = _SENDERS | _CARRIERS | _LOOKUPS | {"git", "gh", "kubectl", "oc"}
"""Programs that send their input or arguments to other machines."""
_LOCAL = re.compile(r"/dev/(?:tcp|udp)/(?:localhost|127\.[0-9.]+|::1|0\.0\.0\.0|0)/")
"""bash's paths for connections to this machine."""

# ------------------------------------------------------------------ files that are sent

_UPLOAD_FILE_OPTIONS = frozenset({"-T", "--upload-file", "--post-file", "--body-file"})
"""Options whose value is the name of a file."""
_UPLOAD_OPTIONS = _UPLOAD_FILE_OPTIONS | {
    *("-d", "--data", "--data-binary", "--data-raw", "--data-urlencode", "--data-ascii", "-F", "--form", "--json"),
}
"""Options whose value is data; `@` or `<` in it precedes the name of a file."""
_SENDS_A_FILE = re.compile(r"(?:[^=@]*=)?[@<](.+)")
_OPENED = re.compile(r"(?i)(?:file|open|gopen):")
"""Addresses of socat that open a file."""

# ------------------------------------------------------------------ programs that print

_PRINT_NO_CONTENT = names(
    "ls echo printf stat test [ chmod chown rm find mkdir touch cd pwd ssh-add ssh-keygen wc file true git"
)
"""Programs that print no content of the files among their operands."""
_PRINT_ENVIRONMENT = frozenset({("env",), ("printenv",), ("set",), ("export",), ("export", "-p"), ("declare", "-x")})


class PipelineStage(msgspec.Struct, frozen=True):
    """One command of a pipeline; programs that wrappers start are stages of their own."""

    name: str
    words: Argv
    redirects: tuple[tuple[str, str], ...]
    cwd: str | None


def leak(protected: ProtectedTargets, commands: Sequence[PipelineStage]) -> str:
    """Why a pipeline must not run: it sends secrets or hands over a shell; empty if it does neither."""
    holds_secret = has_shell = False
    for command in commands:
        if why := _remote_shell(command, has_shell=has_shell):
            return why
        to_socket = any(
            target.startswith("/dev/tcp/") or target.startswith("/dev/udp/") for _, target in command.redirects
        )
        sends = command.name in _SENDERS or to_socket
        if (sends and holds_secret) or _sends_secret(protected, command):
            return "it would send keys or passwords to another machine"
        if to_socket and prints_secret(protected, command):
            return "it would send keys or passwords to another machine"
        has_shell = has_shell or command.name in SHELLS
        holds_secret = holds_secret or prints_secret(protected, command)
    return ""


def prints_secret(protected: ProtectedTargets, command: PipelineStage) -> bool:
    """Whether a command would print keys or passwords."""
    if command.words in _PRINT_ENVIRONMENT:
        return True
    if command.name in _PRINT_NO_CONTENT:
        return any(SECRET in word for word in command.words)
    if command.name in NETWORK and command.name != "openssl":
        return False
    texts = (*command.words[1:], *(target for operator, target in command.redirects if operator == "<"))
    return any(protected.is_secret(text, command.cwd) for text in texts if text and text[0] != "-")


def _remote_shell(command: PipelineStage, *, has_shell: bool) -> str:
    """The danger of a shell whose input or output is a network connection; empty if there is none."""
    why = "it would give a shell to another machine"
    name, words = command.name, command.words
    sockets = [one for _, one in command.redirects if re.match(r"/dev/(?:tcp|udp)/", one) and not _LOCAL.match(one)]
    if sockets and (name in SHELLS or name == "exec" or len(sockets) > 1):
        return why
    if name not in _SOCKETS:
        return ""
    if has_shell and not (name == "openssl" and "s_client" not in words):
        return why
    if name == "socat" and any(re.match(r"(?i)(?:exec|system):", word) for word in words):
        return why
    executes = any(re.fullmatch(r"-[a-zA-Z]*[ec]|--(?:sh-)?exec", word) for word in words[1:])
    return why if executes and any(basename(word.split(" ")[0]) in SHELLS for word in words) else ""


def _sends_secret(protected: ProtectedTargets, command: PipelineStage) -> bool:
    name, words = command.name, command.words
    if name == "git":
        return words[1:2] in _REMOTE_GIT_COMMANDS and any(SECRET in word for word in words)
    if (name, *words[1:2]) in _TAKE_FILES:
        return any(protected.is_secret(word, command.cwd) for word in words[2:] if word[:1] != "-")
    if name not in NETWORK:
        return False
    if any(SECRET in word for word in words):
        return True
    if name in _SENDERS and any(
        operator == "<" and protected.is_secret(target, command.cwd) for operator, target in command.redirects
    ):
        return True
    if name == "socat":
        files = [word.partition(":")[2].partition(",")[0] for word in words if _OPENED.match(word)]
        return any(protected.is_secret(file, command.cwd) for file in files)
    if name in _CARRIERS:
        return any(_is_absolute_secret(protected, word, command.cwd) for word in _transferred_operands(words))
    return any(protected.is_secret(file, command.cwd) for file in _uploaded_files(words)) if name in _SENDERS else False


def _transferred_operands(words: Argv) -> Iterable[str]:
    """Operands of a file transfer, without option values: these may be the key that opens the connection."""
    for before, word in pairwise(words):
        if word[:1] != "-" and (before[:1] != "-" or before[-1] not in "ioFePc"):
            yield word


def _is_absolute_secret(protected: ProtectedTargets, text: str, cwd: str | None) -> bool:
    return text.startswith("/") and protected.is_secret(text, cwd)


def _uploaded_files(words: Argv) -> Iterable[str]:
    """Files whose contents a request would send."""
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        if word in _UPLOAD_OPTIONS:
            value = words[place + 1] if place + 1 < len(words) else ""
        elif not (equals and option in _UPLOAD_OPTIONS):
            option, value = (word[:2], word[2:]) if word[:2] in _UPLOAD_OPTIONS and len(word) > 2 else ("", word)
        if option in _UPLOAD_FILE_OPTIONS:
            yield value
        elif (match := _SENDS_A_FILE.fullmatch(value)) and "://" not in value:
            yield match[1].partition(";")[0]


# ------------------------------------------------------------------ other languages

_LITERAL = re.compile(r"'([^'\\\n]{1,300})'|\"([^\"\\\n]{1,300})\"")
_STARTS = re.compile(r"system|popen|subprocess|exec|spawn|\bsh\b|`|qx|%x|Runtime|shell|getline", re.IGNORECASE)
_DELETES = re.compile(r"rmtree|removedirs|rm(?:dir)?(?:Sync)?\b|remove_tree|rm_rf|unlink|deltree", re.IGNORECASE)
_HOME = (
    r"(?:Path\.home\(\)|expanduser\(['\"]~/?['\"]\)|(?:environ|ENV)(?:\.get\(|\.fetch\(|\[)['\"]HOME['\"][)\]]"
    r"|getenv\(['\"]HOME['\"]\)|\$ENV\{['\"]?HOME['\"]?\}|process\.env\.HOME|homedir\(\)|Dir\.home)"
)
_DELETES_HOME = re.compile(
    rf"(?:rmtree|removedirs|rm(?:dir)?(?:Sync)?|remove_tree|rm_rf|rm_r|deltree)\s{{0,9}}\(?\s{{0,9}}(?:str\()?(?:\w{{1,30}}\(?\.){{0,4}}"
    rf"{_HOME}\s{{0,9}}(?:[,);]|\Z)",
    re.IGNORECASE,
)
_WRITES = re.compile(r">\s{0,9}['\"]|write|['\"][wax]b?\+?['\"]|append|symlink|rename|copy|mkdir|['\"]>", re.IGNORECASE)
_CONNECTS = re.compile(r"[sS]ock|net\.connect|require\(.net.\)|/inet/tcp/")
_SENDS = re.compile(r"urlopen|requests\.|httpx|http\.client|[sS]ock|fetch\(|Net::HTTP|LWP|https?\.request|curl_")
_REDIRECTS_SHELL = re.compile(r"dup2|pty|exec\s*\(?\s*['\"{]?/bin|/bin/(?:ba)?sh|spawn|\|&\s?getline", re.IGNORECASE)
_BOMBS = re.compile(
    r"fork\s*(?:\(\))?\s*(?:while|until)|while[^\n]{0,60}\n?[^\n]{0,60}\bfork\b|loop\s?(?:\{|do)\s*fork", re.IGNORECASE
)


def literals(code: str) -> list[str]:
    """String literals in code of any language, at most 50."""
    return [match[1] or match[2] for match in _LITERAL.finditer(code)][:50]


def code_hazard(protected: ProtectedTargets, code: str, cwd: str | None) -> str:
    """Why code in another language must not run, by the names and strings in it; empty if nothing is found."""
    if "fork" in code and _BOMBS.search(code):
        return "it would start processes without end"
    if _CONNECTS.search(code) and _REDIRECTS_SHELL.search(code):
        return "it would give a shell to another machine"
    if _SENDS.search(code) and any(_is_absolute_secret(protected, text, cwd) for text in literals(code)):
        return "it would send keys or passwords to another machine"
    if _DELETES_HOME.search(code):
        return "it would delete the home folder"
    found = literals(code) if _DELETES.search(code) or _WRITES.search(code) else []
    for text in found:
        path = protected.home + text[1:] if text[:2] in ("~", "~/") else text
        is_far = path[:1] == "/" or path.startswith("..")
        if is_far and _DELETES.search(code) and (what := protected.loss(path, cwd)):
            return f"it would delete {what}"
        if _WRITES.search(code) and "/" in path and (why := protected.guard(path, cwd)):
            return why
    return ""


def starts_programs(code: str) -> bool:
    """Whether the names in code look like it starts programs."""
    return _STARTS.search(code) is not None


def scripts_in(code: str) -> list[str]:
    """String literals that the code may pass to a shell."""
    return [text for text in literals(code) if " " in text] if starts_programs(code) else []
