"""Rules about the code beyond those of linters. Each takes a module and yields `line: what is wrong`.

None can be waived: where a rule is wrong the rule changes, with an ADR.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator

from source_tree import PACKAGE, ROOMS, Module, dotted, imported_names, local_names

Rule = Callable[[Module], Iterator[str]]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

FILE_LINES = 500
CLASS_LINES = 300
LOOP_LINES = 200
STEP_LINES = 300
MIDDLEWARE_LINES = 250
PUBLIC_METHODS = 15
PORT_METHODS = 4

# ------------------------------------------------------------------ sizes


def sizes_stay_readable(module: Module) -> Iterator[str]:
    """A file has at most 500 lines (the loop 200, a step 300, a middleware 250), a class 300 and 15 public methods."""
    lines = module.text.count("\n")
    limit = _most_lines(module.place)
    if lines > limit:
        yield f"1: {lines} lines, more than {limit}"
    for node in _classes(module.tree):
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > CLASS_LINES:
            yield f"{node.lineno}: class {node.name} has {length} lines, more than {CLASS_LINES}"
        methods = [method.name for method in _methods(node) if not method.name.startswith("_")]
        if len(methods) > PUBLIC_METHODS:
            yield f"{node.lineno}: class {node.name} has {len(methods)} public methods, more than {PUBLIC_METHODS}"


def _most_lines(place: str) -> int:
    if place.startswith("agent/middleware/"):
        return MIDDLEWARE_LINES
    return {"agent/loop.py": LOOP_LINES, "agent/step.py": STEP_LINES}.get(place, FILE_LINES)


def ports_are_small(module: Module) -> Iterator[str]:
    """A Protocol has at most four methods, properties counted; a constructor is not part of the protocol."""
    names = local_names(module.tree)
    for node in _classes(module.tree):
        bases = [dotted(base.value if isinstance(base, ast.Subscript) else base, names) for base in node.bases]
        count = sum(method.name != "__init__" for method in _methods(node))
        if "typing.Protocol" in bases and count > PORT_METHODS:
            yield f"{node.lineno}: {node.name} has {count} methods, more than {PORT_METHODS}: split it"


def _classes(tree: ast.AST) -> list[ast.ClassDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def _methods(node: ast.ClassDef) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [child for child in node.body if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)]


# ------------------------------------------------------------------ the outside world

_TOUCHES_THE_DISK = frozenset(
    {"open", "io.open", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"}
    | {f"os.{name}" for name in ("open", "fdopen", "write", "pwrite", "writev", "truncate", "ftruncate", "fsync")}
    | {f"os.{name}" for name in ("replace", "rename", "renames", "remove", "unlink", "rmdir", "removedirs", "link")}
    | {f"os.{name}" for name in ("symlink", "mkdir", "makedirs", "mkfifo", "chmod", "chown", "utime", "fdatasync")}
    | {f"os.{name}" for name in ("system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "startfile")}
    | {f"os.{kind}{how}" for kind in ("exec", "spawn") for how in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")}
)
_DISK_MODULES = frozenset({"subprocess", "shutil", "tempfile", "mmap", "sqlite3", "multiprocessing", "pty"})
_PATH_METHODS = frozenset(
    {"write_text", "write_bytes", "read_text", "read_bytes", "unlink", "symlink_to", "hardlink_to", "touch", "mkdir"}
)
_MAY_TOUCH_THE_DISK = re.compile(
    r"workspace/(files|processes)\.py|session/(journal|blobs|store|summaries)\.py|safety/trust/store\.py"
    r"|providers/(catalog|debug_log)\.py|(app|testing)/.*|__main__\.py"
    r"|workspace/process_tree\.py"  # reads /proc for workspace/processes.py
    r"|workspace/(child_process|private_folder|program_supervisor|watchdog)\.py"  # parts of workspace/processes.py
    r"|workspace/(atomic_write|in_place_write|new_files|safe_open)\.py"  # read and write for workspace/files.py
    r"|sandbox/(bubblewrap|bubblewrap_arguments|bubblewrap_bundled|bubblewrap_environment|landlock|namespace_helper|probe|process_limit|selection)\.py"
    r"|sandbox/running_covers/(cover_helper|cover_mounter|cover_watch|linked_files|opened_files|running_program)\.py"
    r"|sandbox/(discovery/(file_tracking|folder_index|mount_aliases|tmp_survey|workspace_survey)|filesystem/(closed_folders|inotify|memory_file|tree_copy|tree_removal))\.py"
    r"|sandbox/(copy_records|machine_tmp|machine_tmp_copies|scratch|shown_in_tmp)\.py"
    r"|sandbox/mounts/(mask_sources|placeholder_records|placeholders|spare_placeholders)\.py"
    r"|sandbox/restore/(created_repositories|git_data_events|git_history|git_objects|history_records|locked_files|protected_files|restore_path|set_aside|snapshot)\.py"
    r"|checkpoints/(content_index|disk_sync|file_states|git_objects|opened_folders|owners|packs|restore|restore_intent|restored_files|store|store_folder)\.py"
    r"|checkpoints/(birth_time|kept_copies|made_folders|planned_renames|renames)\.py"  # what restoring must keep
    r"|checkpoints/(folder_reader|folder_walk|folder_watches|tree)\.py"  # read the workspace
    r"|checkpoints/(call_journal|client|index_files|worker)\.py"  # a process of its own, and its index
    r"|safety/(private_folders|whole_writes|git/small_files)\.py"  # reads small files of projects and of git
)
PROGRAMS = frozenset(
    {
        "tools/searching/newest.py",
        "tools/outlines/syntax_tree.py",
        "tools/reading/part_of_file.py",
        "tools/reading/pdf_text.py",
        "sandbox/landlock_helper.py",
        "sandbox/landlock_supervisor.py",
        "sandbox/network/listener_helper.py",
        "sandbox/running_covers/cover_helper.py",
        "sandbox/landlock_probe.py",
        "sandbox/probe_inside.py",
    }
)
"""Files that are run as programs of their own, without bradawl on the import path."""


_PROTOCOL = re.compile(r"bradawl\.providers\.(\w+)\..*|providers/(\w+)/.*")


def wire_protocols_do_not_know_each_other(module: Module) -> Iterator[str]:
    """No package below `providers` imports another one; what two protocols share is a module beside them."""
    if (own := _PROTOCOL.fullmatch(module.place)) is None:
        return
    for name, line in imported_names(module.tree):
        other = _PROTOCOL.fullmatch(name)
        if other and other[1] != own[2] and (PACKAGE / "providers" / other[1]).is_dir():
            yield f"{line}: imports {name}"


def disk_and_processes_have_few_doors(module: Module) -> Iterator[str]:
    """Files are opened or changed, and programs started, only in the modules made for it."""
    if _MAY_TOUCH_THE_DISK.fullmatch(module.place) or module.place in PROGRAMS:
        return
    names = local_names(module.tree)
    for name, line in imported_names(module.tree):
        if name.split(".")[0] in _DISK_MODULES:
            yield f"{line}: imports {name}"
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        called = dotted(node.func, names)
        if called in _TOUCHES_THE_DISK:
            yield f"{node.lineno}: calls {called}"
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _PATH_METHODS:
            yield f"{node.lineno}: calls .{node.func.attr}"


_THE_USERS = frozenset(
    {"os.environ", "os.environb", "os.getenv", "os.getenvb", "os.putenv", "sys.argv", "sys.orig_argv"}
    | {f"sys.{name}" for name in ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__", "exit")}
    | {"print", "input", "exit", "quit", "os._exit", "os.get_terminal_size"}
)


def only_app_knows_the_user(module: Module) -> Iterator[str]:
    """Below app nothing prints, ends the program, or reads the environment, the arguments or the terminal."""
    if module.room in {"app", "testing"} or module.place in PROGRAMS | {"__main__.py"}:
        return
    names = local_names(module.tree)
    shadowed = {node.name for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            name = dotted(node, names)
            if name in _THE_USERS and name not in shadowed:
                yield f"{node.lineno}: uses {name}"


_TO_THE_SCREEN = frozenset({"print", "sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__"})
_MAY_WRITE_TO_THE_SCREEN = {
    "app/console.py": frozenset({"write", "writelines"}),
    "app/progress.py": frozenset({"write"}),
    "app/tui/plain/painter.py": frozenset({"draw"}),  # cleans a stream, which can't be cleaned piece by piece
    "app/cli.py": frozenset({"write", "sys.stdout", "sys.stderr"}),  # hands them to the console
}


def app_prints_cleaned_text_only(module: Module) -> Iterator[str]:
    """In app only the console and the progress lines write to a stream, and both clean what they are given."""
    if module.room != "app":
        return
    allowed = _MAY_WRITE_TO_THE_SCREEN.get(module.place, frozenset())
    names = local_names(module.tree)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name | ast.Attribute) and dotted(node, names) in _TO_THE_SCREEN - allowed:
            yield f"{node.lineno}: uses {dotted(node, names)}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr not in allowed:
            owner = dotted(node.func.value, names).rpartition(".")[2].strip("_")
            is_stream = node.func.attr in {"write", "writelines"} and owner in {"stdout", "stderr", "stream", "out"}
            if is_stream or (node.func.attr == "draw" and owner == "console"):
                yield f"{node.lineno}: calls .{node.func.attr}"


_FOR_ONE_PROGRAM = {
    "tools/reading/pdf_text.py": "pypdf",  # ADR 0016
    "tools/outlines/syntax_tree.py": "tree_sitter",  # ADR 0040
}


def programs_stand_alone(module: Module) -> Iterator[str]:
    """What is started as a program of its own imports the standard library only, or the one library it is made for."""
    if module.place not in PROGRAMS:
        return
    for name, line in imported_names(module.tree):
        if name.split(".")[0] not in sys.stdlib_module_names | {_FOR_ONE_PROGRAM.get(module.place)}:
            yield f"{line}: a program imports {name}"


# ------------------------------------------------------------------ errors and tasks

_BORDERS = frozenset(
    {f"agent/calls/{name}.py" for name in ("prepare", "execute", "hooks")}
    | {"agent/step.py", "agent/compaction/written_summary.py", "__main__.py", "sandbox/check_failures.py"}
)
_CATCHES_ALL = frozenset({"Exception", "BaseException", "builtins.Exception", "builtins.BaseException"})


def everything_is_caught_only_at_the_borders(module: Module) -> Iterator[str]:
    """`except Exception` is only for the end of a tool, a hook, a model or the program, and for the check after a
    command, which must go on; elsewhere it must re-raise.
    """
    if module.room == "app" or module.place in _BORDERS:
        return
    names = local_names(module.tree)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ExceptHandler) and _catches_all(node, names) and not _ends_with_raise(node):
            yield f"{node.lineno}: catches everything and goes on"


def _catches_all(handler: ast.ExceptHandler, names: dict[str, str]) -> bool:
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(dotted(kind, names) in _CATCHES_ALL for kind in types)


def _ends_with_raise(handler: ast.ExceptHandler) -> bool:
    return isinstance(handler.body[-1], ast.Raise)


_ORPHANS = frozenset(
    {"asyncio.create_task", "asyncio.ensure_future", "asyncio.gather", "asyncio.tasks.create_task"}
    | {"threading.Timer", "asyncio.run_coroutine_threadsafe"}
)


def every_task_has_a_parent(module: Module) -> Iterator[str]:
    """Tasks are made by a TaskGroup, never by the loop.

    One exception: no group may span a `yield` (PEP 789), so an async generator may own a task
    that it cancels in a `finally`. `testing` drives sessions from outside, as a test does.
    """
    if module.room == "testing":
        return
    names = local_names(module.tree)
    owned = {id(node) for generator in _generators_that_clean_up(module.tree) for node in ast.walk(generator)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and id(node) not in owned and (name := _orphan(node.func, names)):
            yield f"{node.lineno}: calls {name}"


def _generators_that_clean_up(tree: ast.AST) -> Iterator[ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.AsyncFunctionDef) or not any(
            isinstance(each, ast.Yield) for each in ast.walk(node)
        ):
            continue
        finals = [statement for each in ast.walk(node) if isinstance(each, ast.Try) for statement in each.finalbody]
        attributes = (each for statement in finals for each in ast.walk(statement) if isinstance(each, ast.Attribute))
        if any(attribute.attr == "cancel" for attribute in attributes):
            yield node


def _orphan(function: ast.expr, names: dict[str, str]) -> str:
    name = dotted(function, names)
    if name in _ORPHANS:
        return name
    if not isinstance(function, ast.Attribute) or function.attr != "create_task":
        return ""
    maker = function.value
    owner = dotted(maker.func if isinstance(maker, ast.Call) else maker, names).lower()
    return f"{owner}.create_task" if owner.endswith("loop") else ""


# ------------------------------------------------------------------ words and types


def public_names_promise_something(module: Module) -> Iterator[str]:
    """Modules, classes, functions and methods without an underscore have a docstring."""
    if not ast.get_docstring(module.tree):
        yield "1: the module has no docstring"
    names = local_names(module.tree)
    for node in _public_definitions(module.tree, names):
        if not (ast.get_docstring(node) or "").strip():
            yield f"{node.lineno}: {node.name} has no docstring"


def _public_definitions(body: ast.Module | ast.ClassDef, names: dict[str, str]) -> Iterator[Definition]:
    for node in body.body:
        if not isinstance(node, Definition) or node.name.startswith("_") or _inherits_its_docstring(node, names):
            continue
        yield node
        if isinstance(node, ast.ClassDef):
            yield from _public_definitions(node, names)


def _inherits_its_docstring(node: Definition, names: dict[str, str]) -> bool:
    marks = {dotted(mark, names).split(".")[-1] for mark in node.decorator_list}
    return bool(marks & {"overload", "override", "setter", "deleter"})


def types_are_known(module: Module) -> Iterator[str]:
    """No `Any` in core, folds, shaping and agent."""
    if module.room not in _PLAIN:
        return
    names = local_names(module.tree)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name | ast.Attribute) and dotted(node, names) in {
            "typing.Any",
            "typing_extensions.Any",
        }:
            yield f"{node.lineno}: Any"


_WAIVER = re.compile(
    r"#\s*(?:noqa|type:\s*ignore|pyright:|basedpyright:|fmt:\s*(?:off|skip)|pragma:|ruff:)", re.IGNORECASE
)
_GOOD_WAIVER = re.compile(
    r"#\s*(?:noqa:\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*|(?:type|pyright):\s*ignore\[[\w\-, ]+\]|pragma: no cover|fmt: skip)"
    r"[\s:#,;-]*(?P<reason>.*)",
    re.IGNORECASE,
)


def waivers_give_a_reason(module: Module) -> Iterator[str]:
    """A waiver names the rule it waives, and on the same line an ADR or at least two words of reason."""
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type != tokenize.COMMENT or not _WAIVER.search(token.string):
            continue
        good = _GOOD_WAIVER.search(token.string)
        reason = good["reason"] if good else ""
        if not re.search(r"ADR[- ]?\d{4}", reason) and len(reason.split()) < 2:
            yield f"{token.start[0]}: {token.string!r} names no rule, or gives no reason"


# ------------------------------------------------------------------ state

_MAKES_MUTABLE = frozenset(
    {"dict", "list", "set", "bytearray", "collections.defaultdict", "collections.deque", "collections.OrderedDict"}
    | {"collections.Counter", "itertools.count", "asyncio.Lock", "asyncio.Event", "asyncio.Queue", "threading.Lock"}
    | {f"weakref.{kind}" for kind in ("WeakKeyDictionary", "WeakValueDictionary", "WeakSet")}
    | {"contextvars.ContextVar"}
)
_LITERALS = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
_MUTATORS = frozenset(
    {"append", "add", "update", "clear", "pop", "popitem", "setdefault", "extend", "insert", "remove", "discard"}
    | {"appendleft", "popleft", "extendleft", "sort", "reverse", "set"}
)
_CONTAINERS = frozenset({"dict", "list", "set"})


def modules_keep_no_state(module: Module) -> Iterator[str]:
    """A module-level table is a constant: upper case or Final, never changed. Nothing is `global`."""
    names = local_names(module.tree)
    tables: set[str] = set()
    for name, value, is_final, line in _module_assignments(module.tree, names):
        made = dotted(value.func, names) if isinstance(value, ast.Call) else ""
        if not isinstance(value, _LITERALS) and made not in _MAKES_MUTABLE:
            continue
        tables.add(name)
        if made and made not in _CONTAINERS:
            yield f"{line}: {name} is mutable and shared by everything in the process"
        elif not (is_final or name.isupper() or name == "__all__"):
            yield f"{line}: {name} is a mutable module variable"
    yield from _changes(module.tree, tables)


def _module_assignments(tree: ast.Module, names: dict[str, str]) -> Iterator[tuple[str, ast.expr, bool, int]]:
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value, False, node.lineno
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            kind = node.annotation.value if isinstance(node.annotation, ast.Subscript) else node.annotation
            yield node.target.id, node.value, dotted(kind, names) == "typing.Final", node.lineno


def _changes(tree: ast.Module, tables: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield f"{node.lineno}: global {', '.join(node.names)}"
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            if _is_one(node.value, tables):
                yield f"{node.lineno}: changes a module-level table"
        elif isinstance(node, ast.Attribute) and node.attr in _MUTATORS and _is_one(node.value, tables):
            yield f"{node.lineno}: changes a module-level table"


def _is_one(node: ast.expr, tables: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in tables


# ------------------------------------------------------------------ who may import whom

_ADAPTERS = frozenset({"providers", "tools", "workspace", "session", "checkpoints", "extensions"})
_MAY_IMPORT: dict[str, frozenset[str]] = {
    "core": frozenset(),
    "safety": frozenset({"core"}),
    "sandbox": frozenset({"core", "safety"}),
    "folds": frozenset({"core"}),
    "shaping": frozenset({"core"}),
    "agent": frozenset({"core", "folds", "safety", "shaping"}),
    "testing": frozenset(ROOMS) - {"app"},
    "app": frozenset(ROOMS),
    **dict.fromkeys(_ADAPTERS, frozenset({"core", "safety"})),
    "tools": frozenset({"core", "safety", "sandbox", "shaping"}),
    "workspace": frozenset({"core", "safety", "sandbox"}),
    "checkpoints": frozenset({"core", "safety", "sandbox"}),
}
_PURE = frozenset({"core", "folds", "shaping"})
_PLAIN = _PURE | {"agent"}
_IMPURE = frozenset(
    {"asyncio", "concurrent", "ctypes", "datetime", "io", "logging", "multiprocessing", "os", "pathlib", "random"}
    | {"secrets", "selectors", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "sys", "tempfile"}
    | {"threading", "time", "urllib", "uuid", "http", "warnings"}
)


def rooms_import_only_what_they_may(module: Module) -> Iterator[str]:
    """core: stdlib, msgspec; adapters: core, safety; tools also shaping; folds, shaping: core; agent: all of these
    but adapters (ADR 25)."""
    if not module.room:
        return
    allowed = _MAY_IMPORT.get(module.room)
    if allowed is None:
        yield f"1: the room {module.room} has no line in the table of who may import whom"
        return
    for name, line in imported_names(module.tree):
        parts = name.split(".")
        room = parts[1] if parts[0] == "bradawl" and len(parts) > 1 else ""
        is_foreign = room in ROOMS and room not in allowed | {module.room}
        is_heavy = parts[0] != "bradawl" and module.room in _PLAIN and not _is_plain(parts[0], module.room)
        if is_foreign or is_heavy:
            yield f"{line}: {module.room} imports {name}"


def _is_plain(top: str, room: str) -> bool:
    if top == "msgspec":
        return True
    return top in sys.stdlib_module_names and not (room in _PURE and top in _IMPURE)


def one_module_names_concrete_classes_together(module: Module) -> Iterator[str]:
    """In app only the package app/build imports from two or more of the adapters' rooms."""
    if module.room != "app" or module.place.startswith("app/build/"):
        return
    rooms = {name.split(".")[1] for name, _ in imported_names(module.tree) if name.startswith("bradawl.")} & _ADAPTERS
    if len(rooms) > 1:
        yield f"1: imports from {', '.join(sorted(rooms))}: wire them in app/build/"


RULES: tuple[Rule, ...] = (
    sizes_stay_readable,
    ports_are_small,
    wire_protocols_do_not_know_each_other,
    disk_and_processes_have_few_doors,
    only_app_knows_the_user,
    app_prints_cleaned_text_only,
    programs_stand_alone,
    everything_is_caught_only_at_the_borders,
    every_task_has_a_parent,
    public_names_promise_something,
    types_are_known,
    waivers_give_a_reason,
    modules_keep_no_state,
    rooms_import_only_what_they_may,
    one_module_names_concrete_classes_together,
)
