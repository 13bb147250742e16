"""Generates realistic source files from a seed, for the benchmark of edits."""

import random
from collections.abc import Callable

_VERBS = ("load", "parse", "merge", "render", "fetch", "count", "close", "apply", "build", "check", "split", "resolve")
_NOUNS = ("order", "user", "invoice", "token", "cache", "record", "header", "batch", "route", "widget", "price")
_ADJECTIVES = ("old", "new", "empty", "broken", "final", "first", "local", "remote", "stale", "shared")
_PROSE = (
    "The server doesn't answer when the {noun} is {adjective}.",
    'Set "{noun}" to the {adjective} value before you {verb} it.',
    "It isn't safe to {verb} a {adjective} {noun} twice - use the lock.",
    "Each {noun} keeps its own {adjective} copy; nobody else's is touched.",
    'A "{adjective}" {noun} is one that was never {verb}ed.',
    "Run the {verb} step again if the {noun} looks wrong.",
    "See the notes on the {adjective} {noun} at the end of this page.",
)


class Words:
    """Random names and sentences. No name occurs twice."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self._taken: set[str] = set()

    def name(self) -> str:
        """A name such as `merge_user_7`."""
        while True:
            found = f"{self.draw.choice(_VERBS)}_{self.draw.choice(_ADJECTIVES)}_{self.draw.choice(_NOUNS)}"
            if found in self._taken:
                found += f"_{self.draw.randrange(100)}"
            if found not in self._taken:
                self._taken.add(found)
                return found

    def noun(self) -> str:
        """A noun."""
        return self.draw.choice(_NOUNS)

    def sentence(self) -> str:
        """A sentence, sometimes with apostrophes, quotes and dashes."""
        words = {"noun": self.noun(), "adjective": self.draw.choice(_ADJECTIVES), "verb": self.draw.choice(_VERBS)}
        return self.draw.choice(_PROSE).format(**words)

    def number(self) -> int:
        """A small number, as in code."""
        return self.draw.randrange(2, 9_000)


def _python_body(words: Words, margin: str) -> list[str]:
    one, other, number = words.noun(), words.name(), words.number()
    lines = [f"{margin}{one} = {other}(data, limit={number})"]
    if words.draw.random() < 0.6:
        lines += [f"{margin}if not {one}:", f'{margin}    raise ValueError("no {one} in {other}")']
    if words.draw.random() < 0.5:
        lines += [f"{margin}# {words.sentence()}"]
    if words.draw.random() < 0.5:
        lines += [f"{margin}for item in {one}.items():", f"{margin}    self.total += item.{words.noun()} * {number}"]
        lines += [f"{margin}    if item.done:", f"{margin}        break"] if words.draw.random() < 0.5 else []
    if words.draw.random() < 0.4:
        lines.insert(1, "")
    return [*lines, f"{margin}return {one}"]


def python(words: Words) -> list[str]:
    """A module with a few classes and functions."""
    lines = [f'"""{words.sentence()}"""', "", "import os", f"from {words.noun()} import {words.name()}", ""]
    for _ in range(words.draw.randrange(2, 5)):
        lines += ["", f"class {words.name().title().replace('_', '')}:", f'    """{words.sentence()}"""']
        for _ in range(words.draw.randrange(2, 5)):
            lines += ["", f"    def {words.name()}(self, data, limit={words.number()}):"]
            lines += _python_body(words, "        ")
    for _ in range(words.draw.randrange(1, 4)):
        lines += ["", "", f"def {words.name()}(data):", *_python_body(words, "    ")]
    return lines


def javascript(words: Words) -> list[str]:
    """Functions, indented by two spaces."""
    lines = [f"import {{ {words.noun()} }} from './{words.noun()}';", ""]
    for _ in range(words.draw.randrange(4, 9)):
        name, noun = words.name(), words.noun()
        lines += [f"export function {name}({noun}, options) {{", f"  // {words.sentence()}"]
        lines += [f"  const limit = options.limit || {words.number()};", f"  if (!{noun}) {{"]
        lines += [f"    throw new Error('no {noun} for {name}');", "  }"]
        lines += [f"  return {noun}.map((item) => {{", f"    item.{words.noun()} += {words.number()};"]
        lines += ["    return item;", "  });", "}", ""]
    return lines[:-1]


def go(words: Words) -> list[str]:
    """Functions, indented by tabs."""
    lines = ["package main", "", 'import "fmt"', ""]
    for _ in range(words.draw.randrange(4, 9)):
        name, noun = words.name(), words.noun()
        lines += [f"// {name} {words.sentence()}", f"func {name}({noun} []int) (int, error) {{", "\ttotal := 0"]
        lines += [f"\tfor _, value := range {noun} {{", f"\t\tif value > {words.number()} {{"]
        lines += [f'\t\t\treturn 0, fmt.Errorf("bad {noun}: %d", value)', "\t\t}", "\t\ttotal += value", "\t}"]
        lines += [f"\ttotal -= {words.number()}"] if words.draw.random() < 0.5 else [""]
        lines += ["\treturn total, nil", "}", ""]
    return lines[:-1]


def markdown(words: Words) -> list[str]:
    """Headings, paragraphs and lists."""
    lines = [f"# {words.name()}", ""]
    for _ in range(words.draw.randrange(4, 9)):
        lines += [f"## {words.name()}", ""]
        for _ in range(words.draw.randrange(1, 4)):
            lines += [f"{words.sentence()} {words.sentence()} (note {words.number()})"]
        lines += ["", *(f"- {words.name()}: {words.sentence()}" for _ in range(words.draw.randrange(1, 4))), ""]
    return lines[:-1]


def yaml(words: Words) -> list[str]:
    """Nested mappings."""
    lines = ["version: 3", "services:"]
    for _ in range(words.draw.randrange(4, 9)):
        lines += [f"  {words.name()}:", f'    image: "{words.noun()}:{words.number()}"', "    environment:"]
        lines += [f"      {words.noun().upper()}: {words.number()}", f"      MODE: {words.name()}", "    ports:"]
        lines += [f"      - {words.number()}:{words.number()}"]
    return lines


def makefile(words: Words) -> list[str]:
    """Targets with recipes, which begin with a tab."""
    lines = [f"{words.noun().upper()} := {words.number()}", ""]
    for _ in range(words.draw.randrange(4, 9)):
        name = words.name()
        lines += [f".PHONY: {name}", f"{name}:", f"\t@echo {name} {words.number()}"]
        lines += [f"\tif [ -d build/{words.noun()} ]; then \\", f"\t\trm -rf build/{words.name()}; \\", "\tfi", ""]
    return lines[:-1]


LANGUAGES: dict[str, Callable[[Words], list[str]]] = {
    "python": python,
    "javascript": javascript,
    "go": go,
    "markdown": markdown,
    "yaml": yaml,
    "makefile": makefile,
}
