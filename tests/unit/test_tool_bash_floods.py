"""The tool `bash` with huge outputs: the kept part is exact, and the event loop is not blocked."""

import asyncio
from pathlib import Path

from bradawl.core.messages import text_of
from bradawl.tools.bash import Bash

BASH = Bash()


async def test_the_event_loop_runs_while_a_command_prints_a_gigabyte(place):
    iterations = 0
    call = asyncio.ensure_future(place.call(BASH, command="yes | head -c 1000000000"))
    while not call.done():
        iterations += 1
        await asyncio.sleep(0.01)
    Path((await call).full_file).unlink()
    assert iterations > 10  # in the second or more that this takes


async def test_one_line_of_a_hundred_million_characters_is_cut_and_counted(place):
    output = await place.call(BASH, command="head -c 100000000 /dev/zero | tr '\\0' x; echo; echo last")
    text = text_of(output.parts)
    assert len(text) < 40_000
    assert "the output has 100,000,006 bytes" in text
    assert "last" in text and "[exit code 0]" in text
    assert Path(output.full_file).stat().st_size == 100_000_000


async def test_a_million_lines_show_their_ends_and_the_rest_is_in_a_file(place):
    output = await place.call(BASH, command="seq 1000000")
    text = text_of(output.parts)
    assert len(text) < 40_000
    assert text.startswith("1\n2\n3\n")
    assert "\n999999\n1000000\n" in text
    assert Path(output.full_file).read_bytes() == b"".join(b"%d\n" % number for number in range(1, 1_000_001))
