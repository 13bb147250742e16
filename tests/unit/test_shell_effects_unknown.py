"""Lines of bash whose effects `shell_effects` reports as unknown."""

import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shell_workspace import HOME, Judge, cases

from bradawl.core.effects import UNKNOWN, Effects
from bradawl.safety.shell.allow.analyzer import cross_checked_line, shell_effects
from bradawl.safety.shell.allow.cross_check import confirm
from bradawl.safety.shell.allow.parser import Token, parse_line
from bradawl.safety.shell.allow.program_lookup import ProgramLookup
from bradawl.safety.shell.errors import UnsupportedSyntax

# ------------------------------------------------------------------ text and programs

TEXT = [
    *(
        "",
        "   \n\t ",
        "ls\0x",
        "ls \x1b[2K",
        "ls\r-la",
        "ls\x0b-la",
        "ls\u00a0-la",
        "ls\u200b",
        "ls '\u202ea'",
        "l\u0455",
    ),
    *("ls '\u3164'", "ls '\ufe0f'", "ls '\ud800'", "ls é", "ls" + " " * 80 + "x", "ls\n\n\n\n\n\n\n\n\npwd"),
    *("; ".join(["true"] * 51), "ls " + "a" * 9_000, "echo " + "$(" * 3_000, "(" * 5_000, "'" * 8_001),
    *("echo 'open", 'echo "open', "ls &&", "ls |", "; ls", "ls ;; ls", "ls \\", "ls && ; ls", "| ls"),
]
WORDS = cases(r"""
    ls $HOME  ls $  ls "$x"  ls `pwd`  ls $(pwd)  echo "a\$b"  echo "a\`b"  echo "a\\"  echo "a\"b"
    echo "a$1"  echo "$-"  echo "$(x)"  echo "!x"  echo $((1))  echo ${x}
    ls {a,b}  ls {a}
    ls a\ b  find . -\delete  find . {-delete,-print}  find . -d*  ls [ab]  ls a#b  ls $'a'  ls ~u  ls ~+
    echo a=~/x  echo a:~/x  r''m x  'ls'  /bin/ls  ./ls  l?  -ls  ls a=~  @(ls)  ls !(a)  ls +(a)  %1  A+=b  A=(1)
    A[1]=b  ls -*  ls '*'*  cat -?
""")
WORDS += ["cat\\\n/run.sh", "cat\\\t/run.sh", "ls # c \\\nrm -rf build", "ls \\\n# c \\\nrm x", "ls 'a' \\\n b"]
GRAMMAR = cases(r"""
    ls & ls  ls &  (ls)  { ls; }  ! ls  time ls  if true; then ls; fi  for f in a; do ls; done  ls |& wc
    while true; do ls; done  case a in a) ls;; esac  ls(){ ls; }; ls  coproc ls  [[ -f a ]]  ((1))  cat <<< x
    ls > >(tee x)  cat <(ls)  ls >| x  ls <> x  ls 3> x  ls >&x  ls 2>&-  ls 12>x  > x ls  2>&1 ls  ls > *  ls > a*
    ls > ''  ls > /dev/tcp/h/1  ls > /dev/sda  ls 1>&2x  cat < /dev/tcp/h/1  cat /dev/sda  cat /proc/self/environ
    cat /dev/stdin  cat /sys/x  cat /dev/../proc/1  cat < -
""")
GRAMMAR += ["cat << E\nx\nE"]
PROGRAMS = cases(r"""
    python x.py  python -c 'x'  pytest  make  make -n  npm test  cargo build  node x  sh x  bash -c ls  env  env ls
    sudo ls  xargs rm  exec ls  eval ls  . ./x  source x  command ls  builtin ls  set  nohup ls  timeout 5 ls
    nice ls  awk 1 f  less f  vi f  curl x  ssh h  dd if=a of=b  alias ls=rm  declare a  let a=1  read a
    trap ls EXIT  history  kill 1  docker ps  tar xf x  zip a b  git status  pushd src  mapfile a  shopt -s extglob
    enable -n ls  hash -r  unalias -a  ulimit -n 1  umask 0
""")
OPTIONS = cases(r"""
    sort -o out f  sort --output=out f  sort --outp=out f  sort -uo out f  sort --compress-program=x f  sort -T d f
    sort --files0-from=x  uniq in out  uniq -c in out  xxd in out  xxd -r in out  xxd -il 5 in  tail -f x  tail -F x
    tail -fn5 x  tail -5f x  wc --files0-from=x  ls -L  ls -H away  grep -R x  rm -x a  grep --rec x  grep -r  grep
    find . -delete  find . -exec ls ';'  find . -fprint x  find -L .  find . -name  find . -newer  find . -o -delete
    find *  rg --pre x y  rg --pre=x y  rg -z x  rg -L x  rg --hostname-bin x y  rg  tree -o x  tree -l  tree -R
    file -C -m x  file -f x  file  date -s x  date 0101  date -f x  diff -r a b  diff a  diff -l a b
    diff --from-file=a b  md5sum -c x  strings @x  df -  ls -  sed s/a/b/ f  sed -n '1e ls' f  sed -n 'w x' f
    sed -i s/a/b/ f  sed -ni p f  sed -n 1p -i f  sed -n '/a/w x' f  sed -n '/a/e' f  sed -n '/a/p;w x' f
    sed -n '/a\/p' f  sed -n '\,a,p' f  jq env f  jq '$ENV' f  jq 'import "x" as x; 1' f
    jq -f x f  jq -L x . f  jq  jq --arg a b . f  printf -v x y  printf '%n' x  printf  printf '%(%F)T' 1
    printf '%*d' 1 2  test -v x  test -v 'a[$(ls)]'  [ -v x ]  [ -f x  [ -f x -a -f y ]  test 'a[0]' -eq 0
    [ x -R y ]  test -R x  ps e  ps aux e  ps -o environ  hostname x  hostname -F x  sleep  sleep x  sleep infinity
    seq 1 inf  cat --show  cat -n*  cat -Z x  head --lines  head -n  base64 -i x  command -p ls  type -f ls
    cmp a b 1 2  cat ''  ls ''  rm ''  mkdir ''  cp a ''  cd ''  test -f ''
""")
WRITES = cases(r"""
    rm  rm -  rm --no-preserve-root -rf /  rm a -r  cp a  cp a b -f  cp -l a b  cp -s a b  cp -rL src x  cp -t d a
    cp -H a b  cp -b a b  cp -r src/ x  cp -r . build  cp -r src/. build  cp -r src .  mv a  mv -b a b  mv -t d a
    mkdir -p a/../b  mkdir -Z a  rmdir -p a/b  touch -h a  touch -  touch -r a  chmod 4755 a  chmod u+s a
    chmod -x a  chmod --reference=a b  chmod 755  ln  ln -s a b c  ln -t d a  tee --output-error=x a
    cp README.md /dev/null  rm /dev/null  mkdir /dev/null  ln -s a /dev/null  mv a /proc/x  truncate -s 0 a
    chmod 600 /dev/null  chmod +x a /dev/null  touch /dev/null  touch -d 1 a /dev/null
    install a b  rsync a b  mktemp  chown u a  shred a  split a  csplit a 1  mkfifo a  mknod a p
""")


@pytest.mark.parametrize("line", [*TEXT, *WORDS, *GRAMMAR, *PROGRAMS, *OPTIONS, *WRITES], ids=lambda line: line[:40])
def test_a_line_that_is_not_fully_understood_is_unknown(judge: Judge, line: str):
    assert judge(line) == UNKNOWN


@given(st.text(max_size=60))
def test_no_text_makes_the_analysis_raise(text: str):
    effects = shell_effects(text, cwd="/", home=HOME, resolve=lambda path, cwd: path)
    assert effects.unknown or effects.understood


@pytest.mark.parametrize("line", ["make", "ls; make", "ls | make", "ls && echo $x"])
@pytest.mark.parametrize("other", ["ls", "echo 'a b'", "cd src", "mkdir new"])
@pytest.mark.parametrize("joint", ["; ", " && ", " || ", " | ", "\n"])
def test_an_unknown_command_makes_every_line_around_it_unknown(judge: Judge, line: str, other: str, joint: str):
    assert judge(line + joint + other) == judge(other + joint + line) == UNKNOWN


# ------------------------------------------------------------------ git and programs

GIT_READS = cases(r"""
    status  status -sb  status --short  log --oneline -n 20  log -p -1 -- src/a.py  diff HEAD -- src/a.py
    diff --cached --name-only  show HEAD~1:src/a.py  show HEAD^  branch  branch -a  branch --show-current
    rev-parse --show-toplevel  ls-files '*.py'  remote -v  remote  blame src/a.py  tag --list 'v*'  tag  stash list
    describe --tags  log --since='2 weeks ago' --author=me  config --get user.name  --no-pager log
    branch --list 'f*'  worktree list  grep -n foo -- src  diff main...feature --stat  log -5
""")
GIT_CHANGES = cases(r"""
    add .  commit -m x  checkout main  stash  stash pop  branch x  branch -D x  branch --list --no-list -D x  tag v1
    tag -d x  remote add a b  remote show origin  config a b  config user.name  reflog expire  fetch
    -c core.fsmonitor=x status  -C /tmp status  --git-dir=x status  --exec-path=x status  -p log  unknown
    diff --output=x  log --output=x  diff --ext-diff  log --textconv  diff --no-index a b  diff /etc/passwd x
    diff ../a b  log -- ../x  grep -O x  grep --open-files-in-pager=x y  log --format=%G?  log --show-signature
    log --pretty=format:%GK  for-each-ref --format='%(signature)'  log --outp=x  ls-remote x  show src/*.py
    branch -l x  tag -n x  status --por  cat-file --textconv x  cat-file --batch  log --stdin  diff -Ox
""")


@pytest.mark.parametrize("line", GIT_READS)
def test_git_reads_are_known_only_in_a_safe_repository(judge: Judge, ws: Path, line: str):
    assert judge(f"git {line}") == UNKNOWN
    effects = judge(f"git {line}", git_is_safe=True)
    assert effects.is_read_only
    assert effects.reads == (str(ws),)


@pytest.mark.parametrize("line", GIT_CHANGES)
def test_git_commands_that_change_or_start_something_are_unknown(judge: Judge, line: str):
    assert judge(f"git {line}", git_is_safe=True) == UNKNOWN


def test_git_in_a_folder_other_than_the_safe_one_is_unknown(judge: Judge, ws: Path):
    assert judge("cd src && git status", git_is_safe=True) == UNKNOWN
    (ws / ".git").rmdir()
    assert judge("git status", git_is_safe=True).reads == (str(ws),)


def test_a_program_that_the_agent_may_have_written_is_unknown(judge: Judge, ws: Path):
    own = ws / "bin"
    own.mkdir()
    programs = ProgramLookup(f"{own}:/usr/bin:/bin", (str(ws),))
    assert judge("ls && missing", programs=programs).unknown
    assert judge("ls | cat", programs=programs).understood
    (own / "ls").symlink_to("/bin/true")
    assert judge("ls", programs=programs) == UNKNOWN
    assert judge("cat README.md; echo", programs=programs).understood
    assert judge("cp README.md bin/cat; cat README.md", programs=programs) == UNKNOWN
    assert judge("rm -rf bin", programs=programs) == UNKNOWN


@pytest.mark.parametrize("search_path", ["", ".:/bin", "bin:/bin", ":/bin"])
def test_a_relative_search_path_makes_programs_unknown(judge: Judge, search_path: str):
    programs = ProgramLookup(search_path, ())
    assert judge("cat README.md", programs=programs) == UNKNOWN
    assert judge("echo", programs=programs).understood


# ------------------------------------------------------------------ cross-check of two parsers


def test_a_line_that_the_two_parsers_read_differently_is_unknown():
    line = parse_line("cat a b | wc", "")
    confirm(line)
    first, second, *rest = line.tokens
    merged = Token("word", first.text + second.text, first.start, second.end)
    for tokens in ((merged, *rest), (second, *rest), (*line.tokens, merged), ()):
        with pytest.raises(UnsupportedSyntax):
            confirm(msgspec.structs.replace(line, tokens=tuple(tokens)))
    with pytest.raises(UnsupportedSyntax):
        confirm(msgspec.structs.replace(line, pipelines=line.pipelines * 0))
    with pytest.raises(UnsupportedSyntax):
        confirm(msgspec.structs.replace(line, text="cat $b | wc"))


def test_commands_are_listed_even_if_their_effects_are_unknown():
    line = cross_checked_line("python -m pytest -q 'a b' && ./x", "")
    assert line is not None
    assert line.argvs == (("python", "-m", "pytest", "-q", "a b"), ("./x",))
    assert cross_checked_line("echo $x", "") is cross_checked_line("", "") is cross_checked_line("ls ~", "") is None
    line = cross_checked_line("ls ~/x", "/h")
    assert line is not None
    assert line.argvs == (("ls", "/h/x"),)


def test_many_threads_may_analyze_lines_at_once(judge: Judge):
    lines = ["ls -la | wc -l", "echo $x", "grep -rn foo src && pwd"] * 20
    expected = [judge(line) for line in lines]
    found: list[list[Effects]] = []
    threads = [threading.Thread(target=lambda: found.append([judge(line) for line in lines])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


@pytest.mark.parametrize(
    "line",
    [
        *("git log --format=%G?", "git log --format=%+GK", "git log --pretty='format:%-GS'", "git log --format '% GG'"),
        *(
            "git log --format=%G? --format=%h",
            "git for-each-ref --sort=signature --sort=refname",
            "git tag -l --sort=signature",
        ),
        *("git branch --list --format='%(signature:key)'", "git for-each-ref --format='%(signature)'"),
        *(
            "git log --show-signature",
            "git diff --submodule=diff",
            "git grep --recurse-submodules x",
            "git show --ext-diff",
        ),
        *("git ls-files --recurse-submodules", "git diff --textconv", "git grep --textconv x", "git submodule status"),
    ],
)
def test_git_that_starts_another_program_is_unknown(judge: Judge, line: str):
    assert judge(line, git_is_safe=True) == UNKNOWN


@pytest.mark.parametrize(
    "line",
    [
        "git log --grep=signature",
        "git log --format=%h%x20%s",
        "git branch --sort=-committerdate",
        "git log -- signature.py",
    ],
)
def test_git_with_similar_but_harmless_options_is_known(judge: Judge, line: str):
    assert judge(line, git_is_safe=True).understood


@pytest.mark.parametrize(
    "name",
    ["GIT_DIR", "GIT_CONFIG_COUNT", "GIT_EXTERNAL_DIFF", "HOME", "XDG_CONFIG_HOME", "PATH", "LD_PRELOAD", "PAGER"],
)
def test_git_is_unknown_after_an_export_that_affects_it(judge: Judge, name: str):
    assert judge("git status", git_is_safe=True, env={name: "x"}) == UNKNOWN
    assert judge(f"{name}=x git status", git_is_safe=True) == UNKNOWN


@pytest.mark.parametrize("line", ["%", "%1", "''%", "'%'1", '"%x" a', "aa; ''% b"])
def test_a_job_specification_is_not_understood(line: str):
    assert cross_checked_line(line, HOME) is None
