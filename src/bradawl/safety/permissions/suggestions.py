"""Suggests rules for the answer "always": a narrow one for each thing a call does, or none if a rule would be too wide.

A rule applies to future calls. Words are left open only if no possible word runs code or writes a file; all other
commands are suggested word for word.
"""

import re
from posixpath import dirname
from typing import Final

from bradawl.core.effects import Effects, is_within
from bradawl.core.permissions import Request
from bradawl.core.rules import speaks_of
from bradawl.safety.permissions.protected_paths import is_asked_about_by_name, is_scratch
from bradawl.safety.permissions.workspace_rules import workspace_rules

_MOST: Final = 10

# Programs for which a rule may leave all words open if none is a file: no option runs code or writes.
_ANY_ARGUMENTS: Final = frozenset({"echo", "pwd", "true", "false", "which", "basename", "dirname", "sleep"})
# Subcommands behind which a rule may leave all words open, for the same reason.
_ANY_ARGUMENTS_BEHIND: Final = {
    "npm": frozenset({"ls", "why", "explain"}),
    "pnpm": frozenset({"ls", "list", "why"}),
    "yarn": frozenset({"list", "why"}),
    "go": frozenset({"doc", "version"}),
    "git": frozenset({"add", "commit", "status", "blame", "describe", "rev-parse", "ls-files", "shortlog"}),
}
_SCRIPTS: Final = frozenset({"run", "run-script"})
# Suggested word for word, and with these subcommands only. Their options load code, run programs or write anywhere: `go
# test -exec`, `cargo test --config`, `npm test --script-shell`, `pytest --basetemp`.
_SUBCOMMANDS: Final = {
    "npm": frozenset({"test", "t", "outdated", *_SCRIPTS}),
    "pnpm": frozenset({"test", "t", "outdated", *_SCRIPTS}),
    "yarn": frozenset({"test", "outdated", "run"}),
    "bun": frozenset({"test", "run"}),
    "cargo": frozenset({"build", "b", "check", "c", "test", "t", "clippy", "fmt", "doc", "bench", "tree", "nextest"}),
    "go": frozenset({"build", "test", "vet", "fmt", "list"}),
    "git": frozenset({"diff", "log", "show"}),
    "ruff": frozenset({"check", "format"}),
    "dotnet": frozenset({"build", "test", "format"}),
    "deno": frozenset({"test", "fmt", "lint", "check"}),
    "swift": frozenset({"build", "test"}),
    "mix": frozenset({"test", "compile", "format"}),
    "biome": frozenset({"check", "format", "lint"}),
    "buf": frozenset({"lint", "format", "build"}),
}
_MODULES: Final = frozenset(
    {"pytest", "unittest", "mypy", "ruff", "black", "isort", "flake8", "pylint", "compileall", "doctest", "pyright"}
)
"""Modules for which `python -m` is suggested."""

# Never suggested: programs that run their arguments, change the machine, or use the network.
_NEVER: Final = frozenset(
    {"sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "csh", "tcsh", "pwsh", "busybox", "toybox", "rbash"}
    | {"sudo", "doas", "su", "pkexec", "env", "nice", "ionice", "nohup", "timeout", "time", "xargs", "parallel"}
    | {"setsid", "stdbuf", "unbuffer", "watch", "entr", "command", "exec", "eval", "builtin", "source", ".", "coproc"}
    | {"script", "unshare", "nsenter", "chroot", "strace", "ltrace", "gdb", "lldb", "perf", "flock", "chrt", "taskset"}
    | {"runuser", "setpriv", "capsh", "firejail", "bwrap", "proot", "fakeroot", "faketime", "ld", "ld.so", "tmux"}
    | {"screen", "dtach", "expect", "socat", "at", "batch", "crontab", "systemctl", "systemd-run", "service"}
    | {"python", "pypy", "ipython", "jupyter", "node", "nodejs", "ts-node", "tsx", "ruby", "irb", "perl", "php", "lua"}
    | {"luajit", "rscript", "r", "julia", "awk", "gawk", "mawk", "nawk", "java", "jshell", "scala", "groovy", "kotlin"}
    | {"tclsh", "wish", "osascript", "guile", "racket", "sbcl", "clojure", "elixir", "iex", "erl", "ghci", "runghc"}
    | {"ocaml", "swipl", "octave", "gnuplot", "m4", "bc", "dc", "jq", "sqlite3", "psql", "mysql", "mongo", "mongosh"}
    | {"redis-cli", "ed", "ex", "vi", "vim", "nvim", "view", "emacs", "nano", "less", "more", "man", "open"}
    | {"xdg-open", "start", "npx", "bunx", "pnpx", "corepack", "pip", "pipx", "uv", "uvx", "poetry", "pdm", "hatch"}
    | {"rye", "conda", "mamba", "micromamba", "pixi", "gem", "bundle", "bundler", "composer", "cabal", "stack", "nix"}
    | {"nix-shell", "guix", "apt", "apt-get", "dpkg", "dnf", "yum", "rpm", "zypper", "pacman", "apk", "brew", "port"}
    | {"snap", "flatpak", "make", "gmake", "bmake", "just", "rake", "gradle", "gradlew", "mvn", "mvnw", "ant", "sbt"}
    | {"bazel", "buck", "ninja", "cmake", "ctest", "meson", "scons", "task", "invoke", "inv", "tox", "nox", "fab"}
    | {"docker", "podman", "nerdctl", "buildah", "kubectl", "helm", "minikube", "kind", "vagrant", "lxc", "qemu"}
    | {"ssh", "scp", "sftp", "rsync", "ssh-add", "ssh-keygen", "ssh-copy-id", "mosh", "telnet", "ftp", "lftp", "curl"}
    | {"wget", "aria2c", "http", "https", "httpie", "xh", "nc", "ncat", "netcat", "nmap", "dig", "nslookup", "host"}
    | {"ping", "mail", "sendmail", "gpg", "openssl", "pass", "security", "secret-tool", "terraform", "tofu", "pulumi"}
    | {"ansible", "ansible-playbook", "aws", "gcloud", "gsutil", "az", "gh", "glab", "hub", "vercel", "netlify", "fly"}
    | {"flyctl", "heroku", "firebase", "wrangler", "rm", "rmdir", "unlink", "shred", "truncate", "dd", "mkfs", "mount"}
    | {"umount", "chmod", "chown", "chgrp", "chattr", "setfacl", "kill", "pkill", "killall", "reboot", "shutdown"}
    | {"halt", "poweroff", "mv", "tee", "sed", "find", "fd", "install", "tar", "zip", "unzip", "7z", "cpio", "patch"}
    | {"export", "unset", "set", "shopt", "alias", "unalias", "trap", "umask", "ulimit", "read", "declare", "typeset"}
    | {"local", "readonly", "let", "printf", "test", "[", "enable", "hash", "bind", "complete", "mapfile", "readarray"}
    | {"hg", "svn", "jj", "bradawl", "claude", "codex", "gemini", "aider", "opencode"}
)
# Second words that make any program one of those.
_NEVER_SUBCOMMANDS: Final = frozenset(
    {"exec", "run", "eval", "shell", "sh", "ssh", "repl", "console", "script", "install", "add", "uninstall", "remove"}
    | {"rm", "delete", "del", "destroy", "drop", "purge", "prune", "clean", "reset", "restore", "revert", "rollback"}
    | {"push", "publish", "release", "deploy", "apply", "sync", "upload", "send", "login", "logout", "auth", "config"}
    | {"set", "update", "upgrade", "migrate", "up", "down", "start", "stop", "kill", "link", "create", "init"}
)


def proposals(request: Request, *, cwd: str, home: str, roots: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Allow rules that together permit this call, as editable texts; empty if there are no good ones.

    `cwd` is the folder that relative paths in rules start from. Reads within `roots` need no rule.
    """
    effects = request.effects
    if effects.lifts == ("host",):
        return tuple(f"Network({host})" for host in effects.hosts)
    if effects.danger or effects.lifts or effects.redirects or any(part.startswith("env:") for part in effects.session):
        return ()
    if effects.commands or effects.seal:
        found = _for_commands(effects, (cwd, *roots))
    elif effects.unknown or effects.external or effects.spends:
        found = _for_tool(request.tool)
    else:
        found = _for_paths_and_hosts(effects, cwd, home, roots)
    return tuple(dict.fromkeys(found)) if 0 < len(found) <= _MOST and all(found) else ()


def _for_tool(name: str) -> list[str]:
    is_remote = name.startswith("mcp__") and re.fullmatch(r"mcp__[^\s()*\[\]?\\/]+__[^\s()*\[\]?\\/]+", name)
    if is_remote and name.isprintable():
        return [name]
    from bradawl.safety.permissions.rule_syntax import rule_name

    if (known := rule_name(name)) is not None:
        return [known.name] if known.on == "tool" else []
    return [name] if re.fullmatch(r"[a-z0-9_]{1,64}", name) else []


# ------------------------------------------------------------------ files and hosts


def _for_paths_and_hosts(effects: Effects, cwd: str, home: str, roots: tuple[str, ...]) -> list[str]:
    if "*" in effects.hosts or not set(effects.session) <= {"cwd", "jobs", "todos", "user"}:
        return []
    read = [path for path in effects.reads if not any(is_within(path, root) for root in roots)]
    rules = workspace_rules(roots, home) if effects.writes else ()
    written = [
        path_rule("Edit", path, cwd, home, is_alone=any(speaks_of(rule, path) for rule in rules))
        for path in effects.writes
    ]
    outside = [path_rule("Read", path, cwd, home) for path in read]
    hosts = (host.partition(":")[0] if host.count(":") == 1 else host for host in effects.hosts)
    return [*written, *outside, *(f"WebFetch(domain:{host})" for host in hosts)]


def path_rule(tool: str, path: str, cwd: str, home: str, *, is_alone: bool = False) -> str:
    """A rule for the folder of a path; empty if none can be written.

    It names the path alone if the folder is too wide, if a built-in rule asks about the file, and if `is_alone`. There
    is none for what commands of a session call `/tmp`: no later session has the folder.
    """
    if not path.isprintable() or path != path.strip() or is_scratch(path):
        return ""
    folder = dirname(path)
    is_wide = folder.count("/") < 2 or is_within(cwd, folder) or is_within(home, folder)
    is_alone = is_alone or is_wide or is_asked_about_by_name(path, home)
    named = _escaped(path) if is_alone else f"{_escaped(folder)}/**"
    return f"{tool}({_relative_pattern(named, _escaped(cwd), _escaped(home))})"


def _relative_pattern(pattern: str, cwd: str, home: str) -> str:
    """An absolute path as a rule writes it: relative to the working directory, the home folder or the root."""
    if is_within(pattern, cwd) and cwd != "/":
        relative = pattern[len(cwd) + 1 :]
        return relative if "/" in relative and relative[0] not in "~!$ " else f"./{relative}"
    if home.count("/") > 1 and is_within(pattern, home):
        return "~" + pattern[len(home) :]
    return "/" + pattern


def _escaped(path: str) -> str:
    return re.sub(r"([*?\[\\])", r"\\\1", path)


# ------------------------------------------------------------------ commands


def _for_commands(effects: Effects, inside: tuple[str, ...]) -> list[str]:
    programs = [words for words in effects.commands if words[:1] != ("cd",)]
    if effects.hosts or any(not any(is_within(path, root) for root in inside) for path in effects.writes):
        return []
    if effects.writes and not any(words[0] in ("mkdir", "touch") for words in programs):
        # The path was written by a redirect. No rule applies to redirects.
        return []
    return [rule_for_words(words) for words in programs]


def rule_for_words(words: tuple[str, ...]) -> str:
    """A rule for a command; empty if there is no good one."""
    program = words[0] if words else ""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_+.-]*", program):
        return ""
    if program in _ANY_ARGUMENTS:
        return _with_any_arguments(words)
    family = re.sub(r"[-\d.]+$", "", program.lower())
    if family in ("python", "pypy") and words[1:2] == ("-m",) and words[2:3] and words[2] in _MODULES:
        return word_for_word(words)
    if program in _SUBCOMMANDS:
        return _for_subcommand(words)
    if _runs_anything(program, family, words[1:]):
        return ""
    return word_for_word(words)


def _with_any_arguments(words: tuple[str, ...]) -> str:
    """A rule for the program with any arguments; for the exact words if one may name a file."""
    if any(not word.startswith("-") or "=" in word for word in words[1:]):
        return word_for_word(words)
    return f"Bash({words[0]}:*)"


def _runs_anything(program: str, family: str, rest: tuple[str, ...]) -> bool:
    return program.lower() in _NEVER or family in _NEVER or bool(rest and rest[0].lower() in _NEVER_SUBCOMMANDS)


def _for_subcommand(words: tuple[str, ...]) -> str:
    program, part, name = (*words, "", "")[:3]
    if part in _ANY_ARGUMENTS_BEHIND.get(program, ()):
        return f"Bash({program} {part}:*)"
    if part not in _SUBCOMMANDS[program]:
        return ""
    # A script of the project is identified by its name. `bun run` also accepts the path of a program.
    is_named = part not in _SCRIPTS or re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_:-]*", name)
    return word_for_word(words) if is_named else ""


def word_for_word(words: tuple[str, ...]) -> str:
    """A rule for exactly these words; empty if they contain invisible characters, such as line breaks."""
    if not words or not all(word.isprintable() for word in words):
        return ""
    return f"Bash({' '.join(_quoted(word) for word in words)})"


def _needs_quotes(word: str) -> bool:
    return not re.fullmatch(r"[A-Za-z0-9_./:,@%+=^-]+", word)


def _quoted(word: str) -> str:
    if not _needs_quotes(word):
        return word
    return '"' + re.sub(r'([\\"$`])', r"\\\1", word) + '"' if "'" in word else f"'{word}'"
