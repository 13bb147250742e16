"""The symbols of the screen and of the progress, with and without Unicode."""

import msgspec


class Symbols(msgspec.Struct, frozen=True):
    """One symbol for each purpose. Each is one cell wide, except `ellipsis` and `minus` of the ASCII set."""

    prompt: str = "❯"
    answer: str = "●"
    thought: str = "∴"
    ok: str = "✓"
    error: str = "✗"
    refused: str = "⊘"
    stopped: str = "■"
    running: str = "›"
    note: str = "↳"
    notice: str = "!"
    job: str = "»"
    retry: str = "↻"
    compacted: str = "≡"
    pending: str = "☐"
    in_progress: str = "◐"
    completed: str = "☑"
    bullets: tuple[str, ...] = ("•", "◦", "▪")
    bar: str = "│"
    rule: str = "─"
    crossing: str = "┼"
    dot: str = "·"
    minus: str = "−"
    ellipsis: str = "…"

    def of_call(self, state: str) -> str:
        """The symbol of a call that runs, or that ended with this outcome."""
        known = {
            "running": self.running,
            "ok": self.ok,
            "part failed": self.notice,
            "error": self.error,
            "refused": self.refused,
        }
        return known.get(state, self.stopped)

    def of_todo(self, status: str) -> str:
        """The symbol of a todo with this status."""
        return {"completed": self.completed, "in_progress": self.in_progress}.get(status, self.pending)


UNICODE = Symbols()
ASCII = Symbols(
    prompt=">",
    answer="*",
    thought="~",
    ok="+",
    error="x",
    refused="/",
    stopped="#",
    running=">",
    note="`",
    notice="!",
    job="&",
    retry="@",
    compacted="=",
    pending="[ ]",
    in_progress="[>]",
    completed="[x]",
    bullets=("-", "*", "+"),
    bar="|",
    rule="-",
    crossing="+",
    dot="-",
    minus="-",
    ellipsis="...",
)


def symbols_for(encoding: str | None) -> Symbols:
    """The symbols that a stream with this encoding can carry; None is a stream of text."""
    return UNICODE if encoding is None or encoding.lower().startswith("utf") else ASCII
