"""Ordinary lines beside rules that refuse to edit, without a sandbox: they run, and change nothing that is refused."""

import pytest
from test_refused_writes import RULES, lines, of_rules, run
from test_refused_writes import ws as _ws
from test_rules_in_lines import decided, denied

from bradawl.core.permissions import Allow

ws = _ws

ORDINARY = r"""
ls -la
cat conf/guard.txt | head -3
cat migrations/*.sql | wc -l
grep -rn orig conf | sort
grep -rl orig src | xargs sed -i s/orig/new/ || true
diff conf/guard.txt a.txt || true
less conf/guard.txt | cat
wc -l conf/* migrations/*
sed -n 1,3p conf/guard.txt | cat
awk '{print $1}' conf/guard.txt | sort
head -1 migrations/001.sql > out
sort conf/guard.txt > sorted.txt
cp conf/guard.txt copy.txt && cat copy.txt | cat
cp -r conf build/conf || true
cp -r src build/ && ls build
cp -r src/. build
tar czf build/all.tgz . || true
tar czf build/s.tgz src && tar tzf build/s.tgz | head
tar czf build/s.tgz src && tar xzf build/s.tgz -C build
tar cf - src | tar xf - -C build
zip -qr build/x.zip conf && unzip -qo build/x.zip -d build/unzipped
python3 -c "print(open('conf/guard.txt').read())"
python3 -c "print('a/b')"
python3 -m json.tool x.json | head
python3 src/a.py conf-x
python3 - <<< 'print(1)'
make -n || true
make build || true
npm test || true
npm run build || true
pytest -q || true
pytest migrations || true
python3 -m pytest -q . || true
ruff check . || true
ruff check migrations || true
mypy src || true
cargo build || true
go test ./... || true
git status --short | cat
git log --oneline | head -3
git log -p -- conf/guard.txt | head
git diff | cat
git diff HEAD -- conf/guard.txt | cat
git show HEAD:conf/guard.txt | cat
git add -A && git commit -qm 'rewrite conf/guard.txt and .git/config docs' || true
git add conf migrations && git status --short | cat
git commit -qam x || true
git checkout -q -b topic
git switch -q -c topic2
git stash -q && git stash pop -q || true
git stash list | cat
git fetch -q || true
git branch -a | cat
git tag v1 && git tag | cat
git merge -q topic || true
git rebase -q HEAD || true
git reset -q HEAD~0
git rm -q --cached src/a.py || true
git rm -qf src/a.py
git mv src/a.py src/b.py && git status --short | cat
git restore src/a.py
git checkout -- src/a.py
git archive -o build/a.tar HEAD
git archive HEAD | tar x -C build
git format-patch -q -o build -1 --root
git bundle create -q build/x.bundle HEAD
git diff --output=build/x.diff HEAD
git clone -q . build/clone && ls build/clone | head -2
git clone -q . build/clone && rm -rf build/clone
git init -q build/new
git config user.name x || true
git config --get user.name | cat
git ls-files | wc -l
git ls-files '*.py' | xargs wc -l
git ls-files '*.py' | xargs sed -i s/import/import/
git ls-files src | while read f; do sed -i s/x/y/ "$f"; done
git grep -n orig | head
git worktree list | cat
git apply build/none.diff || true
GIT_PAGER=cat git log -1 | cat
git -C src status --short | cat
find . -name '*.pyc' -delete
find . -name __pycache__ -type d -exec rm -rf {} +
find . -type f -name '*.py' -exec sed -i s/import/import/ {} +
find . -name '*.log' | xargs rm -f
find . -type f -not -path './.git/*' -not -path './[cm]*' -not -path './.bradawl/*' -exec chmod u+r {} +
find . -path ./.git -prune -o -name '*.tmp' -exec rm {} +
find src -type f -exec grep -l import {} +
find . -type f | head
find . -name 'guard*' | xargs cat
find conf -type f -exec wc -l {} +
for f in src/*.py; do sed -i s/x/y/ "$f"; done
for f in conf/*; do echo "$f"; done
for f in $(git ls-files); do echo $f; done
sed -i s/import/import/ src/a.py
sed -i s/import/import/ src/*.py
perl -pi -e s/import/import/ src/a.py
echo x > build/out.txt
echo x >> build/g*
cat a.txt | tee build/t.txt > out
rm -rf build dist *.egg-info
rm -rf build/*
rm -f *.tmp
rm -rf $BUILD/x
mkdir -p build/conf && touch build/conf/guard.txt
mv build build2
mv src/a.py src/z.py || true
ln -s ../src/a.py build/link && cat build/link | cat
ln -s src s && cp a.txt s/new.txt && rm s
chmod -R u+w . || true
chmod +x src/a.py && ls -l src
curl -s -o build/x file:///etc/hostname
curl -s http://127.0.0.1:1/x | cat
openssl rand -hex 4 | cat
gzip -k src/a.py && gzip -dc src/a.py.gz | head -1
gzip -c conf/guard.txt > build/g.gz
xz -k src/a.py || true
split -b 10 a.txt build/part
patch --dry-run -p1 < p.diff || true
docker build -f conf/guard.txt . || true
bash -n src/x.sh || true
sh .git/hooks/pre-commit.sample || true
cat .git/config | grep -c core
ls .git/hooks | head -2
shellcheck .git/hooks/*.sample || true
source ~/.bashrc || true
ssh -i ~/.ssh/id_rsa -o BatchMode=yes -o ConnectTimeout=1 x@127.0.0.1 -p 1 true || true
cat ~/.bashrc | head -1
cp ~/.bashrc build/bashrc.bak && ls build | cat
grep -c x ~/.bashrc .git/config | cat
env FOO=1 make -n || true
cd src && sed -i s/import/import/ a.py
env -C src sed -i s/import/import/ a.py
timeout 5 ls | cat
command -v psql | cat
node -v || true
gcc -c x.c -o build/x.o || true
black --check . || true
prettier --check . || true
"""


@pytest.mark.parametrize("line", lines(ORDINARY))
def test_ordinary_commands_run_beside_such_rules(ws, line):
    before = of_rules(ws)
    decision = decided(line, ws, denied(ws, *RULES), mode="bypass")
    assert isinstance(decision, Allow), decision
    run(line, ws)
    assert of_rules(ws) == before
