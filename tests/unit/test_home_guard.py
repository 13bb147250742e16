"""Commands that delete, move or lock the home folder are refused in mode bypass, in every spelling."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from shell_workspace import lines

from bradawl.core.permissions import Allow, Decision, Deny, Policy, Request, decide
from bradawl.safety.permissions.protected_paths import built_in_rules
from bradawl.safety.shell.analysis import ShellContext, line_effects
from bradawl.workspace.files import LocalFiles

Decide = Callable[[str], Decision]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = Path(os.path.realpath(tmp_path)) / "house"
    for name in (".ssh/id_ed25519", ".bashrc", "kept", "project/a", "../ws/src/a", "../ws/list", "../outside/x"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("text\n")
    (home.parent / "ws" / "linked").symlink_to(home)
    return home


def deciding_in(home: str, ws: str) -> Decide:
    files = LocalFiles(home)
    context = ShellContext(files.resolve, home, (ws,))
    policy = Policy("bypass", rules=built_in_rules((ws,), home), roots=(ws,))
    return lambda line: decide(policy, Request("bash", "digest", line_effects(line, ws, {}, context)))


@pytest.fixture
def decide_on(home: Path) -> Decide:
    return deciding_in(str(home), str(home.parent / "ws"))


REFUSED = lines(r"""
    rm -rf ~
    rm -rf $HOME$NOTHING
    rm -rf ${HOME}${x}
    rm -rf "$HOME"/
    rm -rf $HOME/$UNSET
    rm -rf "$HOME/$UNSET"
    rm -rf "$HOME/${1}"
    rm -rf ~/$(cat list)
    rm -rf ${HOME:-/}
    rm -rf "${HOME:?}"
    rm -rf "${HOME:?}/"*
    rm -rf ${HOME%/}
    rm -rf ${HOME%%x}
    rm -rf ${HOME#x}
    rm -rf ${HOME%/*}/*
    n=HOME; rm -rf ${!n}
    declare -n n=HOME; rm -rf $n
    H=$(dirname ~/x); rm -rf $H
    rm -rf $(realpath ~)
    rm -rf $(readlink -f ~)
    rm -rf $(cd ~ && pwd)
    rm -rf $(cd ~ && pwd -P)
    rm -rf $(command echo ~)
    rm -rf $(eval echo ~)
    rm -rf $(printenv HOME)
    rm -rf "$(printf %s "$HOME")"
    rm -rf $(ls -d ~/*)
    rm -rf $(find ~ -maxdepth 1)
    ln -s ~ lk; rm -rf lk/
    ln -s ~ lk; rm -rf lk/*
    ln -s ~ lk && cd lk && rm -rf *
    ln -s ~ lk; cd lk; find . -delete
    ln -sfT ~ lk; chmod -R 0 lk/
    l=lk; ln -s "$HOME" $l; rm -rf $l/
    ln -s ~ a; mv a b; rm -rf b/
    ln -s ~ a; ln -s a b; rm -rf b/
    mkdir d; ln -s ~ d; rm -rf d/house/
    ln -s ../../house src/up; rm -rf src/up/*
    cp -s ~ lk; rm -rf lk/
    mount --bind ~ m; rm -rf m/
    sudo ln -s ~ lk; rm -rf lk/
    rm -rf linked/
    rm -rf linked/*
    cd linked && rm -rf .
    find linked/ -delete
    cd ~; cd -; rm -rf $OLDPWD
    cd ~ && cd - && rm -rf ~-
    cd ~; cd src; cd -; rm -rf *
    pushd ~; rm -rf *
    pushd ~; pushd src; popd; rm -rf *
    pushd ~; pushd src; pushd; rm -rf *
    cd; rm -rf *
    cd ~ ; rm -rf .[!.]* *
    cd ~ && rm -rf ..?* .[!.]* *
    rm -rf ~/*
    rm -rf ~/.*
    rm -rf ~/?*
    rm -rf ~/[!.]*
    rm -rf ~/[a-zA-Z]*
    rm -rf ~/[[:alnum:]]*
    rm -rf "$HOME"/.[^.]*
    rm -rf ~/{*,.*}
    rm -rf ~/!(keep)
    rm -f ~/*
    rm ~/.??*
    rm -rf {~,x}
    rm -rf ../house
    rm -rf ../h*
    rm -rf -- $HOME//
    rm ~ -rf
    sudo rm -rf ~
    env -i rm -rf ~
    command rm -rf ~
    \rm -rf ~
    busybox rm -rf ~
    choom -n 1 -- rm -rf ~
    /lib64/ld-linux-x86-64.so.2 /bin/rm -rf ~
    bwrap --dev-bind / / rm -rf ~
    firejail sh -c 'rm -rf ~'
    docker run -v $HOME:/x alpine rm -rf /x
    docker run --rm --volume=$HOME:/x:rw alpine sh -c 'rm -rf /x/*'
    docker run --rm --mount type=bind,source=$HOME,target=/x alpine rm -rf /x
    xargs rm -rf <<< ~
    xargs -0 rm -rf < <(printf '%s\0' ~)
    printf '%s\n' ~ | xargs -d '\n' rm -rf
    echo ~ > list; xargs rm -rf < list
    ls -A ~ | xargs -I{} rm -rf ~/{}
    ls ~ | xargs --replace rm -rf ~/{}
    cat list | xargs -I % rm -rf $HOME/%
    cd ~ && ls -A | xargs rm -rf
    find ~ | xargs -d '\n' rm -rf
    find ~ -type f -print0 | xargs -0 rm -f
    find ~ -type f | xargs shred
    bash -c 'rm -rf ~'
    bash -c 'rm -rf "$@"' _ ~
    sh -c "rm -rf $HOME"
    bash <<< 'rm -rf ~'
    eval "rm -rf ~"
    f() { rm -rf "$1"; }; f ~
    f() { rm -rf ~/"$1"; }; f
    set -- ~; rm -rf "$@"
    a=(~); rm -rf ${a[0]}
    a=(~/*); rm -rf "${a[@]}"
    mapfile -t a < <(ls -d ~/*); rm -rf "${a[@]}"
    for d in ~; do rm -rf $d; done
    for d in ~/*; do rm -rf "$d"; done
    for f in $(ls -d ~/*); do rm -rf $f; done
    while read d; do rm -rf "$d"; done <<< ~
    while read f; do rm -rf "$f"; done < <(find ~)
    find ~ -print0 | while IFS= read -r -d '' f; do rm -rf "$f"; done
    ls -d ~/* | while read f; do rm -rf "$f"; done
    find ~ -delete
    find ~ -exec rm -rf {} +
    find ~ -exec sh -c 'rm -rf "$1"' _ {} \;
    git -C ~ clean -fdx
    git clean -xdf -- ~
    cd ~ && git clean -fdx
    (cd ~; git init; git clean -f -d)
    cd ~ && git -c clean.requireForce=false clean -dx
    git --git-dir=x/.git --work-tree=$HOME clean -fdx
    GIT_WORK_TREE=~ git clean -fdx
    export GIT_WORK_TREE=~; git clean -fdx
    cd ~ && git stash -u
    cd ~ && git rm -rf .
    tar --remove-files -cf x.tar ~
    tar cf x.tar --remove-files ~
    tar -cf x.tar -C ~ --remove-files .
    zip -rm x.zip ~
    7z a -sdel x.7z ~
    rsync -a --delete empty/ ~/
    rsync -r --delete-excluded e/ "$HOME"
    rsync -a --remove-source-files ~/ x/
    mv ~ ../outside/x
    mv ~/* ~/.* ../outside
    mv -t ../outside ~
    chmod -R 000 ~
    chmod 000 ~
    chmod a-rwx ~
    chown -R nobody ~
    shred -u ~/*
    truncate -s 0 ~/*
    trash-put ~
    gio trash ~
    rclone purge ~
    python3 -c "import shutil,pathlib; shutil.rmtree(pathlib.Path.home())"
    python3 -c "import shutil,os; shutil.rmtree(os.environ['HOME'])"
    perl -e 'use File::Path; rmtree($ENV{HOME})'
    node -e "require('fs').rmSync(process.env.HOME, {recursive: true})"
""")
REFUSED += ["cat <<E | bash\nrm -rf ~\nE", "while read d; do\n rm -rf $d\ndone <<E\n$HOME\nE"]

REFUSED_AS_BASH_EXPANDS_IT = lines(r"""
    rm -rf $(realpath ../../*/house)
    rm -rf ../hous[^x]
    rm -rf ../hou[[:alpha:]]e
    rm -rf ${HOME%e}[^x]
    env --chdir=.. rm -rf house
    rm -rf ${x}$HOME
    rm -rf ${HOME%e}[^x]
    /bin/r? -rf ~
    /bin/r[m] -rf ~
    r${x}m -rf ~
    tar --remove-files -cf /dev/null ~
    while read d; do rm -rf $d; done <<< $HOME
    mapfile d < <(echo $HOME); rm -rf ${d[0]}
    IFS=: read -a d <<< $HOME:x; rm -rf ${d[0]}
    [[ -v 'a[$(rm -rf ~)]' ]]
    let 'a[$(rm -rf ~)]'
    test -v 'a[$(rm -rf ~)]'
    printf -v 'a[$(rm -rf ~)]' x
    read 'a[$(rm -rf ~)]' <<< x
    declare 'a[$(rm -rf ~)]=1'
    echo $((a[$(rm -rf ~)]))
    (( a[$(rm -rf ~)] ))
    x='a[$(rm -rf ~)]'; echo $((x))
    unset 'a[$(rm -rf ~)]'
    sed '1e rm -rf ~' AGENTS.md
    sed -i '1e rm -rf ~' AGENTS.md
    sed 's/x/rm -rf ~/e' f
    tar -C / -cf x.tar --remove-files ~
    find ~ -type f | xargs rm -f
    xargs -a <(echo ~) rm -rf
    chmod 000 ~
    perl -e 'use File::Path; rmtree($ENV{HOME})'
    rm -rf ~/.[a-z]*
    env -C ~ rm -rf .
    env -C ~ rm -rf .ssh
    sudo -D ~ rm -rf .
    make -f - <<< $'x:\n\trm -rf ~'
    split --filter='rm -rf ~' f
    mapfile -C 'rm -rf ~' -c 1 a < f
    compgen -C 'rm -rf ~'
    zip x.zip f -TT 'rm -rf ~'
    git grep -O'rm -rf ~ #' be
    git -c core.pager='rm -rf ~' log
    GIT_PAGER='rm -rf ~' git log
    PAGER='rm -rf ~' man ls
    EDITOR='rm -rf ~' git commit
    GIT_SSH_COMMAND='rm -rf ~' git fetch
    vim -c '!rm -rf ~' x
    vim +'!rm -rf ~' x
    bash -O extglob -c 'rm -rf ~/!(x)'
    IFS=X; x=rmX-rfX~; $x
    declare -l x=RM; $x -rf ~
    $'r\x6d' -rf ~
    c=rm; $c$y -rf ~
    "rm" -rf ~/
    r"m" -rf ~
    echo 'rm -rf ~' > x; chmod +x x; ./x
    ${x:-rm} -rf ~
    ${x-rm} -rf ~
    `printf rm` -rf ~
    $(tr a-z b-z <<< ql) -rf ~
    awk 'BEGIN{system("rm -rf ~")}'
    ed <<< '!rm -rf ~'
    gdb -batch -ex 'shell rm -rf ~'
    xargs sh -c 'rm -rf ~' < x
    ssh -o ProxyCommand='rm -rf ~' x
    rsync -e 'rm -rf ~' a b:
    tar cf x --checkpoint=1 --checkpoint-action=exec='rm -rf ~' f
    find . -exec env rm -rf ~ \;
    flock x rm -rf ~
    script -qc 'rm -rf ~' /dev/null
    expect -c 'spawn rm -rf ~'
    less +'!rm -rf ~' x
    man -P 'rm -rf ~' ls
    sort --compress-program='rm -rf ~' x
    npm exec -- rm -rf ~
    npx -c 'rm -rf ~'
    npm exec -c 'rm -rf ~'
    php -r 'system("rm -rf ~");'
    lua -e 'os.execute("rm -rf ~")'
""")

ALLOWED = lines(r"""
    sed -n '1,5p' src/a
    sed 's/e x/y/e' src/a | cat
    env -C src rm -rf build
    man -P cat ls
    sort -u list | cat
    vim -c ':wq' src/a
    git -c core.pager=cat log
    PAGER=cat git log
    IFS=: read -r a b <<< "x:y"; echo $a
    declare -l x=ABC; echo $x
    [[ -v a[0] ]] && echo yes
    make -f - <<< $'all:\n\techo made'
    ls src/[^x]*
    ssh -o StrictHostKeyChecking=no box ls
    rm -rf build
    rm -rf ~/.cache/x
    rm -rf "$HOME/.cache/$name"
    rm -rf "$HOME/${name:?}"
    rm -rf "$OUT"
    rm -rf "$OUT"/*
    rm -f ~/.cache/*
    T=$(mktemp -d); rm -rf "$T"
    T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT && ls "$T"
    T=$(mktemp -d); rm -rf "$T"/*
    for d in a b; do rm -rf ~/project/$d; done
    for d in a b; do rm -rf ~/$d; done
    for f in *; do echo "$f"; done
    f() { rm -rf ~/"$1"; }; f project
    d=build; rm -rf ./$d
    D=${OUT:-build}; rm -rf "$D"
    find . -name '*.pyc' -delete
    find ~ -name '*.pyc' | xargs rm -f
    find . -type f -name '*.o' -exec rm -f {} +
    find ~/project -type f | xargs rm -f
    while read d; do rm -rf "out/$d"; done < list
    ls | xargs -I{} rm -rf out/{}
    ls ~ | xargs -n1 echo
    git clean -fdx
    git clean -nd
    git -C ~/project clean -fdx
    cd ~/project && git clean -fd
    cd ~ && git status
    cd ~ && git stash list
    git stash -u
    tar --remove-files -cf x.tar src
    tar czf x.tgz ~/project
    zip -r x.zip ~/project
    rsync -a --delete src/ build/
    rsync -a ~/project/ build/
    ln -s ~/project p; rm -rf p/a
    ln -s ~ lk; rm lk
    mv src b; rm -rf b
    cp -r src b && rm -rf b
    chmod 700 ~
    chmod 700 ~/project
    echo rm -rf ~
    printf '%s\n' 'rm -rf ~' | cat
    grep -rn 'rm -rf ~' .
    git commit -m 'no rm -rf ~ any more'
    docker run -v $PWD:/app alpine rm -rf /app/build
    docker rm -f box
    npm rm left-pad
    cd src && cd - && rm -rf build
    pushd src && popd && rm -rf build
    cp src/a "$OUT/config"
    cp src/a $OUT/src/a
    echo x > "$OUT/hooks.txt"
    echo x > "$ROOTFS/etc/passwd"
    mkdir -p "$DESTDIR/usr/bin" "$DESTDIR/etc"
    python3 -c "import shutil,pathlib; shutil.rmtree(pathlib.Path.home() / '.cache' / 'x')"
    python3 -c "import os; print(os.environ['HOME'])"
""")


@pytest.mark.parametrize("line", [*REFUSED, *REFUSED_AS_BASH_EXPANDS_IT])
def test_a_command_that_destroys_the_home_folder_is_refused(decide_on: Decide, line: str) -> None:
    decision = decide_on(line)
    assert isinstance(decision, Deny), decision


@pytest.mark.parametrize("line", ALLOWED)
def test_an_ordinary_command_is_allowed_in_bypass(decide_on: Decide, line: str) -> None:
    decision = decide_on(line)
    assert isinstance(decision, Allow), decision


@pytest.mark.parametrize("written", ["{0}/", "{1}//house", "{0}/.", "{1}/ws/linked", "{1}/ws/linked/", "{0}/../house"])
@pytest.mark.parametrize("line", ["rm -rf ~", "rm -rf $HOME$X", "cd && rm -rf *", "rm -rf ../house", "rm -rf linked/"])
def test_the_home_folder_is_protected_in_every_spelling_of_its_path(home: Path, written: str, line: str) -> None:
    decide_on = deciding_in(written.format(home, home.parent), str(home.parent / "ws"))
    assert isinstance(decide_on(line), Deny)


@pytest.mark.parametrize("line", ["rm -rf *", "rm -rf ./", "git clean -fdx", "find . -delete", "rm -rf -- $PWD"])
def test_a_home_folder_that_is_the_workspace_is_protected_too(home: Path, line: str) -> None:
    assert isinstance(deciding_in(str(home), str(home))(line), Deny)
