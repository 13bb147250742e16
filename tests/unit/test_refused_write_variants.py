"""More spellings of lines that would change protected paths are refused; the test runs none of them."""

import pytest
from shell_workspace import lines
from test_refused_writes import RULES
from test_refused_writes import ws as _ws
from test_rules_in_lines import decided, denied

from bradawl.core.permissions import Deny

ws = _ws

WRITES_OF_DENIED_PATHS = r"""
find conf -name guard.txt -ok rm {} \;
find . -samefile conf/guard.txt -delete
find conf -newer a.txt -o -name 'g*' -delete
find . -regex '.*guard.*' -delete
find -delete
find . -maxdepth 2 -name 'guard.*' -execdir rm {} \;
find ./conf/ -type f -exec mv {} /tmp/ \;
find conf -type f -exec tee {} + < a.txt
find conf -fprint conf/guard.txt
find . -name x -fprintf conf/guard.txt %p
fd guard -x rm
fd -e txt . conf -X rm
mv conf/* build/
cp --target-directory=conf x/guard.txt
cp --backup a.txt conf/g*
install -D a.txt conf/guard.tx?
ln -sf "$PWD/a.txt" conf/guard.txt
rsync -a --delete x/ conf
sed --in-place s/o/0/ conf/g*
sed -s -i -e s/o/0/ -- conf/guard.t*
sed -E -i'' s/o/0/ conf/g*
sed -n '/o/w conf/guard.txt' a.txt
sed '$w conf/guard.txt' a.txt
sed -e 's/x/y/gw conf/guard.txt' a.txt
perl -i.bak -ne print conf/g*
ruby -i -pe 1 conf/g*
awk -i inplace 1 conf/g*
awk 'BEGIN{printf "x" > "conf/guard.txt"}'
awk 'BEGIN{f="conf/guard.txt"; print "x" > f}'
awk '{print | "tee conf/guard.txt"}' a.txt
git checkout HEAD~1 conf/guard.txt
git checkout -- conf
git checkout .
git restore .
git restore --source=HEAD~1 conf
git rm -r --force conf
git rm -rf -- 'co*'
git mv conf/* build
git stash push conf/guard.txt
git -C conf checkout -- guard.txt
git --work-tree=conf checkout -- .
git show HEAD:conf/guard.txt > conf/guard.tx?
git apply --include='conf/*' p.diff
git am p.diff
git cat-file -p HEAD:a.txt | tee conf/gu*
git worktree add conf/guard.txt
for f in conf/*.txt; do sed -i s/o/0/ "$f"; done
for d in */; do rm -f "$d"guard.txt; done
for d in */; do rm -rf $d; done
for f in `ls conf`; do rm conf/$f; done
while read f; do rm $f; done < <(find conf -type f)
while read f; do rm $f; done <<< conf/guard.txt
find conf -type f > l; xargs rm -f < l
find conf -type f | while read -r f; do mv "$f" /tmp; done
ls conf/*.txt | xargs rm
ls -d c* | xargs rm -rf
ls | xargs rm -rf
rg -l orig | xargs sed -i s/orig/new/
rg --files conf | xargs rm
grep -lr orig | xargs -I{} cp a.txt {}
mapfile -t a < <(git ls-files conf); rm "${a[@]}"
a=(conf/*.txt); rm "${a[@]}"
set -- conf/g*; rm "$1"
x=conf/guard.txt; echo hi > "$x"
x=guard; echo hi > conf/$x.txt
x='conf/g*'; rm $x
eval 'rm conf/g*'
bash -c 'rm conf/g*'
sh -c 'cd conf && rm g*'
echo 'rm conf/g*' | sh
sh <<< 'rm conf/g*'
sudo -D conf rm guard.txt
make -C conf -f /dev/null guard.txt; cd conf; rm gu*
cd conf/..; rm conf/g*
pushd conf >/dev/null && rm g* && popd
(cd conf; : > guard.txt)
cd ./conf && > guard.txt
env -S 'rm conf/guard.txt'
env -C conf sh -c 'rm g*'
timeout 5 rm conf/g*
nohup cp a.txt conf/g*
xargs -a <(echo conf/guard.txt) rm
parallel rm ::: conf/g*
busybox rm conf/g*
coproc rm conf/g*
time rm conf/g*
command rm conf/g*
\rm conf/g*
/bin/rm conf/g*
zip -m z.zip conf/*
zip --move z.zip conf/guard.txt
7z a -sdel z.7z conf/guard.txt
tar czf z.tgz conf --remove-files
tar -c --remove-files -f z.tar conf
tar xf z.tar conf/guard.txt
tar --one-top-level=conf -xf z.tar
bsdtar -xf z.tar -C conf
unzip -o z.zip -d conf
unxz conf/guard.txt.xz; xz -z conf/*
zstd --rm conf/guard.txt
bzip2 -k conf/g*; rm conf/g*
openssl rand -out conf/guard.txt 4
openssl dgst -out conf/guard.txt a.txt
gpg --output conf/guard.txt -d a.txt
curl -o conf/guard.txt http://127.0.0.1:1/
curl http://127.0.0.1:1/x --output "conf/guard.txt"
curl -O --output-dir migrations http://127.0.0.1:1/001.sql
wget -O conf/guard.txt http://127.0.0.1:1/
wget -P migrations http://127.0.0.1:1/001.sql
jq . x.json > conf/gu*
python3 -m zipfile -e z.zip migrations
python3 -c "from shutil import move; move('a.txt','conf/guard.txt')"
python3 -c "import glob,os; [os.remove(f) for f in glob.glob('conf/*')]"
python3 - <<< "open('conf/guard.txt','w')"
python3 src/a.py conf/guard.txt
node -e "require('fs').writeFileSync('conf/guard.txt','x')"
ruby -e 'File.write("conf/guard.txt","x")'
php -r 'file_put_contents("conf/guard.txt","x");'
sqlite3 conf/guard.txt 'create table t(a)'
ed -s conf/guard.txt <<< w
ed -s a.txt <<< 'w conf/guard.txt'
ex -sc 'wq' conf/guard.txt
vim -c wq conf/guard.txt
shred conf/g*
srm conf/guard.txt
trash-put conf/guard.txt
chattr +i conf/guard.txt
setfacl -m u:1:r conf/guard.txt
chmod 000 conf/g?ard.txt
chown nobody conf/gu*
mkdir -p migrations/x
mktemp -p migrations
mkfifo migrations/p
rename guard x conf/guard.txt
rename.ul guard x conf/*
mmv conf/guard.txt x
dos2unix conf/g*
black migrations
ruff format migrations/001.sql
prettier --write conf/guard.txt
cp -as "$PWD/conf" k && echo x > k/guard.txt
ln -s conf/guard.txt z && truncate -s0 z
ln -s "$(pwd)/conf" z; rm z/guard.txt
ln -st src ../conf; rm src/conf/guard.txt
ln -s ../conf src/; echo x > src/conf/guard.txt
ln -s ../conf src/c; cd src/c; echo x > guard.txt
ln -s a b; ln -s conf a; echo x > b/guard.txt
mkdir -p d/e; ln -s ../../conf d/e/c; tee d/e/c/guard.txt < a.txt
cp -l conf/guard.txt h
ln conf/guard.txt h
exec 5>>conf/gu*
: >| conf/guard.t?t
{ echo x; } > conf/g*
if true; then echo x; fi >> conf/g*
for i in 1; do echo x; done > conf/g*
f() { echo x; } > conf/g*; f
echo x >conf/g*
echo x 2>conf/guard.* 1>&2
echo x &>>conf/g*
docker run -v "$PWD/conf":/c alpine rm /c/guard.txt
docker run -v .:/w alpine rm -rf /w
docker cp box:/x conf/guard.txt
kubectl cp p:/x conf/guard.txt
scp h:/x conf/guard.txt
rclone copy x conf
my-tool --out=conf/guard.txt
my-tool -oconf/guard.txt
my-tool conf
./build.sh conf/guard.txt
npx rimraf conf
npx prettier --write conf/guard.txt
"""

WRITES_OF_PROTECTED_PATHS = r"""
echo .git/hooks/pre-commit | while read f; do cp a.txt $f; done
find . -path '*/hooks/pre-commit' -exec tee {} + < a.txt
find .git -type f -name '*.sample' -delete
find . -type f -print0 | xargs -0 sed -i s/a/b/
find .git -type f | xargs rm
for f in .git/hooks/*; do rm $f; done
for h in pre-commit pre-push; do cp a.txt .git/hooks/$h; done
for d in .git .x; do cp a.txt $d/hooks/pre-push; done
d=.git; cp a.txt $d/config
d=.git/hooks; install a.txt "$d"
cd .git; for f in hooks/*; do cp ../a.txt $f; done
cd .git/hooks; ln -s ../../a.txt pre-push
cd .g*; echo x >> config
cd .git && git config core.hooksPath /x
git --git-dir .git config user.name x
git --git-dir=.git config --unset user.name
git config --file=.git/config --add a.b c
git config --local -e
git config edit
git init --template=./tpl x
git clone --template=tpl . y
git clone . .git/modules/x
git worktree add .git/hooks/x
git submodule add ./x .git/hooks/y
git bugreport -o .git/hooks
git fast-export --export-marks=.git/hooks/x HEAD
git show --output=.git/config HEAD
git -C .git diff --output=config HEAD
git format-patch --output-directory=.git/hooks -1
git checkout-index -a --prefix=.git/hooks/
GIT_WORK_TREE=.git git checkout -f HEAD a.txt
GIT_DIR=$PWD/.git GIT_WORK_TREE=.git/hooks git reset --hard
git --work-tree .git/hooks restore a.txt
git --work-tree=.git/hooks reset --hard
git diff > .git/h*/pre-commit
tar xf x.tar --directory .git/hooks
tar xf x.tar --directory=.g*/hooks
tar -xf x.tar -C.git/hooks
tar c --transform='s|a.txt|.git/hooks/p|' a.txt | tar x
unzip x.zip -d .git/hooks
cpio -idD .git/hooks < x
curl -o.git/hooks/p http://127.0.0.1:1
curl --output-dir .git/hooks -O http://127.0.0.1:1/pre-push
wget -O.git/hooks/p http://127.0.0.1:1
wget -P .git/hooks http://127.0.0.1:1/pre-push
openssl req -keyout .git/hooks/p -x509
iconv -o .git/hooks/p a.txt
sed 's/x/y/;w .git/hooks/p' a.txt
sed --expression='w .git/hooks/p' -n a.txt
sed -ne '1w.git/hooks/p' a.txt
sed "1e cp a.txt .git/hooks/p" a.txt
csplit --prefix=.git/hooks/x a.txt 1
script .git/hooks/p -c true
split a.txt --additional-suffix=x .git/hooks/pre
ln -s .git x; mkdir x/hooks2; cp a.txt x/hooks/p
ln -s "$PWD/.git/hooks" x; cp a.txt x/
ln -s ../.git/hooks src/h && install a.txt src/h/pre-push
ln .git/hooks/pre-commit h
cp -l .git/config h
cp -al .git/hooks h
link .git/config h
cp -s "$PWD/.git/config" z; echo x >> z
mv .git/hooks h
mv .git .git2
mv ~/.bashrc x
rsync a.txt .git/hooks/
rsync -a x/ ~/.ssh/
scp h:x .git/hooks/
dd of=.git/hooks/p if=a.txt
tee .git/hooks/{a,b} < a.txt
sort a.txt -o.git/config
uniq a.txt .git/config
xxd -r a.txt .git/config
patch .git/config < p.diff
patch -o .git/config a.txt p.diff
ed .git/config <<< w
printf 'w .git/hooks/p\nq\n' | ed a.txt
vim -c 'w .git/hooks/p' -c q a.txt
python3 -c "import os;os.rename('a.txt','.git/hooks/p')"
python3 <<< "open('.git/hooks/p','w').write('x')"
node -e "require('fs').copyFileSync('a.txt','.git/hooks/p')"
perl -e 'open F,">.git/hooks/p"'
ruby -e 'IO.write(".git/hooks/p","")'
my-tool -o .git/hooks/p
my-tool .git/config
gcc -o .git/hooks/p x.c
go build -o .git/hooks/p
rustc -o .git/hooks/p x.rs
make -C .git/hooks; cp a.txt pre-push
npm --prefix .git/hooks i
pip install -t ~/.ssh x
pip download -d .git/hooks x
docker cp b:/x .git/hooks/p
docker run -v ~/.ssh:/s alpine sh
docker run --mount type=bind,src=.git,dst=/g alpine
ssh-keygen -f ~/.ssh/authorized_keys
chmod 777 .g*/config
chmod +x .git/hooks/*
chown nobody ~/.ssh/*
touch ~/.bash*
rm -rf ~/.config/../.ssh
rm -rf ~/.[!.]*
mv ~/.[a-z]* /tmp
find ~ -maxdepth 1 -name '.*' -exec rm -rf {} +
find ~ -type f | xargs rm -f
find ~/.ssh -name 'a*' -exec sh -c 'cp a.txt {}' \;
tar -cf x.tar --remove-files ~/.ssh
tar -C ~ -cf x.tar --remove-files .ssh
zip -rm x.zip ~/.ssh
gzip ~/.ssh/*
env -C ~ cp "$OLDPWD"/a.txt .profile
env -C ~ sh -c 'echo x >> .bashrc'
cd; echo x >> .bash*
cd ~ && tee .profile
pushd ~; cp a.txt .zshrc
sudo -D ~ cp a.txt .bashrc
HOME2=~; echo x >> $HOME2/.bashrc
ln -s ~ h; cp a.txt h/.bashrc
ln -s ~/.ssh s; cp a.txt s/authorized_keys
cp a.txt ~/.config/systemd/user/x.service
cp -r x/. ~/.ssh
cp a.txt .bradawl/
cp -r x .br*
mv .bradawl b
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return ws.__wrapped__(tmp_path_factory.mktemp("lines"))


@pytest.mark.parametrize("line", lines(WRITES_OF_DENIED_PATHS))
def test_an_edit_rule_refuses_the_line(place, line):
    assert isinstance(decided(line, place, denied(place, *RULES), mode="bypass"), Deny)


@pytest.mark.parametrize("line", lines(WRITES_OF_PROTECTED_PATHS))
def test_every_mode_refuses_the_line(place, line):
    assert isinstance(decided(line, place, mode="bypass"), Deny)


@pytest.mark.parametrize(
    "line",
    [
        "find . " + "\\( " * 3_000 + "-delete",
        "rm " + "a/" * 3_000 + "x",
        "cp a.txt " + "x" * 5_000,
        "tar xf broken.tgz -C build",
        "find closed -empty -delete; cp -r closed build; rm closed/*/x",
    ],
)
def test_no_line_and_no_file_name_makes_the_decision_fail(place, line):
    (place / "broken.tgz").write_bytes(b"\x1f\x8b\x08\x00" + b"\xff" * 100)
    (place / "closed").mkdir(exist_ok=True)
    decided(line, place, denied(place, *RULES), mode="bypass")
