"""Compares the determined effects of lines with what the real bash does."""

import os
import sys
from pathlib import Path

import pytest
import shell_bash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bradawl.core.effects import Effects
from bradawl.safety.shell.allow.analyzer import cross_checked_line, shell_effects
from bradawl.safety.shell.deny.protected_targets import ProtectedTargets
from bradawl.safety.shell.deny.scanner import scan
from bradawl.workspace.files import LocalFiles

pytestmark = pytest.mark.skipif(not os.access("/bin/bash", os.X_OK), reason="needs /bin/bash")
# Each example starts many programs, so the deep profiles run fewer examples here.
_FEWER_EXAMPLES = settings(
    max_examples=45 + settings().max_examples // 4,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# ------------------------------------------------------------------ commands and arguments

_NAMES = st.sampled_from(
    ["aa", "b-b", "c.c", "x1", "A=b d"] * 3
    + ["aa", "b-b", "c.c", "x1", "if", "time", "!", "[", "A=b", "B=", "./x", "é", "10", "~", "then"]
)
_TEXT = st.sampled_from(
    [
        *(
            "a",
            "b c",
            "",
            "-n",
            "--",
            "-",
            "x=y",
            "a;b",
            "#",
            "é",
            "~",
            "~/x",
            "a~1",
            "HEAD~2",
            "x^",
            "*",
            "?",
            "a*b",
            "]",
        ),
        *(
            "[",
            "!",
            "$",
            "$a",
            "`",
            "\\",
            "\\ ",
            "{a,b}",
            "{a}",
            "(",
            ")",
            "&",
            "|",
            "<",
            ">",
            "2",
            "%",
            "@",
            ":",
            "+,",
        ),
        *(
            "=",
            "==",
            "a=~",
            "a:~/b",
            "\r",
            "\x0b",
            "\x0c",
            "\xa0",
            "\u200b",
            "\t",
            "\n",
            "#x",
            "a#b",
            "\\\n",
            "!a",
            "0x",
        ),
    ]
)
_QUOTED = st.tuples(st.sampled_from(["", "", "", "'", '"']), _TEXT).map(lambda pair: f"{pair[0]}{pair[1]}{pair[0]}")
_PLAIN = st.sampled_from(
    ["a", "-n", "x=y", "'b  c'", '"a;b"', "--a='*'", "é", "''", "a'|'b", "HEAD~1", "'$a`'", '"#"', "a/b", "-", "'\\'"]
)
_WORD = st.one_of(_PLAIN, _PLAIN, _PLAIN, st.lists(_QUOTED, min_size=1, max_size=3).map("".join))
_REDIRECT = st.sampled_from(
    ["> r1", "2>&1", "> /dev/null", "< in"] * 4
    + [
        "> r1",
        ">>r1",
        "2> r2",
        "2>&1",
        ">&2",
        "&> r1",
        "< in",
        "<in",
        "1>r1",
        "12>r1",
        "2>&1x",
        ">| r1",
        "<> r1",
        "<< a",
    ]
    + ["<<< a", ">& r1", "0< in", "3> r1", "> r1 > r2", ">(aa)", "<(aa)", "> r*", ">", "2>", "> /dev/null"]
)
_COMMAND = st.tuples(_NAMES, st.lists(st.one_of(_WORD, _WORD, _WORD, _REDIRECT), max_size=3)).map(
    lambda pair: " ".join((pair[0], *pair[1]))
)
_OPERATOR = st.sampled_from(
    ["; ", "\n", " && ", " || ", " | "] * 6
    + ["; ", ";", "\n", " && ", " || ", " | ", "&&", "|", " & ", ";;", "|&", " &&\n", " |\n\n", "\n\n", " \\\n && "]
    + [" # c\n", "#c\n", " # c \\\n", " ;\n", "; ;", "&&&", "||;", "\n;", "{ ", " }", "(", ")", "! ", "\\\n", " \\\n"]
)


def _with_operators(parts: tuple[list[str], list[str]]) -> str:
    commands, operators = parts
    pairs = zip(commands, [*operators, ""], strict=False)
    return "".join(f"{command}{operator}" for command, operator in pairs)


_LINES = st.tuples(st.lists(_COMMAND, min_size=1, max_size=4), st.lists(_OPERATOR, min_size=4, max_size=4)).map(
    _with_operators
)
_LETTERS = [*" \t\n;|&<>'\"\\$`#~*?[]{}()!=:,.@%+^-/a2bé", "\r", "\xa0", "  ", "&&", "||", "2>&1", "\\\n", "aa "]
_RANDOM_TEXT = st.lists(st.sampled_from(_LETTERS), min_size=1, max_size=14).map("".join)
_INSERTED = st.tuples(_LINES, st.sampled_from(_LETTERS), st.integers(0, 60)).map(
    lambda three: three[0][: three[2]] + three[1] + three[0][three[2] :]
)


SEVERAL_LINES = st.lists(st.one_of(_LINES, _LINES, _INSERTED, _RANDOM_TEXT), min_size=10, max_size=25)


def _is_harmless(text: str, predicted: tuple[tuple[str, ...], ...]) -> bool:
    """Whether the line may run here: no program by its path, no file opened outside the folder."""
    has_redirect = "<" in text or ">" in text
    return not any("/" in argv[0] for argv in predicted) and not (has_redirect and "/" in text.replace("/dev/null", ""))


@_FEWER_EXAMPLES
@given(SEVERAL_LINES)
def test_bash_runs_only_the_predicted_commands_and_arguments(tmp_path: Path, lines: list[str]):
    (tmp_path / "in").touch()
    predicted = {line: cross_checked_line(line, shell_bash.HOME) for line in dict.fromkeys(lines)}
    plain = {line: message.argvs for line, message in predicted.items() if message is not None}
    understood = {line: argvs for line, argvs in plain.items() if _is_harmless(line, argvs)}
    for (line, argvs), real in zip(understood.items(), shell_bash.executed(list(understood), tmp_path), strict=True):
        assert real <= set(argvs), (line, argvs, real)
        # An assignment alone never fails, so commands behind `||` don't run.
        may_hide = "=" in line and ("||" in line or "!" in line)
        if not ("<" in line or ">" in line or may_hide):
            assert real == set(argvs), (line, argvs, real)


# ------------------------------------------------------------------ changes on the disk

_READERS = (
    *(
        "cat",
        "ls",
        "ls -R",
        "ls -la",
        "wc -l",
        "head -n2",
        "tail -1",
        "sort",
        "sort -u",
        "uniq -c",
        "grep -r a",
        "grep a",
    ),
    *("find", "diff", "diff -r --no-dereference", "cmp", "stat", "du -a", "xxd", "od -c", "md5sum", "readlink -f"),
    *(
        "sed -n 1p",
        "test -f",
        "[ -d",
        "echo",
        "printf '%s %s'",
        "cut -c1",
        "tr a",
        "nl",
        "tac",
        "comm",
        "paste",
        "file",
    ),
)
_WRITERS = (
    *(
        "mkdir",
        "mkdir -p",
        "touch",
        "touch -c",
        "rm",
        "rm -f",
        "rm -r",
        "rm -rf",
        "rmdir",
        "mv",
        "mv -f",
        "mv -n",
        "mv -T",
    ),
    *(
        "cp",
        "cp -f",
        "cp -p",
        "cp -T",
        "cp -r",
        "cp -a",
        "cp -rT",
        "cp -u",
        "ln",
        "ln -s",
        "ln -sf",
        "ln -sfn",
        "ln -sT",
    ),
    *("chmod 600", "chmod -R 700", "chmod +x", "tee", "tee -a"),
)
_PATHS = (
    *("a.txt", "b.txt", "d", "d/", "d/x.txt", "d/e", "d/e/z.txt", "d/link", "new", "new/q", "new/", "other", "empty"),
    *(
        "to_file",
        "to_folder",
        "to_folder/x.txt",
        "out_file",
        "out_folder",
        "out_folder/",
        "out_folder/k.txt",
        "dangling",
    ),
    *("out_folder/sub", "../out", "../out/k.txt", "../out/sub", ".", "./a.txt", "d/../a.txt", "to_folder/../a.txt"),
    *("out_folder/../ws/a.txt", "*", "*.txt", "d/*", "*/x.txt", "to*", "out_*", "d/e/*", "new/*", "?.txt", "d/e/*.txt"),
    *("-", "-n", "--", "./-n", "''", "'a.txt'", "a.txt/x", "missing", "/dev/null", "out_folder/link_back"),
)
_STEP = st.one_of(
    st.tuples(st.sampled_from(_READERS), st.lists(st.sampled_from(_PATHS), max_size=2)),
    st.tuples(st.sampled_from(_WRITERS), st.lists(st.sampled_from(_PATHS), min_size=1, max_size=3)),
    st.tuples(st.just("cd"), st.lists(st.sampled_from(_PATHS), min_size=1, max_size=1)),
).map(lambda pair: " ".join((pair[0], *pair[1])) + (" ]" if pair[0].startswith("[") else ""))
_REDIRECTION = st.one_of(
    st.just(""),
    st.just(""),
    st.tuples(st.sampled_from([" > ", " >> ", " < ", " 2> "]), st.sampled_from(_PATHS)).map("".join),
)
_STEPS = st.lists(st.tuples(_STEP, _REDIRECTION).map("".join), min_size=1, max_size=4)
_SCRIPTS = st.tuples(
    _STEPS, st.lists(st.sampled_from(["; ", " && ", " || ", " | ", "\n"]), min_size=4, max_size=4)
).map(_with_operators)


SEVERAL_SCRIPTS = st.lists(_SCRIPTS, min_size=6, max_size=8)


def _plant(top: Path) -> Path:
    """A workspace so deep below `top` that no script can climb out of it, with links of every kind."""
    ws = top.joinpath(*"123456", "ws")
    for folder in (ws / "d" / "e", ws / "empty", ws.parent / "out" / "sub"):
        folder.mkdir(parents=True)
    for name in ("a.txt", "b.txt", "-n", "d/x.txt", "d/e/z.txt", "../out/k.txt", "../out/sub/x.txt"):
        (ws / name).write_text(f"{name} a\n")
        os.utime(ws / name, (1_000_000_000, 1_000_000_000))
    links = {"to_file": "a.txt", "to_folder": "d", "out_file": "../out/k.txt", "out_folder": "../out"}
    links |= {"dangling": "../out/nothing", "d/link": "../../out/k.txt", "../out/link_back": "../ws/b.txt"}
    links |= {"d/e/out": "../../../out"}
    for name, target in links.items():
        (ws / name).symlink_to(target)
    return ws


def _predicted(line: str, ws: Path) -> Effects:
    home = str(ws)
    return shell_effects(line, cwd=str(ws), home=home, resolve=LocalFiles(home).resolve)


@pytest.mark.skipif(sys.platform != "linux", reason="the tables were read from the manuals of GNU programs")
@_FEWER_EXAMPLES
@given(SEVERAL_SCRIPTS)
def test_a_line_with_known_effects_changes_only_what_it_declares(tmp_path_factory, lines: list[str]):
    top = Path(os.path.realpath(tmp_path_factory.mktemp("tree")))
    for number, line in enumerate(dict.fromkeys(lines)):
        ws = _plant(top / str(number))
        effects = _predicted(line, ws)
        if effects.unknown:
            continue
        before = shell_bash.snapshot(top)
        shell_bash.run(line, ws)
        changed = shell_bash.changes(before, shell_bash.snapshot(top))
        assert [path for path in sorted(changed) if not shell_bash.covered(path, effects.writes)] == [], (line, effects)


@pytest.mark.parametrize("line", ["tee -a a.txt < a.txt", "cat a.txt | tee -a a.txt", "tee -a a.txt < a.txt & wait"])
def test_a_line_that_reads_its_own_output_ends_and_changes_one_file(tmp_path: Path, line: str):
    ws = _plant(tmp_path)
    before = shell_bash.snapshot(tmp_path)
    shell_bash.run(line, ws)
    assert shell_bash.changes(before, shell_bash.snapshot(tmp_path)) == {str(ws / "a.txt")}


# ------------------------------------------------------------------ commands found by `scan`

_SIMPLE_COMMAND = st.sampled_from(
    [
        *("aa b", "'aa' \"b  c\"", "b-b \\$x", "c.c 'd;e' f", "aa {a,b}", "aa $'b\\tc'", 'c.c "a\'b"', "x1 # aa"),
        *("v=a", "v+=b", "w=$v", "unset v", "v=c x1 $v", 'aa "$v"', "aa $w-$v", "aa ${v:-d}", "x1 ${w=e} $w"),
    ]
)


def _nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    shapes = [
        *("({})", "{{ {}\n}}", "if {}\nthen aa 1\nelse {}\nfi", "for v in 1 2; do {}\ndone"),
        *("case a in a) {}\n;; esac", "aa $({})", 'aa "b $({}) c"', "aa `x1 b`; {}", "f() {{ {}\n}}; f"),
        *("aa <<E\n$({})\nE\n", "aa <<'E'\n{}\nE\n"),
        *("! {}", "{} | {}", "{} && {}", "{} || {}", "{}\n{}", "until {}\ndo aa\nbreak\ndone", "aa <({})", "v=$({})"),
        *("aa ${{v:-$({})}}", "{} &", "[[ -n a ]] && {}", "select v in a; do {}\ndone", "aa > r1; {}", "A=b {}"),
        *("function g {{ {}\n}}; g", "aa \\\n b; {}", "( {} ) > r1", "{{ {}\n}} | x1"),
    ]
    two = st.tuples(st.sampled_from(shapes), inner, inner)
    return two.map(lambda three: three[0].format(three[1], three[2]))


_NESTED = st.recursive(_SIMPLE_COMMAND, _nested, max_leaves=4)


SEVERAL_NESTED = st.lists(_NESTED, min_size=6, max_size=12)


def _is_found(real: tuple[str, ...], argvs: tuple[tuple[str, ...], ...]) -> bool:
    """Whether `real` is one of the commands; words from a `$` on, and their number, are unknown."""
    for message in argvs:
        known = next((place for place, word in enumerate(message) if "$" in word), None)
        if real == message or (known is not None and real[:known] == message[:known]):
            return True
    return False


@_FEWER_EXAMPLES
@given(SEVERAL_NESTED)
def test_commands_at_any_depth_are_found(tmp_path: Path, lines: list[str]):
    protected = ProtectedTargets(shell_bash.HOME, (str(tmp_path),), LocalFiles(shell_bash.HOME).resolve)
    for line, real in zip(lines, shell_bash.executed(lines, tmp_path), strict=True):
        argvs = scan(line, cwd=str(tmp_path), protected=protected).argvs
        assert [argv for argv in real if not _is_found(argv, argvs)] == [], (line, argvs)
