"""Links that a line of bash creates, and words that name paths which can't be examined."""

from pathlib import Path

import pytest
from test_rules_in_lines import decided, denied

from bradawl.core.permissions import Deny
from bradawl.safety.shell.created_links import links_of_line
from bradawl.safety.shell.links import Links


def links(line: str, folder: Path) -> Links:
    return links_of_line([tuple(part.split()) for part in line.split(";")], (str(folder),))


@pytest.mark.parametrize(
    ("line", "link", "target"),
    [
        ("ln -s conf L", "L", "conf"),
        ("ln -s conf sub", "sub/conf", "sub/conf"),
        ("ln -s ../conf sub/L", "sub/L", "conf"),
        ("ln -st sub ../conf", "sub/conf", "conf"),
        ("ln --target-directory=sub ../conf -s", "sub/conf", "conf"),
        ("ln -s sub/conf", "conf", "sub/conf"),
        ("ln conf L", "L", "conf"),
        ("link conf L", "L", "conf"),
        ("cp -s conf L", "L", "conf"),
        ("cp -l conf L", "L", "conf"),
        ("ln -s conf L; mv L M", "M", "conf"),
        ("ln -s conf L; cp -P L M", "M", "conf"),
    ],
)
def test_links_of_a_line_have_their_path_and_target(line: str, link: str, target: str, tmp_path: Path) -> None:
    (tmp_path / "conf").write_text("x")
    (tmp_path / "sub").mkdir()
    assert str(tmp_path / target) in links(line, tmp_path).real_paths(str(tmp_path / link))


def test_a_copy_of_a_file_is_not_a_link(tmp_path: Path) -> None:
    (tmp_path / "conf").write_text("x")
    copies = links("cp conf L; mv conf M; install conf N", tmp_path)
    assert [copies.real_paths(f"{tmp_path}/{name}") for name in "LMN"] == [(f"{tmp_path}/{name}",) for name in "LMN"]


def test_a_link_with_a_final_slash_is_the_link_itself(tmp_path: Path) -> None:
    made = Links()
    made.add(f"{tmp_path}/L/", "/etc")
    made.add("/", "/etc")
    assert made.names(str(tmp_path)) == ["L"]
    assert made.real_paths(f"{tmp_path}/L/hosts")[1:] == ("/etc/hosts",)
    assert "" not in made.names("/")


@pytest.mark.parametrize("word", ["x" * 5_000, "/proc/1/root/etc/hosts"])
def test_a_path_that_cant_be_examined_is_no_error(word: str, tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    rules = denied(tmp_path / "ws", "Read(secrets/**)", "Edit(conf/**)")
    decided(f"xyz {word}; cat {word} | xyz > {word}", tmp_path / "ws", rules)
    assert isinstance(decided(f"xyz {word}; rm -rf /", tmp_path / "ws", rules), Deny)
