"""Durations in few characters."""


def duration_text(seconds: float, *, grows: bool = False) -> str:
    """`0.1s`, `12s`, `2m 05s`, `1h 03m`. Of one that `grows` only whole seconds that are over: `0s`, `12s`."""
    if seconds < 9.95 and not grows:
        return f"{max(0.0, seconds):.1f}s"
    whole = max(0, int(seconds) if grows else round(seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}m {rest:02}s" if minutes < 60 else f"{minutes // 60}h {minutes % 60:02}m"
