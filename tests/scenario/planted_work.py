"""Ordinary steps of a coding session, in which nothing is planted unless a block is given."""

import struct

from planted_actions import Actions
from planted_code import edit_texts, source_file
from planted_log import Call
from planted_measures import measuring
from planted_servers import PROGRAMS
from planted_statements import ANALYSIS, PLAN_STEPS

from bradawl.core.events import Cwd, JobEnded, JobStarted, Todo, TodosSet
from bradawl.core.messages import Image, Text


class OrdinaryWork:
    """Reads, searches, edits, runs programs, and makes small mistakes."""

    def __init__(self, actions: Actions) -> None:
        self._actions, self._words, self._log = actions, actions.words, actions.log
        self._chance = actions.words.chance
        self._jobs = 0
        self._todos: list[str] = []
        self._noise = (
            (self.read, 14),
            (self._read_several, 5),
            (self._read_part, 8),
            (self.read_log, 4),
            (self.grep, 12),
            (self._glob, 4),
            (self._run_passing, 16),
            (self._run_failing, 2),
            (self._edit_something, 14),
            (self._show_changes, 5),
            (self._fail_harmlessly, 6),
            (self._write_todos, 5),
            (self._run_job, 2),
            (self._delegate, 2),
            (self._fetch_page, 3),
            (self._look_at_image, 1),
            (self._change_folder, 1),
        )

    def do_something(self) -> None:
        """One step, or a few, of ordinary work."""
        actions, weights = zip(*self._noise, strict=True)
        self._chance.choices(actions, weights)[0]()

    def read(self) -> None:
        """Read a source file."""
        path = self._words.fill(self._words.one_of(("{path}", "{path}", "{test}")))
        self._actions.step(self._actions.reading(path, source_file(self._words, self._actions.size())))
        if self._chance.random() < 0.04:
            earlier = self._words.fill("the earlier answer with lines 1-{n3} still holds")
            self._actions.step(self._actions.reading(path, f"({path} has not changed: {earlier})"))

    def _read_several(self) -> None:
        """Read two or three files in one reply."""
        size = self._actions.size() // 2
        paths = [self._words.fill("{path}") for _ in range(self._chance.randint(2, 3))]
        self._actions.step(*(self._actions.reading(path, source_file(self._words, size)) for path in paths))

    def _read_part(self) -> None:
        """Read some lines of a file."""
        content = source_file(self._words, self._actions.size()).splitlines()
        first = self._chance.randint(2, 600)
        last = first + len(content) - 1
        total = last + self._chance.randint(10, 900)
        shown = "\n".join([f"[lines {first}-{last} of {total}]", *content])
        self._actions.step(self._actions.reading(self._words.fill("{path}"), shown, offset=first, limit=len(content)))

    def read_log(self, block: str = "") -> None:
        """Read a log file; the block is somewhere in it."""
        program = PROGRAMS[self._words.one_of(("journal", "ci", "python", "docker"))]
        path = self._words.fill(self._words.one_of(("logs/{kebab}.log", "var/{subject}/{snake}.out", "ci/{kebab}.txt")))
        text = "\n".join(self._actions.lines(program, block, self._actions.size()))
        self._actions.step(self._actions.reading(path, text))

    def grep(self, block: str = "") -> None:
        """Search; the block is one of the matches."""
        words, size = self._words, self._actions.size() // 2
        if not block and self._chance.random() < 0.15:
            text = (
                words.fill("No matches for {snake}: searched {n3} files in the working directory ") + self._log.project
            )
        else:
            found: list[str] = []
            while sum(map(len, found)) < size or not found:
                found.append(words.fill("{path}"))
                lines = ("{n3}:     {snake} = {function}({camel})", "{n3}: {snake}.{verb}({n2})  // {subject}")
                found += [words.fill(words.one_of(lines)) for _ in range(self._chance.randint(1, 5))]
            if block:
                found.insert(self._chance.randint(1, len(found)), f"{words.fill('{n3}')}: {block}")
            text = "\n".join(found)
        self._actions.step(Call("grep", {"pattern": words.fill("{snake}|{camel}"), "path": "."}, (Text(text),)))

    def _glob(self) -> None:
        """List files by name."""
        count = min(100, self._actions.size() // 50 + 1)
        text = "\n".join(
            self._words.fill(self._words.one_of(("{path}", "{test}", "{otherpath}"))) for _ in range(count)
        )
        self._actions.step(Call("glob", {"pattern": f"**/*{self._words.world.extension}"}, (Text(text),)))

    def _edit_something(self) -> None:
        """Edit a file that is not mentioned again."""
        self._actions.step(
            self._actions.editing(self._words.fill(self._words.one_of(("{path}", "{path}", "{test}", "{otherpath}"))))
        )

    def _run_passing(self) -> None:
        """Run a program in which nothing is wrong."""
        measures = measuring(self._words.world.name)
        program = self._words.one_of(measures) if self._chance.random() < 0.2 else self._actions.program()
        self._actions.step(self._actions.running(program))

    def _run_failing(self) -> None:
        """Run a program that fails for a reason that does not matter later."""
        program = self._actions.program()
        block, _ = self._words.planted(self._words.one_of(program.failures))
        self._actions.step(self._actions.running(program, block, fails=True))

    def _show_changes(self) -> None:
        """Show what git knows."""
        self._actions.step(self._actions.running(PROGRAMS["git"]))

    def _fail_harmlessly(self) -> None:
        """A call with a mistake, and the corrected one."""
        words = self._words
        path = words.fill("{path}")
        old, new = edit_texts(words)
        missing = f"old_string was not found in {path}; nothing was changed."
        mistakes = (
            Call(
                "edit_file",
                {"file_path": path, "old_string": old, "new_string": new},
                (Text(f"{missing} The closest place is line 7:\n7\t{new}"),),
                "error",
            ),
            Call(
                "read_file",
                {"file_path": path},
                (Text(f"{path} does not exist; in that folder: {words.file_name()}, {words.file_name()}"),),
                "error",
            ),
            Call(
                "bash",
                {"command": words.fill("{kebab} --version")},
                (Text(words.fill("[stderr]\nbash: {kebab}: command not found")), Text("\n[exit code 127]")),
                "error",
            ),
            Call(
                "grep",
                {"pattern": "(" + words.fill("{snake}")},
                (Text("pattern can't be understood: unclosed group"),),
                "error",
            ),
        )
        self._actions.step(words.one_of(mistakes))
        self._actions.step(self._actions.reading(path, source_file(words, self._actions.size())))

    def _write_todos(self) -> None:
        """Write the to-do list, or mark one as done."""
        if not self._todos or self._chance.random() < 0.2:
            count = self._chance.randint(3, 6)
            self._todos = [self._words.fill(step) for step in self._chance.sample(PLAN_STEPS, count)]
        done = self._chance.randint(0, len(self._todos) - 1)
        todos = tuple(
            Todo(content, "completed" if place < done else "in_progress" if place == done else "pending")
            for place, content in enumerate(self._todos)
        )
        text = f"{done} of {len(todos)} todos completed; in progress: {self._todos[done]}"
        arguments = {"todos": [{"content": todo.content, "status": todo.status} for todo in todos]}
        self._actions.step(Call("todo_write", arguments, (Text(text),), states=(TodosSet(todos),)))

    def _run_job(self) -> None:
        """Start a server in the background, work on, and look at what it printed."""
        self._jobs += 1
        job_id, command = f"job_{self._jobs}", self._words.fill("make serve-{subject} PORT={port}")
        running = (
            f"[in the background as {job_id}; bash_output shows what it prints, bash_kill ends it, and you are told "
            "when it ends. A cd or export in it does not stay]"
        )
        shown = (Text("(no output yet)"), Text(f"\n{running}"))
        self._actions.step(Call("bash", {"command": command, "run_in_background": True}, shown))
        self._log.events.append(JobStarted(job_id, self._log.last_call, command))
        self._run_passing()
        lines = "\n".join(self._actions.lines(PROGRAMS["http"], "", self._actions.size()))
        self._actions.step(Call("bash_output", {"job_id": job_id}, (Text(lines), Text(f"\n[{job_id} is running]"))))
        self._log.events.append(JobEnded(job_id, 0))
        self._log.note(f"{job_id} ({command}) has ended with exit code 0 after 214 s. It printed nothing new.", "job")

    def _delegate(self) -> None:
        """Give a search to a sub-agent."""
        prompt = self._words.fill("Find every place that constructs {pascal} and report how {camel} is set there.")
        report = "\n".join(
            self._words.fill(f"- {self._words.one_of(ANALYSIS)}") for _ in range(self._chance.randint(2, 8))
        )
        self._actions.step(Call("agent", {"prompt": prompt, "kind": "explore"}, (Text(report),)))

    def _fetch_page(self) -> None:
        """Read a page of documentation."""
        fill = self._words.fill
        text, size = fill("# {library} {version}\n\n"), self._actions.size()
        while len(text) < size:
            text += fill("## {method}\n\n" + self._words.one_of(ANALYSIS) + "\n\n- `{camel}`: defaults to {n3}\n\n")
        url = fill("https://docs.example.org/{library}/{kebab}.html")
        self._actions.step(Call("web_fetch", {"url": url}, (Text(text),)))

    def _look_at_image(self) -> None:
        """Read a screenshot."""
        width, height = self._chance.choice(((640, 400), (900, 600), (1280, 720)))
        data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIB", 13, b"IHDR", width, height, 8) + self._chance.randbytes(40)
        path = self._words.fill("screenshots/{kebab}.png")
        line = f"{path} is a PNG image, {len(data):,} bytes, {width}x{height} pixels:"
        self._actions.step(Call("read_file", {"file_path": path}, (Text(line), Image("image/png", data))))

    def _change_folder(self) -> None:
        """Go into a folder of the project."""
        folder = self._words.fill("{path}").rpartition("/")[0]
        where = f"{self._log.project}/{folder}"
        shown = (Text(where), Text(f"\n[exit code 0]\n[working directory is now {where}]"))
        self._actions.step(Call("bash", {"command": f"cd {folder} && pwd"}, shown, states=(Cwd(where),)))
        back = (Text("(no output)"), Text(f"\n[exit code 0]\n[working directory is now {self._log.project}]"))
        self._actions.step(Call("bash", {"command": "cd -"}, back, states=(Cwd(self._log.project),)))
