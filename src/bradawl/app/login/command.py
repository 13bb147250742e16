"""The commands `bradawl login` and `bradawl logout`."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from bradawl.app.console import Console
from bradawl.app.exit_code import ERROR, OK
from bradawl.app.local_models import find_local
from bradawl.app.login.default_model import users_model
from bradawl.app.login.dialogue import Dialogue, ReadSecret
from bradawl.app.login.flow import Endpoints, Login, Wishes
from bradawl.app.login.key_store import KeyStore
from bradawl.app.login.key_text import looks_like_key
from bradawl.app.login.listing import key_entries, listing_lines
from bradawl.app.login.provider_menu import (
    OTHER,
    ask_for_endpoint,
    ask_for_url,
    choose_provider,
    free_name,
    name_problem,
    own_provider,
    url_from,
)
from bradawl.app.login.secret_input import read_secret
from bradawl.app.rendering import one_line
from bradawl.app.settings.load import read_settings
from bradawl.app.settings.model_choice import ModelSources
from bradawl.app.settings.providers import SCRIPTED, Provider, unknown_provider
from bradawl.app.settings.system_keyring import SystemKeyring, system_keyring
from bradawl.app.terminal_size import ONE_LINE, terminal_width
from bradawl.core.errors import SettingsError
from bradawl.safety.control_characters import json_for_terminals

_LONGEST_PIPED: Final = 100_000


class Surroundings(NamedTuple):
    """What the commands need of the machine."""

    environ: Mapping[str, str]
    console: Console
    cwd: str
    endpoints: Endpoints
    read_secret: ReadSecret
    find_keyring: Callable[[], SystemKeyring | None] = system_keyring

    @property
    def width(self) -> int:
        """Cells in a line of stdout."""
        return terminal_width(self.console.stdout, self.environ, ONE_LINE)


def run_login(options: Mapping[str, object], environ: Mapping[str, str], console: Console, cwd: str) -> int:
    """Run `bradawl login` and return the exit code. Raises `SettingsError`."""
    return login(options, _surroundings(environ, console, cwd))


def run_logout(options: Mapping[str, object], environ: Mapping[str, str], console: Console, cwd: str) -> int:
    """Run `bradawl logout` and return the exit code. Raises `SettingsError`."""
    return logout(options, _surroundings(environ, console, cwd))


def _surroundings(environ: Mapping[str, str], console: Console, cwd: str) -> Surroundings:
    from bradawl.app.build.model import build_http, build_single_model

    endpoints = Endpoints(build_http, lambda chosen: build_single_model(chosen, environ))
    return Surroundings(environ, console, cwd, endpoints, read_secret)


def login(options: Mapping[str, object], here: Surroundings) -> int:
    """`run_login` with its surroundings. Raises `SettingsError`."""
    given, config = _read(here)
    keyring = here.find_keyring()
    store = KeyStore(given.credentials, keyring, prefers_file=bool(options.get("in_file")))
    store.stored()  # a file that can't be used is reported before the user is asked for anything
    if options.get("list"):
        return _list(options, given, store, here)
    dialogue = None
    if here.console.is_interactive and not options.get("with_key_stdin"):
        dialogue = Dialogue(here.console, here.width, here.read_secret)
    say = here.console.say if dialogue is None else dialogue.say
    try:
        one, is_new = _provider(options, given, here, dialogue)
        wishes = Wishes(_model_of(options, one), not options.get("no_test"), is_new)
        piped = _piped_key(here.console) if dialogue is None and one.needs_key else ""
        return Login(given, config, store, here.endpoints, say, dialogue).run(one, wishes, piped)
    except EOFError:
        say("Nothing was stored.")
        return ERROR


def logout(options: Mapping[str, object], here: Surroundings) -> int:
    """`run_logout` with its surroundings. Raises `SettingsError`."""
    given, _ = _read(here)
    store = KeyStore(given.credentials, here.find_keyring())
    names = _names_to_remove(options, given, store)
    code = ERROR
    for name in names:
        places = store.remove(name)
        if places:
            code = OK
            where = " and ".join("the system keyring" if place == "keyring" else str(store.path) for place in places)
            here.console.say(f"The key of {name} is removed from {where}.")
        else:
            here.console.say(f"No key of {name} is stored.")
        if (one := given.providers.get(name)) is not None:
            _say_what_is_left(one, here)
    if not names:
        here.console.say("No key is stored.")
    return code


def _say_what_is_left(one: Provider, here: Surroundings) -> None:
    """Name the sources that still supply a key."""
    left = [f"the variable {name}" for name in one.key_names if here.environ.get(name, "").strip()]
    left += ["the api_key_command in config.toml"] if one.key_command else []
    if left:
        here.console.say(f"{one.name} still has a key from {' and '.join(left)}.")


def _names_to_remove(options: Mapping[str, object], given: ModelSources, store: KeyStore) -> Sequence[str]:
    stored = tuple(store.stored())
    if options.get("all"):
        return stored
    wanted = options.get("provider")
    if wanted is None:
        if len(stored) > 1:
            raise SettingsError(f"Keys of several providers are stored: name one, or use --all: {', '.join(stored)}.")
        return stored
    name = str(wanted)
    if name not in given.providers and name not in stored:
        raise SettingsError(unknown_provider(name, given.providers))
    return (name,)


# ------------------------------------------------------------------ reading


def _read(here: Surroundings) -> tuple[ModelSources, Path]:
    """The sources of settings, and the path of config.toml."""
    read = read_settings({}, here.environ, here.cwd)
    return read.given, Path(read.home.config, "config.toml")


def _piped_key(console: Console) -> str:
    """All of stdin. Raises `SettingsError` for too much of it."""
    if console.has_user:
        raise SettingsError("--with-key-stdin reads the key from a pipe, and stdin is a terminal; leave it out.")
    try:
        text = console.stdin.read(_LONGEST_PIPED + 1)
    except (OSError, ValueError) as error:
        raise SettingsError("stdin can't be read; pipe the key in.") from error
    if len(text) > _LONGEST_PIPED:
        raise SettingsError(f"stdin has more than {_LONGEST_PIPED:,} characters; that is no key.")
    return text


def _provider(
    options: Mapping[str, object], given: ModelSources, here: Surroundings, dialogue: Dialogue | None
) -> tuple[Provider, bool]:
    """The provider, and whether its address has to be stored. Raises `SettingsError` and `EOFError`."""
    name = str(options.get("provider") or "")
    url = str(options.get("base_url") or "")
    if not name and dialogue is not None:
        servers = asyncio.run(find_local(here.endpoints.connect(None, None), given.providers, given.environ))
        name = OTHER if url else choose_provider(dialogue, given, servers)
    if not name:
        raise SettingsError("Name the provider: `bradawl login PROVIDER`; the key is read from stdin.")
    if looks_like_key(name):
        raise SettingsError(
            "That looks like a key. Other users can read the arguments of a program, so name the provider alone and "
            "paste the key when you are asked for it. Replace this key."
        )
    if name == OTHER and dialogue is not None and not url:
        return ask_for_endpoint(dialogue, given.providers), True
    known = given.providers.get(name)
    if url and name != SCRIPTED:
        return _at_url(name, url, known, given)
    if known is None or name == SCRIPTED:
        raise SettingsError(unknown_provider(name, given.providers))
    if known.base_url or any(given.environ.get(each, "").strip() for each in (known.base_url_name, *known.url_names)):
        return known, False
    if dialogue is None:
        raise SettingsError(f"{name} has no address of its own: use `--base-url URL`.")
    variable = known.url_names[0] if known.url_names else ""
    return own_provider(name, ask_for_url(dialogue, f"Address of your {name} endpoint:", variable), known), True


def _at_url(name: str, url: str, known: Provider | None, given: ModelSources) -> tuple[Provider, bool]:
    if name == OTHER:
        name = free_name(url_from(url, "--base-url"), given.providers)
    if known is None and (problem := name_problem(name, given.providers)):
        raise SettingsError(problem)
    variable = known.url_names[0] if known is not None and known.url_names else ""
    moved = own_provider(name, url_from(url, "--base-url", variable), known)
    return moved, known is None or not known.is_users or known.base_url != moved.base_url


def _model_of(options: Mapping[str, object], one: Provider) -> str:
    """The model of the option, which may be named with its provider. Raises `SettingsError`."""
    named = str(options.get("model") or "").strip()
    head, slash, rest = named.partition("/")
    return rest if slash and head == one.name else named


# ------------------------------------------------------------------ listing


def _list(options: Mapping[str, object], given: ModelSources, store: KeyStore, here: Surroundings) -> int:
    entries = key_entries(given.providers, here.environ, store)
    model = users_model(given.sources)
    if options.get("json"):
        data = msgspec.json.encode({"keys": entries, "default_model": model})
        here.console.answer(json_for_terminals(msgspec.json.format(data).decode()) + "\n")
    else:
        lines = listing_lines(entries, one_line(model), here.width)
        here.console.answer("".join(f"{line}\n" for line in lines))
    return OK
