"""Classifies environment variables: those that determine what later commands run are relevant."""

import pytest

from bradawl.safety.environment_variables import affects_bash, is_execution_relevant

RELEVANT = (
    *("PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "PAGER", "GIT_PAGER", "MANPAGER", "EDITOR"),
    *("GIT_EDITOR", "VISUAL", "BROWSER", "GIT_SSH_COMMAND", "GIT_DIR", "BASH_ENV", "ENV", "PROMPT_COMMAND", "PS4"),
    *(
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "NODE_OPTIONS",
        "NODE_PATH",
        "PERL5LIB",
        "PERL5OPT",
        "RUBYOPT",
        "IFS",
    ),
    *("RUBYLIB", "SHELLOPTS", "BASHOPTS", "HOME", "TMPDIR", "SHELL", "LESSOPEN", "LESS", "CDPATH", "GLOBIGNORE"),
    *("BASH_FUNC_ls%%", "JAVA_TOOL_OPTIONS", "HTTP_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "no_proxy"),
    *(
        "RIPGREP_CONFIG_PATH",
        "MAKEFLAGS",
        "CC",
        "RUSTC_WRAPPER",
        "CARGO_HOME",
        "npm_config_script_shell",
        "PIP_INDEX_URL",
    ),
    *("SSH_ASKPASS", "SUDO_ASKPASS", "TAR_OPTIONS", "GCONV_PATH", "POSIXLY_CORRECT", "PYTEST_ADDOPTS", "OPENSSL_CONF"),
    *("KUBECONFIG", "DOCKER_HOST", "XDG_CONFIG_HOME", "PWD", "OLDPWD", "LANGUAGE", "a b", "", "é", "1A", "A-B"),
)
PLAIN = (
    *("ACME_ENV", "DEBUG", "CI", "LANG", "LC_ALL", "TZ", "TERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "NODE_ENV", "A"),
    *("path", "home", "Path", "ld_preload", "pager", "DATABASE_URL", "PORT", "VERBOSE", "RUST_LOG", "LS_COLORS", "_"),
)


@pytest.mark.parametrize("name", RELEVANT)
def test_a_variable_that_may_determine_what_runs_is_relevant(name: str):
    assert is_execution_relevant(name)


@pytest.mark.parametrize("name", PLAIN)
def test_other_variables_are_not_relevant_and_case_matters(name: str):
    assert not is_execution_relevant(name)


def test_variables_that_affect_bash_itself_are_relevant_too():
    matters = {name for name in RELEVANT if affects_bash(name)}
    assert {"BASH_ENV", "IFS", "LD_PRELOAD", "HOME", "CDPATH", "SHELLOPTS", "BASH_FUNC_ls%%", "a b"} <= matters
    assert matters.isdisjoint({"PATH", "PAGER", "GIT_DIR", "HTTP_PROXY", "PYTHONPATH"})
    assert not any(map(affects_bash, PLAIN))
