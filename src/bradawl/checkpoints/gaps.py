"""What a search could not cover, collected by reason and written as sentences."""

from typing import Final, Literal

from bradawl.checkpoints.coverage import Coverage
from bradawl.safety.name_lists import first_of

Gap = Literal[
    "large",
    "late",
    "lost",
    "unreadable",
    "unsaved",
    "closed",
    "unsteady",
    "heavy",
    "mount",
    "long",
    "limit",
    "unknown",
    "outside",
    "quiet",
    "excluded",
    "not saved",
    "too large",
]
_LIMITS: Final = Coverage()
_SENTENCES: Final[dict[Gap, str]] = {
    "large": "Files over the size limit are not saved: {paths} may have changed.",
    "late": "There was no time to save the new contents of {paths}.",
    "lost": "The earlier contents of {paths} were not saved.",
    "unreadable": "The contents of {paths} can't be read, so they are not saved.",
    "unsaved": "The new contents of {paths} could not be written to the store.",
    "closed": "Folders that can't be opened are not searched: {paths}.",
    "unsteady": "Replaced again and again during the search, so not saved: {paths}.",
    "heavy": "Changes in {paths} are not covered: package managers and build tools fill such folders.",
    "mount": "Other file systems are not covered: {paths} may have changed.",
    "long": "Folders with a path that is too long are not covered: {paths}.",
    "limit": "There are too many files and folders; not covered: {paths} and what is in them.",
    "unknown": "Not searched before the call, so earlier contents are unknown: {paths}.",
    "outside": "Outside the workspace, so not covered: {paths}.",
    "excluded": "Not covered in git data: {paths}.",
    "too large": f"Files over {_LIMITS.file_bytes // 1_000_000} MB are not saved: {{paths}}.",
    "not saved": "The contents of {paths} are not saved: they can't be read, or the workspace holds more than"
    f" {_LIMITS.baseline_bytes // 1_000_000} MB.",
    "quiet": "Caches are not covered: {paths}.",
}
_SHOWN: Final = 5
_PART: Final = 150
"""Characters that are shown of the beginning and of the end of a long path."""


class Gaps:
    """Paths that a search could not cover, by reason."""

    def __init__(self, roots: tuple[bytes, ...]) -> None:
        self._roots = roots
        self._paths: dict[Gap, dict[bytes, None]] = {}
        self._sentences: list[str] = []

    def add(self, gap: Gap, path: bytes) -> None:
        """Add a path; again has no effect."""
        self._paths.setdefault(gap, {})[path] = None

    def add_sentence(self, sentence: str) -> None:
        """Add a sentence that names no path of the workspace."""
        self._sentences.append(sentence)

    def sentences(self) -> tuple[str, ...]:
        """One sentence for each reason; long lists are cut with their count."""
        ordered = sorted(self._paths.items(), key=lambda found: list(_SENTENCES).index(found[0]))
        return (*(_SENTENCES[gap].format(paths=self._shown(sorted(paths))) for gap, paths in ordered), *self._sentences)

    def _shown(self, paths: list[bytes]) -> str:
        return first_of(paths, _SHOWN, self._relative)

    def _relative(self, path: bytes) -> str:
        """A path as text, relative to the only root."""
        if len(self._roots) == 1 and path.startswith(self._roots[0] + b"/"):
            path = path[len(self._roots[0]) + 1 :]
        return shortened(path.decode(errors="backslashreplace"))


def shortened(path: str) -> str:
    """A path for a sentence: of a very long one the beginning and the end."""
    return path if len(path) <= 2 * _PART else f"{path[:_PART]}...{path[-_PART:]}"
