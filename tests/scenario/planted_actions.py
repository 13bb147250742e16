"""Steps of a coding session: calls of bradawl's tools with results as these tools word them."""

import math

from planted_code import edit_result, edit_texts, source_file
from planted_log import Call, SessionLog
from planted_programs import Program
from planted_servers import PROGRAMS
from planted_statements import ANALYSIS, TEXT_OF_MODEL, THOUGHTS
from planted_words import Words

from bradawl.core.events import FileSeen
from bradawl.core.messages import Text
from bradawl.shaping.preview import cut_middle

_SHOWN_OF_PROGRAMS = 16_000
_LONGEST = 30_000
_CHARACTERS_PER_TOKEN = 2.6


class Actions:
    """Makes calls with their results, and appends steps to the log of a session.

    Results are as long as is needed for about the wanted tokens in the wanted number of steps.
    """

    def __init__(self, words: Words, log: SessionLog, steps: int, tokens: int) -> None:
        self.words, self.log, self._chance = words, log, words.chance
        self.steps, self._tokens = steps, tokens

    def size(self) -> int:
        """Characters of the next result, so that the session as a whole gets its size."""
        steps, tokens = max(1, self.steps - self.log.steps), self._tokens - self.log.tokens
        mean = max(60.0, tokens / steps * _CHARACTERS_PER_TOKEN)
        return int(min(_LONGEST, max(60.0, self._chance.lognormvariate(math.log(mean) - 0.3, 0.9))))

    def step(self, *calls: Call, text: str | None = None) -> None:
        """A step; without a text it gets an ordinary one."""
        if text is None:
            text = self.words.fill(self.words.one_of(TEXT_OF_MODEL))
            if self._chance.random() < 0.06:
                text = " ".join([self.words.fill(self.words.one_of(ANALYSIS)) for _ in range(5)] + [text])
        thought = self.words.fill(self.words.one_of(THOUGHTS)) if self._chance.random() < 0.25 else ""
        self.log.step(text, *calls, thought=thought)

    def _given(self, path: str) -> str:
        """A path as the model writes it: mostly relative, sometimes absolute."""
        return f"{self.log.project}/{path}" if self._chance.random() < 0.25 else path

    def reading(self, path: str, content: str, **arguments: object) -> Call:
        """A call of `read_file`."""
        seen = FileSeen(f"{self.log.project}/{path}", self.words.hexadecimal(64))
        given = {"file_path": self._given(path), **arguments}
        return Call("read_file", given, (Text(content),), states=(seen,))

    def editing(self, path: str) -> Call:
        """A call that edits a file, or writes it."""
        if self._chance.random() < 0.2:
            content = source_file(self.words, self.size())
            text = f"Wrote {content.count(chr(10))} lines to {path}"
            return Call("write_file", {"file_path": self._given(path), "content": content}, (Text(text),))
        old, new = edit_texts(self.words)
        result = edit_result(self.words, path, old, new)
        if self._chance.random() < 0.15:
            edit = {"file_path": self._given(path), "old_string": old, "new_string": new}
            return Call("multi_edit", {"edits": [edit]}, (Text(result),))
        arguments = {"file_path": self._given(path), "old_string": old, "new_string": new}
        return Call("edit_file", arguments, (Text(result),))

    def lines(self, program: Program, block: str, size: int) -> list[str]:
        """Lines of a program's output with the block somewhere among them."""
        lines: list[str] = []
        length = 0
        while length < size:
            harmless = self._chance.random() < 0.06 and program.decoys
            lines.append(self.words.fill(self.words.one_of(program.decoys if harmless else program.lines)))
            length += len(lines[-1]) + 1
        if block:
            place = self._chance.choice((0.0, 0.5, 1.0)) * 0.75 + self._chance.random() * 0.25
            lines.insert(round(len(lines) * place), block)
        return lines

    def running(self, program: Program, block: str = "", *, fails: bool = False) -> Call:
        """A call of `bash` that runs the program; the block is somewhere in its output."""
        fill = self.words.fill
        command = fill(self.words.one_of(program.commands))
        size = self.size()
        if self._chance.random() < 0.12:
            size *= 3
        lines = self.lines(program, block, size)
        if program.head:
            lines.insert(0, fill(program.head))
        if ending := program.failed if fails else program.passed:
            lines.append(fill(ending))
        body = "\n".join([*(["[stderr]"] if program.fails_on_stderr else []), *lines])
        shown = cut_middle(body, _SHOWN_OF_PROGRAMS - 2_000)
        if block not in shown:
            shown = shown.replace("\n", f"\n{block}\n", 1)
        code = 0 if "|" in command or not fails else program.exit_code
        pipeline = f" (pipeline: {program.exit_code} 0)" if fails and "|" in command else ""
        took = fill(" ({tenth} s)") if self._chance.random() < 0.6 else ""
        parts = (Text(shown or "(no output)"), Text(f"\n[exit code {code}]{pipeline}{took}"))
        return Call("bash", {"command": command}, parts, "error" if code else "ok")

    def program(self) -> Program:
        """One of the programs that the project uses."""
        return PROGRAMS[self.words.one_of(self.words.world.programs)]
