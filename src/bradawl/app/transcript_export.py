"""The transcript of a session as Markdown, HTML or JSON."""

import html
import json
import re
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from bradawl.app.rendering import cut, main_argument, one_line
from bradawl.app.transcript_blocks import Block, Called, Prompt, Remark, Said, Thought, blocks_of
from bradawl.core.arguments import parse_arguments
from bradawl.core.events import Envelope
from bradawl.safety.control_characters import clean

Form = Literal["md", "json", "html"]
FORMS: Final[tuple[Form, ...]] = ("md", "json", "html")
_SUMMARY: Final = 100
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit;margin:0}"
    "details pre,code{font:13px/1.4 ui-monospace,monospace}"
    "details{border-left:3px solid #8888;padding-left:.8rem;margin:.6rem 0}"
    ".prompt{background:#8882;padding:.6rem .8rem;border-radius:.4rem;margin:1.5rem 0 .8rem}.remark{opacity:.7}"
    "@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}}"
)


def exported(entries: Sequence[Envelope], title: str, form: Form) -> str:
    """The whole file. Markdown and HTML fold calls and thinking; JSON has all entries of the log."""
    if form == "json":
        return "[\n" + ",\n".join(map(_json, entries)) + "\n]\n"
    blocks = blocks_of(entries)
    return _markdown(blocks, title) if form == "md" else _html(blocks, title)


def _json(entry: Envelope) -> str:
    try:
        return msgspec.json.encode(entry).decode()
    except UnicodeEncodeError:  # a file name that is not UTF-8, which JSON can only hold as escapes
        return json.dumps(msgspec.to_builtins(entry), separators=(",", ":"))


def _call_title(call: Called) -> str:
    arguments, _ = parse_arguments(call.raw_arguments)
    shown = call.raw_arguments if arguments is None else main_argument(arguments)
    failed = "" if call.outcome in ("ok", None) else f" ({call.outcome})"
    return cut(f"{one_line(call.name)}({one_line(shown)})", _SUMMARY) + failed


# ------------------------------------------------------------------ Markdown


def _markdown(blocks: Sequence[Block], title: str) -> str:
    return "\n\n".join((f"# {one_line(title)}", *map(_markdown_block, blocks))) + "\n"


def _markdown_block(block: Block) -> str:
    match block:
        case Prompt(number, text):
            return f"## {f'Prompt {number}' if number else 'Message during the turn'}\n\n{_fenced(text)}"
        case Said(text):
            return clean(text).strip()
        case Thought(text):
            return _folded("thinking", _fenced(text))
        case Called():
            parts = [_fenced(block.raw_arguments, "json")]
            parts += [_fenced(block.result)] if block.result else []
            return _folded(_call_title(block), "\n\n".join(parts))
        case Remark(text):
            return f"> {one_line(text)}"


def _folded(summary: str, body: str) -> str:
    return f"<details><summary>{html.escape(summary)}</summary>\n\n{body}\n\n</details>"


def _fenced(text: str, language: str = "") -> str:
    """A code block whose fence is longer than all in the text."""
    text = clean(text)
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", text)), 3)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


# ------------------------------------------------------------------ HTML


def _html(blocks: Sequence[Block], title: str) -> str:
    shown = html.escape(one_line(title))
    head = f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{shown}</title>'
    body = "\n".join(map(_html_block, blocks))
    return f"{head}\n<style>{_STYLE}</style></head><body>\n<h1>{shown}</h1>\n{body}\n</body></html>\n"


def _html_block(block: Block) -> str:
    match block:
        case Prompt(_, text):
            return f'<div class="prompt">{_pre(text)}</div>'
        case Said(text):
            return _pre(text)
        case Thought(text):
            return f"<details><summary>thinking</summary>{_pre(text)}</details>"
        case Called():
            result = _pre(block.result) if block.result else ""
            title = html.escape(_call_title(block))
            return f"<details><summary><code>{title}</code></summary>{_pre(block.raw_arguments)}<hr>{result}</details>"
        case Remark(text):
            return f'<p class="remark">{html.escape(one_line(text))}</p>'


def _pre(text: str) -> str:
    return f"<pre>{html.escape(clean(text).strip())}</pre>"
