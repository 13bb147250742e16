"""The report of `/bug`: what helps to find a defect, without keys, and without contents unless they are wanted."""

import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, cast, get_args

import msgspec

from bradawl._version import __version__
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.settings import Settings
from bradawl.core.events import Envelope, TurnReason

_LAST_EVENTS: Final = 100
_REPORT_BYTES: Final = 20_000
_TERMINAL: Final = ("TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "COLORTERM", "NO_COLOR", "LANG", "LC_ALL", "TMUX")
_LEFT_OUT: Final = frozenset({"environment", "key_names", "answer_schema", "system_prompt", "append_system_prompt"})
"""Fields of the settings that hold keys or the user's texts."""
_KEPT: Final = frozenset(
    {"type", "seq", "parent", "at", "agent", "call_id", "step", "outcome", "decision", "by", "scope", "stop"}
    | {"tier", "covers", "kept_from", "to", "restore", "provider", "model", "job_id", "exit_code", "spawned", "kind"}
    | {"version", "bradawl", "limit", "value", "maximum", "hook", "moment", "mode", "is_known", "cut", "tokens"}
    | {"input", "output", "cache_read", "cache_write", "reasoning", "source", "cost", "status", "retryable", "name"}
)
"""Fields of events that say what happened and hold no contents."""
_NAMED_BY_USERS: Final = frozenset({"NameSet", "Document"})
"""Types whose `name` is a text of the user."""
_REASONS: Final = frozenset({*get_args(TurnReason), "start", "model", "compaction", "tools", "changed", "rewound"})
"""Values of `reason` that are no text."""


def bug_report(
    text: str,
    settings: Settings,
    model: ModelSettings,
    session_id: str,
    entries: Sequence[Envelope],
    doctor: str,
    *,
    with_content: bool,
) -> str:
    """The report as Markdown. `doctor` is the JSON of `bradawl doctor`. No secret of the settings is in the result."""
    found = (
        ("What happened", text.strip() or "(say here what you did, what you expected, and what came instead)"),
        ("Versions", _fenced(_versions())),
        ("Terminal", _fenced(_json({name: settings.environment.get(name) for name in _TERMINAL}))),
        ("Settings", _fenced(_json(_settings(settings, model)))),
        ("Doctor", _fenced(doctor)),
        ("Last error report", _fenced(_last_error(settings.home) or "none")),
        (f"The last events of session {session_id}", _fenced("\n".join(_events(entries, with_content=with_content)))),
    )
    report = "\n\n".join(("# bradawl: report", *(f"## {title}\n\n{body}" for title, body in found))) + "\n"
    return masked(report, _secrets(settings, model))


def masked(text: str, secrets: Iterable[str]) -> str:
    """The text with each secret replaced, also where JSON has escaped it."""
    for secret in sorted(
        {form for each in secrets if each for form in (each, json.dumps(each)[1:-1])}, key=len, reverse=True
    ):
        text = text.replace(secret, "***")
    return text


def _secrets(settings: Settings, model: ModelSettings) -> list[str]:
    """Keys, headers and proxies of all models, and the values of variables that look like secrets."""
    models = [each for each in (settings.model, settings.fallback, settings.small, model) if each is not None]
    found = [
        text
        for each in models
        for text in (each.api_key, each.key_command, each.proxy or "", *dict(each.headers).values())
    ]
    found.append(settings.proxy)
    marks = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "PROXY")
    variables = settings.environment.items()
    found += [
        value for name, value in variables if name in settings.key_names or any(mark in name.upper() for mark in marks)
    ]
    return [each for each in found if len(each) >= 4]


def _versions() -> str:
    system = os.uname()
    return (
        f"bradawl {__version__}\nPython {platform.python_version()}\n{system.sysname} {system.release} {system.machine}"
    )


def _settings(settings: Settings, model: ModelSettings) -> dict[str, object]:
    """The settings, without those that hold texts and the environment. Keys are masked by `masked`."""
    plain = {
        name: msgspec.to_builtins(getattr(settings, name), enc_hook=str)
        for name in settings.__struct_fields__
        if name not in _LEFT_OUT and name not in ("model", "fallback", "small")
    }
    models = {"model": model, "fallback": settings.fallback, "small": settings.small}
    return {**plain, **{name: repr(each) for name, each in models.items() if each is not None}}


def _last_error(home: str) -> str:
    """The end of the newest error report; empty if there is none, or it can't be read."""
    try:
        reports = sorted(Path(home, "errors").glob("*.txt"))
        return reports[-1].read_text("utf-8", "replace")[-_REPORT_BYTES:] if reports else ""
    except OSError:
        return ""


def _events(entries: Sequence[Envelope], *, with_content: bool) -> Iterable[str]:
    for entry in entries[-_LAST_EVENTS:]:
        plain = msgspec.to_builtins(entry)
        yield json.dumps(plain if with_content else without_content(plain), ensure_ascii=True)


def without_content(value: object, key: str = "type", type_name: str = "") -> object:
    """The structure of an event: each text that may be content is replaced by its length.

    `key` is the field that holds the value, in a struct of the type `type_name`.
    """
    if isinstance(value, dict):
        fields = cast("Mapping[str, object]", value)
        named = str(fields.get("type", ""))
        return {each: without_content(inner, each, named) for each, inner in fields.items()}
    if isinstance(value, list | tuple):
        return [without_content(each, key, type_name) for each in cast("Sequence[object]", value)]
    if isinstance(value, str | bytes) and not _is_kept(value, key, type_name):
        return f"<{len(value)}>"
    return value


def _is_kept(value: str | bytes, key: str, type_name: str) -> bool:
    if key == "reason":
        return value in _REASONS
    return key in _KEPT and not (key == "name" and type_name in _NAMED_BY_USERS)


def _json(value: object) -> str:
    return json.dumps(value, indent=2, default=str)


def _fenced(text: str) -> str:
    fence = "````" if "```" in text else "```"
    return f"{fence}\n{text}\n{fence}"
