"""Dependencies are pinned to the tested versions, and none runs code at every start of Python."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from source_tree import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RUN = tuple(map(Requirement, PROJECT["dependencies"]))
DEV = tuple(map(Requirement, PROJECT["optional-dependencies"]["dev"]))


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonical(name): version for name, version in pairs}


def applies(requirement: Requirement, extras: set[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({**default_environment(), "extra": extra}) for extra in extras or {""})


def closure(wanted: tuple[Requirement, ...]) -> dict[str, str]:
    """Name to installed version of the requirements and all their dependencies."""
    found: dict[str, str] = {}
    waiting = [(requirement, {""}) for requirement in wanted]
    while waiting:
        requirement, extras = waiting.pop()
        name = canonical(requirement.name)
        if not applies(requirement, extras) or name in found:
            continue
        found[name] = metadata.version(name)
        further = metadata.requires(name) or ()
        waiting += [(Requirement(each), {"", *requirement.extras}) for each in further]
    return found


def test_every_package_is_pinned_to_the_version_installed_here():
    pinned = pins()
    assert {name: pinned.get(name) for name in closure(RUN + DEV)} == closure(RUN + DEV)


def test_every_pinned_package_is_required():
    # Some packages are required on one platform or Python only, so any package that a requirement names counts.
    named = {canonical(Requirement(each).name) for name in closure(RUN + DEV) for each in metadata.requires(name) or ()}
    assert set(pins()) <= named | {canonical(each.name) for each in RUN + DEV}


def test_pins_satisfy_the_ranges_of_the_project():
    assert all(pins()[canonical(each.name)] in each.specifier for each in RUN + DEV)


def test_development_packages_are_not_required_to_run():
    assert not set(closure(RUN)) & {"pytest", "hypothesis", "ruff", "basedpyright", "rich", "pydantic", "click"}


def test_no_package_runs_code_at_every_start_of_python():
    path_files = [
        Path(str(path.locate()))
        for name in closure(RUN)
        for path in metadata.files(name) or ()
        if path.name.endswith(".pth")
    ]
    lines = [line for path in path_files for line in path.read_text(encoding="utf-8").splitlines()]
    assert not [line for line in lines if line.startswith(("import ", "import\t"))]
