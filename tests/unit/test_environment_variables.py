"""Which environment variables decide what programs run, load or contact: every entry of the lists, and the logic."""

import pytest

from bradawl.safety.environment_variables import (
    affects_bash,
    is_execution_relevant,
    may_affect_program,
    redirects_clients,
    risky_variables,
)

# ------------------------------------------------------------------ the lists

SHELL_AND_LIBRARY = """
    PATH IFS ENV PS4 CDPATH GLOBIGNORE EXECIGNORE FIGNORE PROMPT_COMMAND SHELLOPTS HOME PWD OLDPWD SHELL TMPDIR TMP TEMP
    TEMPDIR ZDOTDIR FPATH INPUTRC UID EUID FUNCNEST HISTFILE MAILPATH TIMEFORMAT OPTIND POSIXLY_CORRECT _POSIX2_VERSION
    GCONV_PATH LOCPATH NLSPATH HOSTALIASES LOCALDOMAIN RES_OPTIONS GLIBC_TUNABLES TERMINFO TERMINFO_DIRS TERMCAP
    TEXTDOMAINDIR GETCONF_DIR NIS_PATH LANGUAGE LIBPATH SHLIB_PATH
"""
PROGRAMS = """
    VISUAL BROWSER LESS LESSOPEN LESSCLOSE LESSKEY MORE MANPATH MANROFFOPT FCEDIT CVS_RSH RSYNC_RSH RSH SVN_SSH TAPE
    TAR_OPTIONS GZIP BZIP BZIP2 ZIPOPT UNZIP GREP_OPTIONS RIPGREP_CONFIG_PATH MAGIC VERSION_CONTROL
    SIMPLE_BACKUP_SUFFIX ACKRC WGETRC AWKPATH AWKLIBPATH BC_ENV_ARGS DC_ENV_ARGS EXINIT NETRC CURL_HOME PARINIT
    SYSTEMD_EDITOR
"""
BUILD_TOOLS = """
    CC CXX CPP LD AR AS NM RANLIB STRIP CFLAGS CXXFLAGS CPPFLAGS LDFLAGS LIBS MAKE MAKEFLAGS MAKEFILES MFLAGS
    COMPILER_PATH LIBRARY_PATH CPATH INCLUDE LIB C_INCLUDE_PATH CPLUS_INCLUDE_PATH OBJC_INCLUDE_PATH
    DEPENDENCIES_OUTPUT SUNPRO_DEPENDENCIES ARFLAGS YACC LEX M4 INSTALL CONFIG_SITE CONFIG_SHELL DESTDIR PREFIX
    DISTCC_HOSTS
"""
LANGUAGES = """
    CLASSPATH _JAVA_OPTIONS MAVEN_OPTS MAVEN_ARGS GRADLE_OPTS SBT_OPTS ANT_OPTS ANT_ARGS JDK_JAVA_OPTIONS PHPRC
    PHP_INI_SCAN_DIR PERLLIB PERLDB_OPTS GHCRTS OCAMLRUNPARAM DJANGO_SETTINGS_MODULE FLASK_APP VIRTUAL_ENV EXTRA_CONFIG
    PSQLRC REQUESTS_CA_BUNDLE
"""
BY_BEGINNING = """
    LD_AUDIT DYLD_FORCE_FLAT_NAMESPACE BASH_ENV GIT_DIR SSH_ORIGINAL SUDO_UID MALLOC_CHECK_ XDG_DATA_DIRS
    LESS_TERMCAP_mb MAN_KEEP_FORMATTING GROFF_TMAC_ONLY PS_FORMAT PYTHONSTARTUP PIP_INDEX_URL UV_INDEX
    POETRY_REPOSITORIES_X PDM_PYPI_URL PYENV_VERSION CONDA_EXE PYTEST_ADDOPTS COVERAGE_PROCESS_START TOX_ENV_DIR
    NOXSESSION IPYTHONDIR JUPYTER_DATA_DIR MYPY_CACHE_DIR RUFF_CACHE_DIR VIRTUALENV_PYTHON HATCH_ENV
    NODE_EXTRA_CA_CERTS NPM_TOKEN npm_config_registry YARN_RC_FILENAME PNPM_STORE BUN_INSTALL DENO_DIR
    COREPACK_NPM_REGISTRY NVM_DIR VOLTA_X ELECTRON_RUN_AS_NODE TS_NODE_PROJECT PERL5DB RUBYLIB GEM_SPEC_CACHE
    BUNDLE_GEMFILE RBENV_VERSION RAKEOPT COMPOSER_VENDOR_DIR PHP_VALUE LUA_INIT TCLLIBDIR GUILE_AUTO_COMPILE
    R_PROFILE RENV_PROJECT JAVA_TOOL JVM_ARGS KOTLIN_X GRADLE_USER MAVEN_PROJECTBASEDIR CARGO_TARGET_DIR RUSTC
    GOPRIVATE CGO_ENABLED ZIG_LIB_DIR SWIFT_EXEC DOTNET_STARTUP CORECLR_ENABLE_PROFILING COR_PROFILER_X
    COMPLUS_VERSION NUGET_PACKAGES MSBUILDSDKSPATHX MONO_X JULIA_DEPOT ERL_AFLAGSX ELIXIR_ERL MIX_ENV HEX_MIRROR
    NIX_STORE GCC_EXEC_PREFIX CMAKE_GENERATOR CTEST_OUTPUT_ON_FAILURE NINJA_STATUS MESON_TESTTHREADS CCACHE_DIR
    SCCACHE_DIR PKG_CONFIG_SYSROOT_DIR LLVM_PROFILE_FILE CLANG_X LTO_X ASAN_X UBSAN_X LSAN_X TSAN_X MSAN_X VIMINIT
    NVIM_APPNAME EMACSDATA DOCKER_CONTEXT BUILDKIT_X COMPOSE_FILE PODMAN_USERNS CONTAINER_X KUBECTL_X HELM_NAMESPACE
    TF_VAR_x TERRAFORM_X ANSIBLE_INVENTORY VAGRANT_CWD HGRCX SVN_X P4CLIENT CURL_CA_BUNDLE SSLKEYLOGFILE
    OPENSSL_ENGINES PKCS11_X KRB5CCNAME ODBCINI PGSERVICE MYSQL_X SQLITE_HISTORY AWS_REGION AZURE_X GOOGLE_X
    CLOUDSDK_CORE_PROJECT GH_TOKEN DBUS_X GNUPGX GPG_TTY PINENTRY_USER_DATA VAULT_X CONSUL_X NOMAD_X TWINE_X FLIT_X
    NETRC_FILE GDK_BACKEND GTK_MODULES GIO_EXTRA_MODULES GST_X QT_X VK_ICD DEBUGINFOD_URLS GDBHISTFILE VALGRIND_LIB
    STRACE_X BRADAWL_MODEL
"""
BY_ENDING = """
    A_PAGER A_EDITOR A_PROXY a_proxy X_ASKPASS XASKPASS A_WRAPPER A_PRELOAD A_RC A_RCFILE A_RSH A_PROG A_PROGRAM
    A_RUNNER A_LAUNCHER A_SHELL A_INTERPRETER A_EXECUTABLE A_HELPER A_LOADER A_HOOK A_HOOKS A_PLUGIN A_PLUGINS A_SOCK
    A_SOCKET HOSTCFLAGS A_LINKER A_COMPILER A_COMMAND A_CMD A_OPTS A_OPTIONS A_FLAGS A_BIN A_HOME A_ROOT A_PATH APATH
    A_CONFIG APAGER AEDITOR ARCFILE
"""
NO_NAMES = ("", "é", "1A", "A-B", "a b", "BASH_FUNC_ls%%", "A=")
HARMLESS = "NODE_ENV RUST_BACKTRACE RUST_LOG LANG TZ TERM LS_COLORS SOURCE_DATE_EPOCH"
ORDINARY = """
    DEBUG CI PORT ACME_ENV VERBOSE A NO_COLOR COLUMNS LC_ALL path home Path ld_preload pager bash_env git_dir A_Pager
    TMPX XTMP AGIT_DIR MYHOME
"""


@pytest.mark.parametrize("names", [SHELL_AND_LIBRARY, PROGRAMS, BUILD_TOOLS, LANGUAGES, BY_BEGINNING, BY_ENDING])
def test_a_variable_of_the_lists_decides_what_runs(names: str):
    assert [name for name in names.split() if not is_execution_relevant(name)] == []


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_text_that_is_no_name_of_a_variable_decides_what_runs(name: str):
    assert is_execution_relevant(name) and affects_bash(name)


@pytest.mark.parametrize("name", [*HARMLESS.split(), *ORDINARY.split()])
def test_any_other_variable_does_not(name: str):
    assert not is_execution_relevant(name) and not affects_bash(name)


TO_BASH = """
    BASH BASH_ENV BASHOPTS LD_PRELOAD DYLD_X MALLOC_ARENA IFS ENV PS4 SHELLOPTS GLOBIGNORE EXECIGNORE POSIXLY_CORRECT
    CDPATH HOME PWD OLDPWD GCONV_PATH LOCPATH NLSPATH GLIBC_TUNABLES TEXTDOMAINDIR LIBPATH SHLIB_PATH OPTIND FUNCNEST
    UID EUID BRADAWL_X
"""


def test_a_variable_that_bash_itself_obeys_is_also_relevant_for_programs():
    assert [name for name in TO_BASH.split() if not affects_bash(name) or not is_execution_relevant(name)] == []


@pytest.mark.parametrize(
    "name", ["PATH", "PAGER", "GIT_DIR", "HTTP_PROXY", "PYTHONPATH", "XIFS", "IFSX", "AUID", "SHELL"]
)
def test_a_variable_for_programs_alone_does_not_affect_bash(name: str):
    assert not affects_bash(name)


# ------------------------------------------------------------------ addresses

WORDS = """
    URI ADDRESS ENDPOINTS HOSTNAME HOSTS SERVER SERVERS REGISTRY REGISTRIES REPOSITORY REPOSITORIES REPO INDEX MIRROR
    MIRRORS BROKER BROKERS DSN GATEWAY ORIGIN REMOTE PROXY SOCKS RELAY UPSTREAM DOMAIN CONTEXT PROFILE TUNNEL WEBHOOK
    CALLBACK PEER TOKEN CERT CACERT CERTIFICATE CA VERIFY INSECURE DISPLAY CHANNEL CHANNELS TARGET
"""
ENDS = "URL URLS HOST ADDR ENDPOINT BASEURL BASEURLS MYHOST MYADDR MYENDPOINT"


@pytest.mark.parametrize("word", [*WORDS.split(), *ENDS.split()])
def test_a_word_in_a_name_says_that_a_client_is_told_where_to_connect(word: str):
    for name in (word, f"ACME_{word}", f"{word}_2", f"ACME_{word}_2", f"acme_{word.lower()}"):
        assert redirects_clients(name) and may_affect_program(name, "1")


@pytest.mark.parametrize("name", ["ACME_SERVERX", "XTOKEN", "HOSTX", "URLX_A", "CASE", "DEBUG", "A_B", ""])
def test_only_whole_words_and_ends_of_words_count(name: str):
    assert not redirects_clients(name)


# ------------------------------------------------------------------ values

CHARACTERS_OF_A_BARE_WORD = "azAZ09_+-"


@pytest.mark.parametrize("value", [None, "", "12", "test", CHARACTERS_OF_A_BARE_WORD, *CHARACTERS_OF_A_BARE_WORD])
def test_an_unknown_variable_with_a_bare_word_affects_no_program(value: str | None):
    assert not may_affect_program("ACME_STAGE", value)


@pytest.mark.parametrize("value", [*"./:@=~$`'\" ,;|&<>(){}[]*?!%^#\n\\é", "a.b", "a b", "bare\n", "/x"])
def test_an_unknown_variable_with_any_other_character_may_affect_programs(value: str):
    assert may_affect_program("ACME_STAGE", value)


@pytest.mark.parametrize("name", [*HARMLESS.split(), "LC_ALL", "LC_CTYPE"])
def test_a_harmless_variable_affects_no_program_whatever_its_value(name: str):
    assert not may_affect_program(name, "C.UTF-8")


@pytest.mark.parametrize("name", ["PATH", "GIT_DIR", "A_CONFIG", "ACME_URL"])
@pytest.mark.parametrize("value", [None, "", "x"])
def test_a_variable_that_is_known_by_its_name_affects_programs_whatever_its_value(name: str, value: str | None):
    assert may_affect_program(name, value)


def test_the_risky_ones_of_several_variables_are_listed_in_order_without_the_shells_own():
    variables = {"PATH": "x", "PWD": "/a", "OLDPWD": "/b", "STAGE": "test", "ACME": "a.b", "UNSET": None, "LANG": "C"}
    assert risky_variables(variables) == ("ACME", "PATH")
    assert risky_variables({"PWD2": "/a", "GIT_DIR": None}) == ("GIT_DIR", "PWD2")
    assert risky_variables({}) == ()
