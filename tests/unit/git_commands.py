"""Lines of bash with git commands: forced pushes, commands that discard work, and harmless ones that look similar."""

from shell_workspace import lines

FORCED = lines(r"""
    git push --force
    git push -f
    git push -fu origin main
    git push -uf origin main
    git push origin main --force
    git push origin main -f
    git push --force-with-lease
    git push --force-with-lease=main:abc origin main
    git push --force-w
    git push --force-if-includes
    git push --force-i
    git push --forc
    git push --force --no-force-with-lease
    git push origin +main
    git push origin +HEAD:main
    git push origin main +dev
    git push -- origin +main
    git push --repo=origin +main
    git push --mirror
    git push --mir origin
    git push --delete origin main
    git push --del origin main
    git push -d origin main
    git push origin -d main
    git push origin :main
    git push origin :refs/tags/v1
    git push --prune origin
    git push --dry-run --no-dry-run --force
    git push -n --no-dr -f
    git push -o -n --force
    git push --push-option --dry-run --force
    git -C sub push --force
    git --no-pager push -f
    git --git-dir=.git push -f
    git --attr-source HEAD push -f
    git -c user.name=x push -f
    git -c remote.origin.mirror=true push
    git -c remote.origin.mirror push
    git -c remote.origin.push=+main:main push
    git -c Remote.origin.Push=:main push
    git -c alias.p='push --force' p
    git -c alias.P='push' P -f
    git -c alias.p='!git push' p -f
    git -c alias.p='!f() { git push "$@"; }; f' p -f
    git -c alias.a='b -f' -c alias.b=push a
    git -c alias.p='push "--force"' p
    git config alias.p 'push --force'
    git config --global alias.p 'push -f'
    git config remote.origin.mirror true
    git config --add remote.origin.push +main
    X='push -f' git --config-env=alias.p=X p
    export X='push -f'; git --config-env alias.p=X p
    GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0='push --force' git p
    env GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0='push --force' git p
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.o.mirror GIT_CONFIG_VALUE_0=true; git push o
    GIT_CONFIG_PARAMETERS="'alias.p=push -f'" git p
    GIT_CONFIG_PARAMETERS="'alias.p'='push -f'" git p
    git-push --force
    /usr/lib/git-core/git-push --force
    /usr/bin/git push --force
    \git push --force
    g''it pu'sh' "--force"
    git push $'--force'
    git send-pack --force origin main
    git send-pack origin +main
    git subtree push --prefix=a origin +main
    sh -c 'git push --force'
    bash -lc "git push -f"
    eval git push -f
    sudo git push -f
    env git push -f
    env -i PATH=/usr/bin git push -f
    timeout 60 git push -f
    nohup git push -f &
    xargs git push -f < x
    echo --force | xargs git push
    echo main | xargs -I{} git push origin +{}
    printf '%s\n' push --force | xargs git
    command git push -f
    exec git push -f
    time git push -f
    if true; then git push -f; fi
    for b in a b; do git push origin :$b; done
    for f in '' --force; do git push $f; done
    while read b; do git push -d origin "$b"; done < x
    true && git push -f
    false || git push -f
    (git push -f)
    { git push -f; }
    echo $(git push -f)
    echo `git push -f`
    cat <(git push -f)
    F=--force; git push $F
    F=-; git push ${F}f
    git push ${FORCE:+--force}
    git push ${FORCE:---force}
    args=(origin +main); git push "${args[@]}"
    f() { git push "$@"; }; f --force
    git() { command git "$@" --force; }; git push
    p() { git push -f; }; p
    alias gp='git push --force'; gp
    G=git; $G push -f
    $(which git) push --force
    $G push --force
    git push $(cat x) main
    trap 'git push -f' EXIT
    echo 'git push -f' | sh
    sh <<< 'git push -f'
    echo 'git push -f' > x.sh; sh x.sh
    git commit -m x; git push -f
    git rebase -x 'git push -f' main
    git submodule foreach git push -f
    git bisect run git push -f
    find . -name .git -execdir git push -f \;
    parallel git push -f ::: a b
    watch git push -f
    python3 -c "import os; os.system('git push --force')"
    python3 -c "import subprocess; subprocess.run(['git', 'push', '--force'])"
    node -e "require('child_process').execFileSync('git', ['push', '-f'])"
    git fetch && git rebase origin/main && git push --force-with-lease
    GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0='push -f' bash -c 'git p'
    export GIT_CONFIG_PARAMETERS="'alias.p=push -f'"; git p
    git -c alias.p='!sh -c "git push -f"' p
    printf -v F -- --force; git push $F
    read F <<< --force; git push $F
    set -- --force; git push "$@"
    git push $(printf -- '-%s' f)
    git push -$x
    git push --"${x}"force
    git push -{u,f}
    git push --for{ce,}
    env -S 'git push -f'
    env -S "git push" -f
    env -iS "A=1 git push" -f
    flock x -c 'git push -f'
    perl -e 'system("git","push","-f")'
    awk 'BEGIN{system("git push -f")}'
    git difftool -x 'git push -f'
    git difftool --extcmd='git push -f'
    git filter-branch --msg-filter 'git push -f'
    GIT_EDITOR='git push -f' git commit
    git -c core.fsmonitor='git push -f' status
    [[ $(git push -f) ]]
    hash -p /usr/bin/git g; g push -f
    eval "$(echo git push -f)"
    python3 -c "import subprocess as s; a=['push','-f']; s.run(['/usr/bin/git']+a)"
    P=+; git push origin ${P}main
    hub push -f
    >x 2>&1 git push -f
""")
DISCARDS = lines(r"""
    git reset --hard
    git reset --hard HEAD~1
    git reset HEAD --hard
    git reset --har
    git reset --h
    git reset --merge
    git reset --keep HEAD~1
    git reset -q --hard
    git -C sub reset --hard
    git clean -f
    git clean -fdx
    git clean -f -d
    git clean --force
    git clean -xdff
    git clean -i
    git clean
    git clean -f -e -n
    git clean -n --no-dry-run -f
    git -c clean.requireForce=false clean -d
    git checkout .
    git checkout -- .
    git checkout -- a
    git checkout HEAD -- a
    git checkout HEAD a
    git checkout HEAD~1 .
    git checkout ./a
    git checkout ../x
    git checkout :/
    git checkout '*.py'
    git checkout -f
    git checkout -f main
    git checkout --force main
    git checkout -qf main
    git checkout -p
    git checkout --ours a
    git checkout --theirs a
    git checkout --pathspec-from-file=x
    git checkout -m main
    git switch -f main
    git switch --force main
    git switch --discard-changes main
    git switch --disc main
    git restore .
    git restore a
    git restore -W a
    git restore --staged --worktree a
    git restore -SW a
    git restore --source=HEAD~1 a
    git restore -p
    git stash drop
    git stash drop stash@{1}
    git stash clear
    git rm -f a
    git rm -rf .
    git rm --force a
    git mv -f a b
    git branch -D x
    git branch -d -f x
    git branch --delete --force x
    git branch -df x
    git branch -M x
    git branch -C a b
    git worktree remove --force ../x
    git worktree remove -f x
    git reflog expire --expire=now --all
    git reflog delete HEAD@{1}
    git gc --prune=now
    git gc --prune=all
    git gc --pru=now
    git -c gc.pruneExpire=now gc
    git -c gc.reflogExpire=now gc
    git prune
    git prune --expire=now
    git update-ref -d refs/heads/x
    git update-ref --stdin
    git checkout-index -f -a
    git checkout-index -fa
    git read-tree --reset -u HEAD
    git submodule deinit -f x
    git submodule update --force
    git merge --abort
    git rebase --abort
    git rebase --skip
    git cherry-pick --abort
    git filter-repo --path a
    git filter-repo --invert-paths --path a
    git -c alias.r='reset --hard' r
    GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.r GIT_CONFIG_VALUE_0='reset --hard' git r
    sh -c 'git stash clear'
    f() { git reset "$@"; }; f --hard
    git fetch && git reset --hard origin/main
    make || git checkout -- .
    git stash list | cut -d: -f1 | xargs -n1 git stash drop
    git ls-files -m | xargs git checkout --
    git branch | xargs git branch -D
    git reset --hard && git clean -fd
    python3 -c "import subprocess; subprocess.check_call(['git', 'reset', '--hard'])"
""")
FINAL = lines(r"""
    git gc --prune=now
    git prune
    git filter-repo --path a
    git stash drop; git gc --prune=now
    git reflog expire --expire=now --all && git gc --prune=now --aggressive
""")
"""Of these undo can't bring back what they discard."""
HARMLESS = lines(r"""
    git push
    git push origin main
    git push -u origin main
    git push --set-upstream origin main
    git push --tags
    git push --follow-tags
    git push --all
    git push --all origin -v
    git push origin HEAD
    git push origin HEAD:refs/for/main
    git push origin main:dev
    git push origin :
    git push origin tag v1
    git push --no-verify
    git push -o ci.skip
    git push -o -f
    git push -of
    git push --push-option --force
    git push --repo origin
    git push -q -v --porcelain
    git push -n --force
    git push --dry-run --force
    git push --force --dry-run origin main
    git push --signed
    git push --recurse-submodules=check
    git push origin feature/force
    git push --push-option="$X" origin main
    git push -o "ci.variable=$X" origin main
    git push origin $(git branch --show-current)
    git push origin "$BRANCH"
    git push -u origin "$(git rev-parse --abbrev-ref HEAD)"
    git -c push.default=current push
    git -c remote.origin.mirror=false push
    git -c remote.origin.push=main:main push
    git -c alias.p='push --force' push
    git -c alias.p='push --force' status
    GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0='push' git p origin
    git config alias.st status
    git config user.name force
    git config --get alias.p
    git fetch --force
    git fetch --prune
    git fetch origin +main:main
    git pull --force
    git pull --rebase
    git remote prune origin
    git commit -m 'git push --force'
    git commit -m "reset --hard" --amend
    git commit --amend --no-edit
    git log --grep='push --force'
    git grep -n -e '--hard'
    git help push
    git push --help
    echo git push --force
    echo 'git reset --hard'
    printf 'git push -f\n'
    ls # git push --force
    cat <<'E'
    grep -rn 'git push --force' docs
    sed -n '/git push -f/p' README.md
    rg 'git clean -fd'
    man git-push
    f() { git push "$@"; }; f origin main
    for b in a b; do git push origin $b; done
    alias gp='git push --force'
    p() { echo git push -f; }; p
    gitk push --force
    ./git.sh push --force
    echo git push -f > notes.txt
    true git push --force
    git reset
    git reset HEAD
    git reset HEAD~1
    git reset --soft HEAD~1
    git reset --mixed
    git reset -q -- a
    git reset -p
    git reset a
    git reset --pathspec-from-file=--hard
    git clean -n
    git clean -nfd
    git clean --dry-run -fdx
    git clean -fd --dry
    git checkout main
    git checkout feature/x
    git checkout -b new
    git checkout -b new origin/main
    git checkout -B new HEAD~1
    git checkout --orphan new
    git checkout -
    git checkout v1.2
    git checkout --detach HEAD~1
    git checkout -t origin/x
    git checkout "$BRANCH"
    git switch main
    git switch -c new
    git switch -C new
    git switch -
    git restore --staged a
    git restore --staged .
    git restore -S a
    git restore --source HEAD --staged .
    git stash
    git stash push -m drop
    git stash -u
    git stash list
    git stash show -p
    git stash pop
    git stash apply
    git stash push -- clear
    git rm a
    git rm -r src
    git rm --cached a
    git rm -f --cached a
    git rm -nf a
    git mv a b
    git branch
    git branch -d x
    git branch -v
    git branch -m new
    git branch -f x HEAD~1
    git branch new
    git branch --list '*D*'
    git tag -d v1
    git tag -f v1
    git worktree add x
    git worktree remove x
    git worktree prune
    git worktree list
    git reflog
    git reflog show
    git reflog expire --dry-run --expire=now --all
    git gc
    git gc --auto
    git gc --aggressive
    git gc --prune
    git gc --prune=never
    git gc --no-prune
    git maintenance run
    git prune -n
    git prune-packed
    git repack
    git repack -Ad
    git repack -ad
    git repack -a -d
    git repack -d
    git update-ref refs/heads/x HEAD
    git checkout-index -a
    git read-tree HEAD
    git read-tree -m -u HEAD
    git submodule update --init
    git submodule deinit x
    git merge main
    git merge --continue
    git merge --no-ff x
    git rebase main
    git rebase -i HEAD~3
    git rebase --continue
    git rebase --autostash main
    git cherry-pick x
    git revert HEAD
    git filter-repo --analyze
    git bisect reset
    git apply x.patch
    git commit -am x
    git add -A
    git status
    git diff -- .
    git show HEAD
""")
