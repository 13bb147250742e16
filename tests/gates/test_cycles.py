"""The package has no import cycles."""

import pytest
from source_tree import import_cycles, module, source_modules


def test_the_package_has_no_import_cycle():
    assert import_cycles(source_modules()) == []


@pytest.mark.parametrize(
    ("texts", "cycle"),
    [
        (("import bradawl.b", "import bradawl.a", ""), ["bradawl.a", "bradawl.b"]),
        (
            ("from bradawl import b", "from bradawl.c import x", "from bradawl.a import y"),
            ["bradawl.a", "bradawl.b", "bradawl.c"],
        ),
        (
            ("if TYPE_CHECKING:\n    from bradawl.b import B", "def f():\n    from bradawl.a import A", ""),
            ["bradawl.a", "bradawl.b"],
        ),
    ],
)
def test_a_cycle_is_found_with_every_form_of_import(texts: tuple[str, ...], cycle: list[str]):
    modules = [module(f"{name}.py", text) for name, text in zip("abc", texts, strict=True)]
    assert import_cycles(modules) == [cycle]


def test_acyclic_imports_are_accepted():
    texts = {"a.py": "from bradawl import b, c", "b.py": "import bradawl.c", "c.py": "import os"}
    assert import_cycles([module(place, text) for place, text in texts.items()]) == []
