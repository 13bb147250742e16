"""What the calls of a session changed, and the jobs that run, as a fold over the log."""

from collections.abc import Mapping

import msgspec

from bradawl.core.events import CheckpointTaken, Event, JobEnded, JobStarted, ToolFinished, ToolStarted


class FileChanged(msgspec.Struct, frozen=True):
    """What calls did to a file."""

    was_created: bool
    times: int


class Work(msgspec.Struct):
    """The state of the fold; `take` updates it in place."""

    files_changed: dict[str, FileChanged] = {}
    """By path, the files that calls were to write and did, the last one at the end."""
    unlisted_changes: int = 0
    """Number of calls that changed files which are not in `files_changed`: commands, mostly."""
    running_jobs: dict[str, str] = {}
    """Commands of the background jobs that run, by id."""
    writing: dict[str, Mapping[str, str]] = {}
    """By the ids of started calls, the files that they may write, with their digests; empty for a new one."""
    listed: set[str] = set()
    """Calls whose changes are in `files_changed`, until their checkpoint comes."""

    def take(self, event: Event) -> None:
        """Apply one event."""
        match event:
            case ToolStarted(call_id, before) if before:
                self.writing[call_id] = before
            case ToolFinished(call_id, outcome) if call_id in self.writing:
                self._end_writing(call_id, is_done=outcome == "ok")
            case CheckpointTaken(call_id, checkpoint_ref):
                self.unlisted_changes += bool(checkpoint_ref) and call_id not in self.listed
                self.listed.discard(call_id)
            case JobStarted(job_id, _, command):
                self.running_jobs[job_id] = command
            case JobEnded(job_id):
                self.running_jobs.pop(job_id, None)
            case _:
                pass

    def _end_writing(self, call_id: str, *, is_done: bool) -> None:
        before = self.writing.pop(call_id)
        self.listed.add(call_id)
        for path, sha256 in before.items() if is_done else ():
            known = self.files_changed.pop(path, FileChanged(not sha256, 0))
            self.files_changed[path] = FileChanged(known.was_created, known.times + 1)
