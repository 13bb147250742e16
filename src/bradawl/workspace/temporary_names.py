"""Names of files that are being written."""

_TEMPORARY = (".bradawl-", ".tmp")


def temporary_name(unique: str) -> str:
    """The name under which a file is written before it takes its place; no walk shows it."""
    return unique.join(_TEMPORARY)


def is_temporary(name: str) -> bool:
    """True for names made by `temporary_name`."""
    return name.startswith(_TEMPORARY[0]) and name.endswith(_TEMPORARY[1])
