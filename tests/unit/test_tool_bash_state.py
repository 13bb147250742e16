"""What one bash call leaves for the next, and what it hands over to the background."""

import asyncio
import os
import time
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.errors import ToolError
from bradawl.core.messages import text_of
from bradawl.core.workspace import Job
from bradawl.shaping.program_output import clean, shorten_lines
from bradawl.tools.bash import Bash
from bradawl.tools.bash_kill import BashKill
from bradawl.tools.bash_output import BashOutput
from patience import is_within

BASH = Bash()


# ------------------------------------------------------------------ exports


def test_exports_stay_for_later_calls_and_are_told(place):
    text = place.text(BASH, command="export GREETING='hello  there' WORD_2=1; unset NOTHING; LOCAL=1")
    assert text == "(no output)\n[exit code 0]\n[exported for later calls: GREETING, WORD_2]"
    assert place.text(BASH, command='echo "$GREETING$LOCAL"') == "hello  there\n[exit code 0]"
    assert place.text(BASH, command="unset GREETING").endswith("[unset for later calls: GREETING]")
    assert place.text(BASH, command="echo ${GREETING-gone}") == "gone\n[exit code 0]"
    assert place.env == {"GREETING": None, "WORD_2": "1"}


def test_what_decides_what_runs_is_kept_only_where_it_is_allowed(place):
    command = "export PATH=/evil:$PATH MY_PAGER=cat BASH_ENV=/evil FINE=1"
    text = place.text(BASH, command=command)
    assert "[exported for later calls: FINE]" in text
    assert (
        "[not kept for later calls, because it decides what commands run: BASH_ENV, MY_PAGER, PATH; "
        "`export BASH_ENV=...` as a call of its own asks for it]"
    ) in text
    assert place.env == {"FINE": "1"}
    place.may_persist = ("PATH",)
    assert "commands run: BASH_ENV, MY_PAGER; " in place.text(BASH, command=command)
    assert place.env["PATH"].startswith("/evil:") and "BASH_ENV" not in place.env
    place.may_persist = ("*",)
    assert "not kept" not in place.text(BASH, command=command)
    assert place.env["BASH_ENV"] == "/evil"


def test_unsetting_what_decides_what_runs_needs_leave_too(place):
    assert "not kept for later calls, because it decides what commands run: PATH" in place.text(
        BASH, command="unset PATH"
    )
    assert place.text(BASH, command="ls / >/dev/null") == "(no output)\n[exit code 0]"


def test_the_way_back_works_across_calls_and_makes_no_noise(place, tmp_path):
    (tmp_path / "sub").mkdir()
    assert "export" not in place.text(BASH, command="cd sub")
    text = place.text(BASH, command="cd - >/dev/null; pwd")
    assert text == f"{tmp_path}\n[exit code 0]\n[working directory is now {tmp_path}]"


def test_values_that_would_spoil_later_calls_are_not_kept(place):
    command = "export BIG=$(head -c 40000 /dev/zero | tr '\\0' x) RAW=$'\\xff' FINE=1"
    text = place.text(BASH, command=command)
    assert "[exported for later calls: FINE]" in text
    assert "[not kept for later calls, because it is too long or no text: BIG, RAW]" in text
    many = "for n in {1..40}; do export V$n=$(head -c 20000 /dev/zero | tr '\\0' x); done"
    text = place.text(BASH, command=many)
    assert "and 10 more]" not in text and "too long or no text" in text
    assert place.text(BASH, command="echo fine") == "fine\n[exit code 0]"


@pytest.mark.parametrize("command", ["exec true", "kill -9 $$", "trap : EXIT"])
def test_a_line_that_ends_in_its_own_way_leaves_nothing_and_that_is_said(place, tmp_path, command):
    text = place.text(BASH, command=f"export A=1; cd /usr; {command}")
    assert text.endswith(
        f"\n[it is unknown where this ended: the working directory is still {tmp_path}, and exports are as before]"
    )
    assert (place.env, place.cwd) == ({}, str(tmp_path))


def test_a_line_that_is_ended_leaves_nothing_and_that_is_said_if_it_may_have_moved(place, tmp_path):
    told = f"\n[it is unknown where this ended: the working directory is still {tmp_path}, and exports are as before]"
    assert place.text(BASH, command="cd /usr; sleep 30", timeout=1).endswith(told)
    assert told not in place.text(BASH, command="sleep 30", timeout=1)


def test_a_folder_that_is_gone_at_the_end_of_a_line_is_not_entered_and_that_is_said(place, tmp_path):
    text = place.text(BASH, command="mkdir z; cd z; export A=1; rmdir ../z")
    assert f"\n[the folder it ended in is gone: the working directory is still {tmp_path}]" in text
    assert (place.env, place.cwd) == ({"A": "1", "OLDPWD": str(tmp_path)}, str(tmp_path))


def test_variables_of_a_call_are_those_of_its_snapshot(place):
    before = place.context()
    place.call(BASH, command="export A=new")
    output = asyncio.run(BASH.run(BASH.params("echo [$A]"), before))
    assert text_of(output.parts) == "[]\n[exit code 0]"


# ------------------------------------------------------------------ files seen


def test_files_that_an_understood_line_shows_have_been_seen(place, tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    place.call(BASH, command="cat a; head -1 b missing; ls folder; wc -c c >/dev/null")
    known = {f"{tmp_path}/{name}": sha256(name.encode()).hexdigest() for name in ("a", "b", "c")}
    assert place.seen == known


@pytest.mark.parametrize("command", ["cat a; ./unknown", "python3 -c \"print(open('a').read())\"", "ls"])
def test_what_no_understood_line_names_has_not_been_seen(place, tmp_path, command):
    (tmp_path / "a").write_text("a")
    place.call(BASH, command=command)
    assert place.seen == {}


def test_a_line_that_did_not_come_to_its_end_has_shown_nothing(place, tmp_path):
    (tmp_path / "a").write_text("a")
    os.mkfifo(tmp_path / "fifo")
    assert "[timed out after 1 s" in place.text(BASH, command="cat a fifo", timeout=1)
    assert place.seen == {}


# ------------------------------------------------------------------ the background


class Kept:
    """Jobs that keep what they are given."""

    def __init__(self) -> None:
        self.processes = {}

    def add(self, process, command, call_id):
        name = f"job-{len(self.processes) + 1}"
        self.processes[name] = process
        return name

    async def read_output(self, job_id, wait_s=0.0):
        process = self.processes[job_id]
        ended = await process.wait(wait_s)
        return Job(job_id, "command", 2.5, *process.printed(), process.result() if ended else None)

    async def end(self, job_id):
        await self.processes[job_id].end()
        return await self.read_output(job_id)


async def test_a_job_goes_on_is_looked_at_and_ended(place):
    place.jobs = Kept()

    async def story() -> list[str]:
        told = [await place.acall(BASH, command="echo up; exec sleep 300", run_in_background=True)]
        told.append(await place.acall(BashOutput(), job_id="job-1"))
        told.append(await place.acall(BashKill(), job_id=" job-1 "))
        return [text_of(output.parts) for output in told]

    started, looked, killed = await story()
    assert started == (
        "up\n[in the background as job-1; bash_output shows what it prints, bash_kill ends it, and you are told when "
        "it ends. A cd or export in it does not stay]"
    )
    assert looked == "(no new output)\n[job-1 is running, for 2 s so far]"
    assert killed == "(no new output)\n[job-1 has ended with exit code 143 after 2.5 s]"


@pytest.mark.parametrize(("line", "said"), [("no-such-command", "[exit code 127]"), ("sleep 300 &", "without &]")])
def test_what_ends_at_once_is_told_at_once(place, line, said):
    place.jobs = Kept()
    text = place.text(BASH, command=line, run_in_background=True)
    assert said in text
    assert "[it ended at once, so there is no job]" in text
    assert place.jobs.processes == {}


async def test_who_takes_too_long_goes_on_in_the_background(place):
    place.jobs = Kept()
    bash = Bash(patience_s=1)

    async def story() -> list[str]:
        told = [await place.acall(bash, command="echo begun; export A=1; sleep 1.3; echo done; cd /usr")]
        shown = "".join(place.progress)
        told.append(await place.acall(BashOutput(), job_id="job-1", wait=20))
        assert "".join(place.progress) == shown == "begun\n"
        return [text_of(output.parts) for output in told]

    moved, ended = await story()
    assert moved.startswith("begun\n[still running after 1 s, in the background as job-1; bash_output shows")
    assert ended == "done\n[job-1 has ended with exit code 0 after 2.5 s]"
    assert (place.env, place.jobs.processes["job-1"].result().exit_code) == ({}, 0)


def test_who_was_given_a_time_is_ended_after_it_even_where_there_are_jobs(place):
    place.jobs = Kept()
    assert "[timed out after 1 s" in place.text(BASH, command="sleep 300", timeout=1)
    assert place.jobs.processes == {}
    place.jobs = None
    assert "[timed out after 1 s" in place.text(Bash(patience_s=1), command="sleep 300")


async def test_that_a_job_has_no_timeout_is_said(place):
    place.jobs = Kept()

    async def story() -> str:
        output = await place.acall(BASH, command="exec sleep 300", run_in_background=True, timeout=1)
        await place.acall(BashKill(), job_id="job-1")
        return text_of(output.parts)

    assert "[without the timeout, which jobs don't have, in the background as job-1; " in (await story())


def test_a_job_whose_start_is_refused_does_not_run_on(place):
    class Refusing(Kept):
        def add(self, process, command, call_id):
            self.processes["refused"] = process
            raise ToolError("no more jobs")

    place.jobs = Refusing()
    with pytest.raises(ToolError, match="no more jobs"):
        place.call(BASH, command="sleep 300", run_in_background=True)


def test_without_jobs_nothing_goes_on(place):
    with pytest.raises(ToolError, match="nothing can go on in the background"):
        place.call(BASH, command="sleep 300", run_in_background=True)
    for tool, arguments in ((BashOutput(), {"job_id": "job-1"}), (BashKill(), {"job_id": "job-1"})):
        with pytest.raises(ToolError, match="there are no jobs"):
            place.call(tool, **arguments)


def test_a_wait_that_is_none_is_refused(place):
    place.jobs = Kept()
    with pytest.raises(ToolError, match="wait is in seconds"):
        place.call(BashOutput(), job_id="job-1", wait=-1)


# ------------------------------------------------------------------ output as text


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"", ""),
        (b"no newline", "no newline"),
        (b"a\r\nb\r\n", "a\nb"),
        (b"10%\r20%\rdone\r\nnext", "done\nnext"),
        (b"|\b/\b-\b\\\bready\b\b\b", "ready"),
        (b"N\bNA\bAM\bME\bE", "NAME"),
        (b"\x1b[1;31mred\x1b[0m \x1b(Bplain\x1b[?25l\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", "red plainlink"),
        (b"\x1bP1;2q pixels \x1b\\text\x1b7\x1b8\x1b=", "text"),
        ("\x9b31mred\x85".encode(), "red\ufffd"),
        ("größe 日本 🎉\n".encode(), "größe 日本 🎉"),
        ("größe and more\n".encode("utf-16"), "größe and more"),
        ("größe and more\n".encode("utf-16-le"), "größe and more"),
        ("größe and more\n".encode("utf-16-be"), "größe and more"),
        (b"\xff\xfe" + b"\xd8" * 400, None),
        (b"caf\xe9", "caf\ufffd"),
        (b"\0" * 100, None),
        (os.urandom(5_000), None),
    ],
)
def test_output_is_shown_as_it_would_stand_on_a_screen(data, shown):
    assert clean(data) == (f"[binary output, {len(data):,} bytes]" if shown is None else shown)


@given(st.binary(max_size=500))
def test_whatever_is_printed_becomes_plain_text(data):
    text = clean(data)
    text.encode()
    assert not any(ord(char) < 32 and char not in "\t\n" for char in text)
    assert not any(127 <= ord(char) < 160 for char in text)


@given(st.lists(st.integers(0, 9_000), max_size=20), st.integers(2_000, 30_000))
def test_shortened_lines_keep_their_number_and_say_what_is_missing(lengths, most):
    text = "\n".join("x" * length for length in lengths)
    short = shorten_lines(text, most)
    assert short.count("\n") == text.count("\n")
    for before, after in zip(text.split("\n"), short.split("\n"), strict=True):
        if before != after:
            missing = int(after.split("[... ")[1].split(" characters")[0].replace(",", ""))
            assert after.count("x") == len(before) - missing
            assert len(before) > 2_000
    if len(text) <= most:
        assert short == text


@pytest.mark.parametrize(
    "data",
    [b"x" * 3_000_000, b"\r" * 2_000_000, b"a\b" * 1_000_000, b"\x1b]" * 500_000, b"\x1b[" * 500_000, b"y\n" * 900_000],
)
def test_odd_floods_are_cleaned_in_a_moment(data):
    began = time.process_time()
    clean(data)
    assert is_within(time.process_time() - began, 2)
