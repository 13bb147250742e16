"""Presets of the setting `network`: the hosts from which package managers download.

A preset stands for the hosts that the tool's own settings name, and for the tool's default index if the installed tool
names it in a file. bradawl itself names no package index. If a setting can't be used, the default is left out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from bradawl.app.settings import tool_indexes
from bradawl.app.settings.index_urls import url_domain
from bradawl.app.settings.installed_indexes import npm_hosts, pip_hosts
from bradawl.app.settings.tool_settings import NamedUrl, ToolSettings, shown, shown_url
from bradawl.core.errors import SettingsError
from bradawl.safety.permissions.domains import parse_grant

_GITHUB: Final = (
    *("github.com", "api.github.com", "codeload.github.com", "raw.githubusercontent.com"),
    *("objects.githubusercontent.com", "release-assets.githubusercontent.com"),
)
_MOST_NOTES: Final = 5


class PresetHosts(NamedTuple):
    """What a preset stands for on this machine."""

    domains: tuple[str, ...]
    """As the setting `network` would name them."""
    notes: tuple[str, ...]
    """Messages for the user: settings that can't be used, and a default index that is not known."""


class Preset(NamedTuple):
    """Where a tool downloads from."""

    indexes: Callable[[ToolSettings], Iterable[NamedUrl]]
    """The indexes that the tool's settings name."""
    defaults: Callable[[ToolSettings], tuple[str, ...] | None]
    """Hosts of the default index, the index itself first; None if no installed tool names it."""
    default_is_in: str
    """Which file names the default index; empty if none does."""


def _none(_: ToolSettings) -> None:
    return None


def _go_hosts(tools: ToolSettings) -> tuple[str, ...] | None:
    found = tool_indexes.default_go_servers(tools)
    if found is None:
        return None
    try:
        return tuple(url_domain(each.text) for each in found)
    except ValueError:
        return None


_PRESETS: Final[Mapping[str, Preset]] = {
    "pip": Preset(tool_indexes.pip_indexes, pip_hosts, "an installed pip"),
    # uv's default index is the Python Package Index (docs.astral.sh/uv/concepts/indexes, read 2026-11-23).
    "uv": Preset(tool_indexes.uv_indexes, pip_hosts, "an installed pip"),
    "npm": Preset(tool_indexes.npm_registries, npm_hosts, "an installed npm"),
    # pnpm's default registry is npm's (pnpm.io/settings, read 2026-11-23).
    "pnpm": Preset(tool_indexes.pnpm_registries, npm_hosts, "an installed npm"),
    "yarn": Preset(tool_indexes.yarn_registries, _none, ""),
    "cargo": Preset(tool_indexes.cargo_registries, _none, ""),
    "go": Preset(tool_indexes.go_servers, _go_hosts, "go.env of an installed Go (1.21 or later)"),
    "apt": Preset(tool_indexes.apt_sources, _none, ""),
}
PRESETS: Final = (*_PRESETS, "github")
"""Names of presets in the setting `network`."""


def preset_hosts(name: str, tools: ToolSettings) -> PresetHosts:
    """The hosts of a preset. Reads the settings of its tool and files of the installed tool.

    `tools` is used for one preset only: it records the files that can't be used.
    """
    if name == "github":
        return PresetHosts(_GITHUB, ())
    preset = _PRESETS[name]
    named = list(preset.indexes(tools))
    domains, problems = _domains(named)
    problems = [*tools.problems, *problems]
    defaults = preset.defaults(tools)
    notes = list(_problem_notes(name, problems))
    if not problems and not any(each.replaces_default for each in named):
        if defaults is None:
            notes.append(_unknown_default(name, preset, tools.refused))
        domains += defaults or ()
    elif defaults and defaults[0] in domains:
        domains += defaults  # the index refers to another host for its files
    return PresetHosts(tuple(dict.fromkeys(domains)), tuple(dict.fromkeys(notes)))


def _domains(named: Iterable[NamedUrl]) -> tuple[list[str], list[str]]:
    """Domains of the URLs, and a message for each URL that has none."""
    domains: list[str] = []
    problems: list[str] = []
    for each in named:
        try:
            domains.append(url_domain(each.text))
        except ValueError as error:
            problems.append(f"{shown(each.place)}: '{shown_url(each.text)}' can't be granted: {error}")
    return domains, problems


def _problem_notes(name: str, problems: list[str]) -> Iterator[str]:
    for problem in problems[:_MOST_NOTES]:
        yield (
            f"the preset {name} of `network` grants no default index: {problem}. "
            "If commands need a host, name it in `network`."
        )
    if len(problems) > _MOST_NOTES:
        yield f"the preset {name} of `network`: {len(problems) - _MOST_NOTES} more settings can't be used."


def _unknown_default(name: str, preset: Preset, refused: list[str]) -> str:
    if not preset.default_is_in:
        why = f"no file of {name} names it"
    else:
        why = f"{preset.default_is_in} would name it, and there is none outside the workspace"
        why += "".join(f"; {each}" for each in refused[:2])
    return (
        f"the default index of {name} is not known, so the preset {name} of `network` does not grant it: {why}. "
        f'Name the hosts beside the preset or instead of it: network = ["HOST"].'
    )


def check_domains(texts: Iterable[str], place: str) -> None:
    """Check the entries of the setting `network`, which may be names of presets. Raises `SettingsError`."""
    for text in texts:
        if text not in PRESETS:
            _check_domain(text, place)


def _check_domain(text: str, place: str) -> None:
    if near := _preset_meant(text):
        raise SettingsError(f"{place}: there is no preset {text[:200]!r}; did you mean {near}?")
    try:
        parse_grant(text)
    except ValueError as error:
        raise SettingsError(f"{place}: {text[:200]!r} can't be used: {error}.") from error


def _preset_meant(text: str) -> str:
    """The preset that a text names in other case, with a standard port or with one wrong letter; empty if none."""
    name, _, port = text.strip(" \t").lower().partition(":")
    if name in PRESETS:
        return name if port in ("", "80", "443") else ""
    return next((each for each in PRESETS if not port and len(each) > 2 and _is_one_letter_off(name, each)), "")


def _is_one_letter_off(text: str, name: str) -> bool:
    """Whether one letter of a name was replaced, left out or added, or two neighbours were exchanged."""
    pairs = enumerate(zip(text, name, strict=False))
    at = next((at for at, (one, other) in pairs if one != other), min(len(text), len(name)))
    is_replaced_or_added = text[at + 1 :] in (name[at + 1 :], name[at:])
    is_left_out = text[at:] == name[at + 1 :]
    return is_replaced_or_added or is_left_out or text == name[:at] + name[at : at + 2][::-1] + name[at + 2 :]
