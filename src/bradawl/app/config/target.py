"""The settings file that a command changes, its contents, and the mistakes in it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from bradawl.app.settings.file_check import Problem, mistakes_in, problems_of, user_keys
from bradawl.app.settings.files import SettingsFile, decode_settings, read_small_file
from bradawl.app.settings.homes import Homes
from bradawl.app.settings.mistakes import Mistake, shown_path
from bradawl.app.settings.project_files import project_root, reason_of, settings_folder
from bradawl.app.settings.schema import FileKind
from bradawl.app.settings.table import SettingsTable
from bradawl.core.errors import SettingsError


class Target(NamedTuple):
    """A settings file that a command works on; it need not exist."""

    path: Path
    name: str
    """For messages."""
    kind: FileKind
    root: str = ""
    """The top of the project, for a project's file."""

    def text(self) -> str:
        """The text of the file; empty if there is none. Raises `SettingsError`."""
        try:
            data = read_small_file(self.path)
        except OSError as error:
            raise SettingsError(f"{self.name} can't be read: {error.strerror or error}.") from error
        if data is None:
            return ""
        decode_settings(data, self.path, self.name)
        return data.decode("utf-8-sig")


def target_of(options: Mapping[str, object], home: Homes, cwd: str) -> Target:
    """The file that `--project` or `--local` names, else the user's. Raises `SettingsError`."""
    if not options.get("project") and not options.get("local"):
        path = Path(home.config, "config.toml")
        return Target(path, shown_path(path, home.user), "user")
    root = project_root(cwd)
    folder = settings_folder(Path(cwd), Path(root)) or Path(root)
    path = folder / ".bradawl" / ("config.local.toml" if options.get("local") else "config.toml")
    name = shown_path(path, home.user)
    if not path.resolve().is_relative_to(root):
        raise SettingsError(f"{name} is a link that leads out of the project, so it does not count.")
    if Path(home.config, "config.toml").resolve() == path.resolve():
        raise SettingsError(f"{name} is your own settings file, and no project's; leave --project out.")
    return Target(path, name, "project", root)


def decoded(target: Target, text: str) -> SettingsFile:
    """The values of a text of the target. Raises `SettingsError` if it is not TOML."""
    return decode_settings(text.encode(), target.path, target.name)


def mistakes_of(target: Target, file: SettingsFile, table: SettingsTable) -> list[Mistake]:
    """The mistakes in a file, in the order of its lines."""
    return mistakes_in(file, problems_in(target, file, table))


def problems_in(target: Target, file: SettingsFile, table: SettingsTable) -> Iterator[Problem]:
    """The problems of a file: of a project's one, all that is ignored even if the user trusts the project."""
    if target.kind == "user":
        yield from problems_of(file.values, user_keys(table))
        yield from _default_profile(file.values)
        return
    from bradawl.safety.trust.settings_review import findings

    for one in findings(file.values, table.project_settings):
        if one.verdict != "allow" and not (one.is_for_trust and not one.is_program):
            keys = (one.key,) if one.key in file.values else tuple(one.key.split(".", 1))
            is_value = one.verdict == "error"
            yield Problem(keys, f"{one.key}: {reason_of(one, table)}", is_value=is_value)


def _default_profile(values: Mapping[str, object]) -> Iterator[Problem]:
    name, profiles = values.get("profile"), values.get("profiles")
    known: Sequence[str] = list(cast("dict[str, object]", profiles)) if isinstance(profiles, dict) else ()
    if isinstance(name, str) and name not in known:
        there_are = f"there are: {', '.join(known)}." if known else "there is none."
        yield Problem(("profile",), f"there is no profile {name!r}; {there_are}")
