"""Which instruction files count, in which order, and what happens with files that can't or must not be read."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bradawl.app.instructions.files import InstructionFiles
from bradawl.app.instructions.places import place_in
from bradawl.app.instructions.reading import Reading
from bradawl.app.policies import Policies
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.settings import Settings
from bradawl.core.permissions import Sandbox
from patience import no_wait


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """The top of a checkout, with a home folder beside it."""
    folder = Path(os.path.realpath(tmp_path)) / "project"
    (folder / ".git").mkdir(parents=True)
    (folder.parent / "home" / ".config" / "bradawl").mkdir(parents=True)
    return folder


def no_rule(_: str) -> bool:
    return False


def files_of(
    top: Path,
    cwd: str = "",
    *,
    roots: tuple[str, ...] = (),
    trusts: Callable[[str], bool] = lambda _: True,
    is_refused: Callable[[str], bool] = no_rule,
) -> InstructionFiles:
    home = top.parent / "home"
    folder = str(top / cwd) if cwd else str(top)
    return InstructionFiles(folder, (folder, *roots), f"{home}/.config/bradawl", str(home), trusts, is_refused)


def read(files: InstructionFiles) -> Reading:
    found = files.read(files.first())
    assert found is not None
    return found


def texts(top: Path, cwd: str = "", **given) -> list[str]:
    return [one.text for one in read(files_of(top, cwd, **given)).sources]


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# ------------------------------------------------------------------ which files, in which order


def test_the_users_file_comes_first_then_the_project_from_its_top_down_to_the_working_directory(top):
    for name in ("a/b/AGENTS.md", "a/b/c/AGENTS.md", "AGENTS.md", "x/AGENTS.md"):
        write(top / name, name)
    write(top.parent / "AGENTS.md", "above the project")
    write(top.parent / "home/.config/bradawl/AGENTS.md", "mine")
    assert texts(top, "a/b") == ["mine", "AGENTS.md", "a/b/AGENTS.md"]


def test_outside_of_a_checkout_only_the_working_directory_counts(top):
    (top / ".git").rmdir()
    write(top / "AGENTS.md", "top")
    write(top / "a/AGENTS.md", "a")
    assert texts(top, "a") == ["a"]


@pytest.mark.parametrize(
    ("there", "counts"),
    [
        (("AGENTS.override.md", "AGENTS.md", "CLAUDE.md"), "AGENTS.override.md"),
        (("AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md"), "AGENTS.md"),
        (("CLAUDE.md", ".claude/CLAUDE.md"), "CLAUDE.md"),
        ((".claude/CLAUDE.md",), ".claude/CLAUDE.md"),
        (("agents.txt", "CLAUDE.local.md"), None),
    ],
)
def test_in_each_folder_one_file_counts(top, there, counts):
    for name in there:
        write(top / name, name)
    assert texts(top) == ([counts] if counts else [])


def test_another_name_counts_in_a_folder_that_has_no_agents_file(top):
    write(top / "AGENTS.md", "top")
    write(top / "a/CLAUDE.md", "a")
    assert texts(top, "a") == ["top", "a"]


@pytest.mark.parametrize(
    ("there", "counts"),
    [
        ((".config/bradawl/AGENTS.md", ".config/AGENTS.md", ".claude/CLAUDE.md"), ".config/bradawl/AGENTS.md"),
        ((".config/AGENTS.md", ".claude/CLAUDE.md"), ".config/AGENTS.md"),
        ((".claude/CLAUDE.md",), ".claude/CLAUDE.md"),
    ],
)
def test_one_file_of_the_user_counts(top, there, counts):
    for name in there:
        write(top.parent / "home" / name, name)
    (source,) = read(files_of(top, trusts=lambda _: False)).sources
    assert (source.text, source.is_trusted) == (counts, True)


@pytest.mark.parametrize("blank", ["", " \n\t\n", "\ufeff\r\n"])
def test_a_blank_file_is_skipped_for_the_next_name(top, blank):
    write(top / "AGENTS.override.md", blank)
    write(top / "AGENTS.md", "text")
    assert read(files_of(top)).problems == []
    assert texts(top) == ["text"]


def test_a_users_file_that_others_can_write_is_material(top):
    path = write(top.parent / "home/.config/bradawl/AGENTS.md", "mine")
    path.chmod(0o666)
    found = read(files_of(top))
    assert [one.is_trusted for one in found.sources] == [False]
    assert "can be written by others" in found.problems[0]


# ------------------------------------------------------------------ the same content


def test_a_link_to_the_same_file_appears_once(top):
    write(top / "AGENTS.md", "text")
    (top / "a").mkdir()
    (top / "a/AGENTS.md").symlink_to("../AGENTS.md")
    found = read(files_of(top, "a"))
    assert [one.path for one in found.sources] == [f"{top}/AGENTS.md"]
    assert f"{top}/a/AGENTS.md" in found.unread


def test_a_copy_appears_once(top):
    write(top / "AGENTS.md", "text\n")
    write(top / "a/AGENTS.md", b"\xef\xbb\xbftext\r\n\r\n")
    assert texts(top, "a") == ["text"]


# ------------------------------------------------------------------ nasty files


def test_a_pipe_a_folder_a_device_and_a_link_in_circles_do_not_block_and_are_named(top):
    folders = ("pipe", "folder", "device", "circle")
    for name in folders:
        (top / name).mkdir()
    os.mkfifo(top / "pipe/AGENTS.md")
    (top / "folder/AGENTS.md").mkdir()
    (top / "circle/AGENTS.md").symlink_to("AGENTS.md")
    (top / "device/AGENTS.md").symlink_to("/dev/zero")
    for name in folders:
        found = read(files_of(top, name))
        assert found.sources == []
        assert len(found.problems) == 1 and found.problems[0].startswith(f"{top}/{name}/AGENTS.md: "), name


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_named(top):
    write(top / "AGENTS.md", "x").chmod(0)
    assert read(files_of(top)).problems == [f"{top}/AGENTS.md: Permission denied"]


def test_a_link_out_of_the_project_is_not_followed(top):
    write(top.parent / "secret.md", "secret")
    (top / "AGENTS.md").symlink_to("../secret.md")
    write(top / "docs/b.md", "b")
    (top / "docs/c.md").symlink_to("../../secret.md")
    (top / "docs/d").symlink_to("../..")
    write(top / "CLAUDE.md", "@docs/b.md @docs/c.md @docs/d/secret.md")
    found = read(files_of(top))
    assert [one.text for one in found.sources] == ["@docs/b.md @docs/c.md @docs/d/secret.md", "b"]
    assert found.problems == [
        f"{top}/AGENTS.md: it is a link out of the project",
        f"@docs/c.md in {top}/CLAUDE.md: it is a link out of the project",
        f"@docs/d/secret.md in {top}/CLAUDE.md: it is a link out of the project",
    ]


def test_binary_content_is_not_text_and_other_encodings_are_read_as_far_as_possible(top):
    write(top / "AGENTS.override.md", b"\x7fELF\0\0")
    write(top / "AGENTS.md", "caf\u00e9".encode("latin-1"))
    write(top / "a/AGENTS.md", "b\u00e9".encode("utf-16"))
    found = read(files_of(top, "a"))
    assert [one.text for one in found.sources] == ["caf\ufffd", "b\u00e9"]
    assert found.problems == [
        f"{top}/AGENTS.override.md: it is not a text",
        f"{top}/AGENTS.md is not UTF-8 everywhere: characters in it are replaced",
    ]


def test_line_ends_and_a_byte_order_mark_are_normalized(top):
    write(top / "AGENTS.md", b"\xef\xbb\xbfa\r\nb\rc\n\n")
    assert texts(top) == ["a\nb\nc"]


def test_of_a_huge_file_the_beginning_is_read(top):
    with (top / "AGENTS.md").open("wb") as file:
        file.write("\u00e9".encode() * 60_000)
        file.truncate(5_000_000_000)
    found = read(files_of(top))
    assert (len(found.sources), found.problems) == (1, [])
    assert found.sources[0].size == 5_000_000_000
    assert len(found.sources[0].text) == 50_000


def test_a_file_system_that_hangs_is_given_up(top):
    def hang(_: str) -> bool:
        threading.Event().wait()
        return False

    write(top / "AGENTS.md", "x")
    files = files_of(top, is_refused=hang)
    files._patience_s = 0.01
    with no_wait():
        assert files.read(files.first()) is None


# ------------------------------------------------------------------ imports


def test_imports_follow_their_file_each_once_and_circles_end(top):
    write(top / "AGENTS.md", "See @docs/a.md, (@docs/b.md) and @AGENTS.md.")
    write(top / "docs/a.md", "a @b.md @../AGENTS.md")
    write(top / "docs/b.md", "b @a.md")
    found = read(files_of(top))
    assert [one.path for one in found.sources] == [f"{top}/{name}" for name in ("AGENTS.md", "docs/a.md", "docs/b.md")]
    assert found.problems == []


def test_nothing_is_imported_from_code(top):
    for name in ("a", "b", "c", "d"):
        write(top / f"{name}.md", name)
    write(top / "AGENTS.md", "`@a.md`\n```\n@b.md\n```\n~~~ text\n@c.md\n~~~\nme@d.md")
    assert len(texts(top)) == 1


def test_imports_are_followed_five_deep(top):
    write(top / "AGENTS.md", "@1.md")
    for number in range(1, 8):
        write(top / f"{number}.md", f"{number} @{number + 1}.md")
    found = read(files_of(top))
    assert [one.text[0] for one in found.sources[1:]] == ["1", "2", "3", "4", "5"]
    assert found.problems == [f"@6.md in {top}/5.md: imports are followed 5 deep"]


def test_missing_imports_are_named_and_other_words_with_an_at_sign_are_not(top):
    write(top / "AGENTS.md", "@docs/none.md. @pytest.mark.slow @types/node @Override @/components @docs/ @/etc/passwd")
    (top / "docs").mkdir()
    assert read(files_of(top)).problems == [
        f"@docs/none.md in {top}/AGENTS.md: there is no such file",
        f"@/etc/passwd in {top}/AGENTS.md: it leads out of the project",
    ]


@pytest.mark.parametrize(
    "name", ["../secret.md", "~/secret.md", "{top}/../secret.md", "$HOME/x.md", "a/../../secret.md"]
)
def test_a_projects_file_imports_nothing_from_elsewhere(top, name):
    write(top.parent / "secret.md", "secret")
    write(top.parent / "home/secret.md", "secret")
    write(top / "AGENTS.md", f"@{name.format(top=top)}")
    assert len(texts(top)) == 1


def test_a_users_file_imports_from_anywhere(top):
    write(top.parent / "home/.config/bradawl/AGENTS.md", f"@~/a.md @{top.parent}/b.md @c.md")
    write(top.parent / "home/a.md", "a")
    write(top.parent / "b.md", "b")
    write(top.parent / "home/.config/bradawl/c.md", "c")
    assert texts(top)[1:] == ["a", "b", "c"]


def rules_of(top: Path) -> Callable[[str], bool]:
    home = str(top.parent / "home")
    settings = Settings(model=ModelSettings("scripted", "x"), cwd=str(top), home=f"{home}/data", user_home=home)
    own = (f"{home}/.config/bradawl",)
    return Policies(settings, (str(top),), own, "", Sandbox).asks_before_reading


def test_what_may_hold_keys_is_not_imported_directly_or_through_a_link(top):
    write(top / ".env", "KEY=1")
    write(top / "id_rsa", "KEY")
    (top / "style.md").symlink_to(".env")
    write(top / "AGENTS.md", "@.env @id_rsa @style.md @fine.md")
    write(top / "fine.md", "fine")
    found = read(files_of(top, is_refused=rules_of(top)))
    assert [one.text for one in found.sources] == ["@.env @id_rsa @style.md @fine.md", "fine"]
    assert len(found.problems) == 3
    (top / "AGENTS.md").unlink()
    (top / "AGENTS.md").symlink_to(".env")
    assert texts(top, is_refused=rules_of(top)) == []


def test_bradawls_own_folder_may_be_imported_from_the_users_file_only(top):
    own = top.parent / "home/.config/bradawl"
    write(own / "AGENTS.md", "mine @style.md")
    write(own / "style.md", "style")
    assert texts(top, is_refused=rules_of(top)) == ["mine @style.md", "style"]


def test_there_is_a_limit_to_the_number_of_imports(top):
    for number in range(120):
        write(top / f"{number}.md", f"text {number}")
    write(top / "AGENTS.md", " ".join(f"@{number}.md" for number in range(120)))
    found = read(files_of(top))
    assert len(found.sources) == 50
    assert found.problems == [f"{top}/AGENTS.md imports more files than are followed"]


# ------------------------------------------------------------------ sub-folders and trust


def folders(files: InstructionFiles, folder: Path | str) -> list[str]:
    return [place.paths[0].removesuffix("/AGENTS.override.md") for place in files.on_the_way_to(str(folder))]


def test_on_the_way_to_a_folder_are_those_below_the_working_directory(top):
    assert folders(files_of(top), top / "a/b") == [f"{top}/a", f"{top}/a/b"]
    assert folders(files_of(top), top) == []
    assert folders(files_of(top, "a"), top / "x") == []
    assert folders(files_of(top), top.parent / "elsewhere") == []
    other = str(top.parent / "other")
    assert folders(files_of(top, roots=(other,)), f"{other}/a") == [other, f"{other}/a"]
    assert folders(files_of(top, roots=(other,)), f"{other}2") == []


def test_each_checkout_has_its_own_trust_and_folders_of_others_have_none(top):
    (top / "sub/.git").mkdir(parents=True)
    (top / "sub/deep").mkdir()
    files = files_of(top, trusts=lambda folder: folder == str(top))

    def trusted(folder: str) -> list[bool]:
        return [place.is_trusted for place in files.on_the_way_to(str(top / folder))]

    assert trusted("a/b") == [True, True]
    assert trusted("sub/deep") == [False, False]
    assert trusted("web/node_modules/x") == [True, False, False]
    assert trusted("vendor") == [False]


def test_the_place_of_the_root_folder_has_plain_paths():
    assert place_in("/", "/", is_trusted=False).paths[1] == "/AGENTS.md"
