"""Source code of invented projects: whole files, and the lines of an edit."""

from typing import NamedTuple

from planted_words import Words


class Language(NamedTuple):
    """Templates of one language's code."""

    head: tuple[str, ...]
    blocks: tuple[str, ...]
    edits: tuple[tuple[str, str], ...]
    """Old and new text of an edit; a numbered placeholder is the same in both."""


_PYTHON = Language(
    (
        '"""The {subject} {role}."""\n\nimport logging\nfrom collections.abc import Iterator\n\nfrom {subject}.{role} '
        "import {pascal}\n\nlog = logging.getLogger(__name__)\n{upper} = {n3}\n",
        "from __future__ import annotations\n\nimport dataclasses\nimport time\n\nfrom app.{subject} import {pascal}\n",
    ),
    (
        "def {function}({snake.1}: {pascal}, limit: int = {n2}) -> list[str]:\n"
        '    """Names of the {adjective} {subject}s."""\n    found = []\n    for {subject} in {snake.1}.{verb}():\n'
        "        if {subject}.is_{adjective}:\n            continue\n        found.append({subject}.name)\n"
        "    return found[:limit]\n",
        "class {pascal}:\n    def __init__(self, {snake.1}: {pascal}) -> None:\n        self._{snake.1} = {snake.1}\n"
        "        self._{snake.2}: dict[str, int] = {}\n\n    def {function}(self, key: str) -> int | None:\n"
        "        if key not in self._{snake.2}:\n            log.debug('no {subject} for %s', key)\n"
        "            return None\n        return self._{snake.2}[key]\n",
        "async def {function}(session: Session, {snake.1}: int) -> Iterator[{pascal}]:\n    try:\n"
        "        rows = await session.{verb}({snake.1})\n    except TimeoutError:\n"
        "        log.warning('slow {subject}')\n"
        "        raise\n    return (row for row in rows if row.{snake})\n",
    ),
    (
        (
            "    found = []\n    for {subject.1} in {snake.2}:\n",
            "    found: set[str] = set()\n    for {subject.1} in sorted({snake.2}):\n",
        ),
        ("        return self._{snake.1}\n", "        with self._lock:\n            return self._{snake.1}.copy()\n"),
        ("{upper.1} = {n2}\n", "{upper.1} = {n3}\n{upper} = {n2}\n"),
    ),
)
_RUST = Language(
    (
        "use std::collections::HashMap;\nuse std::sync::Arc;\n\nuse crate::{snake}::{pascal};\n\n"
        "const {upper}: usize = {n3};\n",
    ),
    (
        "/// Returns the {adjective} {subject}s in order.\n"
        "pub fn {function}(&mut self, {snake.1}: &{pascal}) -> Result<usize, Error> {\n"
        "    let mut taken = 0;\n    for slot in self.{snake.2}.iter_mut() {\n        if slot.is_{adjective}() {\n"
        "            continue;\n        }\n        taken += slot.{verb}({snake.1})?;\n    }\n    Ok(taken)\n}\n",
        "#[derive(Debug, Clone)]\npub struct {pascal} {\n    {snake}: Arc<HashMap<u64, {pascal}>>,\n"
        "    {snake}: u32,\n}\n",
        "impl {pascal.1} {\n    pub fn new({snake.2}: u32) -> Self {\n"
        "        {pascal.1} { {snake.2}, ..Default::default() }\n    }\n}\n",
    ),
    (
        (
            "        taken += slot.{verb.1}({snake.2})?;\n",
            "        if let Some(more) = slot.{verb.1}({snake.2})? {\n            taken += more;\n        }\n",
        ),
        ("const {upper.1}: usize = {n2};\n", "const {upper.1}: usize = {n3};\n"),
    ),
)
_GO = Language(
    ('package {subject}\n\nimport (\n\t"context"\n\t"fmt"\n\n\t"example.com/{subject}/internal/{snake}"\n)\n',),
    (
        "// {method} returns the first {adjective} {subject}.\n"
        "func (s *{pascal}) {method}(ctx context.Context, id int64) (*{pascal.1}, error) {\n"
        "\trow, err := s.{camel}.{verb}(ctx, id)\n\tif err != nil {\n"
        '\t\treturn nil, fmt.Errorf("{verb} {subject} %d: %w", id, err)\n\t}\n\treturn row, nil\n}\n',
        "type {pascal} struct {\n\t{camel} map[string]int\n\tmu sync.Mutex\n\t{camel} time.Duration\n}\n",
    ),
    (
        (
            "\trow, err := s.{camel.1}.Get(ctx, id)\n",
            "\tctx, cancel := context.WithTimeout(ctx, s.{camel})\n\tdefer cancel()\n"
            "\trow, err := s.{camel.1}.Get(ctx, id)\n",
        ),
        ("\t{camel.1} map[string]int\n", "\t{camel.1} map[string]int64\n"),
    ),
)
_TYPESCRIPT = Language(
    ("import { useMemo } from 'react';\nimport type { {pascal} } from '../{kebab}';\n\nconst {upper} = {n3};\n",),
    (
        "export function {method}({camel.1}: {pascal}[], limit = {n2}): string[] {\n  return {camel.1}\n"
        "    .filter((item) => !item.{camel})\n    .slice(0, limit)\n    .map((item) => item.{subject});\n}\n",
        "export interface {pascal} {\n  id: number;\n  {camel}: string | null;\n  {camel}?: Date;\n}\n",
        "export const {camel} = async (id: number): Promise<{pascal.1} | undefined> => {\n"
        "  const response = await fetch(`/v{n1}/{subject}s/${id}`);\n  if (!response.ok) {\n"
        "    return undefined;\n  }\n"
        "  return (await response.json()) as {pascal.1};\n};\n",
    ),
    (
        (
            "  if (!response.ok) {\n",
            "  if (response.status === {n3}) {\n    throw new {pascal}Expired(id);\n  }\n  if (!response.ok) {\n",
        ),
        ("    .filter((item) => !item.{camel.1})\n", "    .filter((item) => item.{camel.1} == null)\n"),
    ),
)
_JAVA = Language(
    ("package com.example.{subject};\n\nimport java.util.List;\nimport java.util.Map;\n",),
    (
        "public final class {pascal.1} {\n    private final Map<Long, {pascal.2}> {camel.3};\n\n"
        "    public {pascal.1}(Map<Long, {pascal.2}> {camel.3}) {\n        this.{camel.3} = {camel.3};\n    }\n\n"
        "    public List<{pascal.2}> {method}(int limit) {\n        return {camel.3}.values().stream()\n"
        "            .filter(each -> !each.is{pascal}())\n            .limit(limit)\n            .toList();\n"
        "    }\n}\n",
    ),
    (
        (
            "            .limit(limit)\n",
            "            .sorted(comparing({pascal}::{camel}))\n            .limit(limit)\n",
        ),
        ("        this.{camel.1} = {camel.1};\n", "        this.{camel.1} = Map.copyOf({camel.1});\n"),
    ),
)
_C = Language(
    ('#include <errno.h>\n#include <string.h>\n\n#include "{subject}/{snake}.h"\n\n#define {upper} {n3}u\n',),
    (
        "static int {function}(struct {snake} *{subject.1}, size_t count)\n{\n\tsize_t i;\n\n"
        "\tfor (i = 0; i < count; i++) {\n"
        "\t\tif ({subject.1}->{snake}[i] == {upper})\n\t\t\treturn -EBUSY;\n\t}\n\treturn 0;\n}\n",
        "struct {snake} {\n\tuint32_t {snake};\n\tuint8_t {snake}[{n2}];\n\tstruct {snake} *next;\n};\n",
    ),
    (
        ("\tfor (i = 0; i < {snake.1}; i++) {\n", "\tfor (i = 0; i < {snake.1} && !{snake}; i++) {\n"),
        ("#define {upper.1} {n2}u\n", "#define {upper.1} {n3}u\n"),
    ),
)
_SQL = Language(
    ("-- {subject} {role}\nset search_path = {subject}, public;\n",),
    (
        "create table {snake} (\n    id bigint generated always as identity primary key,\n    {snake} text not null,\n"
        "    {snake} numeric(12, {n1}),\n    {past}_at timestamptz default now()\n);\n",
        "select {subject.1}.id, count(*) as {snake}\nfrom {subject.1}s {subject.1}\n"
        "left join {snake} on {snake}.id = {subject.1}.{snake}\n"
        "where {subject.1}.{snake} > {n3}\ngroup by 1\norder by 2 desc;\n",
    ),
    (("    {snake.1} text not null,\n", "    {snake.1} text,\n    {snake} bigint not null default 0,\n"),),
)
_YAML = Language(
    ("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {kebab}\n  labels:\n    app: {subject}\nspec:\n",),
    (
        "      - name: {kebab}\n        image: registry.example/{subject}/{kebab}:{version}\n        env:\n"
        '          - name: {upper}\n            value: "{n3}"\n        resources:\n          limits:\n'
        "            memory: {n3}Mi\n",
    ),
    (
        ("            memory: {n2}Mi\n", "            memory: {n3}Mi\n            cpu: {n3}m\n"),
        (
            "          - name: {upper.1}\n",
            '          - name: {upper}\n            value: "{n2}"\n          - name: {upper.1}\n',
        ),
    ),
)
LANGUAGES = {
    "python": _PYTHON,
    "rust": _RUST,
    "go": _GO,
    "typescript": _TYPESCRIPT,
    "java": _JAVA,
    "c": _C,
    "sql": _SQL,
    "operations": _YAML,
}


def source_file(words: Words, size: int) -> str:
    """A file of the project's language with about `size` characters."""
    language = LANGUAGES[words.world.name]
    pieces = [words.fill(words.one_of(language.head))]
    length = len(pieces[0])
    while length < size:
        pieces.append(words.fill(words.one_of(language.blocks)))
        length += len(pieces[-1]) + 2
    return "\n\n".join(pieces) if words.world.name != "operations" else "".join(pieces)


def edit_texts(words: Words) -> tuple[str, str]:
    """Old and new text of an edit."""
    old, new = words.one_of(LANGUAGES[words.world.name].edits)
    old, _, new = words.fill(f"{old}\0{new}").partition("\0")
    return old, new


def edit_result(words: Words, path: str, old: str, new: str) -> str:
    """The result of `edit_file` for a successful edit."""
    gone, come = old.splitlines(), new.splitlines()
    around = [words.fill("{snake}"), words.fill("{snake}")]
    line = words.chance.randint(5, 400)
    hunk = [f"@@ -{line},{len(gone) + 2} +{line},{len(come) + 2} @@", f" {around[0]}"]
    hunk += [f"-{text}" for text in gone] + [f"+{text}" for text in come] + [f" {around[1]}"]
    return "\n".join([f"Edited {path}: +{len(come)} -{len(gone)}", *hunk])
