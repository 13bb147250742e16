"""What besides a changed file decides a setting."""

from bradawl.app.config.effective import settings_in_force, source_text
from bradawl.app.config.keys import KeyPath, key_text
from bradawl.app.config.target import Target
from bradawl.app.settings.load import SettingsSources
from bradawl.app.settings.table import LISTS


def notes_after(path: KeyPath, target: Target, read: SettingsSources) -> list[str]:
    """Notes after a key was set in a file: a stronger source, trust that is needed, a profile that is not in force."""
    in_profile = path[1] if path[0] == "profiles" else ""
    name = ".".join(path[2:] if in_profile else path)
    if in_profile and in_profile != read.profile:
        return [f"it takes effect with --profile {in_profile}"]
    if name not in read.table.rows:
        return []
    notes: list[str] = []
    if target.kind == "project" and name in read.table.project_settings.trusted and not read.is_trusted:
        notes.append(f"{name} takes effect once you trust the folder: `bradawl trust`")
    return [*notes, *_stronger(name, target, in_profile, read)]


def notes_after_removal(path: KeyPath, read: SettingsSources) -> list[str]:
    """A note after a key was removed: what sets it now."""
    name = ".".join(path[2:] if path[0] == "profiles" else path)
    found = [one for one in settings_in_force(read) if one.name == name and one.kind != "default"]
    return [f"{name} is still set by {one.source}" for one in found]


def _stronger(name: str, target: Target, in_profile: str, read: SettingsSources) -> list[str]:
    row = read.table.rows[name]
    if row.kind in LISTS:
        return []  # all sources add to a list
    if read.managed is not None and name in read.managed.values:
        return [f"{read.managed.path} sets {name} = {read.managed.values[name]}, and wins"]
    found = read.given.sources.find(name)
    if found is None or _is_target(found.layer.source_of(name), target, found.layer.profile == in_profile):
        return []
    _, source = source_text(found.layer, name)
    return [f"{source} sets {key_text((name,))} too, and wins: it is stronger than {target.name}"]


def _is_target(source: str, target: Target, is_same_part: bool) -> bool:
    return is_same_part and source.rpartition(":")[0] == target.name
