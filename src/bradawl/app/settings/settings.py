"""The class `Settings`, the validated settings of one run. `load` makes it, `table` lists them."""

from pathlib import Path
from typing import Literal

import msgspec

from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.permission_values import RuleText
from bradawl.core.errors import SettingsError
from bradawl.core.permissions import MODES, Mode


class NoSandbox(SettingsError):
    """The setting `sandbox` is `required`, and no sandbox works here."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one run, validated. `repr` shows neither keys nor the environment."""

    model: ModelSettings
    fallback: ModelSettings | None = None
    """The model that takes over when the first one stays overloaded."""
    small: ModelSettings | None = None
    """The model of sub-agents that only explore; None for `model`."""
    cwd: str
    """Absolute, symlinks resolved; it exists."""
    project: str = ""
    """The top of the checkout that `cwd` is in, or `cwd` itself outside of a checkout. Trust applies to this folder."""
    home: str
    """Folder for sessions, history and error reports; it need not exist or be writable."""
    config_home: str = ""
    """Folder of the user's `config.toml` and of `tools`; empty: `home` alone has such a folder."""
    user_home: str = ""
    """The home folder, for `~`."""
    max_steps: int | None = None
    max_output_tokens: int | None = None
    effort: str | None = None
    auto_compact: bool = True
    """Compact a conversation that fills the model's window; False leaves that to the user."""
    compact_at: tuple[int, int, int] = (50, 70, 90)
    """Percent of the window from which the tiers of a compaction begin."""
    keep_tool_results: int | None = None
    """Keep the last so many results of tools whole and shorten older ones; None keeps all while there is room."""
    plain: bool = False
    """The terminal shows plain lines, without a live region."""
    theme: Literal["auto", "dark", "light", "plain"] = "auto"
    notify: Literal["auto", "bell", "off"] = "auto"
    """How the terminal tells that a long turn ended, or a question waits."""
    permission_mode: Mode | None = None
    """None: `auto` if commands run in a sandbox, else `default`."""
    may_bypass: bool = True
    """False: the administrator forbids the mode `bypass`."""
    is_mode_fixed: bool = False
    """The administrator has fixed the mode: the user may change it to `plan` and back only."""
    sandbox: Literal["required", "auto", "off"] = "auto"
    """Commands run in a sandbox: always, if there is one, or never."""
    add_dirs: tuple[str, ...] = ()
    """Further folders of the workspace; absolute, resolved, they exist."""
    rules: tuple[RuleText, ...] = ()
    """Permission rules from all sources."""
    kept_variables: tuple[str, ...] = ()
    """Names of environment variables that commands see in the sandbox besides the usual ones."""
    is_trusted: bool = False
    """The user trusts the project: settings in its files that allow more take effect."""
    output_format: Literal["text", "json", "stream-json"] = "text"
    answer_schema: str = ""
    """JSON Schema of the answer, as text; empty for an answer in prose."""
    debug_log: bool = False
    """Log the structure of requests and replies, without contents."""
    headless: bool = False
    """No user can answer questions."""
    system_prompt: str = ""
    """Working rules for the model instead of bradawl's own; environment and instruction files still follow."""
    append_system_prompt: str = ""
    """A text after the working rules."""
    tools: str = ""
    """Names of bradawl's own tools to offer, with commas; `all`, `default`; empty: `default`."""
    user_tools: bool = True
    """Offer tools that the user wrote or installed."""
    undo: bool = True
    """Save what calls change in the workspace, for undo."""
    allow_private_fetch: bool = False
    """`web_fetch` may read addresses that are not on the public internet."""
    proxy: str = ""
    """URL of a proxy for all requests; empty: the variables `HTTPS_PROXY` and so on decide."""
    values: dict[str, object] = msgspec.field(default_factory=dict)
    """Plain settings of the table that have no field here, by name."""
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    """All environment variables bradawl was started with."""
    key_names: tuple[str, ...] = ()
    """Names of environment variables for providers' keys, set or not."""
    warnings: tuple[str, ...] = ()
    """Messages for the user, such as settings that were ignored."""

    def __post_init__(self) -> None:
        if self.permission_mode not in (None, *MODES):
            raise SettingsError(f"permission_mode is one of {', '.join(MODES)}, or None; not {self.permission_mode!r}.")
        if self.permission_mode == "bypass" and not self.may_bypass:
            raise SettingsError("permission_mode is bypass, which may_bypass=False forbids; leave one of them out.")

    @property
    def yolo(self) -> bool:
        """Whether `permission_mode` is `bypass`: no call is asked about."""
        return self.permission_mode == "bypass"

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name != "environment")
        return f"Settings({', '.join(shown)})"


def tools_folders(settings: Settings) -> tuple[Path, ...]:
    """The folders of the user's own tools, the first one beside `config.toml`. They need not exist."""
    return tuple(Path(home, "tools") for home in dict.fromkeys((settings.config_home or settings.home, settings.home)))


def debug_folder(settings: Settings) -> Path:
    """The folder of debug logs, which has one file for each session."""
    return Path(settings.home, "debug")
