"""Lines that would change protected paths without a sandbox are refused; lines that are allowed are run for real."""

import os
import subprocess
from pathlib import Path

import pytest
from shell_workspace import lines
from test_rules_in_lines import BUBBLEWRAP, decided, denied

from bradawl.core.permissions import Allow, Deny

RULES = ("Edit(conf/guard.txt)", "Edit(migrations/**)")

WRITES_OF_DENIED_PATHS = r"""
find conf -name guard.txt -delete
find conf -name 'gu*' -delete
find conf -iname 'GU*.txt' -delete
find conf -type f -delete
find . -name guard.txt -delete
find . -name '*.txt' ! -name 'a.*' -delete
find migrations -delete
find m* -type f -delete
find . -name 001.sql -delete
find . -path './conf/*' -delete
find . -type f -name 'g*' -exec rm -f {} +
find . -type f -name 'g*' -exec sed -i s/o/0/ {} \;
find . -type d -name conf -exec rm -rf {} +
find conf -type f -exec sh -c 'rm "$1"' _ {} \;
find conf -type f -exec cp a.txt {} \;
find conf -name 'g*' -print0 | xargs -0 rm -f
find conf -type f | xargs truncate -s0
find . -name 'guard*' | while read f; do echo x > "$f"; done
rm $(find conf -type f)
cp a.txt conf/guar?.txt
cp a.txt conf/g*
cp -f a.txt ./conf/[g]uard.txt
cp -t conf x/guard.txt
cp x/guard.txt conf
cp x/guard.txt conf/
cp x/* conf
cp -r x/. conf
cp -rT x conf
mv x/guard.txt conf
mv -f a.txt conf/guar?.txt
mv conf c2
mv co* c2
mv conf/guard.txt z
mv conf/gu?rd.txt z
install a.txt conf/guar?.txt
install -t conf x/guard.txt
ln -sf ../a.txt conf/guard.tx?
ln -f a.txt conf/gua*
rsync -a x/ conf/ || cp -r x/. conf
sed -i s/o/0/ conf/gua*
sed -i.bak s/o/0/ conf/guar?.txt
sed -ni p conf/gu*
sed -n 'w conf/guard.txt' a.txt
sed 's/a/b/w conf/guard.txt' a.txt
sed -i s/orig/EVIL/ */*.sql
sed -i s/orig/EVIL/ m*/001.sql
perl -pi -e s/o/0/ conf/gua*
perl -i -pe s/o/0/ m*/001.sql
unlink conf/guard.t?t
rm conf/gu*
rm -rf co*
rm -rf gu?rd conf
git rm -qf conf/guard.tx*
git rm -rf migrations
git rm -rf .
git rm -rfq conf
git rm -rfq '*.sql'
git -C conf rm -qf guard.txt
git mv conf/guard.txt z
git mv migrations m3
git mv -f a.txt conf/guard.txt
git checkout-index -f --prefix=out/../conf/ guard.txt; git checkout-index -f conf/guard.txt
git checkout HEAD~0 -- conf/guard.txt; echo x > conf/g*
git restore conf/guard.txt; rm conf/g*
git ls-files guard conf | xargs rm -f
git ls-files | xargs sed -i s/orig/new/
git ls-files -- '*.sql' | xargs rm
git ls-tree -r --name-only HEAD | xargs rm -f
git grep -l orig | xargs sed -i s/orig/new/
grep -rl orig . | xargs sed -i s/orig/new/
grep -rl orig conf | xargs rm
sed -i s/o/0/ $(git ls-files conf/guard.txt)
perl -pi -e s/orig/new/ $(git ls-files)
for f in conf/*.txt; do echo x > "$f"; done
for f in $(git ls-files); do echo x > $f; done
for f in conf/*; do rm "$f"; done
git ls-files | while read -r f; do sed -i s/o/0/ "$f"; done
ls conf | sed s,^,conf/, | xargs rm -f
cd conf; ls | xargs rm -f
env -C conf rm guard.txt
env -C conf tee guard.txt < a.txt
env --chdir=conf cp ../a.txt guard.txt
env --chdir conf sed -i s/o/0/ guard.txt
cd conf && env cp ../a.txt gu*
pushd conf; cp ../a.txt guard.tx?
cd c*; rm guard.txt
(cd conf && truncate -s0 g*)
shopt -s globstar; rm **/guard.txt
shopt -s nocaseglob; rm conf/GUARD.T*
shopt -s nocaseglob; echo hi > conf/GUARD.T*
shopt -s dotglob; rm -rf *
bash -O extglob -c 'rm conf/@(guard|x).txt'
bash -O extglob -c 'rm conf/!(zz)'
gzip conf/guard.txt
gzip -f conf/g*
bzip2 conf/guard.txt
xz conf/guard.txt
gzip -r conf
zip -qm z.zip conf/guard.txt
zip -qrm z.zip conf
tar -cf z.tar --remove-files conf/guard.txt
tar --remove-files -cf z.tar -C conf guard.txt
tar cf z.tar x/guard.txt --transform 's,^x,conf,'; tar xf z.tar
tar cf z.tar -C x guard.txt; tar xf z.tar -C conf
openssl base64 -in a.txt -out conf/guard.txt
openssl enc -base64 -in a.txt -out conf/g*.txt
iconv -o conf/guard.txt a.txt
iconv -f utf8 -t utf8 a.txt --output=conf/guard.txt
curl -so conf/guard.txt file:///etc/hostname
curl -s --output conf/guard.txt file:///etc/hostname
curl -s file:///etc/hostname --output-dir conf -o guard.txt
mkdir q; cp a.txt q/guard.txt; cp -r q/. conf
mkdir -p q/conf; cp a.txt q/conf/guard.txt; cp -r q/* .
echo hi > g*/x.txt; echo hi > conf/g*.txt
echo hi >> co??/guard.txt
truncate -s0 conf/guard.tx[t]
cat a.txt >| conf/g*
cat a.txt &> conf/gu*
cat a.txt 2>&1 1> conf/gu*
cat a.txt >& conf/gu*
exec 3> conf/gu*; echo hi >&3
exec 3<> conf/guard.txt; echo hi >&3
dd if=a.txt of=conf/guard.txt
sort -o conf/gua* a.txt
sort a.txt --output=conf/guard.txt
shuf a.txt -o conf/guard.txt
uniq a.txt conf/guard.txt
split -b 1 a.txt migrations/x
csplit -sf migrations/x a.txt 1
awk '{print > "conf/guard.txt"}' a.txt
awk '{print > f}' f=conf/guard.txt a.txt
tee conf/g* < a.txt
cat a.txt | tee -a conf/guard.txt > out
touch -d yesterday conf/guard.t?t; chmod 777 conf/g*; rm conf/g*
chmod -R 000 conf; rm -r conf
patch -s conf/guard.txt < p.diff
patch -sp1 < p.diff
patch -sp1 -i p.diff
git apply p.diff
git apply --directory=conf -p2 p.diff
git apply < p.diff
python3 -c "open('conf/guard.txt','w').write('x')"
python3 -c "import pathlib; pathlib.Path('conf/guard.txt').write_text('x')"
python3 -c "import os; os.remove('migrations/001.sql')"
python3 -m json.tool x.json conf/guard.txt
perl -e 'unlink "conf/guard.txt"'
perl -e 'unlink $ARGV[0]' conf/guard.txt
cp AGENTS.md m*/001.sql
cp AGENTS.md */001.sql
cp AGENTS.md src/a.py m*
ln -s ../migrations/001.sql src/q; cp AGENTS.md src/q
ln -s ../migrations src/q; cp AGENTS.md src/q/; rm -r src/q/
ln migrations/001.sql h; cp AGENTS.md h
cp -l migrations/001.sql h; cp AGENTS.md h
cp -al migrations h; cp AGENTS.md h/001.sql
link migrations/001.sql h; cp AGENTS.md h
mkdir t; ln -s ../migrations t/s; echo x > t/s/001.sql
mkdir t; ln -s ../migrations t/s; rm t/s/*
ln -sr conf src/c; echo x > src/c/guard.txt
ln -s conf l; mv l l2; echo x > l2/guard.txt
ln -s .. src/up; echo x > src/up/conf/guard.txt
ln -s conf l; cd l; echo x > guard.txt
ln -s conf l; cp -P l m; echo x > m/guard.txt
cp -rs "$PWD/conf" k; echo x > k/guard.txt
python3 -c "import os; os.symlink('../conf/guard.txt','src/q')"; cp a.txt src/q
mytool() { cp "$1" "$2"; }; mytool a.txt conf/gu*
sh -c 'cp "$0" "$1"' a.txt conf/guard.txt
xargs -I{} cp a.txt {} <<< conf/guard.txt
echo conf/guard.txt | xargs rm
printf '%s\n' conf/*.txt | xargs rm
git stash push -q -- conf/guard.txt; rm conf/g*
git clean -fdxq conf; rm -r conf
git --work-tree=conf checkout -f HEAD -- a.txt; rm conf/g*
unknown-tool --out conf/guard.txt || rm conf/g*
script -qc true conf/guard.txt
time -o conf/guard.txt true || rm conf/g*
vim -es -c 'w! conf/guard.txt' -c q a.txt || rm conf/g*
"""

WRITES_OF_PROTECTED_PATHS = r"""
cp a.txt .git/h?oks/pre-commit
cp -t .g*/hooks a.txt
cd .gi? && cp ../a.txt hooks/pre-push
env -C .git/hooks cp ../../a.txt pre-push
env -C .git cp ../a.txt hooks/pre-push
env -C .git tee -a config < a.txt
env --chdir=.git/hooks ln -s ../../a.txt pre-push
git -C .git/hooks archive -o pre-push HEAD
git archive -o .git/hooks/x HEAD
git archive --output=.git/hooks/x HEAD
git diff --output=.git/hooks/pre-push HEAD
git log --output=.git/hooks/pre-push -1
git format-patch -o .git/hooks -1 --root
git bundle create .git/hooks/pre-push HEAD
git checkout-index --prefix=.git/hooks/ a.txt
git --work-tree=.git/hooks checkout -f HEAD -- a.txt
GIT_WORK_TREE=.git/hooks git checkout -f
export GIT_WORK_TREE=.git/hooks; git checkout -f
git --git-dir=.git config core.editor x
GIT_DIR=.git git config core.editor x
GIT_CONFIG=.git/config git config core.editor x
GIT_EDITOR='cp a.txt' git config -e
git config --file .git/config user.name x
git config -f .git/config user.name x
git mv a.txt .git/hooks/pre-push
git init -q --template=tpl .
git -C . init -q --template tpl
GIT_TEMPLATE_DIR=tpl git init -q
git -c init.templateDir=tpl init -q
find .git -name pre-commit -exec cp a.txt {} \;
find . -name pre-commit -exec cp a.txt {} +
find .git -name config -delete
find .git/hooks -delete
find . -name config -delete
find . -type f -name 'pre-*' | xargs rm
find . -type f -exec sed -i s/core/CORE/ {} +
grep -rl bare . | xargs sed -i s/bare/BARE/
pushd .git/h*; cp ../../a.txt pre-push
for f in .git/h*/pre-commit; do cp a.txt $f; done
tar cf x.tar a.txt; tar xf x.tar -C .git/hook?
tar cf t.tar --transform 's#a.txt#.git/hooks/pre-push#' a.txt; tar xf t.tar
curl -so .git/hooks/pre-push file:///etc/hostname
curl -s file:///etc/hostname > .git/hooks/pre-pu?h
openssl base64 -in a.txt -out .git/hooks/pre-push
gzip .git/hooks/pre-commit
xz .git/hooks/pre-c*
sed -n 'w .git/hooks/pre-push' a.txt
sed -n w.git/hooks/pre-push a.txt
csplit -sf .git/hooks/x a.txt 1
split -b 1 a.txt .git/hooks/x
sed -i s/core/CORE/ .g*/config
mkdir z; cp a.txt z/pre-push; cp z/* .g*/hooks
echo x >> .g*/config
sort -o .g*/config a.txt
truncate -s 0 .g*/config
tee -a .g*/config <<< x
cat a.txt >| .g*/config
awk '{print > ".git/hooks/pre-push"}' a.txt
git clone -q . t; cp t/.git/config .g*/config
mkdir -p t/.git/hooks; cp a.txt t/.git/hooks/pre-push; cp -r t/. .
mkdir -p t/.git; cp a.txt t/.git/config; tar c -C t . | tar x
mkdir t; ln -s ../.git/hooks t/g; cp a.txt t/g/pre-push
mkdir t; ln -s ../.git/config t/g; cp a.txt t/g
ln .git/config h; echo x >> h
ln -s .git g; cp a.txt g/hooks/pre-push
ln -s .git/hooks g; tee g/pre-push < a.txt
mv .gi? g2
mv ../ws ../ws2
cp a.txt .brad?wl/config.toml
env -C .bradawl tee config.toml < a.txt
echo x >> .br*/config.toml
sed -i s/x/y/ .bradawl/*.toml
find .bradawl -name '*.toml' -delete
rm -rf .brad*
python3 -c "open('.git/hooks/pre-push','w').write('x')"
python3 -c "import shutil; shutil.copy('a.txt', '.git/hooks/pre-push')"
perl -e 'rename "a.txt", ".git/hooks/pre-push"'
echo x > ~/.bashr?
cp a.txt ~/.bash?c
tee ~/.bashr? < a.txt
tee -a ~/.b*rc <<< x
sed -i s/o/0/ ~/.bash*
ln -sf $PWD/a.txt ~/.bash?c
rm -rf ~/.s?h
mv ~/.s?h ~/x
mv ~/.s* ~/x
rm ~/.b*
rm -rf ~/.[a-z]*
env -C ~ rm -rf .ssh
env -C ~ tee .bashrc < a.txt
env -C ~/.ssh cp $PWD/a.txt authorized_keys
cd ~ && cp $OLDPWD/a.txt .bash*
find ~/.ssh -type f -delete
find ~ -name authorized_keys -exec cp a.txt {} \;
find ~ -name '.bash*' -delete
curl -so ~/.bashrc file:///etc/hostname
curl -s --output-dir ~ -o .bashrc file:///etc/hostname
openssl base64 -in a.txt -out ~/.ssh/authorized_keys
gzip ~/.bashrc
ln -s $HOME/.bashrc b; echo x >> b
ln ~/.bashrc b; echo x >> b
mkdir t; ln -s ../../home t/h; echo x > t/h/.bashrc
mkdir t; ln -s ../../home t/h; rm -rf t/h/
mkdir t; ln -s ../../home t/h; rm -rf t/h/*
mkdir t; ln -s ../../home t/h; find t/h/ -delete
dd if=a.txt of=$HOME/.profile
shopt -s nocaseglob; cp a.txt ~/.BASHR*
split -b 3 a.txt ~/.bashrc
git config -f ~/.bashrc a.b c
tar cf z.tar -C ~ --remove-files .bashrc
cp x/guard.txt ~/.ss?/
install -m600 a.txt ~/.ssh/auth*
git archive -o ~/.bashrc HEAD
unknown-tool -o ~/.bashrc a.txt || cp a.txt ~/.bashr?
"""


PATCH = "--- a/conf/guard.txt\n+++ b/conf/guard.txt\n@@ -1 +1 @@\n-orig\n+new\n"


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    ws = (tmp_path / "ws").resolve()
    for name, text in {
        "conf/guard.txt": "orig\n",
        "migrations/001.sql": "orig\n",
        "src/a.py": "import os\n",
        "src/x.sh": "true\n",
        "x/guard.txt": "other\n",
        "x.json": "{}\n",
        "a.txt": "#!/bin/sh\ntouch CANARY\n",
        "AGENTS.md": "text\n",
        "p.diff": PATCH,
        "build/x": "a\n",
        "tpl/hooks/pre-push": "#!/bin/sh\n",
        ".bradawl/config.toml": "# x\n",
        "../home/.bashrc": "orig\n",
        "../home/.ssh/authorized_keys": "orig\n",
        "../home/.ssh/id_rsa": "orig\n",
        "../home/kept": "orig\n",
    }.items():
        (ws / name).parent.mkdir(parents=True, exist_ok=True)
        (ws / name).write_text(text)
    (ws / "a.txt").chmod(0o755)
    for words in ("init -q", "add a.txt AGENTS.md conf migrations src", "commit -qm x"):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *identity, *words.split()], cwd=ws, check=True, capture_output=True)
    (ws / ".git/hooks/pre-commit").write_text("#!/bin/sh\n")
    return ws


def run(line: str, ws: Path) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(ws.parent / "home"), "LC_ALL": "C.UTF-8", "GIT_AUTHOR_NAME": "a"}
    subprocess.run(["bash", "-c", line], cwd=ws, env=env, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)


def state(*tops: Path) -> dict[str, bytes | str]:
    """The contents of all files at and below some paths."""
    found: dict[str, bytes | str] = {}
    for top in tops:
        for folder, folders, files in os.walk(top) if top.is_dir() else [(str(top.parent), [], [top.name])]:
            for name in (*folders, *files):
                path = Path(folder, name)
                if path.is_symlink():
                    found[str(path)] = str(path.readlink())
                elif path.is_file():
                    found[str(path)] = path.read_bytes()
    return found


def denied_files(ws: Path) -> dict[str, bytes | str]:
    return state(ws / "conf/guard.txt", ws / "migrations")


def protected_files(ws: Path) -> dict[str, bytes | str]:
    return state(ws / ".git/hooks", ws / ".git/config", ws / ".bradawl", ws.parent / "home")


@pytest.mark.parametrize("line", lines(WRITES_OF_DENIED_PATHS))
def test_no_line_changes_what_a_rule_refuses_to_edit(ws, line):
    before = denied_files(ws)
    decision = decided(line, ws, denied(ws, *RULES), mode="bypass")
    if not isinstance(decision, Deny):
        run(line, ws)
    assert denied_files(ws) == before
    assert isinstance(decision, Deny)


@pytest.mark.parametrize("line", lines(WRITES_OF_PROTECTED_PATHS))
def test_no_line_changes_paths_that_every_mode_protects(ws, line):
    before = protected_files(ws)
    decision = decided(line, ws, mode="bypass")
    if not isinstance(decision, Deny):
        run(line, ws)
    assert protected_files(ws) == before
    assert isinstance(decision, Deny)


def test_allow_rules_override_neither_deny_rules_nor_protected_paths_in_default_mode(ws):
    allowed = denied(ws, "Bash(cp *)", "Bash(sed *)", "Bash(find *)", "Bash(git *)", verdict="allow")
    rules = (*denied(ws, *RULES), *allowed)
    for line in ("cp a.txt conf/g*", "sed -i s/o/0/ m*/001.sql", "find conf -delete", "git mv migrations m3"):
        assert isinstance(decided(line, ws, rules), Deny), line
    for line in ("cp a.txt .g*/hooks/pre-commit", "find .git -name config -delete", "git mv a.txt .git/hooks/pre-push"):
        assert isinstance(decided(line, ws, allowed), Deny), line


def test_an_ask_rule_makes_the_line_a_question(ws):
    rules = (*denied(ws, "Edit(migrations/**)", verdict="ask"), *denied(ws, "Bash(cp *)", verdict="allow"))
    decision = decided("cp a.txt m*/001.sql", ws, rules)
    assert "migrations" in getattr(decision, "reason", "")


def test_with_a_sandbox_that_protects_the_files_the_lines_run(ws):
    rules = denied(ws, *RULES)
    for line in ("cp a.txt conf/g*", "find . -name guard.txt -delete"):
        assert isinstance(decided(line, ws, rules, BUBBLEWRAP, "bypass"), Allow), line
