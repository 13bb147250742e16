"""Refuses lines that would read denied paths through names printed by git or `ls`, links of the line, or `shopt`."""

import subprocess

import pytest
from shell_workspace import lines
from test_refused_reads import CANARY, run
from test_refused_reads import ws as _ws
from test_rules_in_lines import decided, denied

from bradawl.core.permissions import Allow, Deny

ws = _ws
RULES = ("Read(.env)", "Read(secrets/**)", "Read(conf/in/key.txt)")

LINES_THAT_READ = r"""
git ls-files | xargs cat
git ls-files | xargs grep -h ''
git ls-files | xargs tail
git ls-files | xargs awk 1
git ls-files | xargs sed -n p
git ls-files conf | xargs cat
git ls-files 'conf/*' | xargs cat
git ls-files '*.txt' | xargs cat
cat $(git ls-files)
cat `git ls-files conf/in`
for f in $(git ls-files); do cat $f; done
git ls-files | while read f; do cat "$f"; done
mapfile -t a < <(git ls-files); cat "${a[@]}"
git ls-tree -r --name-only HEAD | xargs cat
git ls-tree -r HEAD --name-only conf | xargs cat
git diff --name-only $(git hash-object -t tree /dev/null) HEAD | xargs cat
git show --name-only --format= HEAD | xargs cat
git log --name-only --format= | xargs cat
git status --short --ignored | cut -c4- | xargs cat
git ls-files | tar cT - | strings
git ls-files > l; xargs -a l cat
git -C conf ls-files | sed s,^,conf/, | xargs cat
ls -1 conf/in | sed s,^,conf/in/, | xargs cat
cd conf/in; ls | xargs cat
cd conf/in && cat $(ls)
ls -A | xargs cat
ls conf/in/* | xargs cat
shopt -s globstar; cat **/key.txt
shopt -s nocaseglob; cat conf/[I]N/KEY*
shopt -s nocaseglob; cat .EN*
bash -O globstar -c 'cat **/key.txt'
ln -s ../secrets/key.txt src/q; cat src/q
ln -s ../secrets src/q; cat src/q/key.txt
ln -s ../secrets src/q; cat src/q/*
ln -s ../secrets/key.txt src/; cat src/key.txt
ln -s ../secrets/key.txt src; cat src/k*
mkdir t; ln -s ../secrets t/s; grep -r KEY t/s/
mkdir t; ln -s ../secrets t/s; cat t/s/key.txt
mkdir t; ln -s ../secrets t/s; cd t/s; cat key.txt
ln -s .. src/up; cat src/up/secrets/key.txt
ln -sr secrets src/q; cat src/q/key.txt
ln -s a b; ln -s secrets a; cat b/key.txt
ln -s secrets l; mv l m; cat m/key.txt
ln -s secrets l; cp -P l m; cat m/key.txt
python3 -c "import os; os.symlink('../secrets/key.txt','src/q')"; cat src/q
python3 -c "from pathlib import Path; Path('src/q').symlink_to('../secrets')"; cat src/q/key.txt
perl -e 'symlink "../secrets", "src/q"'; cat src/q/key.txt
"""

ORDINARY = r"""
git ls-files | wc -l
git ls-files src | xargs cat
git ls-files '*.py' | xargs wc -l
git ls-files -- src README.md | xargs cat
cat $(git ls-files src)
for f in $(git ls-files src); do cat $f; done
git diff --name-only -- src | xargs cat
git log --name-only --format= -- src | xargs ls
ls | xargs -n1 echo
ls src | sed s,^,src/, | xargs cat
cd src; ls | xargs cat
for f in $(ls src); do cat src/$f; done
ln -s ../README.md src/r; cat src/r
ln -s src s2; cat s2/a.py
shopt -s globstar; cat **/*.py
git status --short | cat
"""


@pytest.fixture
def tree(ws):
    for name in ("conf/in/key.txt", ".env"):
        (ws / name).parent.mkdir(parents=True, exist_ok=True)
        (ws / name).write_text(f"KEY={CANARY}\n")
    (ws / "conf/x.ini").write_text("x\n")
    (ws / ".gitignore").write_text(".env\n")
    for words in ("add conf .gitignore secrets", "commit -qm y"):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *identity, *words.split()], cwd=ws, check=True, capture_output=True)
    return ws


@pytest.mark.parametrize("line", lines(LINES_THAT_READ))
def test_no_line_prints_what_a_rule_refuses_to_read(tree, line):
    decision = decided(line, tree, denied(tree, *RULES), mode="bypass")
    shown = "" if isinstance(decision, Deny) else run(line, tree)
    assert CANARY not in shown
    assert isinstance(decision, Deny)


@pytest.mark.parametrize("line", lines(ORDINARY))
def test_ordinary_lines_run_despite_the_rules(tree, line):
    decision = decided(line, tree, denied(tree, *RULES), mode="bypass")
    assert isinstance(decision, Allow), decision
    assert CANARY not in run(line, tree)
