"""Paths that the user's rules deny are covered in the sandbox, so no program can bypass the rules."""

import os
import re
import unicodedata

import msgspec
import pytest
from bwrap import needs_bwrap
from sandboxed_session import sandboxed_session

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Allow, Ask, Grant, Policy, Request, Sandbox, decide
from bradawl.safety.permissions.path_globs import Bases
from bradawl.safety.permissions.rule_syntax import parse_rule
from bradawl.sandbox.mounts.rule_mounts import ProgramView

pytestmark = needs_bwrap
KEY = "very-secret"
_NAME = "geh\u00e4use mit leer"


def deny(made, *texts: str, **more) -> None:
    """Apply deny rules to everything that `made` runs from now on."""
    bases = Bases(str(made.root / ".bradawl"), str(made.home), str(made.root))
    rules = tuple(rule for text in texts for rule in parse_rule(text, "deny", "test", bases))
    made.grant = Grant(**{"writable": made.layout.roots, "rules": rules, **more})


def ask(made, line: str, *texts: str, mode="auto") -> None:
    """Give `made` the grant that this line gets under these ask rules in this mode."""
    bases = Bases(str(made.root / ".bradawl"), str(made.home), str(made.root))
    rules = tuple(rule for text in texts for rule in parse_rule(text, "ask", "test", bases))
    policy = Policy(mode, rules=rules, roots=made.layout.roots, sandbox=Sandbox("bubblewrap"))
    writes = (str(made.root / "guard/a"),) if line == "rm guard/a" else ()
    effects = Effects(commands=(("bash",),), writes=writes, seal="sealed")
    decision = decide(policy, Request("bash", "", effects))
    assert isinstance(decision, Ask if writes and mode == "auto" else Allow)
    made.grant = msgspec.structs.replace(decision.grant, command_hash="")


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


READERS = [
    "cat secrets/k",
    "cat s[e]crets/k {secrets,x}/k secre*/k $PWD/secrets/k",
    "python3 -c 'import pathlib; print(pathlib.Path(\"secrets/k\").read_text())'",
    "tar c . | cat",
    "cp -r . /tmp/all; cp -r secrets other; cp secrets/* .; cat /tmp/all/secrets/k other/k k",
    "ln secrets/k plain; ln -s secrets/k link; cat plain link",
    "mv secrets s2; cat s2/k secrets/k",
    "mv secrets/k plain; cat plain",
    "find . -type f -exec cat {} +",
    "cd secrets && cat k",
    "cat < secrets/k; exec 3<secrets/k; cat <&3",
    "git add -A -f; git diff --cached; git stash -u; git stash show -p --include-untracked",
    "grep -r '' . --include=*; rg -uuu .",
    "mkdir m; mount --bind secrets m; cat m/k; unshare -rm sh -c 'umount secrets; cat secrets/k'",
    "chmod -R 777 secrets; cat secrets/k",
    "rm -rf secrets; cat secrets/k; rsync -a secrets/ r/; cat r/k",
    "dd if=secrets/k; xxd secrets/k; base64 -w0 secrets/k | base64 -d",
    "cat /proc/self/cwd/secrets/k /proc/self/root$PWD/secrets/k; exec 5<.; cat /proc/self/fd/5/secrets/k",
    "cat ../ws/secrets/k ./secrets/./k secrets/../secrets/k",
]


@pytest.mark.parametrize("line", READERS)
@pytest.mark.parametrize("rule", ["Read(secrets/**)", "Read(./secrets)", "Read(secrets/*)", "Read(**/k)", "Read(k)"])
def test_files_denied_to_read_can_not_be_read(made, line, rule):
    made.git_init()
    made.write("secrets/k", KEY)
    made.write("a.py", "print(1)")
    deny(made, rule)
    assert KEY not in made.out(line)
    assert KEY not in made.out("find . /tmp -name 'k' -exec cat {} + ; cat */k k */*/k; grep -rs very /tmp")
    assert [path.read_text() for path in made.root.rglob("k") if path.is_file() and path.stat().st_size] == [KEY]


@pytest.mark.parametrize(
    "line",
    [
        "mv app app2; cat app2/secrets/k",
        "mkdir d; mv app d/app; cat d/app/secrets/k",
        'python3 -c \'import os; os.rename("app", "b")\'; cat b/secrets/k',
        "touch -d 2001-01-01 app .; mv app/secrets app/s; touch -d 2001-01-01 app .; cat app/s/k",
        "ln -s app/secrets s; rm app; mv s app; cat app/k s/k",
    ],
)
@pytest.mark.parametrize("rule", ["Read(app/secrets/**)", "Read(app/*/k)", "Read(app/**/k)", "Read(**/secrets/k)"])
def test_a_parent_folder_of_a_denied_file_can_not_be_moved(made, line, rule):
    made.write("app/secrets/k", KEY)
    deny(made, rule)
    assert KEY not in made.out(line)
    assert KEY not in made.out("find . -type f -exec cat {} +")


@pytest.mark.parametrize(
    "line",
    [
        "echo x >> migrations/1.sql",
        'python3 -c \'open("migrations/1.sql", "a").write("x")\'',
        "sed -i s/one/two/ migrations/1.sql",
        "rm -rf migrations",
        "mv migrations m2; echo x >> m2/1.sql",
        "ln migrations/1.sql plain && echo x >> plain",
        "ln -s migrations/1.sql plain; echo x >> plain",
        "tar c a.py | tar x -C migrations; cp a.py migrations/1.sql; cp -r . migrations/x",
        "touch migrations/new.sql; mkdir migrations/d",
        "git rm -rqf migrations; git checkout -q -- . ; git clean -fdxq; git stash -uq",
        "find migrations -delete; find . -name 1.sql -exec truncate -s0 {} +",
        "chmod -R 777 migrations",
        "truncate -s0 migrations/1.sql; dd if=/dev/null of=migrations/1.sql; install a.py migrations/1.sql",
        "rm -rf * ; mkdir -p migrations; echo x > migrations/1.sql",
    ],
)
@pytest.mark.parametrize("rule", ["Edit(migrations/**)", "Edit(migrations)", "Edit(**/*.sql)"])
def test_files_denied_to_write_are_unchanged(made, line, rule):
    made.git_init()
    file = made.write("migrations/1.sql", "one")
    made.write("a.py", "print(1)")
    deny(made, rule)
    before = file.stat()
    made.run(line)
    after = file.stat()
    assert file.read_text() == "one"
    assert (after.st_mode, after.st_mtime_ns, after.st_ino) == (before.st_mode, before.st_mtime_ns, before.st_ino)
    new = [path for path in made.root.rglob("*.sql") if path.is_file() and path.read_text() != "one"]
    assert not [path for path in new if rule == "Edit(**/*.sql)" or "migrations" in path.parts]


@pytest.mark.parametrize(
    ("rule", "line", "name"),
    [
        ("Edit(migrations/**)", "mkdir migrations; echo x > migrations/new.sql", "migrations"),
        ("Edit(a/b/**)", "mkdir -p a/b; echo x > a/b/c", "a/b"),
        ("Edit(*.sql)", "mkdir -p d/e; echo x > d/e/new.sql", "d/e/new.sql"),
        ("Edit(src/**/generated/**)", "mkdir -p src/x/generated; echo x > src/x/generated/y", "src/x/generated"),
        ("Edit(migrations/**)", "mkdir MIGRATIONS; echo x > MIGRATIONS/new.sql", "MIGRATIONS"),
        ("Edit(migrations/**)", "mkdir m; echo x > m/y; ln -s m migrations", "migrations"),
        ("Edit(new.txt)", "echo x > new.txt", "new.txt"),
    ],
)
def test_new_files_that_a_rule_denies_are_moved_away_and_reported(made, rule, line, name):
    deny(made, rule)
    result = made.run(line)
    assert not os.path.lexists(made.root / name)
    assert any(path.startswith(str(made.root / name)) for path in result.restored), result
    assert "x" in made.out("echo x > other.txt; cat other.txt")


def test_a_link_to_a_file_denied_to_write_is_restored(made):
    (made.root / "db").mkdir()
    (made.root / "migrations").symlink_to("db")
    file = made.write("db/1.sql", "one")
    deny(made, "Edit(migrations/**)")
    made.run("rm migrations; mkdir migrations; echo x > migrations/2.sql; echo x >> db/1.sql")
    assert (made.root / "migrations").is_symlink()
    assert file.read_text() == "one"
    assert not (made.root / "migrations/2.sql").exists()


@pytest.mark.parametrize(
    "rule",
    [
        "Read(./secrets)",
        "Read(secrets/)",
        "Read(x/../secrets/**)",
        "Read(SECRETS/**)",
        "Read(secrets/**/k)",
        "Read(s*ts/**)",
        "Read(s[e]crets/**)",
        "Read(~/../ws/secrets/**)",
        "Read(link/**)",
    ],
)
def test_every_spelling_of_a_path_in_a_rule_is_covered(made, rule):
    made.write("secrets/k", KEY)
    (made.root / "link").symlink_to("secrets")
    deny(made, rule)
    assert KEY not in made.out("cat secrets/k link/k")


def test_a_rule_with_an_absolute_path_is_covered(made):
    made.write("secrets/k", KEY)
    deny(made, f"Read(/{made.root}/secrets/**)")
    assert KEY not in made.out("cat secrets/k")


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("other", ["NFC", "NFD"])
def test_names_are_matched_in_any_case_and_unicode_form(made, form, other):
    name = unicodedata.normalize(form, _NAME)
    made.write(f"{name}/k", KEY)
    deny(made, f"Read({unicodedata.normalize(other, _NAME)}/**)")
    assert KEY not in made.out("cat */k; tar c .")


def test_files_outside_the_workspace_are_hidden_too(made):
    (made.home / "notes").mkdir()
    (made.home / "notes/n").write_text(KEY)
    deny(made, "Read(~/notes/**)", f"Read(/{made.outside}/file)")
    assert KEY not in made.out(f"cat {made.home}/notes/n; ls {made.home}/notes")
    assert "outside" not in made.out(f"cat {made.outside}/file").replace(str(made.outside), "")


def test_a_new_file_is_hidden_from_the_next_command_on(made):
    deny(made, "Read(**/*.pem)", "Read(secrets/**)")
    assert "1" in made.out("echo 1")
    made.write("deep/down/x.pem", KEY)
    made.write("secrets/k", KEY)
    assert KEY not in made.out("cat deep/down/x.pem secrets/k")


def test_a_root_inside_another_is_covered_in_both(tmp_path):
    with sandboxed_session(tmp_path) as first:
        roots = (str(first.root), str(first.place))
    with sandboxed_session(tmp_path, roots=roots) as made:
        made.write("secrets/k", KEY)
        deny(made, "Read(secrets/**)", "Edit(keep/**)")
        made.write("keep/a", "one")
        assert KEY not in made.out(f"cat secrets/k; cat {made.place}/ws/secrets/k; mv {made.place}/ws {made.place}/w2")
        made.run("echo two > keep/a; rm -rf ../ws/keep; mv keep k2")
        assert (made.root / "keep/a").read_text() == "one"


def test_denied_files_are_hidden_without_write_access_too(made):
    made.write("secrets/k", KEY)
    made.write("app/secrets/k", KEY)
    deny(made, "Read(secrets/**)", "Read(app/secrets/**)", "Edit(a/**)", writable=())
    assert KEY not in made.out("cat secrets/k app/secrets/k; echo x > app/y; echo x > y")
    assert not (made.root / "app/y").exists()
    assert not (made.root / "y").exists()


def test_rules_do_not_uncover_protected_files(made):
    made.write(".vscode/sub/k", KEY)
    deny(made, "Read(.vscode/sub/k)", "Edit(x/**)")
    out = made.out("cat .vscode/sub/k; echo x > .vscode/sub/new; echo x > .vscode/tasks.json")
    assert KEY not in out
    assert names(made.root / ".vscode/sub") == ["k"]


def test_git_does_not_report_a_hidden_tracked_file_as_deleted(made):
    made.git_init()
    made.write("secrets/k", KEY)
    made.bare("git add -A; git commit -qm x")
    deny(made, "Read(secrets/**)")
    made.run("git add -A; git commit -qam y; git commit -qm z --allow-empty")
    assert made.bare("git show --stat HEAD; git ls-tree -r HEAD --name-only").count("secrets/k") == 1
    assert made.bare("git show HEAD:secrets/k") == KEY


def test_ordinary_work_beside_covers(made):
    made.git_init()
    made.write("secrets/k", KEY)
    made.write("migrations/1.sql", "one")
    made.write("src/a.py", "print(1)")
    deny(made, "Read(secrets/**)", "Edit(migrations/**)", "Read(**/*.pem)", "Edit(**/*.lock)", "Edit(gone/**)")
    line = (
        "git add src && git commit -qm x && mv src src2 && python3 src2/a.py && mkdir -p b/c && touch b/c/d && rm -r b"
    )
    result = made.run(line)
    assert (result.exit_code, result.stdout, result.restored) == (0, b"1\n", ())
    assert names(made.root) == [".git", "migrations", "secrets", "src2"]


def test_a_path_that_can_not_be_covered_prevents_every_command(made, monkeypatch):
    for number in range(201):
        made.write(f"{number}.pem", KEY)
    deny(made, "Read(**/*.pem)")
    with pytest.raises(ToolError, match=r"Read\(\*\*/\*\.pem\)"):
        made.run("true")


def test_a_rule_that_hides_the_workspace_is_an_error(made):
    deny(made, "Read(**)")
    with pytest.raises(ToolError, match="permission rule"):
        made.run("true")


@pytest.mark.parametrize("place", ["usr", "usr/bin", "bin", "bin/bash", "usr/lib", "lib", "etc"])
@pytest.mark.parametrize("rest", ["", "/**"])
def test_a_rule_that_hides_system_libraries_is_named_in_the_error(made, place, rest):
    rule = f"Read(//{place}{rest})"
    deny(made, "Read(//opt/**)", rule)
    with pytest.raises(ToolError, match=re.escape(f"permission rule {rule} refuses to read /")):
        made.run("true")


@pytest.mark.parametrize("rule", ["Read(//**)", "Read(//)", "Read(//*)", "Read(//**/k)", "Edit(//**/k)"])
def test_a_rule_with_a_pattern_from_the_root_is_covered(made, rule):
    made.write("k", KEY)
    deny(made, rule)
    with pytest.raises(ToolError, match=re.escape(rule)):
        made.run("true")


@pytest.mark.parametrize("rule", ["//**", "//", "//*", "{above}", "{above}/**", "{above}/*", "{above}/../**"])
def test_a_rule_against_writing_above_the_workspace_covers_all_of_it(made, rule):
    made.write("a", "one")
    deny(made, f"Edit({rule.format(above='/' + str(made.root.parent))})")
    assert made.run("echo x > a; echo x > b; mkdir c; cat a").stdout == b"one"
    assert names(made.root) == ["a"]


@pytest.mark.parametrize("rule", ["//etc/ssl", "//etc/ssl/**", "//home/**", "//opt/**", "//run/**", "//dev/null"])
def test_hiding_rarely_needed_system_files_is_permitted(made, rule):
    deny(made, f"Read({rule})")
    assert made.run("echo ran > /dev/null && echo ran").stdout == b"ran\n"


def test_a_rule_can_make_the_workspace_read_only(made):
    made.write("a", "one")
    deny(made, "Edit(**)")
    assert made.run("echo x > a; echo x > b; mkdir c; cat a").stdout == b"one"
    assert names(made.root) == ["a"]


@pytest.mark.parametrize(
    "line", ["rm -rf guard", "find . -name a -delete", "python3 -c \"open('guard/a', 'w')\"", "mv guard g"]
)
def test_paths_of_ask_rules_are_covered_for_commands_that_were_not_asked_about(made, line):
    made.write("guard/a", KEY)
    made.write("keys/k", "hidden")
    ask(made, line, "Edit(guard/**)", "Read(keys/**)")
    assert "hidden" not in made.out(f"{line}; cat keys/k; cp -r keys k2; cat k2/k")
    assert (made.root / "guard/a").read_text() == KEY


def test_paths_that_were_asked_about_are_not_covered(made):
    made.write("guard/a", KEY)
    made.write("keys/k", "hidden")
    ask(made, "rm guard/a", "Edit(guard/**)", "Read(keys/**)")
    assert "hidden" not in made.out("rm guard/a; cat keys/k")
    assert not (made.root / "guard/a").exists()


def test_in_bypass_mode_ask_rules_cover_nothing(made):
    made.write("keys/k", "hidden")
    ask(made, "cat keys/k", "Read(keys/**)", mode="bypass")
    assert "hidden" in made.out("cat keys/k")


def test_without_rules_there_is_no_search(made, monkeypatch):
    def search(*arguments: object) -> None:
        raise AssertionError(arguments)

    with monkeypatch.context() as patched:
        for name in ("scandir", "listdir", "open", "lstat", "stat"):
            patched.setattr(os, name, search)
        assert made.backend._rule_mounts.mounts(ProgramView((), "/")) == ()


def test_many_new_files_that_a_rule_refuses_leave_the_users_files_beside_them(made):
    made.write("src/mine", "mine")
    deny(made, "Edit(src/*.gen)")
    ended = made.run("cd src; for i in $(seq 40); do echo x > $i.gen; done")
    assert len(ended.restored) == 40
    assert [path.name for path in (made.root / "src").iterdir()] == ["mine"]
