"""Which settings, hooks and lists of borrowed objects of a new repository make git run nothing."""

import os
import random
import subprocess
from pathlib import Path

import pytest

from bradawl.safety.git.config_file import Entry as Setting
from bradawl.safety.git.config_file import parse
from bradawl.safety.git.settings_without_programs import has_no_programs, runs_nothing, without_programs
from bradawl.safety.git.template_hooks import TemplateHooks
from bradawl.sandbox.restore.new_repositories import NewRepositoryFiles
from bradawl.sandbox.restore.snapshot import Entry, take_snapshot

RUN = (
    *("alias.<name>.command", "browser.<tool>.cmd", "browser.<tool>.path", "bundle.<id>.uri"),
    *("core.alternateRefsCommand", "core.askPass", "core.gitProxy", "core.hooksPath", "core.sshCommand"),
    *("core.worktree", "credential.<url>.helper", "credential.helper", "diff.<driver>.command"),
    *("diff.<driver>.textconv", "diff.external", "difftool.<tool>.cmd", "difftool.<tool>.path"),
    *("filter.<driver>.clean", "filter.<driver>.process", "filter.<driver>.smudge", "gc.recentObjectsHook"),
    *("gpg.<format>.program", "gpg.program", "gpg.ssh.defaultKeyCommand", "guitool.<name>.cmd"),
    *("help.browser", "hook.<name>.command", "include.path", "includeIf.<condition>.path"),
    *("init.templateDir", "instaweb.httpd", "interactive.diffFilter", "man.<tool>.cmd"),
    *("merge.<driver>.driver", "mergetool.<tool>.cmd", "pager.<cmd>", "remote.<name>.receivepack"),
    *("remote.<name>.uploadpack", "remote.<name>.vcs", "sendemail.smtpServer", "sequence.editor"),
    *("tar.<format>.command", "trailer.<alias>.cmd", "trailer.<alias>.command"),
    *("uploadpack.packObjectsHook", "url.<base>.insteadOf", "web.browser"),
)
"""Settings that name a program, or files from which git takes settings or hooks, by git's documentation."""


@pytest.mark.parametrize("name", RUN)
@pytest.mark.parametrize("value", ["./evil", "!./evil", "../evil", "evil -x", "ext::./evil"])
def test_no_setting_that_names_a_program_counts_as_harmless(name: str, value: str) -> None:
    section, _, rest = name.partition(".")
    one, _, key = rest.rpartition(".")
    for middle in (one.replace("<", "").replace(">", ""), "main", "a.b") if one else ("",):
        full = f"{section.lower()}.{middle}{'.' if one else ''}{key.lower()}"
        assert not runs_nothing(Setting(full, value))


def test_every_setting_that_git_documents_is_judged_by_its_name_and_unknown_ones_run_something() -> None:
    listed = subprocess.run(["git", "help", "--config"], capture_output=True, text=True, check=True).stdout.split("\n")
    words = ("cmd", "command", "hook", "program", "helper", "proxy", "path", "browser", "driver", "textconv", "askpass")
    for name in (
        each.strip().lower()
        for each in listed
        if "." in each and " " not in each.strip() and not each.startswith(("advice.", "core.quotePath"))
    ):
        key = name.rpartition(".")[2]
        if key.endswith(words) and key not in ("cachetextconv", "threadhook"):
            assert not runs_nothing(Setting(name.replace("<", "").replace(">", ""), "./evil")), name
    for name in (
        "core.new",
        "new.key",
        "branch.x.new",
        "remote.x.new",
        "gc.x.new",
        "core.x.bare",
        "core..bare",
        "a.b.c",
    ):
        assert not runs_nothing(Setting(name, "1"))


@pytest.mark.parametrize(
    "form", ["%n", "%b", "%B", "%N", "%x0a", "%w(1)%s", "%ad", "%(trailers)", "%+s", "%", "a\nexec x"]
)
def test_a_format_that_adds_steps_to_a_rebase_is_not_harmless(form: str) -> None:
    assert not runs_nothing(Setting("rebase.instructionformat", f"%s [%an %ar]{form}"))


def test_a_format_for_the_lines_of_a_rebase_is_harmless_if_it_makes_one_line() -> None:
    assert runs_nothing(Setting("rebase.instructionformat", "(%h %as) [%an <%ae>] %s %d 100%%"))


@pytest.mark.parametrize(
    ("alias", "is_harmless"),
    [
        *(("checkout -f", False), ("switch --discard-changes", False), ("switch --force", False), ("branch -D", False)),
        *(("checkout -qf", False), ("branch --delete", False), ("diff --output", False), ("log -p --output", False)),
        *(("checkout -b", True), ("diff -C -M", True), ("commit --amend", True), ("branch -a", True), ("log -p", True)),
        *(("switch -c", True), ("diff --stat", True), ("status -sb", True), ("log --oneline --graph --decorate", True)),
    ],
)
def test_an_alias_that_discards_work_or_writes_a_file_is_not_harmless(alias: str, is_harmless: bool) -> None:
    assert runs_nothing(Setting("alias.st", alias)) is is_harmless


def test_references_may_not_be_stored_elsewhere() -> None:
    assert runs_nothing(Setting("extensions.refstorage", "reftable"))
    assert not runs_nothing(Setting("extensions.refstorage", "files:///home/me/other/.git"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[core]\n\tbare = false\n\tfsmonitor = x\n\teditor = vim\n", "[core]\n\tbare = false\n\teditor = vim\n"),
        ("[core] fsmonitor = x # y\n\tbare = false\n", "[core] \n\tbare = false\n"),
        ("[core] bare = false\n[core] hooksPath = x\n", "[core] bare = false\n[core] \n"),
        ("[core]\n\tpager = a \\\n b \\\n c\n# kept\n\tbare\n", "[core]\n# kept\n\tbare\n"),
        ('[alias]\n\tx = "!a # \\" \\\n b" ; y\n\tst = status\n', "[alias]\n\tst = status\n"),
        ('[remote "a]b"]\n\turl = ext::x\n\turl = y\n', '[remote "a]b"]\n\turl = y\n'),
        ("[Include]path=x\n", "[Include]\n"),
        ("[core]\n\tbare = false\n", "[core]\n\tbare = false\n"),
        ("", None),
        ("[core]\n\tfsmonitor = x", None),
        ("[core]\r\n\tfsmonitor = x\r\n", None),
        ("\ufeff[core]\n\tfsmonitor = x\n", None),
        ("[core\n\tfsmonitor = x\n", None),
        ("fsmonitor = x\n", None),
        ('[core]\n\tbare = "false\n\tfsmonitor = x\n', None),
    ],
)
def test_settings_that_run_something_are_removed_and_the_rest_stays_byte_for_byte(
    text: str, expected: str | None
) -> None:
    assert without_programs(text) == expected
    assert expected is None or has_no_programs(expected)


def test_a_large_file_is_cleaned_in_linear_time() -> None:
    text = "".join(f"[core]\n\tfsmonitor = x{number}\n\tbare = false\n" for number in range(20_000))
    assert without_programs(text) == "[core]\n\tbare = false\n" * 20_000


PIECES = (
    *("[core]", '[remote "o"]', "[Core]", "[include]", "[alias]", '[a "b\\"c"]', "[core", "]", '[core "x"]', "[x.y]"),
    *("fsmonitor", "url", "path", "bare", "editor", "st", " = ", "=", "ext::x", "vim", "!x", "true", "status", '"'),
    *("\\\n", "\\", "\n", "\n", "\n\t", " ", "\t", "# c", "; c", "\\n", "\\q", "é", "\udcff", "'"),
)


def listed_by_git(path: Path) -> list[tuple[bytes, bytes | None]] | None:
    done = subprocess.run(
        ["git", "config", "--no-includes", "-z", "-l", "-f", str(path)],
        capture_output=True,
        env={"PATH": os.environ["PATH"]},
        check=False,
    )
    if done.returncode:
        return None
    pairs = (each.partition(b"\n") for each in done.stdout.split(b"\0")[:-1])
    return [(name, value if equals else None) for name, equals, value in pairs]


def test_git_reads_from_a_changed_file_what_it_read_before_except_for_programs(tmp_path: Path) -> None:
    choose = random.Random(20)  # noqa: S311 - a repeatable choice
    file = tmp_path / "config"
    changed = 0
    for _ in range(1_500):
        body = "".join(choose.choice(PIECES) for _ in range(choose.randrange(3, 22)))
        text = choose.choice(("[core]\n\t", '[remote "o"]\n\t', "")) + body + choose.choice(("\n", "\n", ""))
        after = without_programs(text)
        if after is None:
            continue
        changed += after != text
        file.write_bytes(os.fsencode(text))
        before = listed_by_git(file)
        assert before is not None, text
        kept = [
            each for each in before if runs_nothing(Setting(os.fsdecode(each[0]), each[1] and os.fsdecode(each[1])))
        ]
        file.write_bytes(os.fsencode(after))
        assert listed_by_git(file) == kept, text
        assert has_no_programs(after)
        assert parse(after) is not None
    assert changed > 20


def entry_of(path: Path) -> Entry:
    return take_snapshot([(str(path.parent), path.name)], {})[str(path)]


def made_repository(place: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(place)], check=True, env={"PATH": os.environ["PATH"], "HOME": "/"})
    return place / ".git"


@pytest.mark.parametrize(
    ("content", "stays"),
    [
        ("{ws}/first/.git/objects\n", True),
        ("../../../first/.git/objects\n", True),
        ("{ws}/first/.git/objects\n{beside}/.git/objects\n", True),
        ("{ws}/first/.git/objects\n{home}/.ssh\n", False),
        ("{home}/.ssh/.git/objects\n", False),
        ("{beside}/.git\n", False),
        ("{ws}/missing\n", False),
        ("{ws}/pipe\n", False),
        ('"{ws}/first/.git/objects"\n', False),
        ("# {ws}\n", False),
        ("\n", False),
        ("{ws}/first/.git/objects\n\n/\n", False),
    ],
)
def test_borrowed_objects_stay_in_reach_of_programs(tmp_path: Path, content: str, stays: bool) -> None:
    tmp_path = Path(os.path.realpath(tmp_path))
    ws, home, beside = tmp_path / "ws", tmp_path / "home", tmp_path / "beside"
    for place in (ws / "first", ws / "new", beside, home / ".ssh"):
        made_repository(place)
    os.mkfifo(ws / "pipe")
    file = ws / "new/.git/objects/info/alternates"
    file.write_text(content.format(ws=ws, home=home, beside=beside))
    judged = NewRepositoryFiles((str(ws),), str(home))
    assert judged.is_harmless(str(file), entry_of(file), {}) is stays
    known = entry_of(ws / "new/.git/HEAD")
    assert not judged.is_harmless(str(file), entry_of(file), {str(ws / "new/.git/config"): known})


def test_a_commondir_is_harmless_only_in_the_data_of_a_linked_working_tree(tmp_path: Path) -> None:
    judged = NewRepositoryFiles((str(tmp_path),), "")
    for place, stays in ((".git/worktrees/w", True), (".git", False), ("bare.git", False)):
        file = tmp_path / place / "commondir"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("../..\n")
        assert judged.is_harmless(str(file), entry_of(file), {}) is stays
        assert not judged.is_harmless_in_data(str(file), str(file.parent), entry_of(file))


@pytest.mark.parametrize("setting", ["~/template", "{home}/template"])
def test_hooks_of_the_template_are_known_as_they_were_before_programs(tmp_path: Path, setting: str) -> None:
    home = tmp_path / "home"
    (home / "template/hooks").mkdir(parents=True)
    (home / ".gitconfig").write_text(f"[init]\n\ttemplateDir = {setting.format(home=home)}\n")
    (home / "template/hooks/pre-commit").write_text("mine")
    (home / "template/hooks/linked").symlink_to("pre-commit")
    os.mkfifo(home / "template/hooks/pipe")
    hooks = TemplateHooks((), str(home))
    assert not hooks.is_hook_of_git("pre-commit", b"mine")
    hooks.read()
    (home / "template/hooks/pre-commit").write_text("changed")
    (home / "template/hooks/pre-push").write_text("changed")
    hooks.read()
    assert hooks.is_hook_of_git("pre-commit", b"mine")
    for name, content in (("pre-commit", b"changed"), ("pre-push", b"changed"), ("linked", b"mine"), ("pipe", b"")):
        assert not hooks.is_hook_of_git(name, content)
    inside = TemplateHooks((os.path.realpath(home),), str(home))
    inside.read()
    assert not inside.is_hook_of_git("pre-commit", b"mine")


def test_the_template_may_be_named_by_a_file_that_the_users_configuration_includes(tmp_path: Path) -> None:
    (tmp_path / "template/hooks").mkdir(parents=True)
    (tmp_path / "template/hooks/pre-commit").write_text("mine")
    (tmp_path / "more").write_text("[init]\n\ttemplateDir = ~/template\n")
    (tmp_path / ".gitconfig").write_text("[include]\n\tpath = more\n")
    hooks = TemplateHooks((), str(tmp_path))
    hooks.read()
    assert hooks.is_hook_of_git("pre-commit", b"mine")
