"""Three implementations of one edit: bradawl's tool, and two published sets of rules, after their description."""

import asyncio
import re
import unicodedata

from edit_cases import Case

from bradawl.agent.calls.seen_files import SeenFiles
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.core.ports import CallContext
from bradawl.core.workspace import FileContent
from bradawl.testing.fakes import MemoryFiles, ScriptedProcesses
from bradawl.tools.edit_file import EditFile, EditFileParams

_PATH = "/project/file"


def bradawl(case: Case) -> bytes | None:
    """The tool `edit_file`, as a session calls it; None if it refuses."""
    return asyncio.run(_edit(case))


async def _edit(case: Case) -> bytes | None:
    files, tool = MemoryFiles({_PATH: case.seen or case.data}), EditFile()
    known: dict[str, str] = {}
    seen = SeenFiles(known, lambda state: known.update({state.path: state.sha256}))
    if case.seen is not None:
        seen.saw(await files.read(_PATH, 1 << 30))
        files.files[_PATH] = case.data
    context = CallContext(
        call_id="c",
        cwd="/project",
        files=files,
        processes=ScriptedProcesses(),
        seen=seen,
        grant=Grant(),
        progress=lambda _: None,
        change=lambda _: None,
    )
    params = EditFileParams(_PATH, case.old, case.new)
    try:
        tool.effects(params, context)
        await tool.run(params, context)
    except ToolError:
        return None
    content: FileContent = await files.read(_PATH, 1 << 30)
    return content.data


def corecoder(case: Case) -> bytes | None:
    """CoreCoder: the file is read as UTF-8 text with universal newlines; the string must occur exactly once."""
    try:
        text = case.data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.count(case.old) != 1:
        return None
    return text.replace(case.old, case.new).encode()


def pi(case: Case) -> bytes | None:
    """pi: byte order mark and line endings are removed first; if the text is not found, both sides are normalized.

    Normalized: compatibility forms, no trailing spaces, straight quotes, hyphens, plain spaces. In this form
    the text must occur once. Edited lines are written normalized, all others unchanged.
    """
    text = case.data.decode("utf-8", "replace")
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix("\ufeff")
    first = text.find("\n")
    ending = "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
    text, old, new = (part.replace("\r\n", "\n").replace("\r", "\n") for part in (text, case.old, case.new))
    base = text if old in text else _plain(text)
    wanted = old if old in base else _plain(old)
    if _plain(base).count(_plain(old)) != 1 or wanted not in base:
        return None
    start = base.index(wanted)
    result = _with_untouched_lines(text, base, start, start + len(wanted), new)
    return None if result == text else (mark + result.replace("\n", ending)).encode()


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", text)
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    text = re.sub("[\u2018\u2019\u201a\u201b]", "'", text)
    text = re.sub("[\u201c\u201d\u201e\u201f]", '"', text)
    text = re.sub("[\u2010-\u2015\u2212]", "-", text)
    return re.sub("[\u00a0\u2002-\u200a\u202f\u205f\u3000]", " ", text)


def _with_untouched_lines(text: str, base: str, start: int, stop: int, new: str) -> str:
    lines, plain = text.split("\n"), base.split("\n")
    first, last = base.count("\n", 0, start), base.count("\n", 0, max(start, stop - 1))
    before = sum(len(line) + 1 for line in plain[:first])
    after = sum(len(line) + 1 for line in plain[: last + 1])
    middle = base[before:start] + new + base[stop : min(after, len(base))]
    head = "".join(line + "\n" for line in lines[:first])
    return head + middle + "\n".join(lines[last + 1 :])


RULES = {"bradawl": bradawl, "CoreCoder": corecoder, "pi": pi}
