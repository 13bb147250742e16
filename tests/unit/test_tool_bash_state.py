"""State that one `bash` call leaves for the next: exports, folder, files seen; and jobs in the background."""

import os
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.errors import ToolError
from bradawl.core.messages import text_of
from bradawl.core.permissions import Sandbox
from bradawl.core.workspace import Job
from bradawl.shaping.program_output import clean, shorten_lines
from bradawl.tools.bash import Bash
from bradawl.tools.bash_kill import BashKill
from bradawl.tools.bash_output import BashOutput
from patience import cpu_limit

BASH = Bash()


# ------------------------------------------------------------------ exports


async def test_exports_are_kept_for_later_calls_and_reported(place):
    text = await place.text(BASH, command="export GREETING='hello  there' WORD_2=1; unset NOTHING; LOCAL=1")
    assert text == "(no output)\n[exit code 0]\n[exported for later calls: GREETING, WORD_2]"
    assert await place.text(BASH, command='echo "$GREETING$LOCAL"') == "hello  there\n[exit code 0]"
    assert (await place.text(BASH, command="unset GREETING")).endswith("[unset for later calls: GREETING]")
    assert await place.text(BASH, command="echo ${GREETING-gone}") == "gone\n[exit code 0]"
    assert place.env == {"GREETING": None, "WORD_2": "1"}


async def test_variables_that_determine_what_runs_are_kept_only_if_allowed(place):
    command = "export PATH=/evil:$PATH MY_PAGER=cat BASH_ENV=/evil FINE=1"
    text = await place.text(BASH, command=command)
    assert "[exported for later calls: FINE]" in text
    assert (
        "[not kept for later calls, because it decides what commands run: BASH_ENV, MY_PAGER, PATH; "
        "`export BASH_ENV=...` as a call of its own asks for it]"
    ) in text
    assert place.env == {"FINE": "1"}
    place.may_persist = ("PATH",)
    assert "commands run: BASH_ENV, MY_PAGER; " in await place.text(BASH, command=command)
    assert place.env["PATH"].startswith("/evil:") and "BASH_ENV" not in place.env
    place.may_persist = ("*",)
    assert "not kept" not in await place.text(BASH, command=command)
    assert place.env["BASH_ENV"] == "/evil"


async def test_without_a_user_a_variable_that_is_not_kept_comes_with_another_way(place, tmp_path):
    (tmp_path / "venv/bin").mkdir(parents=True)
    bash = Bash(user_is_there=False)
    place.project = str(tmp_path)
    text = await place.text(bash, command="export PATH=$PWD/venv/bin:$PATH")
    assert text.endswith(
        "[PATH is not kept for later calls: write venv/bin/PROGRAM, or repeat the export in the command]"
    )
    (tmp_path / "venv/bin/python").write_text("")
    (tmp_path / "venv/bin/activate").write_text("export PATH=$PWD/venv/bin:$PATH VIRTUAL_ENV=$PWD/venv")
    text = await place.text(bash, command=". venv/bin/activate")
    assert text.endswith(
        "[PATH, VIRTUAL_ENV are not kept for later calls: write venv/bin/python, or repeat the export in the command]"
    )
    text = await place.text(bash, command="export MY_PAGER=cat BASH_ENV=/evil")
    assert text.endswith("[BASH_ENV, MY_PAGER are not kept for later calls: repeat the export in the command]")


async def test_unsetting_variables_that_determine_what_runs_needs_permission_too(place):
    assert "not kept for later calls, because it decides what commands run: PATH" in await place.text(
        BASH, command="unset PATH"
    )
    assert await place.text(BASH, command="ls / >/dev/null") == "(no output)\n[exit code 0]"


async def test_cd_minus_works_across_calls_and_is_not_reported(place, tmp_path):
    (tmp_path / "sub").mkdir()
    assert "export" not in await place.text(BASH, command="cd sub")
    text = await place.text(BASH, command="cd - >/dev/null; pwd")
    assert text == f"{tmp_path}\n[exit code 0]\n[working directory is now {tmp_path}]"


async def test_values_that_are_too_long_or_not_text_are_not_kept(place):
    command = "export BIG=$(head -c 40000 /dev/zero | tr '\\0' x) RAW=$'\\xff' FINE=1"
    text = await place.text(BASH, command=command)
    assert "[exported for later calls: FINE]" in text
    assert "[not kept for later calls, because it is too long or no text: BIG, RAW]" in text
    many = "for n in {1..40}; do export V$n=$(head -c 20000 /dev/zero | tr '\\0' x); done"
    text = await place.text(BASH, command=many)
    assert "and 10 more]" not in text and "too long or no text" in text
    assert await place.text(BASH, command="echo fine") == "fine\n[exit code 0]"


async def test_more_variables_than_a_command_can_be_started_with_are_not_kept(place):
    """bubblewrap takes 9,000 arguments, three for each variable, and without a command none can be unset."""
    text = await place.text(BASH, command="for n in {1..3500}; do export V$n=x; done")
    assert "[not kept for later calls, because there are 500 exported variables already: V" in text
    assert len(place.env) == 500
    text = await place.text(BASH, command="export ONE_MORE=x")
    assert "because there are 500 exported variables already: ONE_MORE]" in text
    kept = sorted(place.env)[:2]
    assert await place.text(BASH, command=f"unset {kept[0]}; export {kept[1]}=new")
    assert (place.env[kept[0]], place.env[kept[1]]) == (None, "new")
    assert "[exported for later calls: ONE_MORE]" in await place.text(BASH, command="export ONE_MORE=x")


async def test_a_name_that_is_too_long_is_not_kept(place):
    text = await place.text(BASH, command="n=$(head -c 40000 /dev/zero | tr '\\0' x); export $n=1 FINE=1")
    assert list(place.env) == ["FINE"] and "too long or no text" in text


@pytest.mark.parametrize("command", ["exec true", "kill -9 $$", "trap : EXIT"])
async def test_a_line_that_ends_without_its_report_changes_no_state_and_says_so(place, tmp_path, command):
    text = await place.text(BASH, command=f"export A=1; cd /usr; {command}")
    assert text.endswith(
        f"\n[it is unknown where this ended: the working directory is still {tmp_path}, and exports are as before]"
    )
    assert (place.env, place.cwd) == ({}, str(tmp_path))


async def test_a_terminated_line_changes_no_state_and_says_so_if_it_contains_cd(place, tmp_path):
    message = (
        f"\n[it is unknown where this ended: the working directory is still {tmp_path}, and exports are as before]"
    )
    assert (await place.text(BASH, command="cd /usr; sleep 30", timeout=1)).endswith(message)
    assert message not in await place.text(BASH, command="sleep 30", timeout=1)


async def test_a_folder_removed_by_the_line_is_not_entered_and_that_is_reported(place, tmp_path):
    text = await place.text(BASH, command="mkdir z; cd z; export A=1; rmdir ../z")
    assert f"\n[the folder it ended in is gone: the working directory is still {tmp_path}]" in text
    assert (place.env, place.cwd) == ({"A": "1", "OLDPWD": str(tmp_path)}, str(tmp_path))


async def test_a_call_uses_the_variables_of_its_context(place):
    before = place.context()
    await place.call(BASH, command="export A=new")
    output = await BASH.run(BASH.params("echo [$A]"), before)
    assert text_of(output.parts) == "[]\n[exit code 0]"


# ------------------------------------------------------------------ files seen


async def test_files_printed_by_a_line_with_known_effects_count_as_seen(place, tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    await place.call(BASH, command="cat a; head -1 b missing; ls folder; wc -c c >/dev/null")
    known = {f"{tmp_path}/{name}": sha256(name.encode()).hexdigest() for name in ("a", "b")}
    assert place.seen == known, "what a command only counts is not seen"


@pytest.mark.parametrize(
    ("command", "is_seen"),
    [("sed -n 2,3p f", True), ("wc f", False), ("grep -c two f", False), ("cat f | wc -c", False), ("cat f f", True)],
)
async def test_a_file_counts_as_seen_if_lines_of_it_were_printed(place, tmp_path, command, is_seen):
    (tmp_path / "f").write_text("one\ntwo\nthree\n")
    await place.call(BASH, command=command)
    assert (list(place.seen) == [f"{tmp_path}/f"]) is is_seen


@pytest.mark.parametrize("command", ["cat a; ./unknown", "python3 -c \"print(open('a').read())\"", "ls"])
async def test_files_of_other_lines_do_not_count_as_seen(place, tmp_path, command):
    (tmp_path / "a").write_text("a")
    await place.call(BASH, command=command)
    assert place.seen == {}


async def test_files_of_a_line_that_timed_out_do_not_count_as_seen(place, tmp_path):
    (tmp_path / "a").write_text("a")
    os.mkfifo(tmp_path / "fifo")
    assert "[timed out after 1 s" in await place.text(BASH, command="cat a fifo", timeout=1)
    assert place.seen == {}


# ------------------------------------------------------------------ jobs


class FakeJobs:
    """A fake of the jobs of a session, which stores its processes."""

    def __init__(self) -> None:
        self.processes = {}
        self.asked = 0

    def times_asked(self):
        return self.asked

    def add(self, process, command, call_id, ran_s=0.0):
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


async def test_a_job_runs_in_the_background_and_can_be_read_and_ended(place):
    place.jobs = FakeJobs()
    outputs = [await place.call(BASH, command="echo up; exec sleep 300", run_in_background=True)]
    outputs.append(await place.call(BashOutput(), job_id="job-1"))
    outputs.append(await place.call(BashKill(), job_id=" job-1 "))
    started, looked, killed = [text_of(output.parts) for output in outputs]
    assert started == (
        "up\n[in the background as job-1; bash_output shows what it prints, bash_kill ends it, and you are told when "
        "it ends. A cd or export in it does not stay]"
    )
    assert looked == "(no new output)\n[job-1 is running, for 2 s so far]"
    assert not outputs[-1].has_failed_part, "what was asked for is no failure"
    assert killed == "(no new output)\n[job-1 has ended by SIGTERM after 2.5 s]"


async def test_a_job_whose_network_is_its_own_says_that_its_servers_are_out_of_reach(place):
    place.jobs = FakeJobs()
    bash = Bash(sandbox=lambda: Sandbox("bubblewrap"))
    text = await place.text(bash, command="exec sleep 300", run_in_background=True)
    await place.jobs.end("job-1")
    assert text.endswith(
        "A cd or export in it does not stay. Other commands can't connect to it: start server and client in one "
        "command]"
    )


@pytest.mark.parametrize(("line", "message"), [("no-such-command", "[exit code 127]"), ("sleep 300 &", "without &]")])
async def test_a_job_that_ends_at_once_is_reported_with_the_call(place, line, message):
    place.jobs = FakeJobs()
    text = await place.text(BASH, command=line, run_in_background=True)
    assert message in text
    assert "[it ended at once, so there is no job]" in text
    assert place.jobs.processes == {}


async def test_a_command_that_takes_too_long_becomes_a_job(place):
    place.jobs = FakeJobs()
    bash = Bash(patience_s=1)
    outputs = [await place.call(bash, command="echo begun; export A=1; sleep 1.3; echo done; cd /usr")]
    shown = "".join(place.progress)
    outputs.append(await place.call(BashOutput(), job_id="job-1", wait=20))
    assert "".join(place.progress) == shown == "begun\n"
    moved, ended = [text_of(output.parts) for output in outputs]
    assert moved.startswith("begun\n[still running after 1 s, in the background as job-1; bash_output shows")
    assert ended == "done\n[job-1 has ended with exit code 0 after 2.5 s]"
    assert (place.env, place.jobs.processes["job-1"].result().exit_code) == ({}, 0)


async def test_a_command_that_the_user_moves_becomes_a_job_also_if_it_has_a_timeout(place):
    class Asked(FakeJobs):
        def times_asked(self):  # the user presses the key while the command runs
            self.asked += 1
            return self.asked

    place.jobs = Asked()
    text = await place.text(BASH, command="echo begun; exec sleep 300", timeout=100)
    await place.jobs.end("job-1")
    assert text.startswith("begun\n[the user moved it: it goes on in the background as job-1; bash_output shows")


async def test_a_command_with_a_timeout_ends_after_it_instead_of_becoming_a_job(place):
    place.jobs = FakeJobs()
    assert "[timed out after 1 s" in await place.text(BASH, command="sleep 300", timeout=1)
    assert place.jobs.processes == {}
    place.jobs = None
    assert "[timed out after 1 s" in await place.text(Bash(patience_s=1), command="sleep 300")


async def test_a_timeout_for_a_job_is_reported_as_ignored(place):
    place.jobs = FakeJobs()
    output = await place.call(BASH, command="exec sleep 300", run_in_background=True, timeout=1)
    await place.call(BashKill(), job_id="job-1")
    assert "[without the timeout, which jobs don't have, in the background as job-1; " in text_of(output.parts)


async def test_a_refused_job_does_not_keep_running(place):
    class RefusingJobs(FakeJobs):
        def add(self, process, command, call_id, ran_s=0.0):
            self.processes["refused"] = process
            raise ToolError("no more jobs")

    place.jobs = RefusingJobs()
    with pytest.raises(ToolError, match="no more jobs"):
        await place.call(BASH, command="sleep 300", run_in_background=True)


async def test_without_jobs_background_calls_are_refused(place):
    with pytest.raises(ToolError, match="nothing can go on in the background"):
        await place.call(BASH, command="sleep 300", run_in_background=True)
    for tool, arguments in ((BashOutput(), {"job_id": "job-1"}), (BashKill(), {"job_id": "job-1"})):
        with pytest.raises(ToolError, match="there are no jobs"):
            await place.call(tool, **arguments)


async def test_a_negative_wait_is_refused(place):
    place.jobs = FakeJobs()
    with pytest.raises(ToolError, match="wait is in seconds"):
        await place.call(BashOutput(), job_id="job-1", wait=-1)


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
def test_output_is_shown_as_a_screen_would_show_it(data, shown):
    assert clean(data) == (f"[binary output, {len(data):,} bytes]" if shown is None else shown)


@given(st.binary(max_size=500))
def test_any_output_becomes_plain_text(data):
    text = clean(data)
    text.encode()
    assert not any(ord(char) < 32 and char not in "\t\n" for char in text)
    assert not any(127 <= ord(char) < 160 for char in text)


@given(st.lists(st.integers(0, 9_000), max_size=20), st.integers(2_000, 30_000))
def test_shortened_lines_keep_their_count_and_state_what_is_missing(lengths, most):
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
def test_unusual_long_outputs_are_cleaned_quickly(data):
    with cpu_limit(2):
        clean(data)
