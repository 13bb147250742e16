"""Durations in few characters."""


def duration_text(seconds: float) -> str:
    """`0.1s`, `12s`, `2m 5s`, `1h 3m`."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}m {rest}s" if minutes < 60 else f"{minutes // 60}h {minutes % 60}m"
