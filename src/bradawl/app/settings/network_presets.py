"""Presets of the setting `network`: the hosts from which package managers download.

A preset stands for the hosts that the tool's own settings name: its environment variables and the files of the user
and the machine, never those of a project. Without such settings the presets of Python, Rust and Go stand for the
public registry, as documented by each tool in November 2026; those of npm, yarn and apt for no host.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, cast
from urllib.parse import urlsplit

from bradawl.app.settings.files import FILE_LIMIT_BYTES, read_small_file
from bradawl.core.effects import is_within
from bradawl.core.errors import SettingsError
from bradawl.safety.permissions.domains import parse_domain, parse_grant

_WEB_PORTS: Final = {"http": 80, "https": 443}
_PYPI: Final = ("pypi.org", "files.pythonhosted.org")
_CRATES: Final = ("index.crates.io", "static.crates.io")
_GITHUB: Final = (
    *("github.com", "api.github.com", "codeload.github.com", "raw.githubusercontent.com"),
    *("objects.githubusercontent.com", "release-assets.githubusercontent.com"),
)
_FOLLOWED: Final = {"pypi.org": "files.pythonhosted.org", "index.crates.io": "static.crates.io"}
"""Hosts of an index, and the host that it refers to for the files."""
_INI_KEY: Final = re.compile(r"^\s*([\w@/.:-]+?)\s*(?:=|:\s)\s*(.*?)\s*$")


class ToolSettings:
    """The settings of a user's tools: variables, and files that only the user and root can write."""

    def __init__(self, environment: Mapping[str, str], home: str, roots: Sequence[str] = ()) -> None:
        """`home` is the home folder, `roots` are the folders of the workspace: no file in them is read."""
        self.environment = environment
        self.home = Path(home or "/nonexistent")
        self._roots = tuple(roots)

    def variables(self, *names: str) -> Iterator[str]:
        """The words of these variables; one that is not set has none."""
        for name in names:
            yield from self.environment.get(name, "").split()

    def folder(self, variable: str, *otherwise: str) -> Path:
        """The folder that a variable names, else a folder below the home folder."""
        named = self.environment.get(variable, "")
        return Path(named) if named.startswith("/") else self.home.joinpath(*otherwise)

    def text(self, path: Path) -> str:
        """The text of a file; empty if there is none, or if it is in the workspace or others can write it."""
        try:
            if any(is_within(os.path.realpath(path), root) for root in self._roots):
                return ""
            data = read_small_file(path, _check_owner) or b""
        except (OSError, ValueError):
            return ""
        return "" if len(data) > FILE_LIMIT_BYTES else data.decode("utf-8", "replace")

    def table(self, path: Path) -> dict[str, object]:
        """The table in a TOML file; empty if there is none or it is not valid."""
        text = self.text(path)
        if not text:
            return {}
        import tomllib

        try:
            return tomllib.loads(text)
        except (ValueError, RecursionError):
            return {}

    def values(self, path: Path, wanted: Callable[[str], bool]) -> Iterator[str]:
        """The words of wanted keys in a file of lines `key = value`. An indented line continues the one above."""
        is_wanted = False
        for line in self.text(path).splitlines():
            if line.lstrip().startswith(("#", ";", "[")):
                is_wanted = False
            elif is_wanted and line[:1] in " \t" and "=" not in line:
                yield from line.split()
            elif found := _INI_KEY.match(line):
                is_wanted = wanted(found[1].lower())
                yield from found[2].strip("\"'").split() if is_wanted else ()


def _check_owner(found: os.stat_result) -> None:
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & 0o022:
        raise PermissionError("other users can write it")


class Preset(NamedTuple):
    """Where a tool downloads from."""

    defaults: tuple[str, ...]
    urls: Callable[[ToolSettings], Iterable[str]] | None = None
    """The URLs that the tool's settings name; None if it has no such settings."""
    keeps_defaults: Callable[[ToolSettings], bool] | None = None
    """Whether the public registry is used besides the named ones; None: never."""


def _pip(tools: ToolSettings) -> Iterator[str]:
    yield from tools.variables("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")
    for path in _pip_files(tools):
        yield from tools.values(path, lambda key: key.replace("_", "-") in ("index-url", "extra-index-url"))


def _pip_files(tools: ToolSettings) -> Iterator[Path]:
    if (named := tools.environment.get("PIP_CONFIG_FILE", "")).startswith("/"):
        yield Path(named)
    yield tools.folder("XDG_CONFIG_HOME", ".config") / "pip" / "pip.conf"
    yield tools.home / "Library" / "Application Support" / "pip" / "pip.conf"
    yield tools.home / ".pip" / "pip.conf"
    yield Path("/etc/pip.conf")


def _pip_has_no_index(tools: ToolSettings) -> bool:
    keys = (tools.values(path, lambda key: key.replace("_", "-") == "index-url") for path in _pip_files(tools))
    return not any((*tools.variables("PIP_INDEX_URL"), *(value for values in keys for value in values)))


def _uv_indexes(tools: ToolSettings) -> Iterator[tuple[str, bool]]:
    """URLs of uv's settings, and whether each replaces the public index."""
    for url in tools.variables("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        yield url, True
    for url in tools.variables("UV_INDEX", "UV_EXTRA_INDEX_URL"):
        yield url, False
    for path in (tools.folder("XDG_CONFIG_HOME", ".config") / "uv" / "uv.toml", Path("/etc/uv/uv.toml")):
        table = tools.table(path)
        yield from ((url, True) for url in _texts(table.get("index-url")))
        yield from ((url, False) for url in _texts(table.get("extra-index-url")))
        for index in _tables(table.get("index")):
            yield from ((url, index.get("default") is True) for url in _texts(index.get("url")))


def _uv(tools: ToolSettings) -> Iterator[str]:
    # An index may be written NAME=URL.
    return (re.sub(r"^[\w.-]+=(?=https?://)", "", url) for url, _ in _uv_indexes(tools))


def _uv_has_no_default(tools: ToolSettings) -> bool:
    return not any(is_default for _, is_default in _uv_indexes(tools))


def _npm(tools: ToolSettings) -> Iterator[str]:
    yield from tools.variables("npm_config_registry", "NPM_CONFIG_REGISTRY")
    named = tools.environment.get("NPM_CONFIG_USERCONFIG", "") or tools.environment.get("npm_config_userconfig", "")
    files = (Path(named) if named.startswith("/") else tools.home / ".npmrc", Path("/etc/npmrc"))
    for path in (*files, tools.folder("XDG_CONFIG_HOME", ".config") / "pnpm" / "rc"):
        yield from tools.values(path, lambda key: key == "registry" or key.endswith(":registry"))


def _yarn(tools: ToolSettings) -> Iterator[str]:
    yield from _npm(tools)
    yield from tools.variables("YARN_NPM_REGISTRY_SERVER")
    yield from tools.values(tools.home / ".yarnrc.yml", lambda key: key == "npmregistryserver")


def _cargo_file(tools: ToolSettings) -> dict[str, object]:
    return tools.table(tools.folder("CARGO_HOME", ".cargo") / "config.toml")


def _cargo(tools: ToolSettings) -> Iterator[str]:
    names = (name for name in tools.environment if re.fullmatch(r"CARGO_REGISTRIES_\w+_INDEX", name))
    table = _cargo_file(tools)
    sources = [each for key in ("source", "registries") for each in _tables_in(table.get(key))]
    urls = (url for each in sources for key in ("registry", "index") for url in _texts(each.get(key)))
    return (url.removeprefix("sparse+") for url in (*tools.variables(*names), *urls))


def _cargo_uses_crates_io(tools: ToolSettings) -> bool:
    source = _table(_table(_cargo_file(tools).get("source")).get("crates-io"))
    return "replace-with" not in source


def _go(tools: ToolSettings) -> Iterator[str]:
    file = tools.folder("XDG_CONFIG_HOME", ".config") / "go" / "env"
    if (named := tools.environment.get("GOENV", "")).startswith("/"):
        file = Path(named)
    proxies = tuple(tools.variables("GOPROXY")) or tuple(tools.values(file, lambda key: key == "goproxy"))
    sums = tuple(tools.variables("GOSUMDB")) or tuple(tools.values(file, lambda key: key == "gosumdb"))
    found = [url for text in proxies for url in re.split(r"[,|]", text) if "://" in url]
    if found:
        yield from found
        database = sums[-1] if sums else "sum.golang.org"
        yield from (
            () if database == "off" else (database if "://" in database else f"https://{database.split('+')[0]}",)
        )


def _apt(tools: ToolSettings) -> Iterator[str]:
    folder = Path("/etc/apt")
    try:
        more = sorted((folder / "sources.list.d").iterdir())[:100]
    except OSError:
        more = []
    for path in (folder / "sources.list", *more):
        if path.suffix in (".list", ".sources"):
            lines = (line for line in tools.text(path).splitlines() if not line.lstrip().startswith("#"))
            yield from (url for line in lines for url in re.findall(r"https?://[^\s\]]+", line))


PRESETS: Final[Mapping[str, Preset]] = {
    "pip": Preset(_PYPI, _pip, _pip_has_no_index),
    "uv": Preset(_PYPI, _uv, _uv_has_no_default),
    "npm": Preset((), _npm),
    "pnpm": Preset((), _npm),
    "yarn": Preset((), _yarn),
    "cargo": Preset(_CRATES, _cargo, _cargo_uses_crates_io),
    "go": Preset(("proxy.golang.org", "sum.golang.org"), _go),
    "apt": Preset((), _apt),
    "github": Preset(_GITHUB),
}
"""Presets by the name that the setting `network` gives them."""


def preset_domains(name: str, tools: ToolSettings) -> tuple[str, ...]:
    """The domains of a preset, as the setting `network` would name them. Reads the settings of its tool.

    A URL that names an address, or is no URL of the web, is left out.
    """
    preset = PRESETS[name]
    found = tuple(filter(None, map(_domain_of, preset.urls(tools)))) if preset.urls else ()
    if not found or (preset.keeps_defaults is not None and preset.keeps_defaults(tools)):
        found = (*found, *preset.defaults)
    return tuple(dict.fromkeys((*found, *(_FOLLOWED[each] for each in found if each in _FOLLOWED))))


def _domain_of(url: str) -> str:
    """The host of a URL, with its port if that is not the scheme's; empty if no rule can name it."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    default = _WEB_PORTS.get(parts.scheme)
    if default is None or not parts.hostname:
        return ""
    text = parts.hostname if port in (None, *_WEB_PORTS.values()) else f"{parts.hostname}:{port}"
    try:
        parse_domain(text)
    except ValueError:
        return ""
    return text


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


def _texts(value: object) -> Iterator[str]:
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    return (each for each in values if isinstance(each, str))


def _table(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _tables(value: object) -> Iterator[dict[str, object]]:
    return (_table(each) for each in cast("list[object]", value)) if isinstance(value, list) else iter(())


def _tables_in(value: object) -> Iterator[dict[str, object]]:
    return map(_table, _table(value).values())
