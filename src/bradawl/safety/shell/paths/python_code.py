"""Whether Python code on a command line is certain to only read files."""

import ast

from bradawl.safety.shell.argv import names

_CALLS = names(
    "print open len sum min max sorted set list dict tuple str int float repr enumerate zip map filter"
    " range any all reversed Path abs round isinstance type bool bytes"
)
_METHODS = names(
    "read readline readlines read_text read_bytes splitlines split strip rstrip lstrip join format"
    " startswith endswith get items keys values count find index lower upper decode encode load loads"
    " dumps exists is_file is_dir stat findall search match Path partition rpartition append add close"
    " hexdigest sha256 sha1 md5 replace_all parse getroot iter safe_load pprint most_common Counter"
    " basename dirname isfile isdir getsize"
)
_MODULES = names("json re sys pathlib collections pprint hashlib tomllib csv yaml math os.path textwrap")


def only_reads(code: str) -> bool:
    """Whether every call in the code is known to change nothing; False if it can't be parsed."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(_is_harmless(node) for node in ast.walk(tree))


def _is_harmless(node: ast.AST) -> bool:
    match node:
        case ast.Import(names=imported):
            return all(name.name in _MODULES for name in imported)
        case ast.ImportFrom(module=module):
            return module in _MODULES
        case ast.Call(func=ast.Name(id="open"), args=args, keywords=keywords):
            return len(args) + len(keywords) == 1 or _is_mode(args, keywords)
        case ast.Call(func=ast.Name(id=name)):
            return name in _CALLS
        case ast.Call(func=ast.Attribute(attr=attr)):
            return attr in _METHODS
        case ast.Call() | ast.Delete() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            return False
        case ast.Assign(targets=targets):
            return all(
                isinstance(target, ast.Name | ast.Tuple) and not _rebinds_trusted_name(target) for target in targets
            )
        case _:
            return True


def _rebinds_trusted_name(target: ast.expr) -> bool:
    """Whether the code rebinds the name of a function that is considered harmless."""
    return any(isinstance(node, ast.Name) and node.id in _CALLS for node in ast.walk(target))


def _is_mode(args: list[ast.expr], keywords: list[ast.keyword]) -> bool:
    given = [*args[1:2], *(keyword.value for keyword in keywords if keyword.arg == "mode")]
    others = {keyword.arg for keyword in keywords} - {"mode", "encoding", "errors", "newline"}
    return (
        not others
        and len(args) < 3
        and all(isinstance(each, ast.Constant) and each.value in ("r", "rb", "rt") for each in given)
    )
