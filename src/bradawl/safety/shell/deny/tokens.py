"""Token patterns of the lenient parser, and the unescaping of backticks and double-quoted text."""

import re

TOKEN = re.compile(
    r"(?P<blank>(?:[ \t\r]|\\\n)+)"
    r"|(?P<text>[^ \t\r\n;&|()<>'\"`$\\]+)"
    r"|(?P<single>'[^']*'?)"
    r'|"(?P<double>[^"\\$`]*)"'
    r'|(?P<quote>")'
    r"|\$'(?P<ansi>(?:[^'\\]|\\.)*)'?"
    r"|\\(?P<escape>.?)"
    r"|\$(?P<name>[A-Za-z_]\w*|[0-9@*#?$!-])|\$\{(?P<braced>[A-Za-z_]\w*)\}"
    r"|(?P<expansion>\$\{)"
    r"|(?P<substitution>\$\(|[<>]\()"
    r"|(?P<tick>`)"
    r"|(?P<redirect><<<|<<-?|&>>?|<>|[<>]&|>>|>\||[<>])"
    r"|(?P<control>&&|\|\||;;&?|;&|\|&|[;&|\n])"
    r"|(?P<open>\()"
    r"|(?P<close>\))"
    r"|(?P<dollar>\$)",
    re.DOTALL,
)
QUOTED = re.compile(
    r"(?P<text>[^\"\\$`}]+)|\\(?P<escape>.?)|\$(?P<name>[A-Za-z_]\w*|[0-9@*#?$!-])|\$\{(?P<braced>[A-Za-z_]\w*)\}"
    r"|(?P<expansion>\$\{)|(?P<substitution>\$\()|(?P<tick>`)|(?P<end>[\"}])|(?P<dollar>\$)",
    re.DOTALL,
)
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[[^\]]*\])?\+?=")
KEY = re.compile(r"\A\[[^\]]*\]=")


def backtick_content(text: str, start: int) -> tuple[str, int]:
    """Return the commands between backticks, and the offset after the closing one; `start` follows the opening one."""
    end = start
    while 0 <= end < len(text) and text[end] != "`":
        end += 2 if text[end] == "\\" else 1
    content = text[start:end].replace("\\`", "`").replace("\\$", "$")
    return content.replace("\\\\", "\\"), end + 1


def unescaped(char: str) -> str:
    """The text of an escaped character in double quotes."""
    if char == "\n":
        return ""
    return char if char in '"\\$`' else "\\" + char
