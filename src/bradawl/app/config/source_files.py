"""`bradawl config path --all`: every source of settings, whether it is there, and whether all of it counts."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from bradawl.app.settings.files import why_foreign
from bradawl.app.settings.homes import Homes
from bradawl.app.settings.layers import Layer, Sources
from bradawl.app.settings.mistakes import shown_path
from bradawl.app.settings.own_files import chosen_profile, read_own_files
from bradawl.app.settings.project_files import project_root, settings_folder
from bradawl.app.settings.table import SETTINGS
from bradawl.app.text_layout import Column, table
from bradawl.core.errors import SettingsError
from bradawl.safety.control_characters import escape

_COLUMNS: Final = (Column("path"), Column("what it is", is_wrapped=True), Column("state", is_wrapped=True))
_MISSING: Final = "not there"
_PROJECTS: Final = (
    (".bradawl/config.local.toml", "yours in this project"),
    (".bradawl/config.toml", "the project's"),
    (".bradawl/settings.json", "the project's"),
    ("pyproject.toml", "the project's, [tool.bradawl]"),
)


class SourceOfSettings(NamedTuple):
    """A place that settings can come from."""

    name: str
    """A path, or what is no file."""
    what: str
    state: str


def source_lines(
    options: Mapping[str, object], environ: Mapping[str, str], home: Homes, cwd: str, managed: Path, width: int
) -> list[str]:
    """All sources as a table, the strongest first, and then files that hold no settings of the table."""
    found = sources_of_settings(options, environ, home, cwd, managed)
    rows = [tuple(escape(text) for text in (one.name, one.what, one.state)) for one in found]
    return table(rows, _COLUMNS, width)


def sources_of_settings(
    options: Mapping[str, object], environ: Mapping[str, str], home: Homes, cwd: str, managed: Path
) -> Iterator[SourceOfSettings]:
    """`options` may have `settings`, `profile` and `trust`. Files with mistakes are listed as well."""
    yield SourceOfSettings(str(managed), "the administrator's", _owned_state(managed, is_roots=True))
    yield _given(options, cwd)
    yield _variables(environ)
    users = Path(home.config, "config.toml")
    yield from _profiles(options, environ, home, cwd)
    yield from _projects(home, cwd, users, is_trusted_now=bool(options.get("trust")))
    yield SourceOfSettings(shown_path(users, home.user), "yours", _owned_state(users))
    for name, what in (("credentials.toml", "keys of providers"), ("keys.toml", "keys of the terminal")):
        path = Path(home.config, name)
        yield SourceOfSettings(shown_path(path, home.user), what, _owned_state(path))


def _owned_state(path: Path, *, is_roots: bool = False) -> str:
    """Whether a file is there, and why not all of it counts."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return _MISSING
    except OSError as error:
        return f"can't be read: {error.strerror or error}"
    if is_roots:
        is_foreign = found.st_uid != 0 or bool(found.st_mode & 0o022)
        return "there, but ignored: others than root can write it" if is_foreign else "there"
    why = why_foreign(found)
    return f"there, but not trusted: it {why}" if why else "there"


def _given(options: Mapping[str, object], cwd: str) -> SourceOfSettings:
    text = str(options.get("settings") or "").strip()
    if not text:
        return SourceOfSettings("--settings", "for one run", "not given")
    if text.startswith("{"):
        return SourceOfSettings("--settings", "for one run, JSON on the command line", "given")
    return SourceOfSettings(text, "for one run, by --settings", "there" if Path(cwd, text).exists() else _MISSING)


def _variables(environ: Mapping[str, str]) -> SourceOfSettings:
    found = [name for name in SETTINGS.variables if environ.get(name, "").strip()]
    return SourceOfSettings("the environment", "variables BRADAWL_...", ", ".join(found) or "none is set")


def _profiles(
    options: Mapping[str, object], environ: Mapping[str, str], home: Homes, cwd: str
) -> Iterator[SourceOfSettings]:
    given = Sources((Layer(options, lambda name: SETTINGS.rows[name].flag, "flag"),), [])
    try:
        own = read_own_files(home, given.find("settings"), cwd, SETTINGS, [])
    except SettingsError as error:
        yield SourceOfSettings("profiles", "tables [profiles.NAME] of your files", str(error))
        return
    variables = {"profile": environ.get(SETTINGS.rows["profile"].variable, "").strip() or None}
    named = Layer(variables, lambda name: SETTINGS.rows[name].variable, "variable")
    layers = (*given.layers, *own.extra_layers(), named, own.user_layer())
    found = Sources(layers, []).find("profile")
    try:
        chosen, problem = chosen_profile(own, found), ""
    except SettingsError as error:
        chosen, problem = "", str(error)
    for name in own.profiles:
        yield SourceOfSettings(f"[profiles.{name}]", "a profile", "in force" if name == chosen else "not chosen")
    if problem or not own.profiles:
        yield SourceOfSettings("profiles", "tables [profiles.NAME] of your files", problem or "none")


def _projects(home: Homes, cwd: str, users: Path, *, is_trusted_now: bool) -> Iterator[SourceOfSettings]:
    root = project_root(str(Path(cwd).resolve()))
    folder = settings_folder(Path(cwd).resolve(), Path(root)) or Path(root)
    is_trusted = is_trusted_now or _is_trusted(root, home)
    for name, what in _PROJECTS:
        path = (Path(root) if name == "pyproject.toml" else folder) / name
        state = _project_state(path, root, users, is_trusted=is_trusted)
        yield SourceOfSettings(shown_path(path, home.user), what, state)


def _project_state(path: Path, root: str, users: Path, *, is_trusted: bool) -> str:
    try:
        if not path.exists():
            return _MISSING
        if not path.resolve().is_relative_to(root):
            return "ignored: it is a link that leads out of the project"
        if users.exists() and path.samefile(users):
            return "ignored here: it is your own config.toml"
    except OSError as error:
        return f"can't be read: {error.strerror or error}"
    return "there, trusted" if is_trusted else "there, not trusted: only what asks for no trust counts"


def _is_trusted(root: str, home: Homes) -> bool:
    from bradawl.safety.trust.store import TrustStore

    return TrustStore(home.data, home.user).is_trusted(root)
