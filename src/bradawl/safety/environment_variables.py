"""Environment variables that decide what later commands run or contact, and that no command may set unasked."""

import re
from collections.abc import Mapping

_EXACT = frozenset(
    # the shell: how it finds and reads programs and files
    {"IFS", "ENV", "PS4", "GLOBIGNORE", "EXECIGNORE", "FIGNORE", "SHELLOPTS", "HOME", "PWD", "OLDPWD", "SHELL"}
    | {"TMPDIR", "TMP", "TEMP", "TEMPDIR", "ZDOTDIR", "INPUTRC", "UID", "EUID", "FUNCNEST", "HISTFILE"}
    | {"TIMEFORMAT", "OPTIND", "POSIXLY_CORRECT", "_POSIX2_VERSION"}
    # the C library
    | {"HOSTALIASES", "LOCALDOMAIN", "GLIBC_TUNABLES", "TERMINFO", "TERMINFO_DIRS", "TERMCAP", "TEXTDOMAINDIR"}
    | {"GETCONF_DIR", "LANGUAGE"}
    # programs that others start
    | {"VISUAL", "BROWSER", "LESS", "LESSOPEN", "LESSCLOSE", "LESSKEY", "MORE", "MANROFFOPT", "FCEDIT", "RSH"}
    | {"TAPE", "GZIP", "BZIP", "BZIP2", "ZIPOPT", "UNZIP", "MAGIC", "VERSION_CONTROL", "SIMPLE_BACKUP_SUFFIX"}
    | {"ACKRC", "WGETRC", "BC_ENV_ARGS", "DC_ENV_ARGS", "EXINIT", "PARINIT"}
    # compilers and build tools
    | {"CC", "CXX", "CPP", "LD", "AR", "AS", "NM", "RANLIB", "STRIP", "LIBS", "MAKE", "MAKEFILES", "INCLUDE"}
    | {"LIB", "DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "YACC", "LEX", "M4", "INSTALL", "CONFIG_SITE"}
    | {"DESTDIR", "PREFIX", "DISTCC_HOSTS"}
    # languages
    | {"ANT_ARGS", "PHPRC", "PERLLIB", "GHCRTS", "OCAMLRUNPARAM", "DJANGO_SETTINGS_MODULE", "FLASK_APP"}
    | {"VIRTUAL_ENV", "PSQLRC", "REQUESTS_CA_BUNDLE"}
)
"""Names that no beginning or ending below covers. `PATH`, for example, is an ending."""
_BEGINNINGS = (
    *("LD_", "DYLD_", "BASH", "GIT_", "SSH_", "SUDO_", "MALLOC_", "XDG_", "LESS_", "MAN_", "GROFF", "PS_"),
    *("PYTHON", "PIP_", "UV_", "POETRY_", "PDM_", "PYENV", "CONDA_", "PYTEST", "COVERAGE_", "TOX_", "NOX", "IPYTHON"),
    *("JUPYTER", "MYPY", "RUFF_", "VIRTUALENV_", "HATCH_"),
    *("NODE", "NPM_", "npm_", "YARN_", "PNPM_", "BUN_", "DENO_", "COREPACK_", "NVM_", "VOLTA_", "ELECTRON_", "TS_NODE"),
    *("PERL5", "RUBY", "GEM_", "BUNDLE_", "RBENV", "RAKE", "COMPOSER_", "PHP_", "LUA_", "TCL", "GUILE", "R_", "RENV_"),
    *("JAVA", "JVM_", "KOTLIN_", "GRADLE_", "MAVEN_", "CARGO_", "RUST", "GO", "CGO_", "ZIG_", "SWIFT_", "DOTNET_"),
    *(
        "CORECLR_",
        "COR_",
        "COMPLUS_",
        "NUGET_",
        "MSBUILD",
        "MONO_",
        "JULIA_",
        "ERL_",
        "ELIXIR_",
        "MIX_",
        "HEX_",
        "NIX_",
    ),
    *("GCC_", "CMAKE_", "CTEST_", "NINJA_", "MESON_", "CCACHE_", "SCCACHE_", "PKG_CONFIG", "LLVM_", "CLANG_", "LTO_"),
    *(
        "ASAN_",
        "UBSAN_",
        "LSAN_",
        "TSAN_",
        "MSAN_",
        "VIM",
        "NVIM_",
        "EMACS",
        "DOCKER_",
        "BUILDKIT_",
        "COMPOSE_",
        "PODMAN_",
    ),
    *("CONTAINER_", "KUBE", "HELM_", "TF_", "TERRAFORM_", "ANSIBLE_", "VAGRANT_", "HG", "SVN_", "P4", "CURL_", "SSL"),
    *("OPENSSL", "PKCS11", "KRB5", "ODBC", "PG", "MYSQL", "SQLITE_", "AWS_", "AZURE_", "CLOUDSDK_", "GH_"),
    *("DBUS_", "GNUPG", "GPG_", "PINENTRY_", "VAULT_", "CONSUL_", "NOMAD_", "TWINE_", "FLIT_", "NETRC"),
    *("GDK_", "GTK_", "GIO_", "GST_", "QT_", "VK_", "DEBUGINFOD_", "GDB", "VALGRIND_", "STRACE_", "BRADAWL"),
)
_ENDINGS = ("PAGER", "EDITOR", "_PROXY", "_proxy", "ASKPASS", "_WRAPPER", "_PRELOAD", "_RC", "RCFILE")
_ENDINGS_OF_STARTERS = (
    *("_RSH", "_PROG", "_PROGRAM", "_RUNNER", "_LAUNCHER", "_SHELL", "_INTERPRETER", "_EXECUTABLE", "_HELPER"),
    *("_LOADER", "_HOOK", "_HOOKS", "_PLUGIN", "_PLUGINS", "_SOCK", "_SOCKET", "FLAGS", "_LINKER", "_COMPILER"),
)
_ENDINGS_OF_PROGRAMS = ("_COMMAND", "_CMD", "_OPTS", "_OPTIONS", "_BIN", "_HOME", "_ROOT", "PATH", "_CONFIG")
_ADDRESSES = frozenset(
    {"URI", "ADDRESS", "ENDPOINTS", "HOSTNAME", "HOSTS", "SERVER", "SERVERS", "REGISTRY", "REGISTRIES", "REPOSITORY"}
    | {"REPOSITORIES", "REPO", "INDEX", "MIRROR", "MIRRORS", "BROKER", "BROKERS", "DSN", "GATEWAY", "ORIGIN", "REMOTE"}
    | {"PROXY", "SOCKS", "RELAY", "UPSTREAM", "DOMAIN", "CONTEXT", "PROFILE", "TUNNEL", "WEBHOOK", "CALLBACK", "PEER"}
    | {"TOKEN", "CERT", "CACERT", "CERTIFICATE", "CA", "VERIFY", "INSECURE", "DISPLAY", "CHANNEL", "CHANNELS", "TARGET"}
)
"""Words in names of variables that say where clients connect, or which servers they trust."""
_ENDS_OF_ADDRESSES = ("URL", "URLS", "HOST", "ADDR", "ENDPOINT")
_HARMLESS = frozenset(
    {"NODE_ENV", "RUST_BACKTRACE", "RUST_LOG", "LANG", "TZ", "TERM", "LS_COLORS", "SOURCE_DATE_EPOCH"}
)
_BARE_WORD = re.compile(r"[A-Za-z0-9_+-]*")
_MATTER_TO_BASH = (
    r"BASH.*|LD_.*|DYLD_.*|MALLOC_.*|IFS|ENV|PS4|SHELLOPTS|GLOBIGNORE|EXECIGNORE|POSIXLY_CORRECT|CDPATH|HOME|PWD"
    r"|OLDPWD|GCONV_PATH|LOCPATH|NLSPATH|GLIBC_TUNABLES|TEXTDOMAINDIR|LIBPATH|SHLIB_PATH|OPTIND|FUNCNEST|E?UID|BRADAWL.*"
)


def is_execution_relevant(name: str) -> bool:
    """Whether a variable may decide what later commands run, load or contact. Names are case-sensitive.

    Errs on the safe side: a match only causes a question. Proxies count in both spellings.
    """
    if name in _HARMLESS:
        return False
    if name in _EXACT or name.startswith(_BEGINNINGS):
        return True
    return name.endswith((*_ENDINGS, *_ENDINGS_OF_STARTERS, *_ENDINGS_OF_PROGRAMS)) or not _is_name(name)


def redirects_clients(name: str) -> bool:
    """Whether a word in a variable's name suggests that it tells a program which machine to contact, in any case."""
    words = name.upper().split("_")
    return not _ADDRESSES.isdisjoint(words) or any(word.endswith(_ENDS_OF_ADDRESSES) for word in words)


def may_affect_program(name: str, value: str | None) -> bool:
    """Whether a variable may decide what a program outside the sandbox runs or contacts.

    Not every name can be known. An unknown one counts by its value, unless that is a bare word: paths, addresses, host
    names with a dot and command lines contain other characters.
    """
    if is_execution_relevant(name) or redirects_clients(name):
        return True
    return not (name in _HARMLESS or name.startswith("LC_") or value is None or _BARE_WORD.fullmatch(value))


def risky_variables(variables: Mapping[str, str | None]) -> tuple[str, ...]:
    """The names of variables that may decide what a program outside the sandbox runs or contacts, sorted.

    PWD and OLDPWD, which the shell itself sets, are left out.
    """
    counted = (name for name in variables if name not in ("PWD", "OLDPWD"))
    return tuple(sorted(name for name in counted if may_affect_program(name, variables[name])))


def affects_bash(name: str) -> bool:
    """Whether a variable may change what bash itself does, without starting any program."""
    return bool(re.fullmatch(_MATTER_TO_BASH, name)) or not _is_name(name)


def _is_name(name: str) -> bool:
    """Whether it is a valid variable name. Others have special meanings, such as `BASH_FUNC_ls%%`."""
    return name.isascii() and name.isidentifier()
