"""Finds the definitions of a source file with a tree-sitter grammar. Runs as a separate program.

A separate process, because grammars are C code that reads untrusted files: it may crash, or take any amount of time and
memory. The process has limits on both, can be killed, and opens no file after the first one. Arguments: the path, the
name of a language in `_LANGUAGES`, the module of its grammar, and the function of the module that returns it. Prints a
JSON object: `sha256` of the content, and `symbols`, for each the fields of `Symbol` in order. With three more arguments
it applies an edit in memory: it replaces the bytes from an offset to another by those in the third, in base64. Then it
prints, instead of `symbols`, the lines of the first syntax errors, `before` and `after` the edit; 0 for none.

It must not import anything of bradawl: it is started without its folder on the path.
"""

import base64
import hashlib
import importlib
import json
import resource
import sys
from pathlib import Path
from typing import NamedTuple

import tree_sitter
from tree_sitter import Node

_MEMORY_BYTES = 1 << 30
_PROCESSOR_S = 5
_LONGEST_SIGNATURE = 300
_LONGEST_NAME = 300
_MOST_SYMBOLS = 50_000

_SCRIPT = {
    "class_declaration": "class",
    "abstract_class_declaration": "class",
    "class": "class",
    "interface_declaration": "class",
    "enum_declaration": "class",
    "type_alias_declaration": "constant",
    "internal_module": "module",
    "module": "module",
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "function_signature": "function",
    "method_definition": "method",
    "method_signature": "method",
    "abstract_method_signature": "method",
    "public_field_definition": "value",
    "field_definition": "value",
    "variable_declarator": "value",
    "assignment_expression": "value",
}
_C = {
    "function_definition": "function",
    "struct_specifier": "class",
    "union_specifier": "class",
    "enum_specifier": "class",
    "type_definition": "class",
    "preproc_def": "constant",
    "preproc_function_def": "function",
}
_LANGUAGES: dict[str, dict[str, str]] = {
    "javascript": _SCRIPT,
    "typescript": _SCRIPT,
    "go": {
        "function_declaration": "function",
        "method_declaration": "method",
        "type_spec": "class",
        "type_alias": "constant",
        "const_spec": "constant",
        "var_spec": "constant",
    },
    "rust": {
        "function_item": "function",
        "function_signature_item": "function",
        "macro_definition": "function",
        "struct_item": "class",
        "enum_item": "class",
        "union_item": "class",
        "trait_item": "class",
        "impl_item": "module",
        "mod_item": "module",
        "const_item": "constant",
        "static_item": "constant",
        "type_item": "constant",
    },
    "java": {
        "class_declaration": "class",
        "interface_declaration": "class",
        "enum_declaration": "class",
        "record_declaration": "class",
        "annotation_type_declaration": "class",
        "method_declaration": "method",
        "constructor_declaration": "method",
        "compact_constructor_declaration": "method",
    },
    "c": _C,
    "cpp": {**_C, "class_specifier": "class", "namespace_definition": "module", "concept_definition": "constant"},
    "ruby": {
        "class": "class",
        "module": "module",
        "method": "method",
        "singleton_method": "method",
    },
    "c_sharp": {
        "namespace_declaration": "module",
        "class_declaration": "class",
        "interface_declaration": "class",
        "struct_declaration": "class",
        "enum_declaration": "class",
        "record_declaration": "class",
        "method_declaration": "method",
        "constructor_declaration": "method",
        "property_declaration": "constant",
        "delegate_declaration": "constant",
    },
    "php": {
        "class_declaration": "class",
        "interface_declaration": "class",
        "trait_declaration": "class",
        "enum_declaration": "class",
        "method_declaration": "method",
        "function_definition": "function",
    },
    "bash": {"function_definition": "function"},
}
"""Kinds of definitions by the type of their node; a `value` counts if it is a function, or outside of functions."""
_FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "function", "generator_function"})
_NAMES = frozenset(
    {"identifier", "field_identifier", "type_identifier", "qualified_identifier", "destructor_name", "operator_name"}
)
_AROUND = frozenset({"export_statement", "template_declaration", "lexical_declaration", "variable_declaration"})
"""Nodes that belong to the only definition in them: their first line is its first line."""


class Found(NamedTuple):
    """One definition: the fields of `Symbol`."""

    name: str
    kind: str
    first: int
    last: int
    signature: str


class _Place(NamedTuple):
    """A node to visit, and the definitions around it."""

    node: Node
    prefix: str = ""
    kind: str = ""
    """The kind of the innermost definition around."""
    first: int = 0
    """The first line of a node around that belongs to the definition; 0 for none."""


def definitions(root: Node, kinds: dict[str, str], data: bytes) -> list[Found]:
    """The definitions below a node in the order of the file. What is in functions is left out."""
    found: list[Found] = []
    waiting = [_Place(root)]
    while waiting and len(found) < _MOST_SYMBOLS:
        place = waiting.pop()
        node = place.node
        kind = _kind(node, kinds, place.kind)
        name = _name(node) if kind else ""
        first = place.first or node.start_point[0] + 1
        inside = _Place(node, place.prefix, place.kind, first if node.type in _AROUND else 0)
        if name and len(name) < _LONGEST_NAME:
            whole = f"{place.prefix}{name}"
            found.append(Found(whole, kind, first, _last_line(node), _signature(node, data)))
            inside = _Place(node, f"{whole}.", "class" if node.type == "impl_item" else kind)
        if not (name and kind in {"function", "method"}):
            children = reversed(node.named_children)
            waiting.extend(_Place(child, inside.prefix, inside.kind, inside.first) for child in children)
    return found


def _kind(node: Node, kinds: dict[str, str], around: str) -> str:
    """The kind of a definition; empty for other nodes."""
    kind = kinds.get(node.type, "") if node.is_named else ""
    if kind == "value":
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        is_function = value is not None and value.type in _FUNCTION_VALUES
        at_top = node.type == "variable_declarator" and node.parent is not None and _is_at_top(node.parent)
        kind = "function" if is_function else "constant" if at_top else ""
    if node.type in {"struct_specifier", "union_specifier", "enum_specifier", "class_specifier", "type_definition"}:
        kind = kind if _body(node) is not None else ""
    if kind == "constant" and node.type.endswith("_spec") and not (node.parent and _is_at_top(node.parent)):
        return ""
    return "method" if kind == "function" and around == "class" else kind


def _is_at_top(node: Node) -> bool:
    """Whether a declaration is outside of everything."""
    around = node.parent
    while around is not None and around.type in {"export_statement", "var_spec_list"}:
        around = around.parent
    return around is None or around.parent is None


def _body(node: Node) -> Node | None:
    if node.type == "type_definition":
        inner = node.child_by_field_name("type")
        is_named = inner is None or inner.child_by_field_name("name") is not None
        return None if inner is None or is_named else inner.child_by_field_name("body")
    return node.child_by_field_name("body")


def _name(node: Node) -> str:
    """The name of a definition, with dots; empty if it has none."""
    if node.type == "method_declaration" and (receiver := node.child_by_field_name("receiver")) is not None:
        return f"{_receiver(receiver)}.{_text(node.child_by_field_name('name'))}"
    named = node.child_by_field_name("name") or node.child_by_field_name("left")
    if node.type == "impl_item":
        named = node.child_by_field_name("type")
        named = named and (named.child_by_field_name("type") or named)
    if node.type in {"function_definition", "type_definition"} and named is None:
        named = _declared(node)
    text = _text(named).replace("::", ".").strip("\"'")
    return text if text and not set(text) & set("{}()[]\n;= ") else ""


def _declared(node: Node) -> Node | None:
    """The name in a declarator of C."""
    inner: Node | None = node
    while inner is not None and inner.type not in _NAMES:
        declarator = inner.child_by_field_name("declarator")
        if declarator is None:
            declarator = next((child for child in inner.named_children if "declarator" in child.type), None)
        inner = declarator
    return inner


def _receiver(node: Node) -> str:
    """The type of a receiver of Go."""
    waiting = [node]
    while waiting:
        inner = waiting.pop(0)
        if inner.type == "type_identifier":
            return _text(inner)
        waiting.extend(inner.named_children)
    return ""


def _text(node: Node | None) -> str:
    return "" if node is None or node.text is None else node.text.decode("utf-8", "replace")


def _last_line(node: Node) -> int:
    row, column = node.end_point
    return row + 1 if column or row == node.start_point[0] else row


def _signature(node: Node, data: bytes) -> str:
    """The head of a definition on one line, without its body."""
    value = node.child_by_field_name("value") or node.child_by_field_name("right")
    holder = value if value is not None and value.type in _FUNCTION_VALUES else node
    body = holder.child_by_field_name("body")
    end = node.end_byte if body is None else body.start_byte
    head = data[node.start_byte : min(end, node.start_byte + 4 * _LONGEST_SIGNATURE)].decode("utf-8", "replace")
    if body is None:
        head = head.partition("{")[0].partition("\n")[0] if value is None else head.partition("\n")[0]
    if node.type == "type_definition":
        head += f" {_name(node)}"
    line = " ".join(head.split()).removesuffix("{").removesuffix("\\").removesuffix("=>").rstrip(" ;")
    return line if len(line) <= _LONGEST_SIGNATURE else f"{line[:_LONGEST_SIGNATURE]}..."


def first_error(root: Node) -> int:
    """The line of the first syntax error below a node; 0 for none."""
    waiting = [root] if root.has_error else []
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            return node.start_point[0] + 1
        waiting.extend(child for child in reversed(node.children) if child.has_error or child.is_missing)
    return 0


def edited(data: bytes, start: str, end: str, new: str) -> bytes:
    """The data with an edit as the arguments describe it."""
    return data[: int(start)] + base64.b64decode(new) + data[int(end) :]


def main(arguments: list[str]) -> int:
    """Parse the file and print its definitions, or its syntax errors; returns the exit code."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_PROCESSOR_S, _PROCESSOR_S))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    path, language, module, function, *edit = arguments
    parser = tree_sitter.Parser(tree_sitter.Language(getattr(importlib.import_module(module), function)()))
    data = Path(path).read_bytes()
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    answer: dict[str, object] = {"sha256": hashlib.sha256(data).hexdigest()}
    if edit:
        before, after = (first_error(parser.parse(each).root_node) for each in (data, edited(data, *edit)))
        answer |= {"before": before, "after": after}
    else:
        answer["symbols"] = definitions(parser.parse(data).root_node, _LANGUAGES[language], data)
    sys.stdout.buffer.write(json.dumps(answer).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
