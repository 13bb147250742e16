"""The package indexes that the settings of pip, uv, npm, pnpm, yarn, cargo, go and apt name."""

import configparser
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

from bradawl.app.settings.installed_indexes import go_files, npm_folders, pip_prefixes
from bradawl.app.settings.tool_settings import NamedUrl, ToolSettings, shown

_LINE: Final = re.compile(r"""^\s*"?([\w@/.:-]+?)"?\s*(?:=|:\s|\s)\s*(.*?)\s*$""")


def pip_indexes(tools: ToolSettings) -> Iterator[NamedUrl]:
    """Indexes of pip's variables and configuration files."""
    yield from tools.variable("PIP_INDEX_URL", replaces_default=True)
    yield from tools.words("PIP_EXTRA_INDEX_URL")
    for path in _pip_files(tools):
        for key, value in _pip_values(tools, path):
            place = f"{path}: {key}"
            if key == "index-url":
                yield NamedUrl(value.strip(), place, replaces_default=True)
            elif key == "extra-index-url":
                yield from (NamedUrl(word, place) for word in value.split())


def _pip_files(tools: ToolSettings) -> Iterator[Path]:
    if tools.environment.get("PIP_CONFIG_FILE") == "/dev/null":
        return  # documented: pip reads no configuration file
    if named := tools.named_file("PIP_CONFIG_FILE"):
        yield named
    yield tools.folder("XDG_CONFIG_HOME", ".config") / "pip" / "pip.conf"
    yield tools.home / "Library" / "Application Support" / "pip" / "pip.conf"
    yield tools.home / ".pip" / "pip.conf"
    yield Path("/etc/xdg/pip/pip.conf")
    yield Path("/etc/pip.conf")
    # A virtual environment in the workspace is not the user's.
    yield from (path for prefix in pip_prefixes(tools) if not tools.is_in_workspace(path := prefix / "pip.conf"))


def _pip_values(tools: ToolSettings, path: Path) -> Iterator[tuple[str, str]]:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(tools.text(path))
    except configparser.Error:
        tools.problems.append(f"{shown(str(path))}: it is not a valid configuration file")
        return
    for section in parser.sections():
        for key, value in parser.items(section):
            yield key.replace("_", "-").removeprefix("--"), value


def uv_indexes(tools: ToolSettings) -> Iterator[NamedUrl]:
    """Indexes of uv's variables and configuration files."""
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        yield from map(_without_name, tools.variable(name, replaces_default=True))
    for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL"):
        yield from map(_without_name, tools.words(name))
    named = tools.named_file("UV_CONFIG_FILE")
    user = tools.folder("XDG_CONFIG_HOME", ".config") / "uv" / "uv.toml"
    for path in (named,) if named else (user, Path("/etc/xdg/uv/uv.toml"), Path("/etc/uv/uv.toml")):
        whole = tools.table(path)
        for table in (whole, _table(whole.get("pip"))):
            yield from _uv_table(table, str(path))


def _uv_table(table: dict[str, object], place: str) -> Iterator[NamedUrl]:
    yield from (NamedUrl(url, f"{place}: index-url", True) for url in _texts(table.get("index-url")))
    yield from (NamedUrl(url, f"{place}: extra-index-url") for url in _texts(table.get("extra-index-url")))
    for index in _tables(table.get("index")):
        is_default = index.get("default") is True
        yield from (NamedUrl(url, f"{place}: index", is_default) for url in _texts(index.get("url")))


def _without_name(found: NamedUrl) -> NamedUrl:
    """An index may be written NAME=URL."""
    return found._replace(text=re.sub(r"^[\w.-]+=(?=\w+:)", "", found.text))


def npm_registries(tools: ToolSettings) -> Iterator[NamedUrl]:
    """Registries of npm's variables and configuration files."""
    for name in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
        yield from tools.variable(name, replaces_default=True)
    named = tools.named_file("NPM_CONFIG_USERCONFIG", "npm_config_userconfig")
    of_npm = (folder / "npmrc" for folder in npm_folders(tools) if not tools.is_in_workspace(folder))
    of_node = (prefix / "etc" / "npmrc" for prefix in tools.prefixes("node") if not tools.is_in_workspace(prefix))
    for path in dict.fromkeys((named or tools.home / ".npmrc", Path("/etc/npmrc"), *of_npm, *of_node)):
        yield from _npm_file(tools, path)


def _npm_file(tools: ToolSettings, path: Path) -> Iterator[NamedUrl]:
    for key, value in _lines(tools, path):
        if key == "registry" or (key.startswith("@") and key.endswith(":registry")):
            yield NamedUrl(value, f"{path}: {key}", key == "registry")


def pnpm_registries(tools: ToolSettings) -> Iterator[NamedUrl]:
    """Registries of pnpm's configuration file, and those of npm."""
    yield from npm_registries(tools)
    for name in ("pnpm_config_registry", "PNPM_CONFIG_REGISTRY"):
        yield from tools.variable(name, replaces_default=True)
    yield from _npm_file(tools, tools.folder("XDG_CONFIG_HOME", ".config") / "pnpm" / "rc")


def yarn_registries(tools: ToolSettings) -> Iterator[NamedUrl]:
    """Registries of the variables and configuration files of both versions of yarn, and those of npm."""
    yield from npm_registries(tools)
    for name in ("YARN_NPM_REGISTRY_SERVER", "YARN_REGISTRY", "yarn_registry"):
        yield from tools.variable(name, replaces_default=True)
    for path in (tools.home / ".yarnrc.yml", tools.home / ".yarnrc"):
        for key, value in _lines(tools, path):
            if key in ("npmregistryserver", "registry"):
                yield NamedUrl(value, f"{path}: {key}", replaces_default=True)


def cargo_registries(tools: ToolSettings) -> Iterator[NamedUrl]:
    """Registries of cargo's variables and configuration file. They replace the default one by `replace-with`."""
    for name in sorted(tools.environment):
        if re.fullmatch(r"CARGO_REGISTRIES_\w+_INDEX", name):
            yield from map(_without_protocol, tools.variable(name))
    for path in _cargo_files(tools):
        table = tools.table(path)
        is_replaced = "replace-with" in _table(_table(table.get("source")).get("crates-io"))
        for section in ("source", "registries"):
            for name, each in _table(table.get(section)).items():
                urls = (url for key in ("registry", "index") for url in _texts(_table(each).get(key)))
                place = f"{path}: {section}.{name}"
                yield from (_without_protocol(NamedUrl(url, place, is_replaced)) for url in urls)


def _cargo_files(tools: ToolSettings) -> tuple[Path, ...]:
    folder = tools.folder("CARGO_HOME", ".cargo")
    return folder / "config", folder / "config.toml"


def _without_protocol(found: NamedUrl) -> NamedUrl:
    return found._replace(text=found.text.removeprefix("sparse+"))


def go_servers(tools: ToolSettings) -> Iterator[NamedUrl]:
    """The module proxies and the checksum database of the user's settings of Go."""
    for key in ("GOPROXY", "GOSUMDB"):
        if found := _go_setting(tools, key):
            yield from _go_urls(key, *found)


def default_go_servers(tools: ToolSettings) -> Iterator[NamedUrl] | None:
    """The servers that the installed Go uses for what the user's settings leave open; None if Go names none."""
    missing = [key for key in ("GOPROXY", "GOSUMDB") if not _go_setting(tools, key)]
    for path in go_files(tools):
        if found := _go_lines(tools.installed_text(path)):
            return (url for key in missing if key in found for url in _go_urls(key, found[key], str(path)))
    return None if missing else iter(())


def _go_setting(tools: ToolSettings, key: str) -> tuple[str, str] | None:
    """A value and its place."""
    if value := tools.environment.get(key, "").strip():
        return value, key
    if tools.environment.get("GOENV") == "off":
        return None
    path = tools.named_file("GOENV") or tools.folder("XDG_CONFIG_HOME", ".config") / "go" / "env"
    value = _go_lines(tools.text(path)).get(key, "").strip()
    return (value, f"{path}: {key}") if value else None


def _go_lines(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {key: value for key, mark, value in pairs if mark}


def _go_urls(key: str, value: str, place: str) -> Iterator[NamedUrl]:
    if key == "GOSUMDB":
        # NAME, NAME+KEY, or either with the URL of a mirror.
        name, _, url = value.partition(" ")
        if value != "off":
            yield NamedUrl(url.strip() or f"https://{name.partition('+')[0]}", place)
        return
    for word in filter(None, map(str.strip, re.split(r"[,|]", value))):
        if word not in ("direct", "off"):
            # A name without a scheme means HTTPS (go.dev/ref/mod, read 2026-11-23).
            is_url = ":/" in word or word.startswith("/") or not re.search(r"[.:/]", word)
            yield NamedUrl(word if is_url else f"https://{word}", place)


def apt_sources(tools: ToolSettings) -> Iterator[NamedUrl]:
    """Addresses in the lists of apt. Those of media and of local files are left out."""
    folder = Path("/etc/apt")
    try:
        more = sorted((folder / "sources.list.d").iterdir())[:100]
    except OSError:
        more = []
    for path in (folder / "sources.list", *more):
        find = {".list": _list_urls, ".sources": _stanza_urls}.get(path.suffix)
        urls = find(tools.text(path)) if find else ()
        for url in urls:
            if not re.match(r"(cdrom|file|copy):", url):
                yield NamedUrl(re.sub(r"^mirror\+(?=http)", "", url), str(path), replaces_default=True)


def _list_urls(text: str) -> Iterator[str]:
    """URLs of lines such as `deb [arch=amd64] URL SUITE COMPONENT`."""
    for line in text.splitlines():
        if found := re.match(r"\s*deb(?:-src)?\s+(?:\[[^\]]*\]\s*)?(\S+)\s+\S", line):
            yield found[1]


def _stanza_urls(text: str) -> Iterator[str]:
    """URLs of stanzas with the fields `URIs:` and `Enabled:`. An indented line continues the field above."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", lines):
        fields: dict[str, str] = {}
        for field in re.split(r"\n(?![ \t])", stanza):
            name, _, value = field.strip().partition(":")
            fields[name.lower()] = value
        if fields.get("enabled", "yes").strip().lower() not in ("no", "false", "0", "off", "without", "disable"):
            yield from fields.get("uris", "").split()


def _lines(tools: ToolSettings, path: Path) -> Iterator[tuple[str, str]]:
    """Keys in lower case, and values, of the lines of a file such as `.npmrc` and `.yarnrc`."""
    for line in tools.text(path).splitlines():
        if not line.lstrip().startswith(("#", ";", "[")) and (found := _LINE.match(line)):
            yield found[1].lower(), found[2].strip("\"'")


def _texts(value: object) -> Iterator[str]:
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    return (each for each in values if isinstance(each, str))


def _table(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _tables(value: object) -> Iterator[dict[str, object]]:
    return (_table(each) for each in cast("list[object]", value)) if isinstance(value, list) else iter(())
