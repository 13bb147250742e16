"""`shell_effects` determines the reads, writes and session changes of lines of bash."""

from pathlib import Path

import pytest
from shell_workspace import HOME, Judge, cases, within

from bradawl.core.effects import UNKNOWN, Effects, conflict
from bradawl.core.errors import ToolError
from bradawl.safety.shell.allow.analyzer import shell_effects
from bradawl.workspace.files import LocalFiles

# ------------------------------------------------------------------ lines with known effects


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("ls", "."),
        ("ls -la src docs", "src docs"),
        ("ls -R src | head -50", "src"),
        ("cat -- README.md", "README.md"),
        ("cat", ""),
        ("cat - README.md", "README.md"),
        ("head -5 README.md", "README.md"),
        ("head -n5 README.md; tail -n +3 NOTES.md", "README.md NOTES.md"),
        ("head --lines=5 README.md", "README.md"),
        ("cat README.md | tr a-z A-Z | sort | uniq -c | sort -rn", "README.md"),
        ("grep -rn foo", "."),
        ("grep foo", ""),
        ("grep -rn 'foo bar' src", "src"),
        ("grep -e a -e b README.md", "README.md"),
        ("grep -f NOTES.md README.md", "README.md NOTES.md"),
        ("grep --file=NOTES.md README.md", "README.md NOTES.md"),
        ("grep -n TODO -r . --include=*.py || true", "."),
        ("rg -n import", "."),
        ("rg import src", "src"),
        ("rg --files -g '*.py' src", "src"),
        ("find . -name '*.py' -not -path './x/*'", "."),
        ("find -type f", "."),
        ("find src docs -maxdepth 2 -newer README.md", "src docs README.md"),
        ("tree -L 2", "."),
        ("du -sh src", "src"),
        ("diff -u README.md NOTES.md || true", "README.md NOTES.md"),
        ("sed -n 1,10p src/a.py", "src/a.py"),
        ("sed -n '$p' src/a.py", "src/a.py"),
        ("sed -n '/def a/,/return/p' src/a.py", "src/a.py"),
        (r"sed -n '/a\/b/I,+5p' src/a.py", "src/a.py"),
        (r'grep -n "def \|^class$\|a$" src/a.py', "src/a.py"),
        (r'cat "src/a\b.py"', r"src/a\b.py"),
        ("jq '.a | keys' README.md", "README.md"),
        ("xxd -l 16 README.md", "README.md"),
        ("wc -l < README.md", "README.md"),
        ("wc -l src/*.py", "src"),
        ("ls *.md", "."),
        ("cat src/*/b.py", "src"),
        ("echo *", ". ../out src"),
        ("test -f README.md && echo yes", "README.md"),
        ("[ ! -d src ] || [ README.md -nt NOTES.md ]", "src README.md NOTES.md"),
        ("[ 1 -lt 2 ]; [ a != b ]; [ -n '' ]; test", ""),
        ("cat ~/notes '~/notes'", "/home/u/notes ~/notes"),
        ("cat src/../README.md ./NOTES.md", "README.md NOTES.md"),
        ("cat missing 2>/dev/null", "missing"),
        ("ls > /dev/null 2>&1", "."),
        ("pwd; echo hi; printf '%s %d%%\\n' a 1; true; false; whoami; uname -a; date +%F; seq 1 5", ""),
        ("sleep 1", ""),
        ("sleep 0.5s 1m", ""),
        ("LC_ALL=C sort README.md", "README.md"),
        ("ls # all of it\npwd", "."),
        ("ls \\\n  -la", "."),
        ("git --version; python3 --version; node -v", ""),
        ("cat 'é' \"ü\"", "é ü"),
    ],
)
def test_a_line_that_only_reads_declares_what_it_reads(judge: Judge, ws: Path, line: str, reads: str):
    effects = judge(line)
    assert effects.is_read_only, line
    expected = within(ws, reads)
    assert set(effects.reads) == expected


@pytest.mark.parametrize(
    ("line", "writes"),
    [
        ("echo x > out.txt", "out.txt"),
        ("echo x >> src/out.txt", "src/out.txt"),
        ("ls &> log", "log"),
        ("ls missing 2> log", "log"),
        ("> empty", "empty"),
        ("ls | tee log", "log"),
        ("ls | tee -a log other", "log other"),
        ("mkdir new", "new"),
        ("mkdir -p new/a/b", "new"),
        ("mkdir -p src/core/x", "src/core/x"),
        ("touch a b", "a b"),
        ("rm README.md missing", "README.md missing"),
        ("rm -rf build src/core", "build src/core"),
        ("rm src/*.py", "src"),
        ("rm *.md", "."),
        ("rm away", "away ../out"),
        ("rmdir build", "build"),
        ("mv README.md NEW.md", "README.md NEW.md"),
        ("mv README.md NOTES.md build", "README.md NOTES.md build/README.md build/NOTES.md"),
        ("cp README.md COPY.md", "COPY.md"),
        ("cp README.md build/", "build/README.md"),
        ("cp -r src build", "build/src"),
        ("cp -r src copy", "copy"),
        ("cp src/*.py build", "build"),
        ("ln -s src link", "link"),
        ("ln -s ../src/a.py build", "build/a.py"),
        ("ln README.md hard", "README.md hard"),
        ("chmod +x src/a.py", "src/a.py"),
        ("chmod -R 755 src", "src"),
        ("touch away/new", "../out/new"),
        ("echo x > docs/linked", "../out/secret"),
        ("rm -rf build && mkdir -p build/x && touch build/x/y", "build build/x build/x/y"),
        ("rm -rf /", "/"),
        ("rm -rf ../..", "../.."),
        ("echo x >> ~/.bashrc", "/home/u/.bashrc"),
        ("cp README.md .git/hooks/pre-commit", ".git/hooks/pre-commit"),
    ],
)
def test_a_line_that_writes_declares_every_place_it_writes_to(judge: Judge, ws: Path, line: str, writes: str):
    effects = judge(line)
    assert effects.understood, line
    assert not effects.is_read_only
    assert set(effects.writes) == within(ws, writes)


def test_copying_reads_what_it_copies(judge: Judge, ws: Path):
    assert judge("cp README.md away/COPY").reads == (f"{ws}/README.md",)
    assert set(judge("cp src/*.py build").reads) == within(ws, "src")


def test_the_commands_are_listed_without_their_quotes(judge: Judge):
    effects = judge("cat 'a b'\"c\" && LC_ALL=C grep -rn --include='*.py' \"it's\" src | head -5 > log # end")
    assert effects.commands == (
        ("cat", "a bc"),
        ("grep", "-rn", "--include=*.py", "it's", "src"),
        ("head", "-5"),
    )


def test_a_path_that_cannot_be_resolved_makes_the_line_unknown(ws: Path):
    def resolve(path: str, cwd: str) -> str:
        if path.endswith("bad"):
            raise ToolError(f"{path}: no")
        return path

    assert shell_effects("cat good", cwd=str(ws), home="", resolve=resolve).is_read_only
    assert shell_effects("cat good bad", cwd=str(ws), home="", resolve=resolve) == UNKNOWN


def test_without_a_known_home_a_tilde_is_unknown(ws: Path):
    def effects(line: str, home: str) -> Effects:
        return shell_effects(line, cwd=str(ws), home=home, resolve=LocalFiles(HOME).resolve)

    assert [effects("ls ~", home).unknown for home in ("", "relative", "/h*", HOME)] == [True, True, True, False]
    assert effects("cd", "") == UNKNOWN


# ------------------------------------------------------------------ folders, links and patterns


def test_commands_after_cd_may_act_in_both_folders_if_cd_can_fail(judge: Judge, ws: Path):
    assert set(judge("cd src && cat a.py").reads) == within(ws, "src src/a.py")
    assert set(judge("cd src; cat a.py").reads) == within(ws, "src a.py src/a.py")
    assert set(judge("cd src || cat a.py").reads) == within(ws, "src a.py")
    assert set(judge("cd src && cd core; touch x").writes) == within(ws, "x src/x src/core/x")
    assert set(judge("false || cd src && touch x").writes) == within(ws, "x src/x")
    assert judge("cd && ls").reads == (HOME,)


def test_cd_changes_the_session_and_reads_its_target(judge: Judge, ws: Path):
    effects = judge("cd src")
    assert (effects.session, effects.reads, effects.writes, effects.moves) == (("cwd",), (f"{ws}/src",), (), True)


@pytest.mark.parametrize("maker", ["mkdir -p new/deep", "mv src new", "cp -r src new", "rm -r new", "touch new"])
def test_cd_conflicts_with_a_call_that_creates_or_removes_its_target(judge: Judge, maker: str):
    assert conflict(judge(maker), judge("cd new"))
    assert conflict(judge(maker), judge("cd new/deep && ls"))


@pytest.mark.parametrize(
    "line",
    ["cd -", "cd -P src", "cd src docs", "cd s*", "cd src | ls", "ls | cd src", "cd away/..", "cd away && cd .."],
)
def test_a_cd_with_an_uncertain_target_is_unknown(judge: Judge, line: str):
    assert judge(line) == UNKNOWN


def test_too_many_possible_working_directories_are_unknown(judge: Judge):
    assert not judge("cd src; cd core; ls").unknown
    assert judge("cd a; cd b; cd c; ls") == judge("cd src; cd core; cd /usr; ls") == UNKNOWN


def test_reads_and_writes_of_a_link_are_those_of_its_target(judge: Judge, ws: Path):
    assert set(judge("cat docs/linked away/other").reads) == within(ws, "../out/secret ../out/other")
    assert set(judge("touch away/../x").writes) == within(ws, "../x")


def test_a_pattern_reads_its_folder_and_the_targets_of_matching_links(judge: Judge, ws: Path):
    assert set(judge("cat docs/*").reads) == within(ws, "docs ../out/secret")
    assert set(judge("cat docs/x*").reads) == within(ws, "docs")
    assert set(judge("touch docs/*").writes) == within(ws, "docs ../out/secret")
    assert set(judge("rm docs/*").writes) == within(ws, "docs")
    assert judge("cat a*/secret") == UNKNOWN


def test_a_pattern_that_may_expand_to_an_option_is_unknown(judge: Judge, ws: Path):
    assert judge("rm *").understood
    (ws / "-rf").touch()
    assert judge("rm *") == judge("cat *f") == UNKNOWN
    assert judge("cat ./*").understood
    assert judge("touch ./-n && cat *") == UNKNOWN


def test_a_pattern_in_a_folder_of_thousands_is_unknown(judge: Judge, ws: Path):
    for number in range(2_001):
        (ws / "build" / f"f{number}").touch()
    assert judge("cat build/*") == UNKNOWN


LINES_THAT_CREATE_LINKS = cases("""
    ln -s /etc x && cat x/passwd  ln -s /etc x; cat x  mv src y && cat y/a.py  mv src y; ls y/../z
    cp -r src y && cat y/a.py  mv away y && echo > y  rm away && cat away/x  ln -s /etc | cat etc/passwd
    mv src y | ls  ln -s /etc build && cat build/*  mv src y && cd y/core  cd src && mv ../src ../y && cat ../y/a.py
    ln -s /etc X && cat x/passwd  ln -s /etc 'é' && cat 'é/x'  cp -r docs build; cp -r docs build
    cd src/core && mv ../../src ../../y && cat b.py
    ln -s ../out/secret build/a.py && mv -n src/a.py build && cat build/a.py
""")


@pytest.mark.parametrize("line", LINES_THAT_CREATE_LINKS)
def test_paths_through_links_that_the_line_creates_are_unknown(judge: Judge, line: str):
    assert judge(line) == UNKNOWN


def test_links_created_after_a_cd_that_may_fail_are_unknown_too(judge: Judge, ws: Path):
    assert judge(f"cd src; ln -s /etc x; cat {ws}/x/passwd") == UNKNOWN
    assert judge(f"cd src; mkdir x; cat {ws}/x/passwd").understood
    (ws / "../q").symlink_to("out/secret")
    assert judge(f"cd src; mv ../q q; cat {ws}/q") == UNKNOWN


def test_paths_that_a_move_does_not_touch_are_still_known(judge: Judge, ws: Path):
    assert set(judge("mv README.md build && cat NOTES.md").reads) == within(ws, "NOTES.md")
    assert judge("mv src other && ls").understood
    assert set(judge("mv README.md other && cat other").reads) == within(ws, "other")


def test_a_command_of_a_pipeline_may_see_files_that_another_writes(judge: Judge, ws: Path):
    assert judge("cat * | tee log").understood
    assert judge("cat * | tee ./-n") == judge("cat * | touch ./-n") == UNKNOWN
    assert judge("cat build/* | mkdir build") == UNKNOWN


# ------------------------------------------------------------------ variables


def test_exports_change_the_environment_of_the_session(judge: Judge):
    assert judge("export ACME=1 OTHER='a b'").session == ("env",)
    assert judge("unset ACME").session == ("env",)
    assert judge("ACME=1").session == ("env",)
    assert judge("export ACME=1 PATH=/x").session == ("env", "env:PATH")
    assert judge("unset LD_PRELOAD").session == ("env", "env:LD_PRELOAD")
    assert judge("PAGER=x").session == ("env", "env:PAGER")


CHANGES_WHAT_RUNS = cases("""
    export  export A  export -n A=1  export -p  export A+=1  export 'a[0]=1'  export A=*  export A=~/x  unset
    unset -f ls  unset 'a[0]'  unset A=1  export A=1 | ls  A=1 | ls  B=1 export A=1  PATH=. ls  LD_PRELOAD=x ls
    GIT_DIR=x ls  http_proxy=x ls  export PATH=x; ls  PATH=x; ls  IFS=x; echo a  export BASH_ENV=x && echo a
    HOME=/x; cd  CDPATH=/x && cd src  RIPGREP_CONFIG_PATH=x rg y
""")


@pytest.mark.parametrize("line", CHANGES_WHAT_RUNS)
def test_variables_that_change_what_runs_make_the_rest_unknown(judge: Judge, line: str):
    assert judge(line) == UNKNOWN


def test_with_a_changed_path_only_builtins_have_known_effects(judge: Judge):
    changed = {"PATH": "/x", "ACME": "1"}
    assert judge("ls", env=changed) == UNKNOWN
    assert judge("git --version", env={"GIT_DIR": None}) == UNKNOWN
    assert judge("echo a; test -f README.md; pwd; cd src", env=changed).understood
    assert (
        judge("echo a", env={"LD_PRELOAD": "x"}) == judge("echo a", env={"BASH_FUNC_echo%%": "() { ls; }"}) == UNKNOWN
    )
    assert judge("ls", env={"ACME": "1"}).is_read_only


def test_the_previous_directory_does_not_affect_later_commands(judge: Judge):
    assert judge("ls && cd src && ls", env={"OLDPWD": "/x"}).understood
    assert judge("echo a && cd src && ls", env={"OLDPWD": None}).understood


def test_redirects_of_the_line_are_listed_separately(judge: Judge, ws: Path):
    assert judge("echo x > out.txt; touch a 2>> src/err").redirects == (f"{ws}/out.txt", f"{ws}/src/err")
    assert judge("touch a > /dev/null").redirects == ()
