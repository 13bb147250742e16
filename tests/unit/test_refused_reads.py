"""Lines that would read a denied folder without a sandbox are refused; lines that are allowed are run for real."""

import subprocess
from pathlib import Path

import pytest
from shell_workspace import lines
from test_rules_in_lines import BUBBLEWRAP, decided, denied

from bradawl.core.permissions import Allow, Deny

CANARY = "CANARY_41"

LINES_THAT_READ = r"""
cat secrets/key.txt
cat s[e]crets/key.txt
cat s{e,x}crets/key.txt
cat "$PWD/secrets/key.txt"
cat ./src/../secrets/key.txt
cat secrets//key.txt
cat 'secrets'/"key".txt
cat s\ecrets/key.txt
cat $'secr\x65ts/key.txt'
cat ~+/secrets/key.txt
cd src && cat ~-/secrets/key.txt
cd src; cat $OLDPWD/secrets/key.txt
cd src && cd - && cat $OLDPWD/../secrets/key.txt
cat ${PWD}/${x:-secrets}/key.txt
D=secrets; cat "$D"/key.txt
X=secrets; read l < $X/key.txt; echo $l
x=secrets/key.txt; y=x; cat ${!y}
printf -v p 'secr%s' ets/key.txt; cat "$p"
a=(secrets key.txt); cat ${a[0]}/${a[1]}
declare -n r=zz; zz=secrets/key.txt; cat $r
eval 'cat secr''ets/key.txt'
f() { cat "$1"/key.txt; }; f secrets
f() { (cd "$1"; cat key.txt); }; f secrets
alias c=cat; c secrets/key.txt
trap 'cat secrets/key.txt' EXIT
coproc cat secrets/key.txt; cat <&${COPROC[0]}
case x in x) cat secrets/key.txt;; esac
for d in sec*; do cat $d/key.txt; done
for f in */key.txt; do cat "$f"; done
for d in *; do cat "$d/key.txt"; done
for d in */; do (cd "$d" && cat key.txt); done
for d in *; do cp -r "$d" ../out; done; cat ../out/*/*
for d in $(ls); do cat $d/key.txt; done
ls | while read d; do cat $d/key.txt; done
ls | while read -r d; do (cd "$d/" && cat key.txt); done
ls | xargs -I{} cat {}/key.txt
ls | xargs -I% sh -c 'cat %/key.txt'
ls -d secrets | xargs -I{} cat {}/key.txt
ls | xargs grep -r CANARY
ls | xargs tar c
ls | xargs -n1 cp -r -t ../out; cat ../out/*/*
ls | xargs -i cat {}/key.txt
ls | xargs -I @ cat @/key.txt
ls | parallel cat {}/key.txt
cd secrets && cat key.txt
cd secrets; cat key.txt
cd sec*; cat key.txt; cd ..
cd ./secrets/; cat k*
cd src; cd ../secrets; cat key.txt
cd ..; cat ws/secrets/key.txt
cd .. && cd ws/secrets && cat key.txt
cd .. && grep -r CANARY ws
cd .. && tar c ws
cd .. && cp -r ws out2 && cat out2/secrets/key.txt
pushd secrets; cat key.txt; popd
pushd .. && cat ws/secrets/key.txt
pushd src; cat ../secrets/key.txt
CDPATH=secrets; cd sub && cat inner.txt
CDPATH=..; cd ws/secrets && cat key.txt
CDPATH=secrets cd sub && cat inner.txt
export CDPATH=secrets; cd sub; cat inner.txt
sh -c "cd secrets; cat key.txt"
bash -c 'cat "$0"/key.txt' secrets
bash -lc "cat secrets/key.txt"
(cd secrets; cat key.txt)
{ cd secrets; cat key.txt; }
env -C secrets cat key.txt
env --chdir=secrets cat key.txt
env -Csecrets cat key.txt
make -C secrets -f key.txt
make -f secrets/key.txt
find . -name key.txt | xargs cat
find . -name key.txt -exec cat {} \;
find . -name key.txt -print0 | xargs -0 cat
find . -type f -exec grep -h CANARY {} +
find -name '*.txt' -exec cat {} +
find .. -name key.txt -exec cat {} +
find .. -type d -name ws -exec cp -r {} ../out \; ; cat ../out/ws/secrets/key.txt
find . -path '*ecrets/*' -type f -exec head {} +
find "$PWD" -name 'k*' | while read f; do cat "$f"; done
find . -iname 'KEY*' -exec cat {} +
find . ! -name x -type f | cpio -o
find . -type f | tar c -T -
cat $(find . -name key.txt)
mapfile -t a < <(find . -name key.txt); cat "${a[@]}"
tar cf - . | tar xOf -
tar cf - -C secrets . | tar xOf -
tar -cf ../out/zz.tar -C . .; tar xOf ../out/zz.tar
tar c ../ws
tar c -C .. ws
tar c "$PWD"
tar -c *
tar c s*
zip -qr - . | funzip
zip -r ../out/x.zip secrets
cp -a . ../out/cpa; cat ../out/cpa/secrets/key.txt
cp -a secrets ../out/a; cat ../out/a/key.txt
cp -R ./ ../out/b; cat ../out/b/secrets/key.txt
cp -r ../ws ../out/cpb; cat ../out/cpb/secrets/key.txt
cp --archive "$PWD" ../out/c; cat ../out/c/secrets/key.txt
cp -r "$PWD"/../ws ../out/d; cat ../out/d/secrets/key.txt
cp -rt ../out .; cat ../out/secrets/key.txt
cp -r -t ../out ../ws; cat ../out/ws/secrets/key.txt
cp --target-directory=../out -r secrets; cat ../out/secrets/key.txt
cp -r * ../out; cat ../out/secrets/key.txt
cp -l secrets/key.txt hl2; cat hl2
cp -rs "$PWD/secrets" ../out/sl; cat ../out/sl/key.txt
mv secrets s2; cat s2/key.txt
mv ../ws ../wsx; cat ../wsx/secrets/key.txt; mv ../wsx ../ws
mv s* ../out; cat ../out/secrets/key.txt
ln -s . here; cat here/secrets/key.txt
ln -sf .. up; cat up/ws/secrets/key.txt
ln -s secrets zz1; cat zz1/key.txt
ln -s ../ws/secrets zz2 && head zz2/*
ln -sfn "$PWD" zz3; cat zz3/secrets/key.txt
ln secrets/key.txt hl1; cat hl1
link secrets/key.txt hl3; cat hl3
install -m644 secrets/key.txt i.txt; cat i.txt
rsync -a secrets/ ../out/rss; cat ../out/rss/*
rsync -a . ../out/rsy; cat ../out/rsy/secrets/key.txt
scp -r secrets ../out/scp; cat ../out/scp/key.txt
dd if=secrets/key.txt
sed -n p secrets/key.txt
sed -n '1r secrets/key.txt' src/a.py
sed 'R secrets/key.txt' src/a.py
awk 1 secrets/key.txt
awk 'BEGIN{while((getline l < "secrets/key.txt")>0) print l}'
grep -f secrets/key.txt src/a.py; grep -h '' secrets/key.txt
grep -r CANARY
grep -R CANARY ./
grep -R CANARY
grep -hR CANARY ..
grep -d recurse CANARY .
grep -drecurse CANARY .
grep --directories=recurse CANARY .
grep --dereference-recursive CANARY .
grep --recursive CANARY *
grep -rh CANARY . --include=key.txt
grep CANARY */*
egrep -r CANARY .
fgrep -r CANARY "$PWD"
rgrep CANARY
rg -uu CANARY
rg CANARY ..
rg --no-ignore CANARY "$PWD"
rg -f secrets/key.txt
diff -r src secrets
diff -r . ../out
diff -rN secrets ../out
diff src/a.py secrets/key.txt
diff --from-file=secrets/key.txt src/a.py
diff <(cat secrets/key.txt) /dev/null
comm secrets/key.txt /dev/null
cat < secrets/key.txt
cat <secrets/key.txt
cat <<< "$(cat secrets/key.txt)"
echo "$(<secrets/key.txt)"
read x < secrets/key.txt; echo $x
while read l; do echo $l; done < secrets/key.txt
while read -r l; do echo "$l"; done < <(cat secrets/key.txt)
mapfile -t a < secrets/key.txt; echo ${a[@]}
exec 3<secrets/key.txt; cat <&3
exec {fd}<secrets/key.txt; cat <&$fd
exec 3<.; cat /proc/self/fd/3/secrets/key.txt
. secrets/key.txt; echo $KEY
source secrets/key.txt; echo $KEY
source <(cat secrets/key.txt); echo $KEY
xargs -a secrets/key.txt echo
xargs cat <<< secrets/key.txt
echo secrets/key.txt | xargs cat
printf '%s\n' secrets/key.txt | cpio -o
wc --files0-from=secrets/key.txt
date -f secrets/key.txt
curl -s file://$PWD/secrets/key.txt
curl -s "file://localhost$PWD/secrets/key.txt"
curl -s file://$PWD/secrets%2Fkey.txt
curl -s -F f=@secrets/key.txt http://127.0.0.1:1/
curl -d @secrets/key.txt http://127.0.0.1:1/
curl -Ksecrets/key.txt http://127.0.0.1:1/
cat /proc/self/cwd/secrets/key.txt
cat /proc/self/cwd/../ws/secrets/key.txt
cat /dev/fd/../cwd/secrets/key.txt
cat /proc/$$/cwd/secrets/key.txt
cat /proc/self/root$PWD/secrets/key.txt
python3 -c 'print(open("secrets/key.txt").read())'
python3 -c "import os; os.chdir('secrets'); print(open('key.txt').read())"
python3 -c "import shutil; shutil.copytree('.', '../out/pc')"; cat ../out/pc/secrets/key.txt
python3 -c 'import pathlib; [print(p.read_text()) for p in pathlib.Path("secrets").iterdir()]'
python3 secrets/key.txt
python3 -m zipfile -c ../out/x.zip .; python3 -m zipfile -e ../out/x.zip ../out; cat ../out/secrets/key.txt
python3 -m tarfile -c ../out/x.tar secrets
perl -pe1 secrets/key.txt
perl -e 'open F,"secrets/key.txt"; print <F>'
git diff --no-index src secrets
git diff --no-index /dev/null secrets/key.txt
git -C secrets diff --no-index /dev/null key.txt
git grep --no-index CANARY
git grep --untracked --no-exclude-standard CANARY
git add -f secrets; git diff --cached
git add -Af .; git diff --cached HEAD
git add -A; git diff --cached
git add :/; git diff --cached
git add --all; git diff --cached
git ls-files -o | xargs cat
tree -fi | xargs cat
du -a | cut -f2 | xargs cat
ls -d */* | xargs cat
python3 -m http.server
7z a ../out/x.7z .
cp -Tr . ../out/t; cat ../out/t/secrets/key.txt
git add .; git diff --cached
git add *; git diff --cached
git stash -a; git stash show -p --include-untracked; git stash pop
git stash -u; git stash show -p --include-untracked; git stash pop
git stash push --include-untracked; git show stash^3; git stash pop
git hash-object -w secrets/key.txt | xargs git cat-file -p
git archive --add-file=secrets/key.txt HEAD
git mv -f secrets s3; cat s3/key.txt
git --git-dir=.git --work-tree=secrets add .; git diff --cached
timeout 5 cat secrets/key.txt
nohup cat secrets/key.txt
strings secrets/key.txt
base64 secrets/key.txt | base64 -d
split -b 100 secrets/key.txt ../out/sp; cat ../out/spaa
unknown-tool --file=secrets/key.txt
unknown-tool --path .
docker run -v "$PWD":/app alpine cat /app/secrets/key.txt
docker cp . box:/x
"""

ORDINARY = r"""
ls
ls -la .
curl -s http://127.0.0.1:1/x | cat
wget -q -O - http://127.0.0.1:1/ | head
ls -R src | head -50
cd . && ls
cd src && ls
cat README.md
head -n 3 src/a.py | sort | uniq -c
stat .
mkdir -p build/out
touch build/x
du -sh .
pytest -q || true
python3 -m pytest -q . || true
python3 -c "print('.'.join(['a', 'b']))"
python3 -c "print(1 + 1)"
python3 src/a.py
make -n || true
make test || true
npm test || true
npm run secrets || true
node -v || true
git status
git status --short | head
git log --oneline -5
git log --oneline | head -3
git diff --stat | cat
git diff | cat
git add README.md
git add -u
git commit -qm "rotate secrets" || true
git checkout -q -b secrets
git stash && git stash pop || true
grep -rn import src | sort
grep -n TODO README.md || true
find src -name '*.py' -exec wc -l {} +
find . -name '*.py' | xargs wc -l
find . -name '*.py' -exec grep -l import {} +
cp src/a.py . && ls
cp -r src build/copy && ls build
mv a.py build/b.py || true
ln -sf ../src/a.py build/link
tar czf build/s.tgz src && tar tzf build/s.tgz | head
tar xzf build/s.tgz -C . || true
rm -rf build/out
PYTHONPATH=. python3 -c 'print(2)'
export MODE=test && echo $MODE
for f in *; do echo "$f"; done
cat *.md | wc -l
chmod +r *
find . -maxdepth 1 -name '*.md' -exec head -1 {} \;
git switch -q -c secrets
for f in src/*.py; do wc -l "$f"; done
if [ -f README.md ]; then echo yes; fi
sh -c 'echo nested'
(cd src && ls)
cd "$(git rev-parse --show-toplevel)" && ls
ruff check . || true
mypy . || true
pip --version || true
gcc -I. -Isrc x.c -o x || true
echo secrets | tr a-z A-Z
awk -F, '{print $1/2}' README.md | sort
sed -i 's/a/b/' build/x || true
env | grep -c PATH
which python3 | cat
date +%Y | cat
diff README.md src/a.py | head -3
"""


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    ws = (tmp_path / "ws").resolve()
    for name, text in {
        "secrets/key.txt": f"KEY={CANARY}\n",
        "secrets/sub/inner.txt": f"{CANARY}\n",
        "src/a.py": "import os\n",
        "README.md": "text\n",
        "build/x": "a\n",
        "../out/x": "",
        "../home/x": "",
    }.items():
        (ws / name).parent.mkdir(parents=True, exist_ok=True)
        (ws / name).write_text(text)
    for words in ("init -q", "add README.md src", "commit -qm x"):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *identity, *words.split()], cwd=ws, check=True, capture_output=True)
    return ws


def run(line: str, ws: Path) -> str:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(ws.parent / "home"), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["bash", "-c", line], cwd=ws, env=env, capture_output=True, timeout=60, stdin=subprocess.DEVNULL
    )
    return (done.stdout + done.stderr).decode(errors="replace")


@pytest.mark.parametrize("line", lines(LINES_THAT_READ))
def test_no_line_prints_what_a_rule_refuses_to_read(ws, line):
    decision = decided(line, ws, denied(ws, "Read(secrets/**)"), mode="bypass")
    shown = "" if isinstance(decision, Deny) else run(line, ws)
    assert CANARY not in shown
    assert isinstance(decision, Deny)


@pytest.mark.parametrize("line", lines(ORDINARY))
def test_ordinary_lines_run_despite_the_rule(ws, line):
    decision = decided(line, ws, denied(ws, "Read(secrets/**)"), mode="bypass")
    assert isinstance(decision, Allow), decision
    assert CANARY not in run(line, ws)


@pytest.mark.parametrize("line", ["git add -A", "git add .", "git add -A && git commit -m 'x y'"])
def test_git_may_add_all_if_it_ignores_the_refused_files(ws, line):
    (ws / ".gitignore").write_text("secrets/\n")
    rules = denied(ws, "Read(secrets/**)")
    assert isinstance(decided(line, ws, rules, mode="bypass"), Allow)
    assert isinstance(decided("git add -A -f", ws, rules, mode="bypass"), Deny)
    (ws / ".gitignore").write_text("secrets/*\n!secrets/key.txt\n")
    assert isinstance(decided(line, ws, rules, mode="bypass"), Deny)


def test_a_sandbox_that_hides_the_files_lets_them_run(ws):
    rules = denied(ws, "Read(secrets/**)")
    for line in ("tar c .", "find . -exec cat {} +", "git add -A", "cp -a . ../out"):
        decision = decided(line, ws, rules, BUBBLEWRAP, "bypass")
        assert isinstance(decision, Allow)
        assert decision.grant.rules


@pytest.mark.parametrize(
    "line", ["x . " * 8_000, "cat " + " ".join(f"a{n}/b" for n in range(9_000)) + " secrets/key.txt"]
)
def test_a_line_too_long_to_be_checked_is_refused(ws, line):
    assert isinstance(decided(line, ws, denied(ws, "Read(secrets/**)"), mode="bypass"), Deny)
