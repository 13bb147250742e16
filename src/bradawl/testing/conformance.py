"""Conformance suites for adapters of the ports, as cases to parametrise a test with.

Each case is an async function that takes a factory of fresh adapters and raises `AssertionError` if the adapter
breaks the port's contract:

    @pytest.mark.parametrize("check", conformance.BLOBS_CASES)
    def test_my_blobs(check):
        asyncio.run(check(MyBlobs))
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping

from bradawl.core.errors import SessionBusy, SessionError, SessionNotFound, ToolError
from bradawl.core.events import PromptSubmitted, SessionOpened
from bradawl.core.http import HttpError, HttpRequest
from bradawl.core.messages import Text
from bradawl.core.permissions import Grant
from bradawl.core.ports import Blobs, Clock, Files, Http, Ids, OpenSession, Processes, SessionLog, SessionStore
from bradawl.core.workspace import Command, CommandResult

MakeFiles = Callable[[], tuple[Files, str]]
"""Makes an adapter; also gives an empty folder to work in, as an absolute path without symlinks."""
MakeProcesses = Callable[[Mapping[str, CommandResult | None]], Processes]
"""Takes the real result of each shell line, for fakes to replay; None for one that runs until it is stopped."""
MakeLog = Callable[[], SessionLog]
MakeBlobs = Callable[[], Blobs]
MakeStore = Callable[[], SessionStore]
MakeHttp = Callable[[], tuple[Http, str]]
"""Makes an adapter; also gives the base URL of a server with `/echo` (200, header `X-Echo: yes`, the request's body),
`/redirect` (302 to `/echo`), `/cut` (promises 100 bytes, breaks off after `begun`), `/silent` (never answers)."""
MakeClock = Callable[[], Clock]
MakeIds = Callable[[], Ids]

_OPENED = SessionOpened(1, "/project", "/project")


def _require(claim: bool, promise: str) -> None:
    if not claim:
        raise AssertionError(promise)


async def _refused(action: Callable[[], object], error: type[Exception], promise: str) -> None:
    try:
        outcome = action()
        if asyncio.iscoroutine(outcome):
            await outcome
    except error as refusal:
        _require(bool(str(refusal)), f"{promise}: the refusal has a text")
        return
    raise AssertionError(promise)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# ------------------------------------------------------------------ Files


async def check_files_gives_back_what_was_put(make: MakeFiles) -> None:
    """A file is read as it was written, missing folders are created, and both calls return its hash."""
    files, root = make()
    path = f"{root}/deep/er/a.bin"
    sha256 = await files.replace(path, b"\x00\xff\r\n", None)
    content = await files.read(path, 100)
    _require((content.path, content.data) == (path, b"\x00\xff\r\n"), "a file reads as it was written")
    _require(sha256 == content.sha256 == _sha256(b"\x00\xff\r\n"), "the sha256 is that of the bytes")


async def check_files_replaces_only_what_was_expected(make: MakeFiles) -> None:
    """Compare and swap: a stale hash changes nothing."""
    files, root = make()
    path = f"{root}/a"
    first = await files.replace(path, b"one", None)
    await _refused(lambda: files.replace(path, b"two", None), ToolError, "None means that no file may be there")
    await _refused(lambda: files.replace(path, b"two", _sha256(b"x")), ToolError, "a stale hash is refused")
    await _refused(lambda: files.replace(f"{root}/b", b"two", first), ToolError, "a missing file has no hash")
    _require((await files.read(path, 100)).data == b"one", "a refused replace changes nothing")
    await files.replace(path, b"two", first)
    _require((await files.read(path, 100)).data == b"two", "the right hash replaces")


async def check_files_lets_one_of_two_writers_win(make: MakeFiles) -> None:
    """Of two replaces that expect the same content one is refused."""
    files, root = make()
    before = await files.replace(f"{root}/a", b"0", None)

    async def attempt(data: bytes) -> bool:
        try:
            await files.replace(f"{root}/a", data, before)
        except ToolError:
            return False
        return True

    async with asyncio.TaskGroup() as group:
        attempts = [group.create_task(attempt(data)) for data in (b"1", b"2")]
    _require(sorted(task.result() for task in attempts) == [False, True], "exactly one of two writers wins")


async def check_files_refuses_what_is_no_file(make: MakeFiles) -> None:
    """Missing files, folders and files over the limit raise."""
    files, root = make()
    await files.replace(f"{root}/folder/a", b"12345", None)
    await _refused(lambda: files.read(f"{root}/missing", 100), ToolError, "a missing file is refused")
    await _refused(lambda: files.read(f"{root}/folder", 100), ToolError, "a folder is not read")
    await _refused(lambda: files.read(f"{root}/folder/a", 4), ToolError, "the limit holds")
    await _refused(lambda: files.replace(f"{root}/folder", b"", None), ToolError, "a folder is not replaced")
    await _refused(lambda: files.replace(f"{root}/folder/a/b", b"", None), ToolError, "a file is not a folder")
    _require((await files.read(f"{root}/folder/a", 5)).data == b"12345", "the limit counts what is allowed")


async def check_files_resolves_paths(make: MakeFiles) -> None:
    """Paths are resolved against the given folder, without dots; impossible names raise."""
    files, root = make()
    _require(files.resolve("a/../b", root) == f"{root}/b", "dots are resolved")
    _require(files.resolve(f"{root}/c", "/elsewhere") == f"{root}/c", "an absolute path stays")
    for wrong in ("", "a\0b"):
        await _refused(lambda wrong=wrong: files.resolve(wrong, root), ToolError, f"{wrong!r} is no path")


async def check_files_lists_what_is_there(make: MakeFiles) -> None:
    """Regular files are listed with sizes; a list cut by the limit is marked."""
    files, root = make()
    for name in ("a", "sub/b", "sub/c"):
        await files.replace(f"{root}/{name}", name.encode(), None)
    found, was_cut = await files.list(root, 10)
    expected = {(f"{root}/{name}", len(name)) for name in ("a", "sub/b", "sub/c")}
    _require({(entry.path, entry.size) for entry in found} == expected and not was_cut, "all files are listed")
    found, was_cut = await files.list(root, 2)
    _require(len(found) == 2 and was_cut, "the limit cuts and says so")
    await _refused(lambda: files.list(f"{root}/missing", 10), ToolError, "a missing folder is refused")


FILES_CASES = (
    check_files_gives_back_what_was_put,
    check_files_replaces_only_what_was_expected,
    check_files_lets_one_of_two_writers_win,
    check_files_refuses_what_is_no_file,
    check_files_resolves_paths,
    check_files_lists_what_is_there,
)

# ------------------------------------------------------------------ Processes


def _shell(line: str, timeout_s: float = 20.0) -> Command:
    return Command((line,), "/", is_shell=True, timeout_s=timeout_s)


async def check_processes_start_nothing_without_a_grant(make: MakeProcesses) -> None:
    """Without a grant no program starts."""
    processes = make({"true": CommandResult(0, b"", b"")})
    await _refused(lambda: processes.run(_shell("true"), None), ToolError, "nothing runs without a grant")


async def check_processes_give_back_how_it_ended(make: MakeProcesses) -> None:
    """stdout and stderr are separate, and the exit code is given."""
    line = "printf out; printf err >&2; exit 3"
    processes = make({line: CommandResult(3, b"out", b"err")})
    result = await processes.run(_shell(line), Grant())
    _require((result.exit_code, result.stdout, result.stderr) == (3, b"out", b"err"), "the result is the program's")


async def check_processes_report_output_at_once(make: MakeProcesses) -> None:
    """Output is passed to the progress callback."""
    processes = make({"printf hello": CommandResult(0, b"hello", b"")})
    shown: list[bytes] = []
    await processes.run(_shell("printf hello"), Grant(), shown.append)
    _require(b"".join(shown) == b"hello", "progress gets all output")


async def check_processes_end_at_their_timeout(make: MakeProcesses) -> None:
    """A timeout is a result without an exit code that keeps what was printed."""
    line = "printf begun; sleep 60"
    processes = make({line: CommandResult(None, b"begun", b"")})
    result = await asyncio.wait_for(processes.run(_shell(line, 0.3), Grant()), 10)
    _require((result.exit_code, result.stdout) == (None, b"begun"), "a timeout keeps the output")


async def check_processes_stop_when_cancelled(make: MakeProcesses) -> None:
    """Cancelling the caller ends the program and re-raises."""
    processes = make({"printf begun; sleep 60": None})
    async with asyncio.TaskGroup() as group:
        running = group.create_task(processes.run(_shell("printf begun; sleep 60"), Grant()))
        await asyncio.wait((running,), timeout=0.05)
        running.cancel()
        await asyncio.wait((running,), timeout=5)
        _require(running.cancelled(), "a cancelled run ends at once, as cancelled")


async def check_a_process_is_waited_for_and_read(make: MakeProcesses) -> None:
    """A started process runs until it ends; its output is returned once."""
    processes = make({"printf hello; exit 3": CommandResult(3, b"hello", b"")})
    line = _shell("printf hello; exit 3")
    await _refused(lambda: processes.start(line, None), ToolError, "nothing starts without a grant")
    process = await processes.start(line, Grant())
    _require(await process.wait(20.0), "a program that ends is waited for")
    _require(process.result().exit_code == 3, "its result is that of the program")
    _require(process.printed() == (b"hello", 0), "its output is available")
    _require(process.printed() == (b"", 0), "and only once")
    _require(await process.wait(0.0), "a process that has ended stays ended")


async def check_a_process_runs_until_it_is_ended(make: MakeProcesses) -> None:
    """`wait` with a timeout does not end it; `end` and a cancelled `wait` do."""
    processes = make({"sleep 60": None})
    process = await processes.start(_shell("sleep 60", 0.01), Grant())
    _require(not await process.wait(0.05), "a wait that times out leaves it running")
    await asyncio.wait_for(process.end(), 5)
    _require(await process.wait(0.0) and process.result().exit_code != 0, "it was ended and did not end by itself")
    await process.end()
    process = await processes.start(_shell("sleep 60"), Grant())
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(process.wait(20.0))
        await asyncio.wait((waiting,), timeout=0.05)
        waiting.cancel()
        await asyncio.wait((waiting,), timeout=5)
    _require(waiting.cancelled(), "a cancelled wait is cancelled")
    _require(await process.wait(0.0) and process.result().exit_code != 0, "and ends the program")


PROCESSES_CASES = (
    check_a_process_is_waited_for_and_read,
    check_a_process_runs_until_it_is_ended,
    check_processes_start_nothing_without_a_grant,
    check_processes_give_back_how_it_ended,
    check_processes_report_output_at_once,
    check_processes_end_at_their_timeout,
    check_processes_stop_when_cancelled,
)

# ------------------------------------------------------------------ SessionLog, Blobs, SessionStore


def _prompt(text: str) -> PromptSubmitted:
    return PromptSubmitted((Text(text),))


async def check_log_numbers_entries_and_links_them(make: MakeLog) -> None:
    """Entries are numbered from 0; each agent continues its own chain, a new agent the main one's."""
    log = make()
    placed = [
        log.append(_OPENED),
        log.append(_prompt("a")),
        log.append(_prompt("b"), "scout"),
        log.append(_prompt("c")),
        log.append(_prompt("d"), "scout"),
    ]
    links = [(entry.seq, entry.parent) for entry in placed]
    _require(links == [(0, None), (1, 0), (2, 1), (3, 1), (4, 2)], "entries are numbered and linked")
    _require([entry.agent for entry in placed] == ["main", "main", "scout", "main", "scout"], "agents are kept")
    _require(placed[1].event == _prompt("a"), "the event is the one given")
    log.close()


async def check_log_confirms_what_is_saved(make: MakeLog) -> None:
    """Every entry can be awaited, also concurrently, and `close` confirms, also when called twice."""
    log = make()
    entries = [log.append(_OPENED), *(log.append(_prompt(str(number))) for number in range(5))]
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        waiting = [group.create_task(log.durable(entry)) for entry in (*entries, entries[0])]
    _require(all(task.result() for task in waiting), "each entry becomes durable")
    _require(log.close() is True and log.close() is True, "close confirms, and may be called twice")


LOG_CASES = (check_log_numbers_entries_and_links_them, check_log_confirms_what_is_saved)


async def check_blobs_give_back_what_was_put(make: MakeBlobs) -> None:
    """Blobs are named by their sha256; equal bytes have one name."""
    blobs = make()
    for data in (b"", b"\x00\xff", b"x" * 100_000):
        ref = await blobs.put(data)
        _require(ref == _sha256(data) == await blobs.put(data), "the name is the sha256 in hex")
        _require(blobs.get(ref) == data, "a blob reads as it was put")


async def check_blobs_refuse_other_names(make: MakeBlobs) -> None:
    """Only known hashes can be read."""
    blobs = make()
    for name in ("0" * 64, "", "../../etc/passwd"):
        await _refused(lambda name=name: blobs.get(name), SessionError, f"{name!r} is no blob")


BLOBS_CASES = (check_blobs_give_back_what_was_put, check_blobs_refuse_other_names)


def _talk(session: OpenSession) -> str:
    if not session.entries:
        session.log.append(_OPENED)
    session.log.append(_prompt("hello"))
    session.log.close()
    return session.log.session_id


async def check_store_opens_what_it_created(make: MakeStore) -> None:
    """Entries and blobs are restored, and the numbering continues."""
    store = make()
    session = store.create()
    _require(session.entries == () and session.notices == (), "a new session is empty")
    written = (session.log.append(_OPENED), session.log.append(_prompt("a")))
    ref = await session.blobs.put(b"kept")
    session.log.close()
    again = store.open(session.log.session_id)
    _require(again.entries == written, "a session opens with the entries it had")
    _require(again.blobs.get(ref) == b"kept", "and with its blobs")
    following = again.log.append(_prompt("b"))
    _require((following.seq, following.parent) == (2, 1), "the numbering continues")
    again.log.close()


async def check_store_lets_one_write(make: MakeStore) -> None:
    """An open session is busy until it is closed."""
    store = make()
    session = store.create()
    session.log.append(_OPENED)
    await _refused(lambda: store.open(session.log.session_id), SessionBusy, "an open session is busy")
    session.log.close()
    store.open(session.log.session_id).log.close()


async def check_store_knows_the_latest(make: MakeStore) -> None:
    """It is the session written last among those with a prompt."""
    store = make()
    _require(store.latest() is None, "no session, no latest")
    unused = store.create()
    unused.log.close()
    _require(store.latest() is None, "a session without a prompt is not the latest")
    first = _talk(store.create())
    second = _talk(store.create())
    _require(store.latest() == second != first, "the latest is the one written last")
    _talk(store.open(first))
    _require(store.latest() == first, "writing again makes it the latest")


async def check_store_refuses_unknown_ids(make: MakeStore) -> None:
    """Unknown names raise `SessionNotFound`, also those with path characters."""
    store = make()
    _talk(store.create())
    for name in ("01NOSUCHSESSION00000000000", "", "../../../etc/passwd"):
        await _refused(lambda name=name: store.open(name), SessionNotFound, f"{name!r} is not a session")


STORE_CASES = (
    check_store_opens_what_it_created,
    check_store_lets_one_write,
    check_store_knows_the_latest,
    check_store_refuses_unknown_ids,
)

# ------------------------------------------------------------------ Http


def _request(url: str, *body: bytes, idle_timeout_s: float = 10.0) -> HttpRequest:
    return HttpRequest("POST", url, (("X-Test", "1"),), body, connect_timeout_s=5.0, idle_timeout_s=idle_timeout_s)


async def _fetch(http: Http, request: HttpRequest) -> tuple[int, Mapping[str, str], bytes]:
    async with http.stream(request) as response:
        return response.status, response.headers, b"".join([chunk async for chunk in response.chunks()])


async def check_http_sends_the_pieces_as_one_body(make: MakeHttp) -> None:
    """The body is the concatenation of its pieces; header names come in lower case."""
    http, base_url = make()
    status, headers, body = await _fetch(http, _request(f"{base_url}/echo", b"one", b"", b"two"))
    _require((status, body) == (200, b"onetwo"), "the pieces are sent as one body")
    _require(headers.get("x-echo") == "yes", "header names are in lower case")
    await http.aclose()
    await http.aclose()


async def check_http_follows_no_redirect_that_changes_the_method(make: MakeHttp) -> None:
    """A 302 is returned as a response: following it would turn a POST into a GET."""
    http, base_url = make()
    status, _, _ = await _fetch(http, _request(f"{base_url}/redirect"))
    _require(status == 302, "a redirect that would change the method is not followed")
    await http.aclose()


async def check_http_says_when_a_body_breaks_off(make: MakeHttp) -> None:
    """Received bytes are returned, then `HttpError(connection)` is raised."""
    http, base_url = make()
    came: list[bytes] = []
    try:
        async with http.stream(_request(f"{base_url}/cut")) as response:
            async for chunk in response.chunks():
                came.append(chunk)
    except HttpError as error:
        _require(
            error.kind == "connection" and b"".join(came) == b"begun", "a cut body is an error after the received bytes"
        )
        return
    finally:
        await http.aclose()
    raise AssertionError("a cut body is an error")


async def check_http_gives_up_on_silence(make: MakeHttp) -> None:
    """Without a byte within the idle timeout `HttpError(timeout)` is raised."""
    http, base_url = make()
    try:
        await asyncio.wait_for(_fetch(http, _request(f"{base_url}/silent", idle_timeout_s=0.1)), 5)
    except HttpError as error:
        _require(error.kind == "timeout", "silence is a timeout")
        return
    finally:
        await http.aclose()
    raise AssertionError("silence is an error")


HTTP_CASES = (
    check_http_sends_the_pieces_as_one_body,
    check_http_follows_no_redirect_that_changes_the_method,
    check_http_says_when_a_body_breaks_off,
    check_http_gives_up_on_silence,
)

# ------------------------------------------------------------------ Clock, Ids


async def check_clock_never_runs_backwards(make: MakeClock) -> None:
    """Monotonic seconds and Unix milliseconds do not decrease."""
    clock = make()
    first, now_ms = clock.monotonic(), clock.now_ms()
    _require(clock.monotonic() >= first, "monotonic never runs backwards")
    _require(now_ms > 1_600_000_000_000, "now is in milliseconds since 1970")


async def check_clock_sleeps_as_long_as_asked(make: MakeClock) -> None:
    """Sleeping advances the monotonic time."""
    clock = make()
    before = clock.monotonic()
    await asyncio.wait_for(clock.sleep(0.01), 5)
    _require(clock.monotonic() - before >= 0.009, "sleep takes its time")
    await clock.sleep(0)


CLOCK_CASES = (check_clock_never_runs_backwards, check_clock_sleeps_as_long_as_asked)


async def check_ids_are_distinct_and_sorted(make: MakeIds) -> None:
    """Ids have 26 letters and digits, and each is greater than the one before."""
    ids = make()
    drawn = [ids.ulid() for _ in range(100)]
    _require(all(len(name) == 26 and name.isalnum() and name.isascii() for name in drawn), "a ulid is 26 characters")
    _require(drawn == sorted(set(drawn)), "each id is greater than the one before")


async def check_ids_draw_within_bounds(make: MakeIds) -> None:
    """Draws are in [0, 1)."""
    ids = make()
    _require(all(0 <= ids.draw() < 1 for _ in range(100)), "draws are in [0, 1)")


IDS_CASES = (check_ids_are_distinct_and_sorted, check_ids_draw_within_bounds)
