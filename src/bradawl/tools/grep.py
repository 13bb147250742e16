"""The tool `grep`: finds lines or files by regular expression."""

import re
from collections.abc import Callable
from typing import Annotated

import msgspec

from bradawl.core.effects import Effects, is_within
from bradawl.core.errors import ToolError
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.rules import refuses
from bradawl.core.tools import ToolSpec
from bradawl.tools.outlines.symbol import Symbol
from bradawl.tools.reading.decoding import encoding_of, presentable
from bradawl.tools.reading.path_errors import named_as_given, on_one_line, with_suggestion
from bradawl.tools.searching.result_text import shown
from bradawl.tools.searching.search import (
    DEFAULT_LIMIT,
    MOST_CONTEXT,
    OutputMode,
    Query,
    SearchResult,
    is_included,
)

_MOST = 2_000
_READ_LIMIT = 50_000_000
_RULES_NAMED = 3
_TYPE = r"[\w+-]+"


class GrepParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Search files by regular expression; not ignored ones and those with keys."""

    pattern: str
    path: str = "."
    include: Annotated[str, msgspec.Meta(description="Names of files, as *.{ts,tsx}")] = ""
    type: Annotated[str, msgspec.Meta(description="Their type, as py or js")] = ""
    output_mode: OutputMode = "content"
    context: Annotated[int, msgspec.Meta(description="Lines around each match.")] = 0
    multiline: Annotated[bool, msgspec.Meta(description="Matches may span lines.")] = False
    limit: Annotated[int, msgspec.Meta(description="Most matches (or files).")] = DEFAULT_LIMIT


class Grep:
    """The tool `grep`."""

    spec: ToolSpec = ToolSpec("grep", rule_names=("Read", "Grep"), read_rules="exact", shows=("pattern",))
    params: type[GrepParams] = GrepParams

    def __init__(
        self,
        rg: str | None,
        timeout_s: float = 30.0,
        ignore_file: Callable[[str], str | None] = lambda _: None,
        home: str = "",
        own: tuple[str, ...] = (),
        scratch: Callable[[], str] = str,
    ) -> None:
        """`rg` is the path of ripgrep; without it each call fails with an error that explains how to install it.

        A search that takes longer than `timeout_s` is ended. `ignore_file` returns the `.bradawlignore` that applies to
        a folder. Files with keys are left out everywhere, also in the user's `home` and in bradawl's `own` folders,
        unless the search names one of them alone; `scratch` returns the part of them that the session calls `/tmp`.
        """
        self._rg = rg
        self._timeout_s = timeout_s
        self._ignore_file = ignore_file
        self._home = home
        self._own = own
        self._scratch = scratch

    def effects(self, params: GrepParams, context: CallContext) -> Effects:
        """Reads below `path`. Raises `ToolError` for invalid arguments, such as a pattern of two lines."""
        _check(params)
        return Effects(reads=(context.resolve(params.path),))

    async def run(self, params: GrepParams, context: CallContext) -> ToolOutput:
        """Matching lines or files, sorted by path; of too many lines the most relevant, and where the others are."""
        (root,) = self.effects(params, context).reads
        with named_as_given(root, params.path, context):
            query = _query(params, root, await _is_file(root, context), self._timeout_s)
        query = _without_refused(without_keys(query, self._home, self._own, self._scratch()), context)
        found = await self._search(query, context)
        if query.is_file and not found.total and await _is_binary(root, context):
            raise ToolError(f"{params.path} is binary, and grep searches text; use bash (grep -a, strings)")
        where = context.relative(root) if root != context.cwd else f"the working directory {context.name_of(root)}"
        found = msgspec.structs.replace(found, notes=(*_notes(params), *found.notes, *_refused(root, context)))
        text = shown(found, query, on_one_line(where), context, await self._symbols(found, query, context))
        return ToolOutput((Text(presentable(text)),), limit=None)

    async def _symbols(self, found: SearchResult, query: Query, context: CallContext) -> dict[str, tuple[Symbol, ...]]:
        if query.output_mode != "content" or not found.total:
            return {}
        from bradawl.tools.searching.enclosing import symbols_around

        return await symbols_around(found, context)

    async def _search(self, query: Query, context: CallContext) -> SearchResult:
        if self._rg is None:
            from bradawl.tools.searching.errors import NO_RIPGREP

            raise ToolError(NO_RIPGREP)
        from bradawl.tools.searching import ripgrep

        runner = ripgrep.Ripgrep(self._rg, query.root, query.is_file, self._ignore_file(query.root))
        return await ripgrep.search(runner, query, context)


def without_keys(query: Query, home: str, own: tuple[str, ...], scratch: str = "") -> Query:
    """The query without files with keys and files of other users, except in such a folder that the search names."""
    from bradawl.safety.permissions.protected_paths import other_homes_matcher, search_exclusion

    holds_keys, is_anothers = search_exclusion(home, own, scratch), other_homes_matcher(home)
    inside = f"{query.root.rstrip('/')}/name"
    if holds_keys(inside):
        return query
    if is_anothers(inside):
        return msgspec.structs.replace(query, leaves_out=holds_keys)
    return msgspec.structs.replace(query, leaves_out=lambda path: holds_keys(path) or is_anothers(path))


def _without_refused(query: Query, context: CallContext) -> Query:
    """The query without files that permission rules refuse to read."""
    if not context.rules:
        return query
    others, rules = query.leaves_out, context.rules
    return msgspec.structs.replace(query, leaves_out=lambda path: others(path) or refuses(rules, "read", path))


def _refused(root: str, context: CallContext) -> list[str]:
    """A note about rules that may hide files below the folder. It does not depend on the matches."""
    found = [
        rule.text
        for rule in context.rules
        if (rule.verdict, rule.on) == ("deny", "read")
        and any(is_within(place, root) or is_within(root, place) for place in rule.places)
    ]
    return [f"[left out: what permission rules refuse, {', '.join(dict.fromkeys(found[:_RULES_NAMED]))}]"] * bool(found)


def _check(params: GrepParams) -> None:
    if not params.pattern:
        raise ToolError("pattern is empty; give a regular expression, or use glob to list files")
    if "\0" in params.pattern or ("\n" in params.pattern and not params.multiline):
        raise ToolError(
            "pattern holds a line break or NUL; grep searches one line at a time, so search for one line, "
            "or set multiline=true"
        )
    if params.context < 0:
        raise ToolError(f"context is a number of lines, from 0 to {MOST_CONTEXT}; it was {params.context}")
    if params.limit < 1:
        raise ToolError(f"limit is a number of matches or files, from 1 to {_MOST}; it was {params.limit}")
    if params.type and not re.fullmatch(_TYPE, params.type):
        raise ToolError(f"type {params.type} can't be one; it is a name as py or js, and include takes *.py")
    try:
        is_included(params.include, "", "/name")
    except re.error as error:
        raise ToolError(f"include {params.include} can't be understood: {error}; an example is *.py") from None


def _query(params: GrepParams, root: str, is_file: bool, timeout_s: float) -> Query:
    return Query(
        pattern=params.pattern,
        root=root,
        is_file=is_file,
        output_mode=params.output_mode,
        limit=min(params.limit, _MOST),
        context=min(params.context, MOST_CONTEXT) if params.output_mode == "content" else 0,
        is_multiline=params.multiline,
        include=params.include,
        file_type=params.type,
        timeout_s=timeout_s,
    )


def _notes(params: GrepParams) -> list[str]:
    notes = [f"[context is at most {MOST_CONTEXT}]"] if params.context > MOST_CONTEXT else []
    return [*notes, f"[limit is at most {_MOST}]"] if params.limit > _MOST else notes


async def _is_file(root: str, context: CallContext) -> bool:
    """Whether the root is a file. Raises `ToolError` if it can't be searched."""
    try:
        entries, _ = await context.files.list(root, 0)
    except ToolError as error:
        raise await with_suggestion(error, root, context) from None
    return bool(entries)


async def _is_binary(path: str, context: CallContext) -> bool:
    try:
        content = await context.files.read(path, _READ_LIMIT)
    except ToolError:
        return False
    try:
        encoding_of(content.data, path)
    except ToolError:
        return True
    return False
