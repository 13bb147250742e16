"""Values of the settings for compaction."""

from bradawl.app.settings.settings import Settings
from bradawl.core.errors import SettingsError
from bradawl.shaping.compaction.limits import CompactionLimits

_TIERS, _WHOLE = 3, 100


def parse_percents(value: object, place: str) -> tuple[int, int, int]:
    """Three percentages that rise: `50,70,90`, or a list of numbers. Raises `SettingsError`."""
    words = value.replace("%", "").split(",") if isinstance(value, str) else value
    numbers = tuple(map(_percent, words)) if isinstance(words, list | tuple) else ()
    if len(numbers) != _TIERS or not 0 < numbers[0] <= numbers[1] <= numbers[2] <= _WHOLE:
        raise SettingsError(f"{place} is three rising percentages from 1 to 100, such as 50,70,90; not {value!r:.60}.")
    return numbers[0], numbers[1], numbers[2]


def _percent(word: object) -> int:
    """A percentage; 0 for anything else."""
    text = str(word).strip()
    return int(text) if not isinstance(word, bool) and text.isascii() and text.isdigit() else 0


def parse_kept_results(value: object, place: str) -> int:
    """A whole number of at least 0. Raises `SettingsError`."""
    try:
        number = int(value) if isinstance(value, int | str) and not isinstance(value, bool) else -1
    except ValueError:
        number = -1
    if number < 0:
        raise SettingsError(f"{place} is a whole number of at least 0, not {value!r:.60}.")
    return number


def compaction_limits(settings: Settings) -> CompactionLimits:
    """When conversations are compacted, according to the settings."""
    snip, summarise, collapse = settings.compact_at
    return CompactionLimits(
        is_on=settings.auto_compact,
        snip=snip / 100,
        summarise=summarise / 100,
        collapse=collapse / 100,
        keep_results=settings.keep_tool_results,
    )
