"""Exceptions that end the analysis of a shell line; callers within `safety.shell` catch them."""


class UnsupportedSyntax(Exception):
    """The effects of this text or command can't be determined; they count as unknown."""


class ScanBudgetExceeded(Exception):
    """The text exceeds the limits of a scan for dangers."""
