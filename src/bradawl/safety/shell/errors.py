"""The exception that ends the analysis of a shell line."""


class UnsupportedSyntax(Exception):
    """The effects of this text or command can't be determined.

    Callers within `safety.shell` catch it and treat the effects as unknown.
    """
