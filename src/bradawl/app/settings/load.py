"""Loading of settings: flags, environment variables and files become one validated `Settings`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from bradawl.app.settings.files import is_there
from bradawl.app.settings.homes import Homes, homes
from bradawl.app.settings.layers import Layer, Sources, UncheckedValue
from bradawl.app.settings.model_choice import ModelSources, choose_model, choose_second
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.own_files import OwnFiles, chosen_profile, read_own_files
from bradawl.app.settings.permissions import PermissionSettings, permission_settings
from bradawl.app.settings.project_files import IsApproved, narrowing, project_layers, project_root, read_project_files
from bradawl.app.settings.providers import PROVIDERS, Provider
from bradawl.app.settings.settings import Settings
from bradawl.app.settings.table import SETTINGS, Setting, SettingsTable
from bradawl.app.settings.values import (
    EFFORTS,
    check_utf8_path,
    parse_choice,
    parse_text,
)
from bradawl.core.errors import SettingsError

if TYPE_CHECKING:
    from bradawl.app.settings.managed import Managed
    from bradawl.app.settings.provider_tables import ModelFacts

HEADLESS_STEPS: Final = 500
_SCHEMA_LIMIT_BYTES: Final = 1_000_000


# Set in commands of tools, one of which may be bradawl itself.
_MARKS: Final = ("BRADAWL_CALL", "BRADAWL_REPORT")
_OF_THE_COMMAND: Final = frozenset(
    {
        "prompt",
        "continues",
        "resume",
        "fork_session",
        "flag_warnings",
        "command",
        "help",
        "version",
        "demo",
    }
    | {"folder", "below", "list", "remove", "show", "json", "provider"}
)
"""Options of the command line that are not settings."""
_SAFE_MODE: Final = (
    "safe mode: instruction files, and settings in files of the project, are left out; rules of the project that "
    "refuse or ask hold."
)
MANAGED_FILE: Final = Path("/etc/bradawl/managed.toml")
"""The administrator's settings for all users of the machine."""


class SettingsSources(NamedTuple):
    """The settings from all sources, before models are chosen."""

    given: ModelSources
    home: Homes
    permissions: PermissionSettings
    project: str
    is_trusted: bool
    managed: "Managed | None"
    table: SettingsTable
    own: OwnFiles
    profile: str
    """The name of the profile in force; empty without one."""


def load_settings(
    argv_options: Mapping[str, object],
    environ: Mapping[str, str],
    cwd: str,
    managed: Path = MANAGED_FILE,
    table: SettingsTable = SETTINGS,
) -> Settings:
    """Settings from flags, environment, the profile, the project's files and the user's, the strongest first.

    `argv_options` holds settings by name, None where a flag was not given. A setting that a project's file may not
    have is left out with a warning. Raises `SettingsError`, which names the flag, variable or file.
    """
    options = tuple(row.name for row in table.rows.values() if not row.is_managed_only)
    for name in argv_options:
        if name not in options and name not in _OF_THE_COMMAND:
            raise SettingsError(f"`{name}` is not a setting; {_nearest(name, options)}")
    return _with_models(read_settings(argv_options, environ, cwd, managed, table))


def load_settings_without_model(
    argv_options: Mapping[str, object], environ: Mapping[str, str], cwd: str, table: SettingsTable = SETTINGS
) -> Settings:
    """Settings of a run that asks no model. Raises `SettingsError`."""
    read = read_settings(argv_options, environ, cwd, table=table)
    settings = settings_with(read, ModelSettings("none", "none"))
    warnings = tuple(dict.fromkeys(read.given.sources.warnings))
    return msgspec.structs.replace(settings, **_plain_values(read), warnings=warnings)


def read_settings(
    argv_options: Mapping[str, object],
    environ: Mapping[str, str],
    cwd: str,
    managed: Path = MANAGED_FILE,
    table: SettingsTable = SETTINGS,
) -> SettingsSources:
    """Read every source of settings; no model is chosen yet. Raises `SettingsError`."""
    argv_options = _with_bare(argv_options)
    flags = Layer(argv_options, lambda name: table.rows[name].flag, "flag")
    variables = Layer(_variables(environ, table), lambda name: table.rows[name].variable, "variable")
    folder = _working_directory(Sources((flags, variables), []).find("cwd"), cwd)
    home = homes(environ, cwd)
    warnings: list[str] = []
    own = read_own_files(home, Sources((flags,), []).find("settings"), cwd, table, warnings)
    stronger = (flags, *own.extra_layers(), variables)
    profile = chosen_profile(own, Sources((*stronger, own.user_layer()), []).find("profile"))
    providers, facts = _tables(own, profile)
    root = project_root(folder)
    files, unreadable = read_project_files(folder, root, own.user.path, table, home.user)
    is_trusted, is_approved = _trust_in(root, home, is_for_this_run=bool(argv_options.get("trust")))
    project, ignored = project_layers(files, root, is_approved, table)
    if argv_options.get("safe_mode"):
        project, ignored = [narrowing(layer) for layer in project], [_SAFE_MODE]
    warnings += [*unreadable, *ignored, *_misspelt_variables(environ, providers, table)]
    sources = Sources((*stronger, *own.profile_layers(profile), *project, own.user_layer()), warnings)
    rulings = _managed(managed, table, warnings)
    permissions = permission_settings(sources, folder, home, rulings)
    given = ModelSources(sources, providers, facts, environ, folder, Path(home.config, "credentials.toml"))
    return SettingsSources(given, home, permissions, root, is_trusted, rulings, table, own, profile)


def _with_bare(options: Mapping[str, object]) -> Mapping[str, object]:
    """The options with those that `--bare` stands for."""
    return {**options, "safe_mode": True, "user_tools": False, "undo": False} if options.get("bare") else options


def settings_with(read: SettingsSources, model: ModelSettings) -> Settings:
    """The settings that do not depend on a choice of models, and a model."""
    providers = read.given.providers.values()
    return msgspec.structs.replace(
        Settings(
            model=model,
            cwd=read.given.cwd,
            project=read.project,
            home=read.home.data,
            config_home=read.home.config,
            user_home=read.home.user,
            is_trusted=read.is_trusted,
            environment=dict(read.given.environ),
            key_names=tuple(dict.fromkeys(name for one in providers for name in one.key_names)),
        ),
        **read.permissions._asdict(),
    )


def _with_models(read: SettingsSources) -> Settings:
    given, sources = read.given, read.given.sources
    model = choose_model(given)
    fallback, small = (choose_second(given, model, name) for name in ("fallback_model", "small_model"))
    settings = msgspec.structs.replace(
        settings_with(read, model),
        fallback=fallback,
        small=small,
        effort=effort_of(given, model),
        answer_schema=_answer_schema(sources.find("json_schema"), given.cwd),
        **_prompt_texts(read),
        **_plain_values(read),
    )
    steps = HEADLESS_STEPS if settings.max_steps is None and settings.headless else settings.max_steps
    return msgspec.structs.replace(settings, max_steps=steps, warnings=tuple(dict.fromkeys(sources.warnings)))


def _plain_values(read: SettingsSources) -> dict[str, object]:
    """Plain settings by their fields in `Settings`; those without a field are together in `values`."""
    found = {row.name: _plain_value(row, read) for row in read.table.rows.values() if row.is_plain}
    fields = {name: found.pop(name) for name in Settings.__struct_fields__ if name in found}
    return {**fields, "values": found}


def _plain_value(row: Setting, read: SettingsSources) -> object:
    sources = read.given.sources
    found = sources.find(row.name)
    value = row.kind.parse(found.value, found.place) if found else row.default
    return value if read.managed is None else read.managed.value_for(row.name, value, found, sources.warnings)


def _managed(path: Path, table: SettingsTable, warnings: list[str]) -> "Managed | None":
    if not is_there(path):
        return None
    from bradawl.app.settings.managed import read_managed

    return read_managed(path, table, warnings)


def _trust_in(root: str, home: Homes, *, is_for_this_run: bool) -> tuple[bool, IsApproved]:
    """Whether the user trusts the project, and which values in its files the user has approved."""
    if is_for_this_run:
        return True, lambda _, __: True
    if not is_there(Path(home.data, "trust.json")):  # most users have never trusted a project
        return False, lambda _, __: False
    from bradawl.safety.trust.store import TrustStore, digest

    store = TrustStore(home.data, home.user)
    return store.is_trusted(root), lambda name, value: not store.changed(root, name, digest(value, root))


def _tables(own: OwnFiles, profile: str) -> tuple[Mapping[str, Provider], Mapping[str, "ModelFacts"]]:
    """Providers and facts about models from all of the user's files."""
    providers, models = own.named_table("providers", profile), own.named_table("models", profile)
    if providers is None and models is None:
        return PROVIDERS, {}
    from bradawl.app.settings.provider_tables import read_models, read_providers

    known = PROVIDERS if providers is None else read_providers(providers, own.user.name)
    return known, {} if models is None else read_models(models, own.user.name, known)


def _variables(environ: Mapping[str, str], table: SettingsTable) -> dict[str, object]:
    """Settings by name; an empty variable counts as not set."""
    found = ((name, environ.get(variable, "").strip()) for variable, name in table.variables.items())
    return {name: value for name, value in found if value}


def _misspelt_variables(
    environ: Mapping[str, str], providers: Mapping[str, Provider], table: SettingsTable
) -> list[str]:
    """Warnings about variables that begin like bradawl's and are not settings."""
    known = ("BRADAWL_HOME", *table.variables)
    ours = {name for one in providers.values() for name in (*one.key_names, one.base_url_name)}
    ours.update(known, _MARKS)
    unknown = sorted(name for name in environ if name.startswith("BRADAWL_") and name not in ours)
    return [f"{name} is not a setting and is ignored; {_nearest(name, known)}" for name in unknown]


def _nearest(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1, 0.8)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}."


def effort_of(given: ModelSources, model: ModelSettings) -> str | None:
    """Effort from a flag or variable, else from `[models.NAME]` of the user's file, else from `effort` in a file."""
    found = given.sources.find("effort")
    facts = given.facts.get(f"{model.provider}/{model.name}")
    if facts and facts.effort and not (found and found.kind in ("flag", "variable")):
        return facts.effort
    return parse_choice(found.value, found.place, EFFORTS) if found else None


def _answer_schema(found: UncheckedValue | None, cwd: str) -> str:
    """The text of the named file, or the given one. Raises `SettingsError` if it is not a JSON object."""
    if found is None:
        return ""
    if isinstance(found.value, str) and found.value.lstrip().startswith("{"):
        return _checked_schema(found.value, found.place)
    name = parse_text(found.value, found.place)
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


def _checked_schema(text: str, place: str) -> str:
    try:
        msgspec.json.decode(text.encode(), type=dict[str, msgspec.Raw])
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{place} is not a JSON Schema: it must be a JSON object ({error}).") from error
    return text


_PROMPT_TEXTS: Final = ("system_prompt", "append_system_prompt")


def _prompt_texts(read: SettingsSources) -> dict[str, str]:
    """The user's texts for the system prompt, by field of `Settings`. Raises `SettingsError`."""
    sources = read.given.sources
    given = [name for name in _PROMPT_TEXTS if sources.find(name) or sources.find(f"{name}_file")]
    if not given:
        return {}
    from bradawl.app.settings.prompt_texts import prompt_text  # few users have any

    return {name: prompt_text(sources, name, read.given.cwd, read.home.user) for name in given}


def _working_directory(found: UncheckedValue | None, cwd: str) -> str:
    place = found.place if found else "The working directory"
    if found and isinstance(found.value, str):
        check_utf8_path(found.value, place)
    path = Path(cwd, parse_text(found.value, place)) if found else Path(cwd)
    try:
        resolved = path.resolve()
        if resolved.is_dir():
            return check_utf8_path(str(resolved), place)
    except (OSError, ValueError, RuntimeError) as error:
        raise SettingsError(f"The folder {str(path)!r} can't be used: {error}.") from error
    raise SettingsError(f"{place}: {path} is not a folder.")
