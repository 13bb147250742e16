"""Reviews a project's texts for the model: instructions (AGENTS.md), and prompt files with front matter."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from bradawl.safety.trust.findings import Finding, canonical

INSTRUCTIONS_LIMIT_BYTES: Final = 100_000
"""The length beyond which instructions are reported."""
_FENCED: Final = r"(?ms)^[ \t]*(?P<fence>```+|~~~+).*?(?:^[ \t]*(?P=fence)|\Z)"
_IN_TICKS: Final = r"`[^`\n]*`"
_IMPORT: Final = r"(?:^|(?<=[\s(\[\"']))@(?P<path>[^\s)\]\"'`]+)"
_INLINE_SHELL: Final = "!`"
_HARMLESS_HEAD: Final = frozenset(
    {"name", "description", "argument_hint", "license", "compatibility", "metadata", "version", "effort"}
    | {"disable_model_invocation", "user_invocable", "disallowed_tools", "disallowedtools", "title", "model"}
)
_FILLERS: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u2800\u3164\uffa0")
_JOINERS: Final = "\u200c\u200d"


def judge_instructions(text: str) -> Iterator[Finding]:
    """Findings in an AGENTS.md: imports from elsewhere, invisible characters, and its length."""
    if (size := len(text.encode("utf-8", "replace"))) > INSTRUCTIONS_LIMIT_BYTES:
        yield Finding("", "error", f"it has {size:,} bytes, more than {INSTRUCTIONS_LIMIT_BYTES:,}: too long to follow")
        return
    yield from _imports(text)
    yield from _hidden(text)


def judge_prompt_file(text: str) -> Iterator[Finding]:
    """Findings in a command, an agent or a skill: its front matter grants nothing, and what it would run is asked
    about.
    """
    head, body = _split_head(text.removeprefix("\ufeff"))
    for line in head:
        key, colon, _ = line.partition(":")
        name = canonical(key)
        if not colon or key[:1] in (" ", "\t", "-", "#") or name in _HARMLESS_HEAD:
            continue
        if "permission_mode" in name or "bypass" in name:
            yield Finding(key, "deny", "no file of a project chooses what is asked about", name)
        else:
            yield _asked(key, "a file of a project grants no tools and starts nothing by itself", "\n".join(head))
    if _INLINE_SHELL in body:
        yield _asked("", "it has a shell command in it, which is asked about like any", body)
    yield from judge_instructions(body)


def _asked(key: str, reason: str, value: str) -> Finding:
    return Finding(key, "ask", reason, canonical(key), value, is_for_trust=True, is_program=True)


def _split_head(text: str) -> tuple[list[str], str]:
    """The front matter between two `---` lines, and the rest. Without a second one everything is front matter."""
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != "---":
        return [], text
    end = next((index for index, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), len(lines))
    return lines[1:end], "\n".join(lines[end + 1 :] if end < len(lines) else lines)


def _imports(text: str) -> Iterator[Finding]:
    for path in imports_in(text):
        if leads_out(path):
            yield Finding(f"@{path}"[:200], "deny", "what is imported may not lie outside the project")


def imports_in(text: str) -> Iterator[str]:
    """The paths that a text imports with `@path`, in order. Those in code do not count."""
    prose = re.sub(_IN_TICKS, "", re.sub(_FENCED, "", text))
    for match in re.finditer(_IMPORT, prose, re.MULTILINE):
        yield match["path"]


def leads_out(path: str, depth: int = 0) -> bool:
    """Whether a path in a project's text leads out of the project, judging by its text alone.

    `depth` is the number of folders between the project and the text's file.
    """
    if path[0] in "~/$%\\" or path.lower().startswith("file:") or path[1:3] in (":\\", ":/"):
        return True
    for part in path.replace("\\", "/").split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            return True
    return False


def _hidden(text: str) -> Iterator[Finding]:
    if count := invisible_in(text):
        characters = "character" if count == 1 else "characters"
        yield Finding("", "sanitize", f"it has {count} invisible {characters} in it, which are spelled out when shown")


def invisible_in(text: str) -> int:
    """The number of invisible characters that may hide words. Those that emoji and scripts need don't count."""
    if text.isascii() and not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", text):
        return 0
    text = text.removeprefix("\ufeff")
    return sum(_is_hidden(text[index - 1 : index], character) for index, character in enumerate(text))


def _is_hidden(before: str, character: str) -> bool:
    if character in "\t\n\r" or (character.isascii() and character.isprintable()):
        return False
    if character in _JOINERS:
        return not before or ord(before) < 0x590
    if "\ufe00" <= character <= "\ufe0f":
        return not before or (before.isascii() and before not in "0123456789#*") or "\ufe00" <= before <= "\ufe0f"
    if character in _FILLERS or "\U000e0100" <= character <= "\U000e01ef":
        return True
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co")
