"""Converts the output of a program to the text that a terminal would finally show."""

import re

_FEW_STRANGE = 8
_UTF16_LOOKED_AT = 2_000
_ESCAPES = (
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]+[0-~]|[0-Z\\^-~])"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_SIGNALS = {
    **{1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 8: "SIGFPE", 9: "SIGKILL"},
    **{11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ"},
}
"""Those whose numbers are the same on all systems."""
_CONTROLS = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"


def clean(data: bytes) -> str:
    """The output as text, without escapes, overwritten parts and trailing blank lines; for binary data only its
    size.
    """
    wide = _utf16(data)
    text = data.decode("utf-8", "replace") if wide is None else wide
    text = text.replace("\r\n", "\n")
    if "\x1b" in text or "\x9b" in text:
        text = re.sub(_ESCAPES, "", text)
    if "\r" in text or "\b" in text:
        text = "\n".join(_last_state(line) for line in text.split("\n"))
    shown, controls = re.subn(_CONTROLS, "\ufffd", text)
    if wide is None and _is_binary(data, controls, shown.count("\ufffd") - controls):
        return f"[binary output, {len(data):,} bytes]"
    return shown.rstrip("\n")


def _utf16(data: bytes) -> str | None:
    """Decode UTF-16: data with its byte order mark, or with NULs in every other byte and nowhere else."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        codec = "utf-16"
    elif b"\0" in data[:_UTF16_LOOKED_AT]:
        even, odd = data[:_UTF16_LOOKED_AT:2].count(0), data[1:_UTF16_LOOKED_AT:2].count(0)
        half = min(len(data), _UTF16_LOOKED_AT) / 2
        codec = "utf-16-le" if odd > 0.7 * half and not even else "utf-16-be" if even > 0.7 * half and not odd else ""
    else:
        return None
    text = data.decode(codec, "replace") if codec and len(data) > _FEW_STRANGE else ""
    return text if text and text.count("\ufffd") * 20 < len(text) else None


def _is_binary(data: bytes, controls: int, undecodable: int) -> bool:
    """True for many control characters. Any text may have a few, and lists of names that end in NUL one in each
    line.
    """
    undecodable -= data.count(b"\xef\xbf\xbd")
    strange = undecodable + controls
    return strange > _FEW_STRANGE and (undecodable * 10 > len(data) or strange * 3 > len(data))


def _last_state(line: str) -> str:
    """The final state of a line that carriage returns or backspaces overwrite."""
    if "\r" in line:
        line = line.rstrip("\r").rpartition("\r")[2]
    if "\b" not in line:
        return line
    shown: list[str] = []
    for character in line.rstrip("\b"):
        if character != "\b":
            shown.append(character)
        elif shown:
            shown.pop()
    return "".join(shown)


def shorten_lines(text: str, most: int) -> str:
    """The text without the middle of very long lines, so that the other lines are shown too; a mark gives the number of
    characters left out. The fewer long lines there are, the more is kept of each; text that fits stays unchanged.
    """
    if len(text) <= most:
        return text
    lines = text.split("\n")
    longest = max(_LEAST_OF_A_LINE, most // max(1, sum(len(line) > _LEAST_OF_A_LINE for line in lines)))
    return "\n".join(line if len(line) <= longest else _shortened(line, longest) for line in lines)


_LEAST_OF_A_LINE = 2_000


def _shortened(line: str, longest: int) -> str:
    tail = longest // 4
    head = longest - tail
    return f"{line[:head]}[... {len(line) - longest:,} characters of this line cut ...]{line[len(line) - tail :]}"


def signal_name(number: int) -> str:
    """`SIGTERM`; `signal 99` for one without a name."""
    return _SIGNALS.get(number, f"signal {number}")


def ended_how(exit_code: int) -> str:
    """`with exit code 1`, or `by SIGTERM`."""
    return f"with exit code {exit_code}" if exit_code >= 0 else f"by {signal_name(-exit_code)}"


def exit_text(exit_code: int) -> str:
    """`exit code 1`, or `ended by SIGTERM`."""
    return f"exit code {exit_code}" if exit_code >= 0 else f"ended {ended_how(exit_code)}"


def shell_code(exit_code: int) -> int:
    """The exit code as a shell reports it: 128 plus the number of a signal."""
    return exit_code if exit_code >= 0 else 128 - exit_code
