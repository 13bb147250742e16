"""Names of temporary files that writes create beside their target."""

_TEMPORARY = (".bradawl-", ".tmp")


def temporary_name(unique: str) -> str:
    """The name under which a file is written before it replaces its target. Walks skip such names."""
    return unique.join(_TEMPORARY)


def is_temporary(name: str) -> bool:
    """Whether `temporary_name` made this name."""
    return name.startswith(_TEMPORARY[0]) and name.endswith(_TEMPORARY[1])
