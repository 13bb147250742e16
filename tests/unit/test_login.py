"""`bradawl login` and `logout` with scripted endpoints: what is asked, tested, said and stored."""

import io
import json
import re
import tomllib
from pathlib import Path

import pytest

from bradawl.app.cli import parse
from bradawl.app.console import Console
from bradawl.app.login.command import Surroundings, login, logout
from bradawl.app.login.flow import Endpoints
from bradawl.app.login.key_store import KeyStore
from bradawl.app.login.listing import key_entries, listing_lines
from bradawl.app.model_endpoint import model_endpoint
from bradawl.app.settings.load import load_settings, read_settings
from bradawl.app.settings.system_keyring import SystemKeyring
from bradawl.core.errors import SettingsError
from bradawl.core.messages import Origin
from bradawl.core.ports import ModelInfo
from bradawl.providers.client import HttpModel
from bradawl.testing.fakes import Cut, FakeClock, FakeIds, Reply, ScriptedHttp

KEY = "sk-login-" + "0123456789abcd"
MODELS = ("text-embedding-3", "deepseek-flash", "deepseek-pro")
CHAT = (
    b'data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant",'
    b'"content":"ok"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


def failing(status, message, code=None):
    return Reply(status, (json.dumps({"error": {"message": message, "code": code}}).encode(),))


class Endpoint:
    """A provider that knows one key; `chat` answers requests for replies by the model's name."""

    def __init__(self, key=KEY, models=MODELS, chat=None, answers=None):
        self.key, self.models, self.chat, self.answers = key, models, chat or {}, answers
        self.https = []

    def http(self, *_):
        self.https.append(ScriptedHttp(self._answer))
        return self.https[-1]

    @property
    def requests(self):
        return [request for http in self.https for request in http.requests if "127.0.0.1" not in request.url]

    def _answer(self, request):
        if "127.0.0.1" in request.url or self.answers == "nothing":
            return Cut()
        if self.answers is not None:
            return self.answers
        if dict(request.headers).get("authorization") != f"Bearer {self.key}":
            return failing(401, f"Incorrect API key provided: {dict(request.headers).get('authorization')}")
        if request.method == "GET":
            return Reply(200, (json.dumps({"data": [{"id": name} for name in self.models]}).encode(),))
        model = json.loads(b"".join(request.body))["model"]
        return self.chat.get(model, Reply(200, (CHAT,), (("content-type", "text/event-stream"),)))

    def model(self, chosen):
        target = model_endpoint(chosen, {})
        info = ModelInfo(Origin(target.codec.api, chosen.provider, chosen.name))
        return HttpModel(target, self.http(), FakeClock(), FakeIds(), info)


class Input(io.StringIO):
    """Typed lines at a terminal, or a pipe."""

    def __init__(self, text="", *, is_terminal=True, echo=None):
        super().__init__(text)
        self._is_terminal = is_terminal
        self._echo = echo

    def isatty(self):
        return self._is_terminal

    def readline(self):
        line = super().readline()
        if self._echo is not None:
            self._echo.write(line)
        return line


class Person:
    """A user with a home folder, who logs in."""

    def __init__(self, home: Path):
        self.home, self.environ = home, {"HOME": str(home), "TERM": "xterm", "COLUMNS": "80"}
        self.config = home / ".config" / "bradawl"
        self.endpoint, self.keyring = Endpoint(), None
        self.secrets = []

    def _secret(self, console, question):
        console.answer(f"{question}\n")
        if not self.secrets:
            raise EOFError
        return self.secrets.pop(0)

    def surroundings(self, console):
        endpoints = Endpoints(self.endpoint.http, self.endpoint.model)
        return Surroundings(self.environ, console, str(self.home), endpoints, self._secret, lambda: self.keyring)

    def _run(self, command, options, lines, *, is_terminal):
        out, err = Input(is_terminal=is_terminal), Input()
        stdin = Input(lines, is_terminal=is_terminal, echo=out)
        console = Console(stdin, out, err, self.environ)
        code = command(options, self.surroundings(console))
        shown = out.getvalue() + err.getvalue()
        assert KEY not in shown
        assert all(len(line) <= 80 for line in shown.splitlines() if "/" not in line)
        return code, shown

    def login(self, *argv, lines="", secrets=()):
        self.secrets = list(secrets)
        return self._run(login, parse(["login", *argv]), lines, is_terminal=True)

    def pipe(self, *argv, key=KEY):
        return self._run(login, parse(["login", *argv]), key, is_terminal=False)

    def logout(self, *argv):
        return self._run(logout, parse(["logout", *argv]), "", is_terminal=True)

    def file(self, name):
        path = self.config / name
        return tomllib.loads(path.read_text()) if path.exists() else {}


@pytest.fixture
def person(tmp_path):
    return Person(tmp_path)


# ------------------------------------------------------------------ at a terminal


def test_a_login_tests_the_key_offers_models_and_stores_both(person):
    code, shown = person.login("deepseek", lines="\n", secrets=[f" export K='{KEY}'\n"])
    assert code == 0, shown
    assert "…abcd" in shown
    assert "without blanks around it, quotes, the name of the variable" in " ".join(shown.split())
    assert "1  deepseek-flash" in shown and "Enter for deepseek-flash" in shown
    assert shown.index("deepseek-pro") < shown.index("text-embedding-3")
    assert person.file("credentials.toml") == {"deepseek": {"api_key": KEY}}
    assert (person.config / "credentials.toml").stat().st_mode & 0o777 == 0o600
    assert person.file("config.toml") == {"model": "deepseek/deepseek-flash"}
    assert [request.method for request in person.endpoint.requests] == ["GET", "POST"]
    settings = load_settings({}, person.environ, str(person.home))
    assert (settings.model.name, settings.model.api_key) == ("deepseek-flash", KEY)


def test_the_list_of_models_shows_windows_and_prices_of_the_catalog(person):
    person.endpoint.models = ("unknown", "gpt-5.5")
    _, shown = person.login("openai", lines="-\n", secrets=[KEY])
    first, second = (line.split() for line in shown.splitlines() if re.match(r"\d  ", line))
    assert first[1] == "gpt-5.5" and first[2].endswith("M") and float(first[3]) > 0
    assert second == ["2", "unknown", "-", "-", "-"]


@pytest.mark.parametrize(
    ("lines", "model"),
    [
        ("2\n", "deepseek-pro"),
        ("pro\n", "deepseek-pro"),
        ("DEEPSEEK-PRO\n", "deepseek-pro"),
        ("deepseek\n9\npro\n", "deepseek-pro"),
        ("own-1\ny\n", "own-1"),
        ("own-1\nn\n1\n", "deepseek-flash"),
    ],
)
def test_a_model_is_chosen_by_number_or_by_a_part_of_its_name(person, lines, model):
    code, shown = person.login("deepseek", lines=lines, secrets=[KEY])
    assert code == 0, shown
    assert person.file("config.toml") == {"model": f"deepseek/{model}"}


def test_without_a_model_only_the_key_is_stored(person):
    code, shown = person.login("deepseek", lines="-\n", secrets=[KEY])
    assert (code, person.file("config.toml")) == (0, {})
    assert "No default model is set" in shown
    assert len(person.endpoint.requests) == 1


def test_a_wrong_key_can_be_entered_again_and_is_never_stored(person):
    code, shown = person.login("deepseek", lines="\n", secrets=["sk-wrong-0123456789", KEY])
    assert code == 0
    assert "does not accept this key" in shown and "sk-wrong" not in shown
    assert person.file("credentials.toml") == {"deepseek": {"api_key": KEY}}
    code, shown = person.login("groq", secrets=["sk-wrong-0123456789", ""])
    assert code == 1 and "Nothing was stored." in shown
    assert "groq" not in person.file("credentials.toml")


@pytest.mark.parametrize(("answer", "is_stored"), [("y\n", True), ("\n", False), ("", False)])
def test_a_key_that_could_not_be_tested_is_stored_only_if_the_user_wants_it(person, answer, is_stored):
    person.endpoint.answers = "nothing"
    code, shown = person.login("deepseek", lines=answer, secrets=[KEY])
    assert "HTTPS_PROXY" in shown
    assert bool(person.file("credentials.toml")) is is_stored
    assert (code == 0) is is_stored


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Reply(200, (b"<html>hotel login</html>",)), "not JSON"),
        (failing(400, "bad thing"), "bad thing"),
    ],
)
def test_an_endpoint_that_is_none_stores_nothing_and_offers_nothing(person, answer, words):
    person.endpoint.answers = answer
    code, shown = person.login("deepseek", secrets=[KEY])
    assert (code, person.file("credentials.toml")) == (1, {})
    assert words in shown and "Store it anyway" not in shown


def test_an_account_without_credit_is_said_and_the_key_is_stored(person):
    person.endpoint.chat = {"deepseek-flash": failing(402, "Insufficient Balance")}
    code, shown = person.login("deepseek", lines="\n", secrets=[KEY])
    assert code == 0 and "The key is accepted, but: Insufficient Balance" in shown
    assert person.file("credentials.toml")


def test_an_unknown_model_can_be_chosen_again(person):
    person.endpoint.chat = {"own-1": failing(404, "The model `own-1` does not exist", "model_not_found")}
    code, shown = person.login("deepseek", lines="own-1\ny\n2\n", secrets=[KEY])
    assert code == 0 and "own-1 can't be used" in shown
    assert person.file("config.toml") == {"model": "deepseek/deepseek-pro"}


def test_a_key_that_only_the_list_accepts_is_found_wrong_by_the_request(person):
    person.endpoint.chat = {"deepseek-flash": failing(401, "no")}
    code, shown = person.login("deepseek", lines="\n", secrets=[KEY])
    assert (code, person.file("credentials.toml")) == (1, {}), shown


def test_another_default_model_is_replaced_only_after_a_question(person):
    person.config.mkdir(parents=True)
    (person.config / "config.toml").write_text("# mine\nmodel = 'openai/gpt-5.5' # good\n")
    code, shown = person.login("deepseek", lines="\nn\n", secrets=[KEY])
    assert code == 0 and "instead of openai/gpt-5.5?" in shown
    assert "bradawl -m deepseek/deepseek-flash" in shown
    assert person.file("config.toml") == {"model": "openai/gpt-5.5"}
    person.login("deepseek", lines="\ny\n", secrets=[KEY])
    assert (person.config / "config.toml").read_text() == '# mine\nmodel = "deepseek/deepseek-flash" # good\n'


def test_a_variable_that_wins_is_named_and_not_used_for_the_test(person):
    person.environ["DEEPSEEK_API_KEY"] = "from-the-environment"
    code, shown = person.login("deepseek", lines="\n", secrets=[KEY])
    assert code == 0 and shown.index("is stored in") < shown.index("note: DEEPSEEK_API_KEY is set: it wins")
    assert shown.index("it wins") < shown.index("To start: ")


def test_the_provider_is_chosen_from_a_list_that_can_be_searched(person):
    code, shown = person.login(lines="kimi\n-\n", secrets=[KEY])
    assert code == 0 and "moonshot" in person.file("credentials.toml")
    assert "other" in shown and "OpenAI-compatible" in shown
    code, shown = person.login(lines="nonsense\ngroq\n-\n", secrets=[KEY])
    assert code == 0 and "matches nonsense" in shown


def test_a_key_typed_instead_of_a_provider_is_not_repeated(person):
    out = Input()
    console = Console(Input(f"{KEY}\n"), out, Input(), person.environ)
    assert login(parse(["login"]), person.surroundings(console)) == 1
    assert "replace it" in out.getvalue() and KEY not in out.getvalue()


def test_another_endpoint_gets_a_table_of_its_own(person):
    person.config.mkdir(parents=True)
    (person.config / "config.toml").write_text("# mine\nmax_steps = 3\n")
    code, shown = person.login(lines="other\nftp://x\napi.acme.example/v1\ngroq\n\n1\n", secrets=[KEY])
    assert code == 0, shown
    assert "must be an http or https URL" in shown and "groq is a provider already" in shown
    assert person.file("config.toml") == {
        "model": "acme/deepseek-flash",
        "max_steps": 3,
        "providers": {"acme": {"base_url": "https://api.acme.example/v1"}},
    }
    settings = load_settings({}, person.environ, str(person.home))
    assert (settings.model.base_url, settings.model.api_key) == ("https://api.acme.example/v1", KEY)


def test_an_endpoint_that_needs_no_key_is_stored_without_one(person):
    person.endpoint.answers = Reply(200, (json.dumps({"data": [{"id": "m"}]}).encode(),))
    code, shown = person.login(
        "lab", "--base-url", "http://192.168.1.9:8000/v1", "--no-test", lines="m\n", secrets=[""]
    )
    assert code == 0, shown
    assert person.file("credentials.toml") == {}
    assert load_settings({}, person.environ, str(person.home)).model.api_key == ""


def test_a_provider_without_an_address_is_asked_for_it(person):
    _, shown = person.login("azure", lines="https://acme.openai.azure.com\n-\n", secrets=[KEY])
    assert "Address of your azure endpoint" in shown
    assert person.endpoint.requests[0].url.startswith("https://acme.openai.azure.com/openai/v1/models")


def test_the_keyring_is_used_where_there_is_one(person):
    secrets = {}

    class Backend:
        def get_password(self, service, username):
            return secrets.get(username)

        def set_password(self, service, username, password):
            secrets[username] = password

        def delete_password(self, service, username):
            del secrets[username]

    person.keyring = SystemKeyring(Backend())
    code, shown = person.login("deepseek", lines="\n", secrets=[KEY])
    assert code == 0 and "in the system keyring" in shown
    assert (secrets, person.file("credentials.toml")) == ({"deepseek": KEY}, {"deepseek": {"keyring": True}})
    assert KEY not in "".join(path.read_text() for path in person.config.iterdir())
    _, shown = person.login("--list")
    assert "the system keyring" in shown and "…abcd" in shown
    assert person.logout() == (0, "The key of deepseek is removed from the system keyring.\n")
    assert (secrets, person.file("credentials.toml")) == ({}, {})


# ------------------------------------------------------------------ scripts


def test_a_script_pipes_the_key_in_and_is_asked_nothing(person):
    code, shown = person.pipe("deepseek", "--with-key-stdin", key=f"{KEY}\n")
    assert code == 0, shown
    assert person.file("credentials.toml") == {"deepseek": {"api_key": KEY}}
    assert person.file("config.toml") == {"model": "deepseek/deepseek-flash"}
    code, _ = person.pipe("deepseek", "--model", "deepseek/deepseek-pro")
    assert (code, person.file("config.toml")) == (0, {"model": "deepseek/deepseek-pro"})


def test_a_script_keeps_the_default_model_of_another_provider(person):
    person.config.mkdir(parents=True)
    (person.config / "config.toml").write_text("model = 'openai/gpt-5.5'\n")
    assert person.pipe("deepseek")[0] == 0
    assert person.file("config.toml") == {"model": "openai/gpt-5.5"}


@pytest.mark.parametrize(
    ("answers", "key", "code", "words"),
    [
        (None, "sk-wrong-0123456789", 1, "Nothing was stored."),
        ("nothing", KEY, 75, "--no-test"),
        (Reply(503, (b"{}",)), KEY, 75, "--no-test"),
    ],
)
def test_a_failed_test_in_a_script_stores_nothing_and_has_its_exit_code(person, answers, key, code, words):
    person.endpoint.answers = answers
    found, shown = person.pipe("deepseek", key=key)
    assert (found, person.file("credentials.toml")) == (code, {})
    assert words in shown


def test_what_failed_comes_before_the_way_around_it(person):
    person.endpoint.answers = "nothing"
    _, shown = person.pipe("deepseek")
    told = [shown.index(part) for part in ("Asking ", "Nothing was stored.", "With --no-test ")]
    assert told == sorted(told) and len(shown[told[0] : told[1]].splitlines()) > 1, "what failed is between them"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_without_a_test_nothing_is_said_of_what_the_endpoint_lists(person, is_terminal):
    run = {True: lambda *argv: person.login(*argv, lines="\n", secrets=[KEY]), False: person.pipe}[is_terminal]
    code, shown = run("groq", "--no-test")
    assert code == 0 and "lists no models" not in shown and person.endpoint.requests == []
    assert "No default model is set." in shown
    assert shown.splitlines()[-2:] == ["To see its models: `bradawl models groq`", "To start: `bradawl -m groq/MODEL`"]
    code, shown = run("deepseek", "--no-test")
    assert code == 0 and "deepseek/deepseek-flash is the default model now" in shown
    code, shown = run("groq", "--no-test")
    assert "The default model stays deepseek/deepseek-flash." in shown and "No default model" not in shown
    person.environ["BRADAWL_MODEL"] = "openai/gpt-5.5"
    code, shown = run("groq", "--no-test")
    assert "The default model stays as it is; here BRADAWL_MODEL names it." in shown
    code, shown = run("deepseek", "--no-test")
    assert "note: BRADAWL_MODEL wins over it here." in shown
    assert shown.splitlines()[-1] == "To start: `bradawl -m deepseek/deepseek-flash`"
    assert person.file("config.toml") == {"model": "deepseek/deepseek-flash"}


def test_a_new_endpoint_says_where_its_address_is_stored(person):
    _, shown = person.pipe("lab", "--base-url", "https://lab.example/v1", "--no-test")
    told = [shown.index(part) for part in ("Got a key", "The address of lab", "The key of lab", "To start: ")]
    assert told == sorted(told)


def test_without_a_test_nothing_is_sent(person):
    code, _ = person.pipe("deepseek", "--no-test")
    assert (code, person.endpoint.requests) == (0, [])
    assert person.file("credentials.toml") == {"deepseek": {"api_key": KEY}}


@pytest.mark.parametrize(
    ("argv", "key", "message"),
    [
        ((), KEY, "Name the provider"),
        (("deepseek",), "", "No key came on stdin"),
        (("deepseek",), "$DEEPSEEK_API_KEY", "placeholder"),
        (("deepseek",), "x" * 200_000, "more than 100,000"),
        (("nobody",), KEY, "not a provider"),
        (("scripted",), KEY, "not a provider"),
        (("azure",), KEY, "--base-url"),
        (("a b", "--base-url", "https://x.example"), KEY, "may only have letters"),
    ],
)
def test_what_a_script_gets_wrong_is_an_error(person, argv, key, message):
    with pytest.raises(SettingsError, match=message):
        person.pipe(*argv, key=key)
    assert person.file("credentials.toml") == {}


def test_an_unsafe_file_of_keys_is_reported_before_anything_is_asked(person):
    person.config.mkdir(parents=True)
    (person.config / "credentials.toml").write_text("[groq]\napi_key='x'\n")
    with pytest.raises(SettingsError, match="chmod 600"):
        person.login("deepseek")


# ------------------------------------------------------------------ logout and the list


def test_logout_says_what_still_supplies_a_key(person):
    person.pipe("deepseek")
    person.environ["DEEPSEEK_API_KEY"] = "x" * 20
    code, shown = person.logout("deepseek")
    assert code == 0 and "deepseek still has a key from the variable DEEPSEEK_API_KEY." in shown
    code, shown = person.logout("deepseek")
    assert code == 1 and "No key of deepseek is stored." in shown


def test_logout_without_a_name_removes_the_only_key_and_never_guesses(person):
    assert person.logout() == (1, "No key is stored.\n")
    person.pipe("deepseek")
    person.pipe("groq")
    with pytest.raises(SettingsError, match="deepseek, groq"):
        person.logout()
    with pytest.raises(SettingsError, match="not a provider"):
        person.logout("nobody")
    assert person.logout("--all")[0] == 0
    assert person.file("credentials.toml") == {}


def test_the_list_names_each_source_and_the_one_that_wins(person):
    person.pipe("deepseek")
    person.environ["DEEPSEEK_API_KEY"] = "variable-0123456789-wxyz"
    _, shown = person.login("--list")
    places = [
        shown.index(text) for text in ("…wxyz", "DEEPSEEK_API_KEY", "…abcd", "credentials.toml", "one above wins")
    ]
    assert places == sorted(places)
    assert "Default model: deepseek/deepseek-flash" in shown
    _, shown = person.login("--list", "--json")
    data = json.loads(shown)
    assert [entry.get("is_used", True) for entry in data["keys"]] == [True, False]


def test_the_list_fits_into_any_width(person):
    person.pipe("deepseek")
    given = read_settings({}, person.environ, str(person.home)).given
    entries = key_entries(given.providers, person.environ, KeyStore(given.credentials, None))
    for width in (40, 60, 80):
        assert all(
            len(line) <= max(width, len(str(given.credentials)) + 10) for line in listing_lines(entries, "m", width)
        )
