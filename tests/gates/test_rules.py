"""The package follows the rules of `rules.py`, and each rule finds violations."""

from pathlib import Path

import pytest
import rules
from rules import RULES, Rule
from source_tree import PACKAGE, REPOSITORY, module, source_modules, tracked_files

IN_CORE = "core/thing.py"
IN_AGENT = "agent/thing.py"
IN_APP = "app/thing.py"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_package_follows_the_rule(rule: Rule):
    broken = [f"src/bradawl/{each.place}:{finding}" for each in source_modules() for finding in rule(each)]
    assert not broken, f"{rule.__doc__}\n" + "\n".join(broken)


def test_tests_and_benchmarks_follow_the_rules_of_size_and_waivers():
    broken = []
    for path in tracked_files():
        if path.suffix != ".py" or path.is_relative_to(PACKAGE):
            continue
        each = module(path.relative_to(REPOSITORY).as_posix(), path.read_text(encoding="utf-8"))
        for rule in (rules.sizes_stay_readable, rules.waivers_give_a_reason):
            broken += [f"{each.place}:{finding}" for finding in rule(each)]
    assert not broken, "\n".join(broken)


HEART_OF_AGENT = ("agent/loop.py", "agent/step.py", "agent/turn.py", "agent/calls/", "agent/conversation.py")
SMALL_PARTS = {"core": (("core/",), 1570), "agent": (HEART_OF_AGENT, 1500)}


@pytest.mark.parametrize(("places", "limit"), SMALL_PARTS.values(), ids=SMALL_PARTS)
def test_the_heart_stays_small_in_lines_that_are_not_blank(places: tuple[str, ...], limit: int):
    heart = [each for each in source_modules() if each.place.startswith(places)]
    assert all(any(each.place.startswith(place) for each in heart) for place in places)
    assert sum(bool(line.strip()) for each in heart for line in each.text.splitlines()) <= limit


def lines_of(count: int) -> str:
    return "x = 1\n" * count


def class_with(methods: int, base: str = "") -> str:
    body = "".join(f"    def m{number}(self): ...\n" for number in range(methods))
    return f"from typing import Protocol\nclass C{base}:\n{body}"


LOOPS = "asyncio.get_running_loop()"
BROKEN = [
    (rules.sizes_stay_readable, "tools/bash.py", lines_of(501)),
    (rules.sizes_stay_readable, "agent/loop.py", lines_of(201)),
    (rules.sizes_stay_readable, "agent/step.py", lines_of(301)),
    (rules.sizes_stay_readable, "agent/middleware/budget.py", lines_of(251)),
    (rules.sizes_stay_readable, IN_CORE, "class C:\n" + "    x = 1\n" * 300),
    (rules.sizes_stay_readable, IN_CORE, class_with(16)),
    (rules.ports_are_small, IN_CORE, class_with(5, "(Protocol)")),
    (rules.ports_are_small, IN_CORE, class_with(5, "(Protocol[int])")),
    (rules.disk_and_processes_have_few_doors, "tools/bash.py", "import subprocess"),
    (rules.disk_and_processes_have_few_doors, "tools/bash.py", "def f():\n    from shutil import rmtree"),
    (rules.disk_and_processes_have_few_doors, "tools/bash.py", "open('x')"),
    (rules.disk_and_processes_have_few_doors, "session/encoding.py", "import os as o\no.replace('a', 'b')"),
    (rules.disk_and_processes_have_few_doors, "session/encoding.py", "from os import rename as r\nr('a', 'b')"),
    (rules.disk_and_processes_have_few_doors, "workspace/folder_walk.py", "p.write_text('x')"),
    (rules.disk_and_processes_have_few_doors, "agent/x.py", "import asyncio\nasyncio.create_subprocess_exec('ls')"),
    (rules.only_app_knows_the_user, "tools/bash.py", "print('x')"),
    (rules.only_app_knows_the_user, "tools/bash.py", "import os\nx = os.environ['A']"),
    (rules.only_app_knows_the_user, "tools/bash.py", "from os import getenv as g\nx = g('A')"),
    (rules.only_app_knows_the_user, "providers/client.py", "import sys\nx = sys.argv"),
    (rules.only_app_knows_the_user, "providers/client.py", "import sys\nsys.stderr.write('x')"),
    (rules.app_prints_cleaned_text_only, IN_APP, "print('x')"),
    (rules.app_prints_cleaned_text_only, IN_APP, "import sys\nsys.stdout.write('x')"),
    (rules.app_prints_cleaned_text_only, IN_APP, "from sys import stderr as e\nx = e"),
    (rules.app_prints_cleaned_text_only, IN_APP, "def f(console): console.stderr.write('x')"),
    (rules.app_prints_cleaned_text_only, IN_APP, "def f(self): self._console.draw('x')"),
    (rules.programs_stand_alone, "tools/searching/newest.py", "from bradawl.core import messages"),
    (rules.programs_stand_alone, "tools/searching/newest.py", "import msgspec"),
    (rules.everything_is_caught_only_at_the_borders, "agent/loop.py", "try: x\nexcept Exception: pass"),
    (rules.everything_is_caught_only_at_the_borders, "tools/bash.py", "try: x\nexcept: pass"),
    (rules.everything_is_caught_only_at_the_borders, "tools/bash.py", "try: x\nexcept (OSError, BaseException): y"),
    (rules.every_task_has_a_parent, "app/repl.py", "import asyncio\nasyncio.create_task(f())"),
    (rules.every_task_has_a_parent, "agent/loop.py", "from asyncio import gather\ngather(f())"),
    (rules.every_task_has_a_parent, "agent/loop.py", "import asyncio\nasyncio.get_running_loop().create_task(f())"),
    (rules.every_task_has_a_parent, "agent/loop.py", "self._loop.create_task(f())"),
    (rules.every_task_has_a_parent, "agent/x.py", f"async def f():\n    x = {LOOPS}.create_task(g())\n    yield 1"),
    (rules.public_names_promise_something, "core/x.py", "x = 1"),
    (rules.public_names_promise_something, "core/x.py", '"""M."""\ndef f(): ...'),
    (rules.public_names_promise_something, "core/x.py", '"""M."""\nclass C:\n    """C."""\n    async def f(self): ...'),
    (rules.types_are_known, IN_CORE, "from typing import Any\nx: Any = 1"),
    (rules.types_are_known, IN_AGENT, "import typing as t\nx: list[t.Any] = []"),
    (rules.waivers_give_a_reason, IN_APP, "x = 1  # noqa"),
    (rules.waivers_give_a_reason, IN_APP, "x = 1  # noqa: E501"),
    (rules.waivers_give_a_reason, IN_APP, "x = 1  # type: ignore"),
    (rules.waivers_give_a_reason, IN_APP, "x = 1  # type: ignore  the stubs are wrong here"),
    (rules.waivers_give_a_reason, IN_APP, "# pyright: basic"),
    (rules.modules_keep_no_state, IN_APP, "cache = {}"),
    (rules.modules_keep_no_state, IN_APP, "seen: set[str] = set()"),
    (rules.modules_keep_no_state, IN_APP, "TABLE = {}\ndef f(): TABLE['a'] = 1"),
    (rules.modules_keep_no_state, IN_APP, "TABLE = []\ndef f(): TABLE.append(1)"),
    (rules.modules_keep_no_state, IN_APP, "import itertools\n_IDS = itertools.count()"),
    (rules.modules_keep_no_state, IN_APP, "def f():\n    global x\n    x = 1"),
    (rules.rooms_import_only_what_they_may, IN_CORE, "import asyncio"),
    (rules.rooms_import_only_what_they_may, IN_CORE, "import httpx2"),
    (rules.rooms_import_only_what_they_may, IN_CORE, "from bradawl.agent import loop"),
    (rules.rooms_import_only_what_they_may, "tools/bash.py", "from bradawl.workspace.files import LocalFiles"),
    (rules.rooms_import_only_what_they_may, "tools/bash.py", "from bradawl import workspace"),
    (rules.rooms_import_only_what_they_may, IN_AGENT, "def f():\n    import bradawl.workspace.files"),
    (rules.rooms_import_only_what_they_may, IN_AGENT, "import prompt_toolkit"),
    (rules.rooms_import_only_what_they_may, "workspace/files.py", "from bradawl.shaping import preview"),
    (rules.rooms_import_only_what_they_may, "shaping/fitting.py", "from bradawl.agent import loop"),
    (rules.rooms_import_only_what_they_may, "shaping/fitting.py", "import asyncio"),
    (rules.rooms_import_only_what_they_may, "testing/fakes.py", "from bradawl.app import cli"),
    (rules.rooms_import_only_what_they_may, "cellar/x.py", "x = 1"),
    (
        rules.wire_protocols_do_not_know_each_other,
        "providers/another/codec.py",
        "from bradawl.providers.chat.codec import open_codec",
    ),
    (
        rules.wire_protocols_do_not_know_each_other,
        "providers/chat/codec.py",
        "def f():\n    from bradawl.providers.messages import codec",
    ),
    (
        rules.one_module_names_concrete_classes_together,
        "app/cli.py",
        "from bradawl.tools import bash\ndef f():\n    from bradawl.session import store",
    ),
]


@pytest.mark.parametrize(("rule", "place", "text"), BROKEN)
def test_a_rule_finds_a_violation(rule: Rule, place: str, text: str):
    assert list(rule(module(place, text)))


KEPT = [
    (rules.ports_are_small, IN_CORE, class_with(4, "(Protocol)") + "    def __init__(self): ...\n"),
    (
        rules.wire_protocols_do_not_know_each_other,
        "providers/another/codec.py",
        "from bradawl.providers.another.requests import x\nfrom bradawl.providers.codec import Codec\nimport json",
    ),
    (rules.disk_and_processes_have_few_doors, "workspace/files.py", "import tempfile\nopen('x')"),
    (rules.disk_and_processes_have_few_doors, "agent/agent.py", "store.open('id')\ntext.replace('a', 'b')"),
    (rules.only_app_knows_the_user, "app/headless.py", "import sys\nprint('x', file=sys.stderr)"),
    (rules.only_app_knows_the_user, "core/x.py", "import sys\nx = sys.version_info"),
    (rules.app_prints_cleaned_text_only, "app/tui/plain/painter.py", "def f(console): console.draw('x')"),
    (rules.app_prints_cleaned_text_only, IN_APP, "def f(file, console): file.write('x'); console.answer('x')"),
    (rules.everything_is_caught_only_at_the_borders, "agent/calls/prepare.py", "try: x\nexcept Exception: pass"),
    (
        rules.everything_is_caught_only_at_the_borders,
        "tools/bash.py",
        "try: x\nexcept BaseException:\n    y\n    raise",
    ),
    (rules.every_task_has_a_parent, "agent/loop.py", "async def f(group): group.create_task(g())"),
    (
        rules.every_task_has_a_parent,
        "agent/x.py",
        f"async def f():\n    x = {LOOPS}.create_task(g())\n    try: yield 1\n    finally: x.cancel()",
    ),
    (rules.public_names_promise_something, "core/x.py", '"""M."""\ndef _f(): ...\nclass _C:\n    def m(self): ...'),
    (rules.types_are_known, "providers/compat.py", "from typing import Any\nx: Any = 1"),
    (rules.waivers_give_a_reason, IN_APP, "x = 1  # noqa: BLE001  ADR-0003"),
    (rules.waivers_give_a_reason, IN_APP, "x = 1  # type: ignore[arg-type]  # the stubs lack it"),
    (rules.modules_keep_no_state, IN_APP, "_TABLE = {1: 2}\nfrom typing import Final\nnames: Final = [1]"),
    (rules.modules_keep_no_state, IN_APP, "def f():\n    table = {}\n    table['a'] = 1"),
    (rules.rooms_import_only_what_they_may, "tools/bash.py", "from bradawl.safety import redact\nimport asyncio"),
    (rules.rooms_import_only_what_they_may, "testing/fakes.py", "from bradawl.session import store"),
    (
        rules.one_module_names_concrete_classes_together,
        "app/build/agent.py",
        "from bradawl.tools import b\nimport bradawl.session",
    ),
]


@pytest.mark.parametrize(("rule", "place", "text"), KEPT)
def test_a_rule_accepts_correct_code(rule: Rule, place: str, text: str):
    assert list(rule(module(place, text))) == []


def test_every_rule_has_a_sample_that_violates_it():
    assert {rule for rule, _, _ in BROKEN} == set(RULES)


def test_the_gates_find_the_package():
    assert Path(PACKAGE, "core", "ports.py").is_file()
    assert len(source_modules()) > 20
