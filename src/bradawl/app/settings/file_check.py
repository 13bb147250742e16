"""Finds all mistakes in the values of a settings file. A parser has accepted the file already.

One check serves the user's file, its profiles, `--settings`, the administrator's file and the files of projects; they
differ in the keys that they may have.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from bradawl.app.settings.mistakes import FileMistakes
from bradawl.app.settings.table import LISTS, Setting, SettingsTable
from bradawl.core.errors import SettingsError

if TYPE_CHECKING:
    from bradawl.app.settings.files import SettingsFile
    from bradawl.app.settings.mistakes import Mistake
    from bradawl.app.settings.text_positions import Keys

TABLES: Final = ("providers", "models", "profiles")
"""Tables of the user's file whose keys are names."""
_PROFILE_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_LIKE_A_SETTING: Final = 0.7


class Problem(NamedTuple):
    """What is wrong at a key."""

    keys: "Keys"
    message: str
    is_value: bool = True
    """The value is wrong, not the key."""


class FileKeys(NamedTuple):
    """The keys that a kind of file may have."""

    table: SettingsTable
    names: frozenset[str]
    """Settings by their whole names."""
    tables: tuple[str, ...] = ()
    what: str = "this file"
    """For messages."""


def user_keys(table: SettingsTable) -> FileKeys:
    """The keys of the user's file and of `--settings`."""
    return FileKeys(table, table.file_keys(), TABLES)


def managed_keys(table: SettingsTable) -> FileKeys:
    """The keys of the administrator's file."""
    return FileKeys(table, table.managed_keys())


def check_file(file: "SettingsFile", keys: FileKeys) -> None:
    """Raises `FileMistakes` with all mistakes in the file's values."""
    if found := mistakes_in(file, problems_of(file.values, keys)):
        raise FileMistakes(found)


def mistakes_in(file: "SettingsFile", problems: Iterable[Problem]) -> list["Mistake"]:
    """The problems as mistakes in the file, in the order of its lines."""
    found = [file.mistake(one.keys, one.message, is_value=one.is_value) for one in problems]
    return sorted(found, key=lambda one: (one.position.line, one.position.column) if one.position else (0, 0))


def problems_of(values: Mapping[str, object], keys: FileKeys) -> Iterator[Problem]:
    """The problems of all keys and values of a file."""
    outer = {name.partition(".")[0] for name in keys.names if "." in name}
    for key, value in values.items():
        if key in keys.tables:
            yield from _problems_of_table(key, value, values, keys)
        elif key in outer:
            yield from _problems_inside(key, value, keys)
        else:
            yield from _problems_of_setting(key, (key,), value, keys, values)


def _problems_inside(key: str, value: object, keys: FileKeys) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield Problem((key,), f"{key} must be a table.")
        return
    for inner, each in cast("dict[str, object]", value).items():
        yield from _problems_of_setting(f"{key}.{inner}", (key, inner), each, keys, {})


def _problems_of_setting(
    name: str, path: "Keys", value: object, keys: FileKeys, values: Mapping[str, object]
) -> Iterator[Problem]:
    if name not in keys.names:
        yield Problem(path, unknown_key(name, keys), is_value=False)
        return
    yield from value_problems(keys.table.rows[name], path, value, values)


# ------------------------------------------------------------------ keys


def unknown_key(name: str, keys: FileKeys) -> str:
    """Why a file may not have this key, and what was probably meant."""
    if name == "api_key":
        return "api_key: keys don't belong in this file; set the provider's variable, or use credentials.toml."
    said = f"{name} is no setting"
    if (row := keys.table.rows.get(name)) is not None:
        said = f"{name} can't be set in {keys.what}"
        if row.flags:
            said += f"; use the flag {row.flag}"
        return f"{said}{_instead(name)}."
    known = sorted({*keys.names, *keys.tables})
    table, dot, inner = name.rpartition(".")
    if dot and inner in known:
        return f"{said}, but {inner} is one; write its line above the line [{table}]."
    if meant := _meant(name, known):
        return f"{said}; did you mean {meant}?"
    return f"{said}; `bradawl config show --all` lists all settings."


def _instead(name: str) -> str:
    return {"allowed_tools": ", or permissions.allow", "disallowed_tools": ", or permissions.deny"}.get(name, "")


def _meant(name: str, known: list[str]) -> str:
    """The most similar name; also one whose last part is similar: `allow` is `permissions.allow`."""
    from difflib import get_close_matches

    spelled = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).replace("-", "_").lower()
    if near := get_close_matches(spelled, known, 1, _LIKE_A_SETTING):
        return near[0]
    return next((each for each in known if each.rpartition(".")[2] == spelled), "")


# ------------------------------------------------------------------ values


def value_problems(
    row: Setting, path: "Keys", value: object, values: Mapping[str, object] | None = None
) -> Iterator[Problem]:
    """The problems of the value of a setting. `values` are the other values of its file."""
    if row.kind in LISTS and isinstance(value, list):
        for number, item in enumerate(cast("list[object]", value)):
            if problem := _said_by(lambda item=item: _check_value(row, [item], values or {})):
                yield Problem((*path, number), problem)
    elif problem := _said_by(lambda: _check_value(row, value, values or {})):
        yield Problem(path, problem)


def _said_by(check: Callable[[], object]) -> str:
    """The message of the error that a check raises; empty if it raises none."""
    try:
        check()
    except SettingsError as error:
        return str(error)
    return ""


def _check_value(row: Setting, value: object, values: Mapping[str, object]) -> None:
    """Raises `SettingsError` for a value of the wrong form, and for one that would stop a run whatever its task is."""
    parsed = row.kind.parse(value, row.name)
    if row.name == "base_url":
        from bradawl.app.settings.providers import check_http_url

        check_http_url(str(parsed), row.name)
    elif row.name in ("model", "fallback_model", "small_model"):
        _check_model(str(parsed), row.name, values)
    elif row.name == "proxy" and parsed:
        from bradawl.app.settings.proxy import check_proxy

        check_proxy(str(parsed), row.name)
    elif row.name in ("permissions.allow", "permissions.ask", "permissions.deny", "network", "network_commands"):
        _check_rules(row.name, parsed)


def _check_model(text: str, name: str, values: Mapping[str, object]) -> None:
    from bradawl.app.settings.providers import PROVIDERS

    own = values.get("providers")
    head, slash, rest = text.partition("/")
    known = {*PROVIDERS, *(cast("dict[str, object]", own) if isinstance(own, dict) else ())}
    if slash and not rest and head in known:
        raise SettingsError(f"{name} names no model: {text!r}; it should be [PROVIDER/]MODEL.")


def _check_rules(name: str, parsed: object) -> None:
    from bradawl.app.settings.permission_values import RULE_SETTINGS
    from bradawl.app.settings.values import parse_texts, split_rules

    verdict = RULE_SETTINGS[name]
    if verdict == "domain":
        from bradawl.app.settings.network_presets import check_domains

        check_domains(parse_texts(parsed, name), name)
        return
    from bradawl.safety.permissions.path_globs import Bases
    from bradawl.safety.permissions.rule_syntax import parse_rule

    texts = parse_texts(parsed, name) if verdict == "network" else split_rules(parsed, name)
    for text in texts:
        # The rule is not used, so the folders that its paths start from don't matter.
        parse_rule(text, verdict, name, Bases("/", "/", "/"), lambda path: path)


# ------------------------------------------------------------------ tables of names


def _problems_of_table(key: str, value: object, values: Mapping[str, object], keys: FileKeys) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield Problem((key,), f"{key} must be a table.")
        return
    entries = cast("dict[str, object]", value)
    if key == "profiles":
        yield from _problems_of_profiles(entries, values, keys)
        return
    from bradawl.app.settings.named_tables import problems_of_models, problems_of_providers

    found = problems_of_providers(entries) if key == "providers" else problems_of_models(entries, values)
    for path, message, is_value in found:
        yield Problem((key, *path), message, is_value)


def _problems_of_profiles(
    profiles: Mapping[str, object], values: Mapping[str, object], keys: FileKeys
) -> Iterator[Problem]:
    tables = tuple(name for name in keys.tables if name != "profiles")
    inner = keys._replace(names=keys.names - {"profile"}, tables=tables, what="a profile")
    shared = {name: values[name] for name in ("providers",) if name in values}
    for name, entry in profiles.items():
        if not _PROFILE_NAME.fullmatch(name):
            yield Problem(
                ("profiles", name), "the name of a profile has letters, digits, - and _ only.", is_value=False
            )
        elif not isinstance(entry, dict):
            yield Problem(("profiles", name), f"profiles.{name} must be a table of settings.")
        else:
            found = problems_of({**shared, **cast("dict[str, object]", entry)}, inner)
            for one in found:
                if one.keys[0] not in shared or one.keys[0] in entry:
                    yield one._replace(keys=("profiles", name, *one.keys))
