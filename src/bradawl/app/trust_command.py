"""The command `bradawl trust`."""

from collections.abc import Callable, Mapping
from pathlib import Path

from bradawl.app.console import Console
from bradawl.app.settings.homes import homes
from bradawl.app.settings.project_files import project_root, read_project_files
from bradawl.app.settings.table import SETTINGS
from bradawl.app.settings.values import check_utf8_path
from bradawl.app.trust_items import item_lines, items_in, too_long_item
from bradawl.core.errors import SettingsError
from bradawl.safety.trust.store import TrustStore


def run_trust(
    options: Mapping[str, object], environ: Mapping[str, str], console: Console, cwd: str, notify: Callable[[str], None]
) -> int:
    """Run `bradawl trust`: show the entries that need trust, and remember that the user trusts the project.

    `notify` is called with each warning. Returns the exit code. Raises `SettingsError`.
    """
    from bradawl.app.rendering import one_line

    home = homes(environ, cwd)
    store = TrustStore(home.data, home.user)
    if options.get("list"):
        lines = [f"{path}{' and all below' if one.below else ''}" for path, one in store.trusted()]
        if not lines:
            console.say("No project is trusted.")
    else:
        start = str(options.get("cwd") or cwd)
        user_file = Path(home.config, "config.toml")
        lines = _about_folder(options, store, _project(options.get("folder"), start), user_file, notify)
    for line in lines:
        console.report(one_line(line))
    return 0


def _project(named: object, cwd: str) -> tuple[str, str]:
    """The named folder, and the root of its project; both are real paths."""
    path = Path(cwd, str(named or ""))
    try:
        folder = path.resolve()
        is_folder = folder.is_dir()
    except (OSError, ValueError, RuntimeError) as error:
        raise SettingsError(f"The folder {str(path)!r} can't be used: {error}.") from error
    if not is_folder:
        raise SettingsError(f"{path} is not a folder.")
    check_utf8_path(str(folder), "The project")
    return str(folder), project_root(str(folder))


def _about_folder(
    options: Mapping[str, object],
    store: TrustStore,
    place: tuple[str, str],
    user_file: Path,
    notify: Callable[[str], None],
) -> list[str]:
    folder, root = place
    if options.get("remove"):
        return [f"{root} is no longer trusted." if store.distrust(root) else f"{root} was not trusted."]
    files, warnings = read_project_files(folder, root, user_file, SETTINGS)
    for warning in warnings:
        notify(warning)
    items = items_in(root, files)
    if name := too_long_item(items):
        raise SettingsError(f"{name} in {root} is too long to be read before it is trusted; shorten it.")
    lines = [line for item in items for line in item_lines(item)] or ["Nothing in its files needs trust."]
    if options.get("show"):
        return lines
    store.trust(root, {item.name: item.digest for item in items}, below=bool(options.get("below")))
    below = " with all folders below it" if options.get("below") else ""
    later = (
        "one of these entries changes"
        if not all(item.is_text for item in items)
        else "its files get entries that need trust"
    )
    return [*lines, f"{root}{below} is trusted. You are asked again if {later}."]
