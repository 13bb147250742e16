"""Lists the programs and subcommands that connect to other machines."""

from collections.abc import Iterable

from bradawl.safety.shell.argv import Argv, name_of, names

_ALWAYS = names(
    "curl wget ssh scp sftp ftp lftp tftp telnet nc ncat netcat socat ping ping6 traceroute mtr dig nslookup host whois"
    " http https xh aria2c rclone gh glab aws gcloud az kubectl helm heroku fly vercel netlify npx bunx uvx pipx mosh"
    " ssh-copy-id ssh-keyscan svn apt apt-get aptitude apk yum dnf zypper pacman brew snap flatpak"
)
_BY_WORD: dict[str, frozenset[str]] = {
    "git": frozenset({"push", "pull", "fetch", "clone", "ls-remote", "remote-update", "send-email", "lfs"}),
    **dict.fromkeys(("pip", "pip3"), frozenset({"install", "download", "index", "search", "wheel"})),
    "uv": frozenset({"add", "sync", "pip", "tool", "python", "lock", "publish"}),
    **dict.fromkeys(("poetry", "pdm", "pipenv", "hatch"), frozenset({"install", "add", "update", "lock", "publish"})),
    **dict.fromkeys(
        ("npm", "pnpm", "yarn", "bun"),
        names("install i ci add update upgrade up publish view info outdated audit login dlx exec create"),
    ),
    "cargo": frozenset({"install", "fetch", "update", "add", "publish", "search"}),
    "go": frozenset({"get", "install", "mod"}),
    **dict.fromkeys(("gem", "bundle", "composer"), frozenset({"install", "update", "require", "push", "fetch"})),
    **dict.fromkeys(("docker", "podman"), frozenset({"pull", "push", "login", "build", "run", "compose"})),
    "terraform": frozenset({"init", "plan", "apply", "get"}),
    "conda": frozenset({"install", "create", "update", "search"}),
    "hg": frozenset({"push", "pull", "clone"}),
}
_BARE = frozenset({"yarn"})


def reaches_out(commands: Iterable[Argv]) -> bool:
    """Whether one of these commands is known to connect to other machines."""
    return any(map(_reaches_out, commands))


def _reaches_out(words: Argv) -> bool:
    name = name_of(words)
    if name in _ALWAYS:
        return True
    if name.startswith(("python", "pypy")) and words[1:2] == ("-m",):
        return _reaches_out(words[2:])
    if name == "rsync":
        return any(":" in word for word in words[1:] if word[:1] not in ("-", "/"))
    verbs = _BY_WORD.get(name)
    if verbs is None:
        return False
    operands = [word for word in words[1:] if word[:1] != "-"]
    if name == "git" and operands[:2] in (["remote", "update"], ["submodule", "update"], ["remote", "show"]):
        return True
    # An option's value may precede the verb, as in `git -C folder pull`.
    return not verbs.isdisjoint(operands[:3]) if operands else name in _BARE
