"""The table of settings in the README, written from the table of settings."""

from bradawl.app.settings.table import Setting, SettingsTable

_HEAD = "| flag | variable | key in a file | in a project's file | |\n|---|---|---|---|---|\n"


def readme_table(table: SettingsTable) -> str:
    """A Markdown table with a row for each setting that a user may give."""
    return _HEAD + "".join(map(_line, (row for row in table.rows.values() if _is_users(row))))


def _is_users(row: Setting) -> bool:
    return bool(row.flags) or row.has_variable or row.is_in_file


def _line(row: Setting) -> str:
    flags = ", ".join(map(_code, row.flags))
    if row.metavar:
        flags += f" {_code(row.metavar)}" if flags else ""
    variable = _code(row.variable) if row.has_variable else ""
    key = _code(row.name) if row.is_in_file else ""
    in_project = "" if row.project_may_set == "no" or not row.is_in_file else row.project_may_set
    says = f"{row.help}; the flag switches this off" if row.flag_help else row.help
    cells = (flags, variable, key, in_project, _escaped(says))
    return f"| {' | '.join(cells)} |\n".replace("|  |", "| |").replace("|  |", "| |")


def _code(text: str) -> str:
    return f"`{_escaped(text)}`"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
