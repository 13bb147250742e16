"""Environment variables inside a sandbox: which are passed, left out or added."""

import pytest

from bradawl.sandbox.environment import sandbox_environment
from bradawl.sandbox.tool_caches import cache_variables

_KEYS = (
    "OPENAI_API_KEY AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN GITHUB_TOKEN NPM_TOKEN DB_PASSWORD PGPASSWORD SSH_KEY_PATH"
    " MY_SECRET api_key Token GOOGLE_APPLICATION_CREDENTIALS"
)
_HELPERS = (
    "LD_PRELOAD LD_LIBRARY_PATH BASH_ENV ENV PYTHONPATH PYTHONSTARTUP PYTHONHOME NODE_OPTIONS RIPGREP_CONFIG_PATH"
    " LESSOPEN PERL5LIB RUBYOPT GIT_CONFIG_COUNT GIT_DIR GIT_SSH_COMMAND SSH_AUTH_SOCK XDG_RUNTIME_DIR"
    " DBUS_SESSION_BUS_ADDRESS DISPLAY EDITOR MAKEFLAGS TMPDIR http_proxy IFS PROMPT_COMMAND"
)
_NEEDED = (
    "PATH HOME LANG LC_ALL LC_CTYPE TERM TZ USER LOGNAME SHELL VIRTUAL_ENV CONDA_PREFIX JAVA_HOME GOROOT NVM_DIR"
    " GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL GIT_AUTHOR_DATE CI NO_COLOR"
)
KEYS, HELPERS, NEEDED = (names.split(" ") for names in (_KEYS, _HELPERS, _NEEDED))


@pytest.mark.parametrize("name", [*KEYS, *HELPERS])
def test_keys_and_variables_that_run_programs_are_left_out(name):
    assert sandbox_environment({name: "x"}, ()) == {}
    assert sandbox_environment({name: "x"}, (name,)) == {name: "x"}, "what the session exported passes"
    assert sandbox_environment({name: "x"}, (), (name,)) == {name: "x"}, "what the user has named passes"


@pytest.mark.parametrize("name", NEEDED)
def test_commonly_needed_variables_are_passed(name):
    assert sandbox_environment({name: "x"}, ()) == {name: "x"}


@pytest.mark.parametrize("name", KEYS)
def test_a_pattern_passes_no_key(name):
    assert sandbox_environment({name: "x", "ACME_URL": "u"}, (), ("*", "ACME_*")) == {"ACME_URL": "u"}


@pytest.mark.parametrize(
    ("value", "network", "passes"),
    [("http://proxy:1", True, True), ("http://proxy:1", False, False), ("http://me:secret@proxy:1", True, False)],
)
def test_a_proxy_without_a_password_is_passed_with_the_network(value, network, passes):
    assert bool(sandbox_environment({"https_proxy": value}, (), network=network)) is passes


def test_caches_of_tools_are_in_the_projects_cache_folder():
    made = cache_variables("/c", "/home/u", {}, lambda path: False, network=True)
    assert made["XDG_CACHE_HOME"] == "/c/xdg"
    assert made.pop("LSAN_OPTIONS") == "detect_leaks=0"
    assert all(value.startswith("/c/") for value in made.values())
    assert {"npm_config_cache", "CARGO_HOME", "GOCACHE", "GOMODCACHE", "PIP_CACHE_DIR"} <= set(made)


def test_a_variable_that_is_set_keeps_its_value():
    assert "GOCACHE" not in cache_variables("/c", "/h", {"GOCACHE": "/mine"}, lambda path: False, network=False)


def test_without_network_tools_do_not_retry_unless_configured():
    names = {"PIP_RETRIES", "npm_config_fetch_retries"}
    for network in (True, False):
        made = cache_variables("/c", "/h", {"CARGO_NET_RETRY": "3"}, lambda path: False, network=network)
        assert {name: made.get(name) for name in names} == dict.fromkeys(names, None if network else "0")
        assert "CARGO_NET_RETRY" not in made


@pytest.mark.parametrize(
    ("existing", "network", "is_used"),
    [
        ({"/h/.cargo"}, False, False),
        ({"/h/.cargo"}, True, True),
        ({"/h/.cargo", "/c/cargo/registry"}, False, True),
        (set(), False, True),
    ],
)
def test_without_network_the_users_cache_is_used_unless_the_project_has_its_own(existing, network, is_used):
    made = cache_variables("/c", "/h", {}, existing.__contains__, network=network)
    assert ("CARGO_HOME" in made) is is_used
