"""Rules that refuse edits let ordinary shell lines run without a sandbox; these lines change no protected file."""

import pytest
from shell_workspace import lines
from test_refused_writes import RULES, denied_files, run
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
def test_ordinary_lines_run_and_change_no_protected_file(ws, line):
    before = denied_files(ws)
    decision = decided(line, ws, denied(ws, *RULES), mode="bypass")
    assert isinstance(decision, Allow), decision
    run(line, ws)
    assert denied_files(ws) == before


ORDINARY_OF_OTHER_PROGRAMS = r"""
python3 manage.py migrate
python3 manage.py makemigrations
python manage.py test .
npm run migrate
npx jest
npx tsc --noEmit
cargo test --workspace
go build ./...
go vet ./... && go test ./... | tail
make clean all test
cmake -S . -B build && cmake --build build
docker build -t x .
docker compose up -d
docker run --rm -v "$PWD/build":/b alpine ls /b
docker run --rm -v /var/run/docker.sock:/var/run/docker.sock alpine ls
docker run --rm -v "$PWD":/app:ro alpine ls
kubectl apply -f k8s/
terraform plan
psql -f migrations/001.sql
psql < migrations/001.sql
mysql db < migrations/001.sql
sqlite3 app.db < migrations/001.sql
alembic upgrade head
pip install -e .
pip install -r requirements.txt
uv sync
poetry install
pre-commit run --all-files
pytest tests/ -k 'a or b' --cov=src --cov-report=html
pytest --junitxml=build/r.xml
coverage run -m pytest && coverage html
black src
black src tests && isort src
ruff check --fix src
ruff format src
ruff check .
mypy .
eslint src
prettier --check .
tsc -p .
git pull --rebase
git push origin HEAD
git cherry-pick abc
git reset --hard HEAD~1
git stash
git stash -u
git clean -fd
git checkout main
git checkout -b x origin/main
git checkout HEAD~1
git checkout main -- src
git restore --staged .
git restore --staged conf/guard.txt
git switch main
git merge --no-ff x
git log --stat -- migrations | head
git blame conf/guard.txt | head
git show HEAD --stat | cat
git diff --name-only | cat
git diff --name-only | grep py$ | xargs ruff check
git diff --name-only -- '*.py' | xargs black --check
git ls-files '*.py' | xargs black
git rev-parse HEAD | cut -c1-8
git commit -m "touch .git/hooks and conf/guard.txt" -q
git tag -a v1 -m 'conf/guard.txt'
git config --list | cat
git config user.email a@b
git config --global user.name x
git remote add o ../x
git submodule update --init
git worktree add ../wt main
git bisect start
git rebase -i HEAD~2
git archive --format=zip -o build/x.zip HEAD
gh pr create --title 'edit conf/guard.txt' --body 'x .git/config'
find . -name node_modules -prune -o -name '*.js' -print | xargs wc -l
find . -type d -empty -delete
find build -type f -delete
find . -name '*.orig' -delete -print
find . -name '*.bak' -exec rm -f {} \;
find src -name '*.py' | xargs sed -i 's/a/b/'
find . -type f -name '*.sh' -exec chmod +x {} +
find . -name Makefile -exec dirname {} \;
grep -rl foo src tests | xargs -r sed -i 's/foo/bar/g'
grep -rl --include='*.py' foo . | xargs -r sed -i 's/foo/bar/g'
rg -l foo src | xargs sed -i s/foo/bar/
rg -l nothinghere | xargs -r sed -i s/foo/bar/
sed -i 's#conf/guard.txt#conf/other.txt#' src/a.py
sed -i '/conf\/guard.txt/d' src/a.py
sed -n '/guard/p' conf/guard.txt
perl -pi -e 's#conf/guard.txt#x#' src/a.py
awk -F: '{print $1 > "build/out.txt"}' a.txt
echo "see conf/guard.txt" >> README.md
echo conf/guard.txt >> .gitignore
printf '%s\n' conf/guard.txt > build/list
cat conf/guard.txt > build/copy
cp conf/guard.txt build/
cp -r conf build/
cp .env.example .env2
ln -s ../conf/guard.txt build/link
tar czf build/x.tgz conf migrations
zip -r build/x.zip conf
rsync -a conf/ build/conf/
rsync -av src/ host:/srv
scp conf/guard.txt host:
scp host:x build/
curl -d @conf/guard.txt http://127.0.0.1:1
curl -fsSL http://127.0.0.1:1/x | tar xz -C build
curl -sSL http://127.0.0.1:1/x.sh | bash
wget -q http://127.0.0.1:1/x.tar.gz && tar xzf x.tar.gz
mv build/a build/b
rm -rf build/conf node_modules
rm -f build/*.o *.o
rm -rf __pycache__ .pytest_cache
rm -rf "$TMPDIR/x"
rm -f "$file"
mkdir -p src/new && touch src/new/__init__.py
for f in *.md; do mv "$f" "build/$f"; done
for f in src/*.py; do cp "$f" build/; done
while read l; do echo "$l"; done < conf/guard.txt
while IFS= read -r f; do wc -l "$f"; done < <(git ls-files)
diff -u conf/guard.txt <(git show HEAD:conf/guard.txt)
bash scripts/setup.sh
./scripts/setup.sh --dry-run
python3 scripts/x.py --input conf/in.txt --output build/o.txt
python3 -c "import json; print(json.load(open('x.json')))"
python3 -c "import sys; sys.path.insert(0,'.'); import src"
node -e "console.log(require('./package.json').version)"
python3 -m venv .venv2
python3 -m http.server 0 &
pip freeze > requirements.txt
npm ci && npm run build -- --out-dir build
env | sort > build/env
export FOO=1; ./run.sh
source .venv/bin/activate && pytest
ssh -i ~/.ssh/id_ed25519 host uptime
ssh-keygen -lf ~/.ssh/id_ed25519.pub
ssh-add ~/.ssh/id_ed25519
GIT_SSH_COMMAND='ssh -i ~/.ssh/id' git push
cat ~/.ssh/known_hosts | wc -l
. ~/.bashrc; echo x
bash --rcfile ~/.bashrc -ic true
gpg --list-keys
tail -f ~/.bash_history | head -1
shellcheck .git/hooks/pre-commit | cat
sh .git/hooks/pre-commit | cat
.git/hooks/pre-commit | cat
bat .git/config | cat
diff .git/config ~/.gitconfig | cat
cp .git/hooks/pre-commit build/pre-commit.bak && ls | cat
du -sh .git | cat
stat .git/config | cat
tar czf build/all.tgz --exclude=.git . | cat
tar czf build/git.tgz .git | cat
cp -r . ../copy | cat
chmod -R a+rX . | cat
time make
strace -o build/trace ls
nice -n 5 make -j4 2>&1 | tee build/log
timeout 60 npm test 2>&1 | tail -50
screen /dev/ttyUSB0 115200
esptool --port /dev/ttyUSB0 flash_id
ffmpeg -i a.mp4 build/b.mp4
convert a.png build/b.png
qemu-system-x86_64 -kernel /boot/vmlinuz
"""


@pytest.mark.parametrize("line", lines(ORDINARY_OF_OTHER_PROGRAMS))
def test_ordinary_lines_that_need_other_programs_are_allowed(ws, line):
    decision = decided(line, ws, denied(ws, *RULES), mode="bypass")
    assert isinstance(decision, Allow), decision
