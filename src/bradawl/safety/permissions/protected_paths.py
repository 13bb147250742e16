"""Lists of special paths: those that run later, hold keys, or belong to the system; and the built-in rules for them.

Names are compared without regard to case, as some file systems do. Nothing here reads the disk.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from bradawl.core.effects import is_within
from bradawl.core.rules import Rule
from bradawl.safety.permissions.home_paths import (
    CREDENTIALS,
    LOGIN_FILES,
    PROGRAM_SETTINGS,
    any_of,
    below_home,
    below_other_homes,
    in_other_homes,
)

# ------------------------------------------------------------------ lists

_PROTECTED = (
    ".git/config",
    ".git/config.worktree",
    ".git/hooks",
    ".git/info/attributes",
    ".git/modules/*/config",
    ".git/modules/*/config.worktree",
    ".git/modules/*/hooks",
    ".git/worktrees/*/config",
    ".git/worktrees/*/config.worktree",
    ".bradawl",
    ".mcp.json",
    ".envrc",
    ".vscode",
    ".idea",
    ".zed",
    ".cursor",
    ".claude",
)
_WATCHED = (".git/commondir", ".git/objects/info/alternates", ".git/remotes", ".git/branches")
_RUN_LATER = (
    ".vscode .idea .zed .fleet .helix .devcontainer .devcontainer.json .github .gitlab-ci.yml .circleci .husky"
    " .pre-commit-config.yaml lefthook.yml .lefthook.yml .overcommit.yml .lazygit.yml lazygit.yml hgrc .claude .cursor"
    " .codex .gemini .qwen .windsurf .continue .roo .kiro .amazonq .trae .junie .opencode opencode.json .mcp.json"
    " .aider.conf.yml .envrc .direnv .autoenv.zsh .exrc .vimrc .nvimrc .lvimrc .nvim.lua .lazy.lua .gdbinit .lldbinit"
    " .pdbrc .irbrc .pryrc .Rprofile .octaverc .ghci .iex.exs mise.toml .mise.toml .tool-versions"
    " AGENTS.md AGENTS.override.md CLAUDE.md CLAUDE.local.md GEMINI.md QWEN.md .cursorrules .windsurfrules .clinerules"
    " .roorules .goosehints"
)
_COVERED_LATER = (
    ".vscode .idea .zed .devcontainer .github .husky .claude .cursor .codex .gemini .mcp.json .envrc .exrc .nvim.lua"
    " .gdbinit .lldbinit"
)
_RUN_LATER_ENDINGS = (".code-workspace",)
_SYSTEM = (
    "/bin /boot /dev /efi /etc /lib /lib32 /lib64 /libx32 /proc /sbin /sys /usr /var/lib /var/spool /run/systemd"
    " /System /Library /private/etc /private/var/db"
)
_SYSTEM_SECRETS = (
    "/etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/master.passwd /etc/security/opasswd"
    " /etc/ssh/ssh_host_*_key /etc/krb5.keytab /etc/ssl/private /etc/pki/tls/private /etc/letsencrypt /etc/wireguard"
    " /etc/openvpn /etc/NetworkManager/system-connections /etc/ipsec.secrets /etc/ppp/chap-secrets"
    " /etc/ppp/pap-secrets /etc/kubernetes /etc/rancher /etc/credstore /etc/credstore.encrypted /etc/mysql/debian.cnf"
    " /etc/apt/auth.conf /etc/apt/auth.conf.d /etc/sasldb2 /etc/postfix/sasl_passwd /etc/exim4/passwd.client"
    " /etc/bind/rndc.key /etc/rndc.key /etc/samba/smbpasswd /etc/sudoers /etc/sudoers.d /var/lib/private"
    " /var/lib/samba/private /var/lib/sss /var/lib/cloud /var/lib/kubelet /var/lib/systemd/credential.secret"
    " /var/spool/cron /var/backups /private/etc/master.passwd /private/etc/sudoers"
)
ACCESS_CONTROL_FILES = (
    r"(?:/private)?/etc/(?:sudoers(?:\.d)?|passwd|shadow|gshadow|group|ld\.so\.preload|pam\.d|cron[^/]*|crontab|anacrontab"
    r"|rc\.local|init\.d|systemd/system)(?:/.*)?"
)
"""A regular expression for files that decide who may do what on the machine."""
_BRADAWL_FOLDERS = (".bradawl", ".config/bradawl", ".local/share/bradawl")


def protected_names() -> tuple[str, ...]:
    """Files and folders that programs may never write, relative to a workspace; `*` matches one name or several.

    They are protected even if they are missing.
    """
    return _PROTECTED


def watched_names() -> tuple[str, ...]:
    """As `protected_names`, but git fails if an empty file exists in their place.

    A sandbox can't cover them while they are missing; it can only check afterwards whether they have appeared.
    """
    return _WATCHED


def run_later_names() -> tuple[str, ...]:
    """Names of files and folders that editors, agents, shells, debuggers, CI or hooks run or obey later, in any folder.

    Programs that set up a project make them, and git changes them: what a command did to them is reported.
    """
    return tuple(_RUN_LATER.split())


def is_covered_in_root(name: str) -> bool:
    """Whether an existing file or folder of this name in a root of the workspace is read-only for commands."""
    return name in _COVERED_LATER.split() or name.endswith(_RUN_LATER_ENDINGS)


def run_later_endings() -> tuple[str, ...]:
    """As `run_later_names`, the endings of file names."""
    return _RUN_LATER_ENDINGS


def system_folders() -> tuple[str, ...]:
    """Folders that the machine depends on."""
    return tuple(_SYSTEM.split())


def system_secrets() -> tuple[str, ...]:
    """Files and folders of the system with passwords and keys; `*` matches a part of a name. Many don't exist."""
    return tuple(_SYSTEM_SECRETS.split())


def credentials(home: str) -> tuple[str, ...]:
    """Files and folders in a home folder with keys, passwords, sessions or histories. Many don't exist."""
    return tuple(f"{home.rstrip('/')}/{name}" for name in CREDENTIALS.split()) if home else ()


# ------------------------------------------------------------------ names anywhere

_FOR_SHOW = r"[^/]*(?:example|sample|template|tmpl|tpl|dist|defaults?|schema)"
_EXAMPLE = rf"{_FOR_SHOW}[~#]?(?:/|\Z)"
_ENV = rf"(?!{_EXAMPLE})#?\.env(?:rc)?(?:[._: -][^/]*)?[~#]?"
_KEYS = (
    r"(?:id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|[._]netrc|\.pgpass|\.git-credentials|\.vault-token|\.dev\.vars)"
    r"(?:~|\.(?:bak|old|orig|save|lock))?"
)
_ALSO_SECRET = (
    rf"(?!{_FOR_SHOW}\.env)[^/]*\.env|[^/]*\.(?:pem|key|ppk|p12|pfx|jks|keystore|kdbx|tfstate(?:\.backup)?)|\.pypirc|\.npmrc"
    r"|\.s3cfg|\.boto|\.dockercfg|\.htpasswd|\.my\.cnf|\.?(?:secrets?|credentials)(?:\.(?:json|ya?ml|toml|ini|txt|env))?"
    r"|service[-_]?account[^/]*\.json|client_secret[^/]*\.json|auth\.json"
)


def is_secret_name(name: str) -> bool:
    """Whether a file of this name exists to hold keys or passwords. No program needs it, so all are kept from it.

    A folder of such a name may be harmless, as a Python environment in `.env`.
    """
    return re.fullmatch(_caseless(f"{_ENV}|{_KEYS}"), name, re.DOTALL) is not None


def may_hold_secrets(name: str) -> bool:
    """Whether reading a file of this name needs permission. Includes names that programs do need, unlike
    `is_secret_name`.
    """
    return re.fullmatch(_caseless(f"{_ENV}|{_KEYS}|{_ALSO_SECRET}"), name, re.DOTALL) is not None


def search_exclusion(home: str = "", own: tuple[str, ...] = (), scratch: str = "") -> Callable[[str], bool]:
    """A function that tells whether reading an absolute path needs permission; searches skip such paths.

    `scratch` is the folder that programs of the present session call `/tmp`, which may lie in bradawl's.
    """
    everywhere = f"{_SECRETS}|{_ENVIRONS}|(?:{_SECRETS_OF_SYSTEM}){_BELOW}|{below_home(home, CREDENTIALS)}"
    ours = _but_in(scratch, f"{below_home(home, ' '.join(_BRADAWL_FOLDERS))}|{_below(own)}")
    places = re.compile(_caseless(f"{everywhere}|{ours}"), re.DOTALL)
    return lambda path: places.fullmatch(path) is not None


def other_homes_matcher(home: str) -> Callable[[str], bool]:
    """A function that tells whether an absolute path is in the home folder of another user."""
    places = re.compile(_caseless(in_other_homes(home, ())), re.DOTALL)
    return lambda path: places.fullmatch(path) is not None


# Some file systems ignore these characters, and one accepts other spellings of a name.
_UNSEEN = "[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]*"
_ANY_SPELLING = rf"{_UNSEEN}[. ]*(?::[^/]*)?"


def _spelt(name: str) -> str:
    return _UNSEEN + _UNSEEN.join(map(re.escape, name)) + _ANY_SPELLING


_BELOW = r"(?:/.*)?"
_SCRATCH_NAME = "bradawl-[0-9a-f]{16}"
"""A temporary folder, of a session that is not saved."""
_SCRATCH = r"/projects/[^/]+/tmp/[0-9a-z]{26}(?:/.*)?"
"""The end of a path that commands call `/tmp` or below: a part of bradawl's data for a session's programs."""
_DOT_GIT = rf"(?:{_spelt('.git')}|git~\d)"
_OBEYED_BY_GIT = (
    r"(?:config[^/]*|hooks|modules|worktrees|(?:remotes|branches)/[^/]+|commondir|gitdir|info/attributes"
    r"|objects/info/(?:http-)?alternates)"
)
_GIT = rf".*/{_DOT_GIT}(?:/{_OBEYED_BY_GIT}{_BELOW})?"
_PROJECTS_OWN = rf".*/(?:{_spelt('.bradawl')}|bradaw~\d){_BELOW}"
_HOOK = (
    r"(?:(?:pre|post)-(?:commit|checkout|merge|rewrite|receive|update|applypatch|push|rebase|auto-gc|index-change)"
    r"|pre-merge-commit|prepare-commit-msg|commit-msg|applypatch-msg|update|push-to-checkout|reference-transaction"
    r"|proc-receive|fsmonitor-watchman|sendemail-validate)"
)
_BARE_REPOSITORY = (
    rf".*/(?:{_DOT_GIT}/.*|[^/]*\.git/(?:config|hooks/.*)|HEAD|config|config\.worktree|commondir|gitdir|objects|refs"
    rf"|hooks|hooks/{_HOOK}|objects/(?:info|pack|[0-9a-f]{{2}})/.*|refs/(?:heads|tags|remotes)/.*)"
)
_OF_EDITORS_AND_CI = (
    r"vscode|idea|zed|vs|fleet|run|theia|helix|nova|devcontainer|github|gitlab|gitea|forgejo|circleci|buildkite|woodpecker"
    r"|semaphore|teamcity|ci|husky|githooks|lefthook|cargo|yarn|mise|direnv"
)
_OF_AGENTS = (
    r"cursor|claude|codex|gemini|qwen|windsurf|amazonq|augment|clinerules|cline|continue|crush|factory|goose|junie"
    r"|kilocode|kiro|opencode|roo|rovodev|trae|zencoder"
)
_READ_BY_AGENTS = (
    r"agents?(?:\.local)?\.md|agents\.override\.md|claude(?:\.local)?\.md|gemini\.md|qwen\.md|crush\.md|warp\.md"
    r"|copilot-instructions\.md|\.(?:cursor|windsurf|cline|roo|goose|trae|kilocode)(?:rules|hints|modes)[^/]*"
    r"|\.aider[^/]*|opencode\.jsonc?|\.rules|conventions\.md"
)
_INSTALLED = (
    r"[^/]*venv[^/]*/(?:bin|scripts|lib|lib64|include)/.+|[^/]*virtualenv[^/]*/(?:bin|scripts|lib|lib64)/.+"
    r"|\.(?:tox|nox)/.+/(?:bin|scripts|lib)/.+|(?:bin|scripts)/(?:activate[^/]*|python[\d.]*w?|pip[\d.]*)(?:\.exe)?"
    r"|(?:site|dist)-packages/.+|pyvenv\.cfg|(?:site|user)customize\.pyc?|[^/]+\.(?:pth|egg-link)|__pycache__/.+\.pyc"
    r"|node_modules/(?:\.bin/.+|[^.].*/.+)|vendor/bin/.+|vendor/bundle/.+|\.bundle/.+|\.(?:asdf|tool-versions|envrc)"
)
_RUNS_LATER = (
    rf".*/(?:\.(?:{_OF_EDITORS_AND_CI}|{_OF_AGENTS})[. ]*(?:/.*)?"
    r"|\.mcp\.json|\.devcontainer\.json|[^/]*\.code-workspace|[^/]*\.sublime-project"
    r"|\.gitlab-ci[^/]*\.ya?ml|\.(?:travis|drone|cirrus|appveyor|woodpecker)\.ya?ml|appveyor\.ya?ml"
    r"|(?:azure|bitbucket)-pipelines[^/]*\.ya?ml|buildspec[^/]*\.ya?ml|cloudbuild[^/]*\.ya?ml|jenkinsfile[^/]*"
    r"|\.pre-commit-config\.ya?ml|\.?lefthook[^/]*\.(?:ya?ml|toml|json)|\.git(?:modules|config)|\.lfsconfig"
    r"|\.?lazygit\.yml|\.overcommit\.yml|hgrc|\.sl/config|\.jj/repo/config\.toml|\.autoenv(?:\.zsh)?"
    r"|\.npmrc|\.yarnrc(?:\.yml)?|\.pnp\.[cm]?js|\.pnpmfile\.cjs|\.?bunfig\.toml|pip\.conf|\.?mise[^/]*\.toml"
    r"|\.g?vimrc|\.exrc|\.nvimrc|\.nvim\.lua|\.lvimrc|\.lazy\.lua|\.dir-locals(?:-2)?\.el|\.ripgreprc"
    r"|\.gdbinit|\.lldbinit|\.pdbrc|\.irbrc|\.pryrc|\.Rprofile|\.octaverc|\.ghci|\.iex\.exs|\.bazelrc"
    rf"|{_READ_BY_AGENTS}|{_INSTALLED})[. ]*(?::[^/]*)?"
)
_SECRETS = rf".*/(?:{_ENV}|{_KEYS}|{_ALSO_SECRET})"
# Names that become another path elsewhere or once decoded, and characters that are invisible on a screen.
_SECRETS_OF_SYSTEM = "|".join(re.escape(name).replace(r"\*", "[^/]*") for name in _SYSTEM_SECRETS.split())
_DISGUISED = (
    r".*(?:[\x00-\x1f\x7f-\x9f\\\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"
    r"\u2024\u2025\u2044\u2215\u29f5\u29f8\ufe52\ufe68\uff0e\uff0f\uff3c]|%(?:00|2e|2f|5c)|/~[^/]*/|/[a-z][a-z0-9+.-]*:/).*"
)
_ENVIRONS = r"/proc/.*/(?:environ|mem)|/proc/kcore"
_KERNEL = r"/(?:proc|sys)(?:/.*)?|/dev(?:/.*)?"


def _below(folders: Iterable[str]) -> str:
    names = tuple(dict.fromkeys(folder.rstrip("/") for folder in folders if folder.rstrip("/")))
    return rf"{any_of(names)}{_BELOW}" if names else r"(?!)"


_SCRATCH_PLACE = re.compile(rf"(?i:.*{_SCRATCH}|.*/{_SCRATCH_NAME}{_BELOW})", re.DOTALL)


def _but_in(scratch: str, places: str) -> str:
    """The pattern `places`, for paths in bradawl's folders, without the present session's `/tmp`."""
    return rf"(?!{_below((scratch,))}\Z)(?:{places})" if scratch else places


def is_scratch(path: str) -> bool:
    """Whether an absolute path is in the folder that commands of some session call `/tmp`, this one or another."""
    return _SCRATCH_PLACE.fullmatch(path) is not None


def _outside_roots(roots: Iterable[str], places: str) -> str:
    """The pattern `places` without the workspaces inside it: a workspace is meant to be changed."""
    odd = [root for root in roots if "/." in root or "bin" in root or "/Library" in root or is_system(root, ())]
    inside = [root for root in odd if re.fullmatch(_caseless(places), root, re.DOTALL)]
    return _caseless(rf"(?!{any_of(inside)}(?:/|\Z))(?:{places})" if inside else places)


def _caseless(pattern: str) -> str:
    # Folding ASCII only compiles in a third of the time.
    return f"(?ai:{pattern})"


@lru_cache(maxsize=4)
def _special(home: str) -> re.Pattern[str]:
    names = f"{CREDENTIALS} {LOGIN_FILES} {PROGRAM_SETTINGS}"
    return re.compile(_caseless(f"{_SECRETS}|{_RUNS_LATER}|{_GIT}|{below_home(home, names)}"), re.DOTALL)


def is_asked_about_by_name(path: str, home: str) -> bool:
    """Whether a file needs permission because of its own name, which permission for its folder must not include."""
    return _special(home).fullmatch(path) is not None


# ------------------------------------------------------------------ verdicts

_ASK_THE_USER = "leave it to the user and say what they should change"


def bradawl_folders(home: str, own: Iterable[str]) -> tuple[str, ...]:
    """bradawl's folders: those in `own`, and the usual ones in a home folder."""
    base = home.rstrip("/")
    return (*own, *(f"{base}/{name}" for name in _BRADAWL_FOLDERS if base))


def _never_written(home: str, own: tuple[str, ...], scratch: str) -> tuple[tuple[str, str], ...]:
    """Pairs of a pattern and a reason, for all paths that no mode allows to write."""
    ours = rf"{_PROJECTS_OWN}|{_but_in(scratch, _below(bradawl_folders(home, own)))}"
    lasting = rf"{below_home(home, LOGIN_FILES)}|(?:/private)?/var/(?:spool/cron|at|spool/at|cron){_BELOW}"
    return (
        (_GIT, f"git obeys what it finds there and runs programs that it names; {_ASK_THE_USER}"),
        (ours, f"these are bradawl's own settings and records, which no tool changes; {_ASK_THE_USER}"),
        (lasting, f"files there run at the next login or on a schedule; {_ASK_THE_USER}"),
        (ACCESS_CONTROL_FILES, f"it decides who may do what on this machine; {_ASK_THE_USER}"),
        (_KERNEL, "this is a device or a part of the kernel, not a file; use a file in the workspace"),
    )


@lru_cache(maxsize=4)
def _compiled(
    roots: tuple[str, ...], home: str, own: tuple[str, ...], scratch: str
) -> tuple[tuple[re.Pattern[str], str], ...]:
    never = _never_written(home, own, scratch)
    return tuple((re.compile(_outside_roots(roots, places), re.DOTALL), why) for places, why in never)


def write_refusal(path: str, roots: tuple[str, ...], home: str, own: tuple[str, ...] = (), scratch: str = "") -> str:
    """Why nothing may write to this absolute path in any mode; empty if something may.

    System folders are not included: in a container they are changed on purpose.
    """
    return next((why for places, why in _compiled(roots, home, own, scratch) if places.fullmatch(path)), "")


@lru_cache(maxsize=8)
def unreadable_patterns(home: str, own: tuple[str, ...] = (), scratch: str = "") -> tuple[str, str]:
    """Patterns for what no mode allows to read: bradawl's keys and environments of processes; keys of other users."""
    ours = bradawl_folders(home, own)
    stores = _but_in(scratch, rf"{any_of(ours)}/(?:.*/)?credentials[^/]*") if ours else r"(?!)"
    return _caseless(f"{_ENVIRONS}|{stores}"), _caseless(below_other_homes(home))


def is_system(path: str, roots: tuple[str, ...]) -> bool:
    """Whether an absolute path belongs to the system, and not to a workspace inside a system folder."""
    folders = system_folders()
    in_there = [root for root in roots if any(is_within(root, folder) for folder in folders)]
    return any(is_within(path, folder) for folder in folders) and not any(is_within(path, root) for root in in_there)


def built_in_rules(
    roots: tuple[str, ...],
    home: str,
    own: tuple[str, ...] = (),
    readable: tuple[str, ...] = (),
    scratch: str = "",
) -> tuple[Rule, ...]:
    """The rules that apply before the user's: what is denied, and what needs permission.

    `own` are bradawl's folders besides the usual ones; `readable` the parts of them that contain the model's own
    files, and `scratch` the one that programs of the present session call `/tmp`. All paths are absolute and resolved.
    `home` is empty if unknown.
    """
    never = _never_written(home, own, scratch)
    ours = bradawl_folders(home, own)
    kept = rf"(?!{_below(readable)}\Z)" if readable else ""
    secret = _outside_roots(roots, rf"{_SECRETS}|(?:{_SECRETS_OF_SYSTEM}){_BELOW}|{below_home(home, CREDENTIALS)}")
    return (
        *(Rule("deny", "write", _outside_roots(roots, places), why=why) for places, why in never),
        Rule("deny", "write", _outside_roots(roots, _below(system_folders())), why=_SYSTEM_WHY, in_bypass=False),
        Rule(
            "deny",
            "read",
            unreadable_patterns(home, own, scratch)[0],
            why="keys are kept there; do the work without them",
        ),
        Rule("deny", "read", _outside_roots(roots, below_other_homes(home)), why=_KEYS_OF_OTHERS_WHY),
        Rule(
            "ask", "write", _outside_roots(roots, _BARE_REPOSITORY), why="git may take the file for its configuration"
        ),
        Rule(
            "ask",
            "write",
            _caseless(_RUNS_LATER),
            why="an editor, git, CI or a tool runs it later",
        ),
        Rule(
            "ask",
            "write",
            _caseless(_DISGUISED),
            why="its name has invisible characters, or is an encoded path",
        ),
        Rule(
            "ask",
            "write",
            _outside_roots(roots, below_home(home, PROGRAM_SETTINGS)),
            why="programs of the user read their settings from it",
        ),
        Rule("ask", "write", secret, why="such files hold keys or passwords"),
        Rule("ask", "read", secret, why="such files hold keys or passwords"),
        Rule("ask", "read", _caseless(in_other_homes(home, (*roots, *readable, *own))), why=_OTHER_HOME_WHY),
        Rule(
            "ask",
            "read",
            _caseless(kept + _but_in(scratch, _below(ours))),
            why="these are bradawl's own settings and records",
        ),
    )


def installation_rules(places: tuple[str, ...]) -> tuple[Rule, ...]:
    """The rule that protects bradawl's own installation, if it is in the workspace."""
    return (Rule("deny", "write", _caseless(_below(places)), why=_INSTALLATION_WHY),) if places else ()


def linked_from_home_rules(login: tuple[str, ...], programs: tuple[str, ...]) -> tuple[Rule, ...]:
    """Rules for paths to which links in the home folder lead, as for the links themselves; see `HomeLinks`."""
    denied = (Rule("deny", "write", _caseless(_below(login)), why=_LINKED_AT_LOGIN_WHY),) if login else ()
    asked = (Rule("ask", "write", _caseless(_below(programs)), why=_LINKED_WHY),) if programs else ()
    return (*denied, *asked)


def run_by_git_rules(paths: tuple[str, ...]) -> tuple[Rule, ...]:
    """The rule for paths from which git runs something, see `paths_run_by_git`; none without paths."""
    return (Rule("ask", "write", _caseless(_below(paths)), why=_RUN_BY_GIT_WHY),) if paths else ()


_RUN_BY_GIT_WHY = "git runs it, because a hook or git's configuration names it"
_LINKED_AT_LOGIN_WHY = (
    "a link in the home folder leads to it, so that it runs at the next login or decides what git runs;"
    f" {_ASK_THE_USER}"
)
_LINKED_WHY = "a link in the home folder leads to it, so that programs of the user read their settings from it"
_INSTALLATION_WHY = (
    "bradawl itself runs from there, so no tool changes it; use another environment for the project, or ask the user to"
    " install bradawl outside of it (pipx, uv tool)"
)
_KEYS_OF_OTHERS_WHY = "keys and sessions of another user are kept there; do the work without them"
_OTHER_HOME_WHY = "it is in the home folder of another user"
_SYSTEM_WHY = f"it belongs to the system; {_ASK_THE_USER}"
