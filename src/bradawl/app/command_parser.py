"""What the parsers of all command lines share. `--help` imports this module, so it must stay cheap."""

from argparse import ArgumentParser, HelpFormatter, RawDescriptionHelpFormatter
from typing import Final, NoReturn, cast

from bradawl.app.settings.table import LISTS, Setting
from bradawl.app.settings.values import SWITCH

_WIDTH: Final = 80
_FOLDERS: Final = ("cwd", "add_dirs", "folder", "force")


class UsageError(Exception):
    """The command line is wrong; the text is for the user."""


class Parser(ArgumentParser):
    """A parser that raises `UsageError`, with the flag that was probably meant."""

    def error(self, message: str) -> NoReturn:
        """Raises `UsageError`."""
        raise UsageError(f"{message}{self._suggestion(message)}; see `{self.prog} --help`")

    def _suggestion(self, message: str) -> str:
        """The flag that was probably meant by the first unknown one."""
        from difflib import get_close_matches

        flags = (word.partition("=")[0].rstrip(":,.)") for word in message.split() if word.startswith("--"))
        known = list(self._option_string_actions)
        unknown = next((flag for flag in flags if flag not in known), "")
        near = get_close_matches(unknown, known, 1, 0.8)
        return f" (did you mean {near[0]}?)" if near else ""


def help_formatter(prog: str) -> RawDescriptionHelpFormatter:
    """A formatter that leaves line ends in descriptions.

    Its width is fixed: argparse makes one for each option, and without a width each queries the terminal.
    """
    return RawDescriptionHelpFormatter(prog, width=_WIDTH)


def wrapping_formatter(prog: str) -> HelpFormatter:
    """A formatter that wraps descriptions."""
    return HelpFormatter(prog, width=_WIDTH)


def add_setting(parser: ArgumentParser, row: Setting, *, help_text: str = "") -> None:
    """Add the flags of a setting, if it has any. The value of a flag that is absent is None."""
    if not row.flags:
        return
    text = help_text or row.flag_help or row.help
    if row.kind is SWITCH:
        action = "store_false" if row.default is True else "store_true"
        parser.add_argument(*row.flags, dest=row.name, action=action, default=None, help=text)
    else:
        action = "append" if row.kind in LISTS else "store"
        parser.add_argument(*row.flags, dest=row.name, action=action, metavar=row.metavar, help=text)


def make_texts(options: dict[str, object]) -> None:
    """Replace lone surrogates, which stand for bytes that are not UTF-8 and can't be encoded later.

    Names of folders keep them: the name without them could be that of another folder.
    """
    options.update((name, _as_text(value)) for name, value in options.items() if name not in _FOLDERS)


def _as_text(value: object) -> object:
    if isinstance(value, list):
        return [_as_text(each) for each in cast("list[object]", value)]
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace") if isinstance(value, str) else value
