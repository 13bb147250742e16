"""Everything the user chose, validated once: flags over environment over files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from bradawl.app.settings.files import is_there, read_user_file
from bradawl.app.settings.homes import Homes, homes
from bradawl.app.settings.layers import Found, Layer, Sources, place_in
from bradawl.app.settings.model_choice import Given, choose_model, choose_second
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.permissions import PermissionSettings, permission_settings
from bradawl.app.settings.project_files import Counts, project_layers, project_root, read_project_files
from bradawl.app.settings.providers import PROVIDERS, Provider
from bradawl.app.settings.settings import OUTPUT_FORMATS, Settings
from bradawl.app.settings.values import (
    EFFORTS,
    choice_in,
    count_in,
    flag_in,
    refuse_unknown,
    table_in,
    text_in,
    utf8_path_in,
)
from bradawl.core.errors import SettingsError

if TYPE_CHECKING:
    import os

    from bradawl.app.settings.managed import Managed
    from bradawl.app.settings.provider_tables import ModelFacts

HEADLESS_STEPS: Final = 500
_SCHEMA_LIMIT_BYTES: Final = 1_000_000


_FLAGS: Final = {
    "cwd": "-C/--cd",
    "model": "-m/--model",
    "debug_log": "--debug",
    "user_tools": "--no-user-tools",
    "add_dirs": "--add-dir",
}
_SETTINGS: Final = (
    "model",
    "fallback_model",
    "small_model",
    "base_url",
    "context_window",
    "max_steps",
    "max_output_tokens",
    "effort",
    "yolo",
    "output_format",
    "json_schema",
    "debug_log",
    "cwd",
    "proxy",
    "ca_file",
    "user_tools",
    "allow_private_fetch",
    "permission_mode",
    "sandbox",
    "add_dirs",
    "allowed_tools",
    "disallowed_tools",
    "network_commands",
    "kept_variables",
)
# What marks the commands a tool runs, of which bradawl may be one.
_MARKS: Final = ("BRADAWL_CALL", "BRADAWL_REPORT")
_OF_ONE_RUN: Final = frozenset({"cwd", "json_schema", "allowed_tools", "disallowed_tools"})
_OF_THE_COMMAND: Final = frozenset(
    {"headless", "trust", "prompt", "continues", "resume", "command", "help", "version", "demo"}
    | {"folder", "below", "list", "remove", "show", "json", "provider"}
)
"""What the command line may hold besides settings."""
_USER_KEYS: Final = frozenset({*_SETTINGS, "providers", "models", "permissions"} - _OF_ONE_RUN)
_RULE_LISTS: Final = frozenset({"allow", "ask", "deny"})
MANAGED_FILE: Final = Path("/etc/bradawl/managed.toml")
"""What whoever runs the machine decides for all of its users."""


class Read(NamedTuple):
    """All that was found before anything was chosen."""

    given: Given
    home: Homes
    permissions: PermissionSettings
    project: str
    is_trusted: bool


def load_settings(
    argv_options: Mapping[str, object], environ: Mapping[str, str], cwd: str, managed: Path = MANAGED_FILE
) -> Settings:
    """Settings from flags, environment, the local, the project and the user's file, in that order of weight.

    `argv_options` holds settings by name, None where a flag was not given, `headless`, and `trust` for a run that
    trusts the folder. What a project's files may not say is left out with a warning.
    Raises `SettingsError`, which names the flag, variable or file.
    """
    for name in argv_options:
        if name not in _SETTINGS and name not in _OF_THE_COMMAND:
            raise SettingsError(f"`{name}` is not a setting; {_nearest(name, _SETTINGS)}")
    return _settle(read_settings(argv_options, environ, cwd, managed))


def read_settings(
    argv_options: Mapping[str, object], environ: Mapping[str, str], cwd: str, managed: Path = MANAGED_FILE
) -> Read:
    """Every source of settings, read but not yet made into a choice of models. Raises `SettingsError`."""
    flags = Layer(argv_options, lambda name: _FLAGS.get(name, "--" + name.replace("_", "-")), "flag")
    variables = Layer(_variables(environ), lambda name: f"BRADAWL_{name.upper()}", "variable")
    folder = _working_directory(Sources((flags, variables), []).find("cwd"), cwd)
    home = homes(environ, cwd)
    user_file = Path(home.config, "config.toml")
    warnings: list[str] = []
    table = _users_table(user_file, warnings)
    providers, facts = _tables(table, user_file)
    root = project_root(folder)
    files, unreadable = read_project_files(folder, root, user_file)
    is_trusted, counts = _trust_in(root, home, is_for_this_run=bool(argv_options.get("trust")))
    project, ignored = project_layers(files, root, counts)
    warnings += [*unreadable, *ignored, *_misspelt_variables(environ, providers)]
    user = Layer(table, place_in(user_file), "user", home.config)
    sources = Sources((flags, variables, *project, user), warnings)
    rulings = _managed(managed, warnings)
    permissions = permission_settings(sources, folder, home, rulings)
    given = Given(sources, providers, facts, environ, folder, Path(home.config, "credentials.toml"))
    return Read(given, home, permissions, root, is_trusted)


def _managed(path: Path, warnings: list[str]) -> "Managed | None":
    if not is_there(path):
        return None
    from bradawl.app.settings.managed import read_managed

    return read_managed(path, warnings)


def _trust_in(root: str, home: Homes, *, is_for_this_run: bool) -> tuple[bool, Counts]:
    """Whether the user trusts the project, and which of the things in it they have agreed to."""
    if is_for_this_run:
        return True, lambda _, __: True
    if not is_there(Path(home.data, "trust.json")):  # most users never said anything
        return False, lambda _, __: False
    from bradawl.safety.trust.store import TrustStore, digest

    store = TrustStore(home.data, home.user)
    return store.is_trusted(root), lambda name, value: not store.changed(root, name, digest(value, root))


def _users_table(path: Path, warnings: list[str]) -> dict[str, object]:
    """The user's file, with lists of rules under their whole names; of one that others can write, what narrows."""
    foreign: list[str] = []

    def look(found: "os.stat_result") -> None:
        foreign.append(_why_foreign(found))

    table = read_user_file(path, look)
    if foreign and foreign[0]:
        from bradawl.safety.trust.settings_review import findings

        kept = {one.name: one.value for one in findings(table) if one.verdict == "allow"}
        left_out = sorted(one.key for one in findings(table) if one.verdict != "allow")
        told = f", so this does not count: {', '.join(left_out)}" if left_out else ""
        warnings.append(f"{path} {foreign[0]}{told}; run `chmod go-w {path}`, or make it your own.")
        return kept
    _refuse_unknown(table, path)
    rules = table_in(table.pop("permissions", {}), f"{path}: permissions")
    refuse_unknown(rules, _RULE_LISTS, f"{path}: permissions")
    return {**table, **{f"permissions.{verdict}": texts for verdict, texts in rules.items()}}


def _why_foreign(found: "os.stat_result") -> str:
    """Why a file of settings is not surely the user's own; empty if it is. Root's counts as theirs."""
    import os

    if os.geteuid() and found.st_uid not in (0, os.geteuid()):
        return "belongs to another user"
    if found.st_mode & 0o002 or (found.st_mode & 0o020 and found.st_gid != os.getegid()):
        return "can be written by others"
    return ""


def _tables(table: dict[str, object], path: Path) -> tuple[Mapping[str, Provider], Mapping[str, "ModelFacts"]]:
    """Takes the tables of providers and models out of the user's file."""
    providers, models = table.pop("providers", None), table.pop("models", None)
    if providers is None and models is None:
        return PROVIDERS, {}
    from bradawl.app.settings.provider_tables import read_models, read_providers

    known = PROVIDERS if providers is None else read_providers(providers, path)
    return known, {} if models is None else read_models(models, path, known)


def _variables(environ: Mapping[str, str]) -> dict[str, object]:
    """An empty variable counts as not set."""
    return {name: value for name in _SETTINGS if (value := environ.get(f"BRADAWL_{name.upper()}", "").strip())}


def _misspelt_variables(environ: Mapping[str, str], providers: Mapping[str, Provider]) -> list[str]:
    """Warnings about variables that look like settings of ours and are none."""
    known = ("BRADAWL_HOME", *(f"BRADAWL_{name.upper()}" for name in _SETTINGS))
    ours = {name for one in providers.values() for name in (*one.key_names, one.base_url_name)}
    ours.update(known, _MARKS)
    unknown = sorted(name for name in environ if name.startswith("BRADAWL_") and name not in ours)
    return [f"{name} is not a setting and is ignored; {_nearest(name, known)}" for name in unknown]


def _nearest(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1, 0.8)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}."


def _settle(read: Read) -> Settings:
    given, home, permissions = read.given, read.home, read.permissions
    sources = given.sources
    model = choose_model(given)
    headless = _flag(sources, "headless")
    steps = _number(sources, "max_steps")
    return Settings(
        model=model,
        fallback=choose_second(given, model, "fallback_model"),
        small=choose_second(given, model, "small_model"),
        cwd=given.cwd,
        project=read.project,
        home=home.data,
        user_home=home.user,
        max_steps=HEADLESS_STEPS if steps is None and headless else steps,
        max_output_tokens=_number(sources, "max_output_tokens"),
        effort=_effort(given, model),
        permission_mode=permissions.mode,
        may_bypass=permissions.may_bypass,
        is_mode_fixed=permissions.is_mode_fixed,
        sandbox=permissions.sandbox,
        add_dirs=permissions.add_dirs,
        rules=permissions.rules,
        kept_variables=permissions.kept_variables,
        is_trusted=read.is_trusted,
        output_format="json" if _choice(sources, "output_format", OUTPUT_FORMATS) == "json" else "text",
        answer_schema=_answer_schema(sources.find("json_schema"), given.cwd),
        debug_log=_flag(sources, "debug_log"),
        user_tools=_flag(sources, "user_tools", default=True),
        allow_private_fetch=_flag(sources, "allow_private_fetch"),
        proxy=_text(sources, "proxy"),
        headless=headless,
        environment=dict(given.environ),
        key_names=tuple(dict.fromkeys(name for one in given.providers.values() for name in one.key_names)),
        warnings=tuple(dict.fromkeys(sources.warnings)),
    )


def _effort(given: Given, model: ModelSettings) -> str | None:
    """A flag or variable, then what the user says of this model, then what stands for all of them in a file."""
    found = given.sources.find("effort")
    facts = given.facts.get(f"{model.provider}/{model.name}")
    if facts and facts.effort and not (found and found.kind in ("flag", "variable")):
        return facts.effort
    return choice_in(found.value, found.place, EFFORTS) if found else None


def _answer_schema(found: Found | None, cwd: str) -> str:
    """The text of the named file. Raises `SettingsError` when it is no JSON Schema of an object kind."""
    if found is None:
        return ""
    name = text_in(found.value, found.place)
    path = Path(cwd, name)
    try:
        if path.is_file() and path.stat().st_size <= _SCHEMA_LIMIT_BYTES:
            text = path.read_text("utf-8-sig")
            msgspec.json.decode(text, type=dict[str, msgspec.Raw])
            return text
    except OSError as error:
        raise SettingsError(f"{found.place}: {name} can't be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(
            f"{found.place}: {name} is not a JSON Schema: it must be a JSON object ({error})."
        ) from error
    if path.is_file():
        raise SettingsError(f"{found.place}: {name} is larger than {_SCHEMA_LIMIT_BYTES} bytes.")
    raise SettingsError(f"{found.place} names a file that is not there: {name}.")


# ------------------------------------------------------------------ values


def _number(sources: Sources, name: str) -> int | None:
    found = sources.find(name)
    return count_in(found.value, found.place) if found else None


def _flag(sources: Sources, name: str, *, default: bool = False) -> bool:
    found = sources.find(name)
    return flag_in(found.value, found.place) if found else default


def _text(sources: Sources, name: str) -> str:
    found = sources.find(name)
    return text_in(found.value, found.place) if found else ""


def _choice(sources: Sources, name: str, choices: tuple[str, ...]) -> str | None:
    found = sources.find(name)
    return choice_in(found.value, found.place, choices) if found else None


def _working_directory(found: Found | None, cwd: str) -> str:
    place = found.place if found else "The working directory"
    if found and isinstance(found.value, str):
        utf8_path_in(found.value, place)
    path = Path(cwd, text_in(found.value, place)) if found else Path(cwd)
    try:
        resolved = path.resolve()
        if resolved.is_dir():
            return utf8_path_in(str(resolved), place)
    except (OSError, ValueError, RuntimeError) as error:
        raise SettingsError(f"The folder {str(path)!r} can't be used: {error}.") from error
    raise SettingsError(f"{place}: {path} is not a folder.")


def _refuse_unknown(table: Mapping[str, object], path: Path) -> None:
    for key in table:
        if key == "api_key":
            raise SettingsError(f"{path}: api_key: keys don't belong in a file; set the provider's variable instead.")
        if key not in _USER_KEYS:
            from difflib import get_close_matches

            near = get_close_matches(key, _USER_KEYS, 1)
            hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(sorted(_USER_KEYS))}."
            raise SettingsError(f"{path}: `{key}` is not a setting; {hint}")
