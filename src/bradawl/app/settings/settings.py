"""The settings of one run, as a value."""

from pathlib import Path
from typing import Literal

import msgspec

from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.permission_values import RuleText
from bradawl.core.errors import SettingsError
from bradawl.core.permissions import MODES, Mode


class NoSandbox(SettingsError):
    """A sandbox is required, and there is none."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of bradawl is told. `repr` shows neither keys nor the environment."""

    model: ModelSettings
    fallback: ModelSettings | None = None
    """What answers when the model stays overloaded."""
    small: ModelSettings | None = None
    """What sub-agents use that only look around; the model itself where there is none."""
    cwd: str
    """Absolute, symlinks resolved; it exists."""
    project: str = ""
    """The top of the checkout `cwd` lies in, `cwd` itself outside of one: what trust is about."""
    home: str
    """Folder for sessions, history and error reports; it need not exist or be writable."""
    user_home: str = ""
    """What `~` stands for."""
    max_steps: int | None = None
    max_output_tokens: int | None = None
    effort: str | None = None
    permission_mode: Mode | None = None
    """What is asked about; None for `auto` where a sandbox holds what runs, else `default`."""
    may_bypass: bool = True
    """Whether the mode may become `bypass`; whoever runs the machine may forbid it."""
    is_mode_fixed: bool = False
    """Whoever runs the machine has chosen the mode: it may only become `plan`, and what it was."""
    sandbox: Literal["required", "auto", "off"] = "auto"
    """Whether commands must be held by a sandbox, are where there is one, or are not."""
    add_dirs: tuple[str, ...] = ()
    """Folders that belong to the workspace besides `cwd`; absolute, resolved, they exist."""
    rules: tuple[RuleText, ...] = ()
    """What is allowed, asked about and refused by name, from all sources."""
    kept_variables: tuple[str, ...] = ()
    """Names of variables that commands see in the sandbox besides those everybody needs."""
    is_trusted: bool = False
    """The user trusts the folder: what its files say counts."""
    output_format: Literal["text", "json"] = "text"
    answer_schema: str = ""
    """JSON Schema, an object, that the answer must fit; empty for an answer in prose."""
    debug_log: bool = False
    """What goes to and comes from the model is logged, in shapes, without contents."""
    headless: bool = False
    """Nobody is there to answer the model."""
    user_tools: bool = True
    """Tools the user wrote or installed are offered."""
    allow_private_fetch: bool = False
    """`web_fetch` may read what is not on the public internet."""
    proxy: str = ""
    """The user's own choice for everything that leaves the machine; empty leaves it to the variables."""
    values: dict[str, object] = msgspec.field(default_factory=dict)
    """Plain settings of the table that have no field here, by name."""
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    """The variables bradawl was started with, all of them."""
    key_names: tuple[str, ...] = ()
    """The variables among them that hold keys, or would."""
    warnings: tuple[str, ...] = ()
    """What the user should know about these settings."""

    def __post_init__(self) -> None:
        if self.permission_mode not in (None, *MODES):
            raise SettingsError(f"permission_mode is one of {', '.join(MODES)}, or None; not {self.permission_mode!r}.")
        if self.permission_mode == "bypass" and not self.may_bypass:
            raise SettingsError("permission_mode is bypass, which may_bypass=False forbids; leave one of them out.")

    @property
    def yolo(self) -> bool:
        """True if no call is asked about, because `permission_mode` is `bypass`. Read-only, so the two always agree."""
        return self.permission_mode == "bypass"

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name != "environment")
        return f"Settings({', '.join(shown)})"


def debug_folder(settings: Settings) -> Path:
    """Where the debug logs are, one file for each session."""
    return Path(settings.home, "debug")
