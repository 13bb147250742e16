"""Tools from a user's folder and from packages are found and offered; broken ones are left out with a warning."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bradawl.extensions.user_tools import site_folders, user_tools

GOOD = '''
from bradawl import tool

@tool(read_only=True)
def {name}(word: str) -> str:
    """Say a word."""
    return word
'''
CLASS = '''
from __future__ import annotations
import dataclasses
import msgspec
from bradawl import Effects, Text, ToolOutput, ToolSpec

@dataclasses.dataclass
class Inner:
    x: int

class Params(msgspec.Struct):
    """Act."""
    inner: Inner

class Act:
    spec = ToolSpec("act")
    params = Params
    def effects(self, params, context): return Effects()
    async def run(self, params, context): return ToolOutput((Text("ok"),))
'''


@pytest.fixture(autouse=True)
def _modules_as_before(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("bradawl_user_tools_", "bradawl_sample")):
            del sys.modules[name]


def found(folder: Path, **files: str):
    """The names of the tools found in a folder with these files, and the warnings."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    seen = user_tools((folder,), (), ("bash",))
    return [each.spec.name for each in seen.tools], seen.warnings


def test_no_folder_means_no_tools(tmp_path):
    assert user_tools((tmp_path / "none",), (), ()).tools == ()
    (tmp_path / "file").write_text("")
    assert user_tools((tmp_path / "file",), (str(tmp_path / "gone"),), ()).warnings == ()


def test_every_tool_of_every_file_is_offered_in_order(tmp_path):
    two = GOOD.format(name="b_two") + GOOD.format(name="a_one") + "again = a_one\n_hidden = b_two\n"
    assert found(tmp_path, b=two, a=GOOD.format(name="first"), _c=GOOD.format(name="hidden")) == (
        ["first", "b_two", "a_one"],
        (),
    )


def test_a_class_is_offered_as_a_tool(tmp_path):
    assert found(tmp_path, a=CLASS) == (["act"], ())
    assert found(tmp_path, a=CLASS + "\nmine = Act()\n") == (["act"], ())


def test_imported_tools_are_not_offered(tmp_path):
    text = "from bradawl.tools.bash import Bash\nfrom bradawl import tool, Effects\n" + GOOD.format(name="mine")
    assert found(tmp_path, a=text) == (["mine"], ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def x(:\n", "SyntaxError"),
        ("\n\n1 / 0\n", "ZeroDivisionError: division by zero (line 3)"),
        ("import no_such_module_at_all\n", "ModuleNotFoundError"),
        ("import sys\nsys.exit('bye')\n", "SystemExit: bye (line 2)"),
        ("raise BaseExceptionGroup('g', [ValueError(1)])", "ExceptionGroup"),
        ("from bradawl import tool\n@tool\ndef x(a): 'd'\n", "has no annotation. (line 2)"),
        (CLASS.replace('"act"', '"Act now!"'), "'Act now!' is not made of a-z"),
        (CLASS.replace("params = Params", "params = dict"), "params of act are neither a msgspec Struct"),
        (CLASS.replace("inner: Inner", "inner: object"), "TypeError"),
        (CLASS.replace("class Act:", "class Act:\n    def __init__(self): raise ValueError('no')"), "ValueError: no"),
        ("\0", "source code string cannot contain null bytes"),
    ],
)
def test_a_broken_file_gives_a_warning_and_the_others_are_offered(tmp_path, text, message, capfd):
    names, warnings = found(tmp_path, a_broken=text, good=GOOD.format(name="mine"))
    assert names == ["mine"]
    (warning,) = warnings
    assert str(tmp_path / "a_broken.py") in warning
    assert message in warning
    assert "Traceback" not in warning + "".join(capfd.readouterr())


JSON = """
from bradawl import Text, ToolOutput, ToolSpec
from bradawl.tools.json_tool import JsonTool

async def run(arguments, context):
    return ToolOutput((Text("ok"),))

found = JsonTool(ToolSpec("found"), "Find.", {"type": "object"}, run)
"""


def test_a_json_tool_is_offered(tmp_path):
    assert found(tmp_path, a=JSON) == (["found"], ())


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "objet"}, "has the type 'objet'"),
        ({"type": "array"}, "has the type 'array'"),
        ({"properties": ["a"]}, '["a"] is not of type "object"'),
        ({"properties": {"a": {"$ref": "#/$defs/gone"}}}, "'/$defs/gone' does not exist"),
        ({"properties": {"a": {"type": "integr"}}}, "integr"),
    ],
)
def test_a_wrong_json_schema_gives_a_warning_when_the_file_is_loaded(tmp_path, schema, said):
    names, (warning,) = found(tmp_path, a=JSON.replace('{"type": "object"}', repr(schema)))
    assert names == [] and said in warning
    assert f"{tmp_path / 'a.py'} are left out: " in warning and warning.endswith("(found, line 8).")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (JSON.replace('"Find."', '" "'), "found has no description; it tells the model when to use the tool (found, "),
        (JSON.replace("async def run", "def run"), "the function that runs found is not async"),
        (CLASS.replace("async def run", "def run"), "the function that runs act is not async"),
        (CLASS.replace('    """Act."""\n', ""), "act has no description"),
        (CLASS.replace('"act"', '"Act now!"'), "at most 64 (Act, line "),
        (
            CLASS.replace("class Act:", "class Act:\n    def __init__(self): raise ValueError('no')"),
            "no (Act, line 16).",
        ),
    ],
)
def test_a_tool_that_no_model_could_use_gives_a_warning_with_its_line(tmp_path, text, said):
    names, (warning,) = found(tmp_path, a=text)
    assert names == [] and said in warning


def test_a_file_without_a_tool_gives_a_warning(tmp_path):
    names, (warning,) = found(tmp_path, a="def count(path: str) -> str:\n    'Count.'\n    return path\n")
    assert names == [] and "put `@tool` above a function" in warning and str(tmp_path / "a.py") in warning


def test_a_file_imports_others_of_its_folder(tmp_path):
    shared = "from dataclasses import dataclass\n\nNAMES = ['one']\n"
    text = "from . import _shared\nfrom ._shared import NAMES\nassert _shared.NAMES is NAMES\n"
    assert found(tmp_path / "one", _shared=shared, a=text + GOOD.format(name="mine")) == (["mine"], ())
    other = text + "assert NAMES == ['two']\n" + GOOD.format(name="other")
    assert found(tmp_path / "two", _shared=shared.replace("one", "two"), a=other) == (["other"], ())


def test_an_import_by_the_plain_name_gives_a_warning_that_says_which_works(tmp_path):
    names, (warning,) = found(tmp_path, _shared="", a="import _shared\n" + GOOD.format(name="mine"))
    assert names == [] and "`from . import _shared` (line 1)." in warning


def test_the_tools_of_several_folders_are_offered_and_the_first_of_a_name_counts(tmp_path):
    for folder, names in (("one", ("first", "both")), ("two", ("both", "second"))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text("".join(GOOD.format(name=name) for name in names))
    seen = user_tools((tmp_path / "one", tmp_path / "two"), (), ())
    assert [each.spec.name for each in seen.tools] == ["first", "both", "second"]
    assert len(seen.warnings) == 1 and f"one of {tmp_path / 'one' / 'a.py'} has that name" in seen.warnings[0]


def test_an_unreadable_file_gives_a_warning(tmp_path):
    (tmp_path / "a.py").mkdir()
    (tmp_path / "b.py").symlink_to(tmp_path / "gone")
    (tmp_path / "c.py").write_bytes(b"x = '\xff'\n")
    seen = user_tools((tmp_path,), (), ())
    assert (seen.tools, len(seen.warnings)) == ((), 3)


def test_a_tool_with_a_used_name_is_left_out_with_a_warning(tmp_path):
    names, warnings = found(
        tmp_path, a=GOOD.format(name="bash"), b=GOOD.format(name="mine"), c=GOOD.format(name="mine")
    )
    assert names == ["mine"]
    assert [part in warning for part, warning in zip(("bradawl's own", "b.py"), warnings, strict=True)] == [True, True]


def test_files_of_one_name_in_two_folders_are_separate_modules(tmp_path):
    assert found(tmp_path / "one", a=GOOD.format(name="one")) == (["one"], ())
    assert found(tmp_path / "two", a=GOOD.format(name="two")) == (["two"], ())


def install(site: Path, package: str, entries: str, module: str = "bradawl_sample") -> None:
    """Creates the files of an installed package with these entry points."""
    info = site / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[bradawl.tools]\n{entries}\n")
    (site / f"{module}.py").write_text(GOOD.format(name="sampled") + GOOD.format(name="other"))


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ("x = bradawl_sample", ["sampled", "other"]),
        ("x = bradawl_sample:sampled", ["sampled"]),
        ("", []),
    ],
)
def test_a_package_offers_tools_by_its_entry_points(tmp_path, monkeypatch, entries, expected):
    install(tmp_path, "bradawl_sample", entries)
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = user_tools((tmp_path / "none",), (str(tmp_path),), ())
    assert ([each.spec.name for each in seen.tools], seen.warnings) == (expected, ())


def test_a_broken_package_gives_a_warning_and_other_entry_points_are_not_loaded(tmp_path, monkeypatch):
    install(tmp_path, "bradawl_sample", "x = bradawl_sample:gone")
    install(tmp_path, "another", "x = bradawl_sample_two", "bradawl_sample_two")
    install(tmp_path, "bradawl", "x = bradawl_sample_two", "bradawl_sample_two")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = user_tools((tmp_path / "none",), (str(tmp_path),), ())
    assert seen.tools == ()
    (warning,) = seen.warnings
    assert "the package bradawl_sample" in warning
    assert "gone" in warning


def test_packages_are_found_in_pythons_own_folders_and_not_in_a_project(monkeypatch, tmp_path):
    project = tmp_path / "site-packages"
    project.mkdir()
    monkeypatch.setattr(sys, "path", [str(project), "", *sys.path])
    folders = site_folders()
    assert str(project) not in folders
    assert any(Path(folder, "msgspec").is_dir() for folder in folders)


def test_without_tools_no_metadata_module_is_imported(tmp_path):
    code = (
        "import sys; from pathlib import Path; from bradawl.extensions.user_tools import site_folders, user_tools\n"
        f"user_tools((Path({str(tmp_path / 'none')!r}),), site_folders(), ())\n"
        "print({'importlib.metadata', 'importlib.util', 'inspect'} & set(sys.modules))"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert "importlib.metadata" not in done.stdout


ODD_OBJECTS = """
from bradawl import tool

class Proxy:
    def __getattr__(self, name):
        raise RuntimeError("there is no request here")

class Anything:
    def __getattr__(self, name):
        return self
    def __call__(self, *args):
        return self

request, anything = Proxy(), Anything()

@tool
def fine(word: str) -> str:
    "Say it."
    return word
"""
BROKEN_NAME = CLASS.replace('spec = ToolSpec("act")', "spec = property(lambda self: self.missing)")


def test_objects_that_are_no_tools_are_ignored(tmp_path: Path) -> None:
    assert found(tmp_path, odd=ODD_OBJECTS) == (["fine"], ())


def test_a_tool_whose_attributes_raise_is_left_out(tmp_path: Path) -> None:
    names, (warning,) = found(tmp_path, broken=BROKEN_NAME, good=GOOD.format(name="good"))
    assert names == ["good"] and "broken.py are left out: AttributeError" in warning
