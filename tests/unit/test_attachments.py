"""What `@` in a prompt attaches, and that it attaches nothing that a rule or a hostile project forbids."""

import os

import pytest

from bradawl.app.attachments import attach
from bradawl.app.regular_files import read_regular
from bradawl.app.submission import Submission
from bradawl.core.messages import Image, text_of
from bradawl.core.permissions import Policy
from bradawl.safety.permissions.path_globs import Bases
from bradawl.safety.permissions.rule_syntax import parse_rule

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e5"
    "27defc0000000049454e44ae426082"
)


@pytest.fixture
def project(tmp_path):
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    (folder / "notes.md").write_text("remember the milk\n")
    return folder


def policy_of(project, *rules, verdict="deny"):
    bases = Bases(str(project), str(project.parent), str(project))
    parsed = [rule for text in rules for rule in parse_rule(text, verdict, "config.toml", bases, os.path.realpath)]
    return Policy(rules=tuple(parsed), roots=(str(project),))


def attached(project, text, *rules, images=(), verdict="deny"):
    policy = policy_of(project, *rules, verdict=verdict)
    sent = Submission(text, images=tuple(images))
    return attach(sent, str(project), policy, lambda _: ("a.txt", "b.txt"))


def told(result):
    """What the model gets beside the user's text."""
    return text_of(result.parts[1:])


def test_a_file_an_image_and_a_folder_are_attached(project):
    (project / "pic.png").write_bytes(PNG)
    (project / "sub").mkdir()
    result = attached(project, "see @notes.md, @pic.png and (@sub)")
    assert "remember the milk" in told(result) and "a.txt" in told(result)
    assert any(isinstance(part, Image) for part in result.parts)
    assert result.names == ("notes.md (1 line)", "pic.png (image)", "sub (2 entries)") and not result.problems


def test_a_word_without_a_file_stays_a_word(project):
    result = attached(project, "ask @nobody, me@notes.md and @" + "x" * 5_000 + " @a\0b")
    assert len(result.parts) == 1 and result.problems == ()


def test_a_link_that_leads_out_of_the_project_attaches_nothing(project):
    outside = project.parent / "outside"
    outside.mkdir()
    (outside / "key.txt").write_text("TOP-SECRET\n")
    (project / "link.txt").symlink_to(outside / "key.txt")
    (project / "folder").symlink_to(outside)
    (project / "loop").symlink_to("loop")
    result = attached(project, "see @link.txt @folder @folder/key.txt @./folder/../link.txt @loop")
    assert len(result.parts) == 1 and result.problems == ()


def test_a_link_inside_the_project_is_followed(project):
    (project / "link.md").symlink_to("notes.md")
    assert "remember the milk" in told(attached(project, "see @link.md"))


@pytest.mark.parametrize("verdict", ["deny", "ask"])
def test_what_a_rule_forbids_or_asks_about_is_not_attached(project, verdict):
    (project / "private").mkdir()
    (project / "private/a.txt").write_text("TOP-SECRET\n")
    (project / "alias.txt").symlink_to("private/a.txt")
    text = "see @private/a.txt @alias.txt @private"
    result = attached(project, text, "Read(//" + str(project / "private")[1:] + "/**)", verdict=verdict)
    assert "TOP-SECRET" not in repr(result)
    assert any("private/a.txt is not attached: " in problem for problem in result.problems)


def test_a_file_outside_of_the_project_needs_a_question_and_is_not_attached(project):
    (project.parent / "other.txt").write_text("TOP-SECRET\n")
    result = attached(project, f"see @{project.parent}/other.txt @../other.txt")
    assert "TOP-SECRET" not in repr(result) and len(result.problems) == 1


def test_pipes_devices_and_huge_files_are_told_and_do_not_block(project):
    os.mkfifo(project / "pipe")
    with (project / "huge.txt").open("wb") as file:
        file.truncate(3 * 1024**3)
    result = attached(project, "see @pipe @huge.txt @/dev/zero @/dev/tty")
    assert len(result.parts) == 1
    assert any("pipe is not attached: it is no regular file" in problem for problem in result.problems)
    assert any("huge.txt is not attached: it is too large" in problem for problem in result.problems)


def test_an_image_by_way_of_a_link_is_attached_and_judged_by_its_real_path(project):
    """Defect: the path of an image was compared as it was spelled, and one below a linked folder was refused."""
    (project / "pictures").mkdir()
    (project / "pictures/pic.png").write_bytes(PNG)
    (project / "linked").symlink_to("pictures")
    path = str(project / "linked/pic.png")
    assert any(isinstance(part, Image) for part in attached(project, "see", images=[path]).parts)
    refused = attached(project, "see", "Read(//" + str(project / "pictures")[1:] + "/**)", images=[path])
    assert len(refused.parts) == 1 and refused.problems


# ------------------------------------------------------------------ replaced between the decision and the reading


def test_a_file_that_became_a_link_is_not_read(project):
    (project / "notes.md").unlink()
    (project / "notes.md").symlink_to("/etc/hostname")
    with pytest.raises(OSError, match="symbolic links"):
        read_regular(str(project / "notes.md"), 100)


def test_a_folder_that_became_a_link_is_not_followed(project):
    (project.parent / "secret").mkdir()
    (project.parent / "secret/notes.md").write_text("TOP-SECRET\n")
    (project / "docs").symlink_to(project.parent / "secret")
    with pytest.raises(OSError, match="was replaced"):
        read_regular(str(project / "docs/notes.md"), 100)


@pytest.mark.parametrize("path", ["pipe", "/dev/zero", "."])
def test_what_became_a_pipe_a_device_or_a_folder_is_not_read(project, path):
    os.mkfifo(project / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        read_regular(os.path.realpath(project / path), 100)


def test_a_file_that_grew_is_read_up_to_the_limit(project):
    (project / "notes.md").write_text("x" * 100_000)
    assert read_regular(str(project / "notes.md"), 1_000) == b"x" * 1_000


# ------------------------------------------------------------------ pasted names


def attached_by(project, **sent):
    return attach(Submission(**sent), str(project), policy_of(project), lambda _: ())


def test_a_pasted_name_attaches_nothing_and_the_user_is_told(project):
    result = attached_by(project, text="see @notes.md.", shown="see @notes.md.", pasted_names=("notes.md",))
    assert len(result.parts) == 1
    (problem,) = result.problems
    assert "notes.md is not attached: its @ was pasted" in problem and "Tab" in problem


def test_a_pasted_name_without_a_file_is_not_told(project):
    result = attached_by(project, text="a @decorator", shown="a @decorator", pasted_names=("decorator",))
    assert len(result.parts) == 1 and not result.problems


def test_a_name_in_a_folded_paste_attaches_nothing(project):
    """Defect: with any `@` in the typed text, the names in folded pastes were attached as well."""
    sent = {"text": "a line\nsee @notes.md\n for me@home", "shown": "[Pasted text #1 · 9 lines] for me@home"}
    assert len(attached_by(project, **sent).parts) == 1
