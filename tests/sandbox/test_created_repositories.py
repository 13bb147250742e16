"""What commands created can be removed and moved in later sessions; what the user created stays protected."""

import shutil

import pytest
from bwrap import needs_bwrap
from sandboxed_session import IDENTITY, sandboxed_session

from bradawl.sandbox.restore.created_repositories import CreatedRepositories

SETUP = f"git init -q -b main .; {IDENTITY}; echo 1 > a; git add a; git commit -qm 1"
MAKE = "git worktree add -q wt -b wtb; git clone -q . cl; git init -q x/y"


@needs_bwrap
@pytest.mark.parametrize(
    "line",
    [
        "git worktree remove wt; test ! -e wt",
        "git worktree move wt w5 && git -C w5 status",
        "rm -r wt cl; git worktree prune; test ! -e cl",
        "python3 -c \"import shutil; shutil.rmtree('cl'); shutil.rmtree('x')\"",
        "mv cl moved; git -C moved config rerere.enabled true; mv x z; git -C z/y status",
        "rm -rf cl; true $X; git clone -q . cl && git -C cl config advice.detachedHead false",
    ],
)
def test_what_a_command_created_can_be_removed_and_moved_after_a_new_start(tmp_path, line):
    with sandboxed_session(tmp_path) as first:
        first.bare(SETUP)
        first.run("true")
        assert first.run(MAKE).restored == ()
    with sandboxed_session(tmp_path) as second:
        second.run("true")
        result = second.run(line)
        assert (result.exit_code, result.restored) == (0, ()), result.stderr
        assert b"busy" not in result.stderr and b"Read-only" not in result.stderr


@needs_bwrap
@pytest.mark.parametrize("change", ["made by the user", "made anew by the user", "armed by the user"])
def test_what_the_user_created_or_armed_is_read_only_after_a_new_start(tmp_path, change):
    with sandboxed_session(tmp_path) as first:
        first.bare(SETUP)
        first.run("true")
        if change != "made by the user":
            first.run("git clone -q . cl")
    with sandboxed_session(tmp_path) as second:
        if change == "made anew by the user":
            shutil.rmtree(second.root / "cl")
            second.bare("git init -q other")
        if change == "armed by the user":
            second.bare("git -C cl config alias.x '!true'")
        else:
            second.bare("git clone -q . cl")
        second.run("true")
        before = (second.root / "cl/.git/config").read_bytes()
        result = second.run("git -C cl config user.name other; echo x > cl/.git/hooks/pre-commit")
        assert result.exit_code != 0
        assert (second.root / "cl/.git/config").read_bytes() == before
        assert not (second.root / "cl/.git/hooks/pre-commit").exists()


@pytest.mark.parametrize("content", [b"", b"\xc1", b"\x81\xa1a\x01", b"x" * 2_000_000, None])
def test_a_record_that_can_not_be_read_is_as_none(tmp_path, content):
    state = tmp_path / "state"
    state.mkdir()
    if content is None:
        (state / "created-repositories").mkdir()
    else:
        (state / "created-repositories").write_bytes(content)
    (tmp_path / "r/.git/objects").mkdir(parents=True)
    created = CreatedRepositories(str(state))
    assert created.new_among((f"{tmp_path}/r",)) == ()
    created.record((f"{tmp_path}/r", f"{tmp_path}/missing"))
    again = CreatedRepositories(str(state)).new_among((f"{tmp_path}/r",))
    assert again == ((f"{tmp_path}/r",) if content is not None else ())


def test_a_repository_that_was_removed_is_new_again_and_one_that_is_hidden_for_a_while_is_not(tmp_path):
    created = CreatedRepositories("")
    for name in ("a", "b"):
        (tmp_path / f"{name}/.git").mkdir(parents=True)
    both = (f"{tmp_path}/a", f"{tmp_path}/b")
    assert created.new_among(both) == ()
    assert created.new_among(both[:1]) == ()
    assert created.new_among(both) == ()
    shutil.rmtree(tmp_path / "b")
    assert created.new_among(both[:1]) == ()
    (tmp_path / "b/.git").mkdir(parents=True)
    assert created.new_among(both) == both[1:]


@needs_bwrap
@pytest.mark.parametrize("place", ["cl", "p/q/r/s/cl"])
def test_what_the_user_created_between_two_commands_is_covered_like_existing_ones(tmp_path, place):
    with sandboxed_session(tmp_path) as session:
        session.bare(SETUP)
        session.run("true")
        session.run("git clone -q . theirs")
        session.bare(f"git clone -q . {place}")
        session.run("true")
        session.run(f"git -C {place} remote set-url origin https://example.org/x")
        assert "example.org" not in (session.root / place / ".git/config").read_text()
        result = session.run("git -C theirs config user.name x && rm -r theirs && git clone -q . theirs")
        assert (result.exit_code, result.restored) == (0, ()), result.stderr
        result = session.run("git -C theirs config user.name y && mv theirs ours && git -C ours config user.name z")
        assert (result.exit_code, result.restored) == (0, ()), result.stderr
