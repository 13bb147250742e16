"""Paths in home folders that hold keys or run at the next login, and regular expressions for them."""

import re
from collections.abc import Iterable
from typing import Final

HOME_PARENTS: Final = ("/home", "/Users")
"""Each folder in these is the home folder of a user."""
ROOT_HOMES: Final = ("/root", "/var/root")
CREDENTIALS: Final = (
    ".ssh .aws .gnupg .azure .kube .netrc _netrc .docker .npmrc .yarnrc.yml .pypirc .git-credentials"
    " .config/git/credentials .config/gcloud .config/gh .config/hub .config/glab-cli .config/op .config/rclone"
    " .config/doctl .config/sops .config/age .config/containers/auth.json .config/pip/pip.conf .config/pypoetry"
    " .config/configstore .config/openstack .config/hcloud .config/netlify .config/github-copilot .config/heroku"
    " .password-store .local/share/keyrings .local/share/kwalletd .vault-token .terraformrc .terraform.d"
    " .cargo/credentials .cargo/credentials.toml .gem/credentials .bundle/config .m2/settings.xml"
    " .m2/settings-security.xml .gradle/gradle.properties .pgpass .my.cnf .mylogin.cnf .s3cfg .boto .oci .bluemix .fly"
    " .wrangler .databrickscfg .snowsql .snowflake .kaggle .huggingface .cache/huggingface/token .pulumi .sentryclirc"
    " .claude.json .claude/.credentials.json .codex/auth.json .gemini .bash_history .zsh_history .python_history"
    " .node_repl_history .psql_history .mysql_history .sqlite_history .rediscli_history .lesshst"
    " .local/share/fish/fish_history .mozilla .thunderbird .config/google-chrome .config/chromium"
    " .pip .composer/auth.json .config/composer/auth.json .authinfo .authinfo.gpg .age .vault_pass .ansible/vault"
    " .cloudflared .config/stripe .config/ngrok .ngrok2 .config/.wrangler .netlify .vercel"
    " .local/share/com.vercel.cli .dbt .config/kaggle .config/wandb .config/helm/registry .minikube .msmtprc .mbsyncrc"
    " .offlineimaprc .fetchmailrc .local/share/opencode/auth.json .qwen/oauth_creds.json .config/goose/secrets.yaml"
    " .config/io.datasette.llm .config/openai .config/anthropic .cursor/mcp.json .local/share/atuin .bitcoin .electrum"
    " .ethereum .config/solana snap/chromium snap/firefox .var/app .Xauthority .env id_rsa id_ecdsa id_ed25519"
    " .config/BraveSoftware .config/microsoft-edge .config/Signal .config/Slack Library/Keychains Library/Cookies"
    " Library/Mail Library/Messages .netrc~ .netrc.bak .git-credentials~ .git-credentials.bak .git-credentials.lock"
    " .npmrc~ .npmrc.bak .pypirc~ .pypirc.bak .viminfo .vim/swap .vim/undo .cache/vim .local/state/nvim/swap"
    " .local/state/nvim/undo .emacs.d/auto-save-list .putty .chef .step .tsh .supabase .smbcredentials .rclone.conf"
    " .aliyun .android/adbkey .config/vercel .config/scw .config/tea .config/filezilla .nuget/NuGet/NuGet.Config"
    " .irb_history .histfile"
)
LOGIN_FILES: Final = (
    ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .bash_completion .bashrc.d .profile .zshrc .zshenv"
    " .zprofile .zlogin .zlogout .zsh .zshrc.d .oh-my-zsh .kshrc .mkshrc .cshrc .tcshrc .login .logout .inputrc"
    " .xprofile .xinitrc .xserverrc .xsession .xsessionrc .Xclients .pam_environment .ssh .gnupg .rhosts .shosts"
    " .forward .config/fish .config/nushell .config/xonsh .config/autostart .config/autostart-scripts .config/systemd"
    " .config/environment.d .config/upstart .config/plasma-workspace .local/share/systemd .local/share/dbus-1"
    " .gitconfig .config/git .crontab Library/LaunchAgents Library/LaunchDaemons Library/StartupItems"
)

PROGRAM_SETTINGS: Final = (
    ".vimrc .gvimrc .exrc .vim .config/nvim .emacs .emacs.el .emacs.d .config/emacs .doom.d .nanorc .tmux.conf"
    " .config/tmux .screenrc .direnvrc .config/direnv .config/mise .asdfrc .pythonrc .pythonrc.py .pdbrc .ipython"
    " .jupyter .irbrc .pryrc .gdbinit .lldbinit .config/gdb .psqlrc .sqliterc .Rprofile .curlrc .wgetrc .lessfilter"
    " .lesskey .ripgreprc .ackrc .config/pip .pip .condarc .cargo .yarnrc .gemrc .m2 .gradle .sbt .config/i3"
    " .config/sway .config/hypr .config/kitty .config/alacritty .config/Code .vscode-server .config/zed .local/bin bin"
    " go/bin .local/share/applications .local/lib Library/Preferences"
)
"""Settings of programs that run other programs, and folders of programs."""


def any_of(names: Iterable[str]) -> str:
    """A regular expression for any of several literal texts."""
    return f"(?:{'|'.join(map(re.escape, names))})"


def below_home(home: str, names: str) -> str:
    """A regular expression for `names` (separated by blanks) in `home` and in the usual home folders."""
    usual = (*ROOT_HOMES, *(f"{parent}/[^/]+" for parent in HOME_PARENTS))
    homes = (*usual, *((re.escape(home.rstrip("/")),) if home else ()))
    return rf"(?:{'|'.join(homes)})/{any_of(names.split())}(?:/.*)?"


def below_other_homes(home: str) -> str:
    """A regular expression for keys in other users' home folders; matches nothing if `home` is unknown."""
    own = re.escape(home.rstrip("/"))
    return rf"(?!{own}/){below_home('', _OF_OTHERS)}" if own else r"(?!)"


def in_other_homes(home: str, without: Iterable[str]) -> str:
    """A regular expression for everything in other users' home folders, except below `without`."""
    kept = [folder.rstrip("/") for folder in (home, *without)]
    if not home or "" in kept:
        return r"(?!)"
    homes = r"/root|/var/root|/home/(?!linuxbrew(?:/|\Z))[^/]+|/Users/(?!Shared(?:/|\Z))[^/]+"
    return rf"(?!{any_of(kept)}(?:/|\Z))(?:{homes})(?:/.*)?"


_OF_OTHERS: Final = (
    ".ssh .aws .gnupg .azure .kube .netrc .docker .npmrc .pypirc .git-credentials .config/gcloud .config/gh .pgpass"
    " .password-store .local/share/keyrings .vault-token .cargo/credentials.toml .bash_history .zsh_history"
    " .python_history .mozilla .claude.json .claude/.credentials.json .codex/auth.json Library/Keychains"
)
