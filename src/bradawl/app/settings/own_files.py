"""The settings files that are the user's own: `config.toml` with its profiles, and what `--settings` names."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, cast

from bradawl.app.settings.files import SettingsFile, decode_settings, read_settings_file, why_foreign
from bradawl.app.settings.layers import Layer, UncheckedValue
from bradawl.app.settings.table import SettingsTable
from bradawl.app.settings.values import flatten, parse_text
from bradawl.core.errors import SettingsError

if TYPE_CHECKING:
    import os

    from bradawl.app.settings.homes import Homes

_TABLES: Final = ("providers", "models", "profiles")
_NamedKind = Literal["flag", "profile", "user"]
_SourceOf = Callable[..., str]
"""Takes keys; returns file and line."""


class OwnFiles(NamedTuple):
    """The user's files, checked."""

    user: SettingsFile
    """`config.toml`; without values if there is no such file."""
    extra: SettingsFile | None
    """What `--settings` names."""
    is_foreign: bool
    """Other users can write `config.toml`, so only what a project may set counts."""
    home: str
    """The folder of `config.toml`."""
    table: SettingsTable

    @property
    def profiles(self) -> tuple[str, ...]:
        """The names of all profiles."""
        return tuple(dict.fromkeys(name for file in self._files() for name in _inner(file.values, "profiles")))

    def extra_layers(self) -> tuple[Layer, ...]:
        """The layer of `--settings`, which is as strong as a flag."""
        return (self._layer(self.extra, (), "flag", ""),) if self.extra else ()

    def profile_layers(self, profile: str) -> tuple[Layer, ...]:
        """The layers of a profile, the strongest first."""
        return tuple(
            self._layer(file, ("profiles", profile), "user", profile)
            for file in self._files()
            if profile in _inner(file.values, "profiles")
        )

    def user_layer(self) -> Layer:
        """The layer of `config.toml` without its profiles."""
        return self._layer(self.user, (), "user", "")

    def named_table(self, name: str, profile: str) -> dict[str, object] | None:
        """The table `providers` or `models` of all files and the profile; None if none has it."""
        found: dict[str, object] = {}
        is_there = False
        for _, values, _ in reversed(list(self.named_layers(profile))):
            is_there = is_there or name in values
            for key, entry in _inner(values, name).items():
                found[key] = {**_inner(found, key), **cast("dict[str, object]", entry)}
        return found if is_there else None

    def named_layers(self, profile: str) -> Iterator[tuple[_NamedKind, Mapping[str, object], _SourceOf]]:
        """Where `providers` and `models` may be, the strongest first: kind, values, and the source of a key."""
        if self.extra:
            yield "flag", self.extra.values, self.extra.source_of
        for file in self._files() if profile else ():
            inner = _inner(_inner(file.values, "profiles"), profile)
            yield (
                "profile",
                inner,
                lambda *keys, file=file: f"profile {profile}, {file.source_of('profiles', profile, *keys)}",
            )
        yield "user", self.user.values, self.user.source_of

    def _files(self) -> tuple[SettingsFile, ...]:
        return (self.extra, self.user) if self.extra else (self.user,)

    def _layer(self, file: SettingsFile, above: tuple[str, ...], kind: str, profile: str) -> Layer:
        values: Mapping[str, object] = file.values
        for key in above:
            values = _inner(values, key)
        plain = {key: value for key, value in values.items() if key not in _TABLES}
        is_extra = file is self.extra
        return Layer(
            flatten(plain, self.table.file_keys()),
            lambda name: file.source_of(*above, *name.split(".")),
            "flag" if kind == "flag" else "user",
            str(file.path.parent) if is_extra and file.path.name else "" if is_extra else self.home,
            is_file=True,
            profile=profile,
        )


def read_own_files(
    home: "Homes", given: UncheckedValue | None, cwd: str, table: SettingsTable, warnings: list[str]
) -> OwnFiles:
    """Read and check the user's file, and what `--settings` names. Raises `SettingsError`, which tells all mistakes."""
    from bradawl.app.settings.mistakes import FileMistakes

    path = Path(home.config, "config.toml")
    is_foreign: list[bool] = []
    readers: list[Callable[[], SettingsFile]] = [lambda: _users_file(path, home, table, warnings, is_foreign)]
    if given is not None:
        readers.append(lambda: _given_file(given, cwd, table))
    files: list[SettingsFile] = []
    mistakes = []
    for read in readers:
        try:
            files.append(read())
        except FileMistakes as error:
            mistakes += error.mistakes
    if mistakes:
        raise FileMistakes(mistakes)
    return OwnFiles(files[0], files[1] if files[1:] else None, bool(is_foreign), home.config, table)


def chosen_profile(own: OwnFiles, found: UncheckedValue | None) -> str:
    """The name of the profile that a flag, a variable or a file chooses; empty without one. Raises `SettingsError`."""
    if found is None:
        return ""
    name = parse_text(found.value, found.place)
    if name in own.profiles:
        return name
    from difflib import get_close_matches

    if own.is_foreign:
        known = f"; {own.user.name} can be changed by others, so its profiles do not count."
    elif not own.profiles:
        known = f"; {own.user.name} defines none. A profile is a table [profiles.{name}] of settings."
    else:
        near = get_close_matches(name, own.profiles, 1)
        meant = f" Did you mean {near[0]}?" if near else ""
        known = f"; there are: {', '.join(own.profiles)}.{meant}"
    raise SettingsError(f"{found.place}: there is no profile {name!r}{known}")


def _users_file(
    path: Path, home: "Homes", table: SettingsTable, warnings: list[str], is_foreign: list[bool]
) -> SettingsFile:
    """The user's file. Of one that other users can write, only what an untrusted project may set is kept."""
    from bradawl.app.settings.mistakes import shown_path

    foreign: list[str] = []

    def check_owner(found: "os.stat_result") -> None:
        foreign.append(why_foreign(found))

    name = shown_path(path, home.user)
    file = read_settings_file(path, name, check_owner)
    if not file.values:
        return file
    if foreign and foreign[0]:
        from bradawl.safety.trust.settings_review import findings

        is_foreign.append(True)
        found = findings(file.values, table.project_settings)
        left_out = sorted(one.key for one in found if one.verdict != "allow")
        ignored = f", so this does not count: {', '.join(left_out)}" if left_out else ""
        warnings.append(f"{path} {foreign[0]}{ignored}; run `chmod go-w {path}`, or make it your own.")
        kept = _nested({one.name: one.value for one in found if one.verdict == "allow"})
        return SettingsFile(path, name, file.text, kept)
    _check(file, table)
    return file


def _given_file(given: UncheckedValue, cwd: str, table: SettingsTable) -> SettingsFile:
    """What `--settings` names: a file, or JSON text."""
    text = str(given.value).strip()
    if text.startswith("{"):
        file = decode_settings(text.encode("utf-8", "replace"), Path(), given.place, is_toml=False)
    else:
        path = Path(cwd, parse_text(text, given.place))
        if not path.exists():
            raise SettingsError(f"{given.place} names a file that is not there: {text}.")
        file = read_settings_file(path, f"{given.place} {text}")
    _check(file, table)
    return file


def _check(file: SettingsFile, table: SettingsTable) -> None:
    from bradawl.app.settings.file_check import check_file, user_keys

    check_file(file, user_keys(table))


def _inner(values: Mapping[str, object], name: str) -> dict[str, object]:
    found = values.get(name)
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def _nested(values: Mapping[str, object]) -> dict[str, object]:
    """Tables from whole names, the reverse of `flatten`."""
    found: dict[str, object] = {}
    for name, value in values.items():
        outer, dot, inner = name.partition(".")
        found[outer] = {**_inner(found, outer), inner: value} if dot else value
    return found
