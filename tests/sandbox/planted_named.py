"""More ways of `planted_ways`: programs that the user's hooks, configuration and stopped operations name."""

from planted_ways import RUN, PlantedWay, armed, script

_SCRIPT = "mkdir -p {0} && printf '#!/bin/sh\\ntrue\\n' > {0}/{1} && chmod +x {0}/{1}"
_PC = _SCRIPT.format("scripts", "pc")
_COMMIT = "git commit --allow-empty -qm x"
_SHELL = "bash --rcfile ~/.bashrc -ic true"
_TOUCH = "touch a.txt; git status"
_ATTRIBUTES = "echo '* filter=x' > .git/info/attributes"
_EVIL = (
    "mkdir -p {0}git-merge-x && printf '#!/bin/sh\\ntouch @MARKER@\\nexit 1\\n' > {0}git-merge-x/evil &&"
    " chmod +x {0}git-merge-x/evil"
)
_BREAK = "GIT_SEQUENCE_EDITOR='sed -i 1i\\\\break' git rebase -q -i HEAD~1"
_STOPPED_PICK = (
    "git checkout -q -b other HEAD~1 && echo x > a.txt && git commit -qam x1 && echo y >> a.txt &&"
    " git commit -qam x2 && git checkout -q main && ! git cherry-pick other~1 other 2> /dev/null"
)


def hook(text: str, name: str = "pre-commit") -> str:
    """A command of the user that makes a hook."""
    return f"printf '#!/bin/sh\\n%s\\n' '{text}' > .git/hooks/{name} && chmod +x .git/hooks/{name}"


def clean(command: str) -> str:
    """A command of the user that configures a filter."""
    return f"git config filter.x.clean '{command}' && {_ATTRIBUTES}"


_ELSEWHERE = "mv .git ../data && echo 'gitdir: ../data' > .git && git config core.worktree \"$PWD\""
"""The user's data of git is outside of the workspace."""
_ARMED_FILE = """printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = "touch @MARKER@; false"\\n'"""
_THROUGH_LINK = "rm -f {0}/COMMIT_EDITMSG; ln -s config {0}/COMMIT_EDITMSG; " + _ARMED_FILE + " > {0}/SQUASH_MSG"


NAMED_WAYS = (
    # ---------------------------------------------------------------- hooks that lead to files of the project
    PlantedWay(
        "hook that is a link", script("scripts/pc"), _COMMIT, f"{_PC} && ln -s ../../scripts/pc .git/hooks/pre-commit"
    ),
    PlantedWay(
        "hook that is a link to nothing", script("scripts/pc"), _COMMIT, "ln -s ../../scripts/pc .git/hooks/pre-commit"
    ),
    PlantedWay(
        "hook that is an absolute link",
        script("scripts/pc"),
        _COMMIT,
        f'{_PC} && ln -s "$PWD/scripts/pc" .git/hooks/pre-commit',
    ),
    PlantedWay("script that a hook names and that is missing", script("scripts/pc"), _COMMIT, hook("scripts/pc")),
    PlantedWay("file that a hook sources and that is missing", script("lib.sh"), _COMMIT, hook(". ./lib.sh")),
    PlantedWay(
        "script that a hook runs if it exists",
        script("scripts/pc"),
        _COMMIT,
        hook("if [ -x scripts/pc ]; then sh scripts/pc; fi"),
    ),
    PlantedWay(
        "hook that has a hard link", script("scripts/pc"), _COMMIT, f"{_PC} && ln scripts/pc .git/hooks/pre-commit"
    ),
    PlantedWay(
        "hook that leads through a link to a folder",
        f"mv tools old; {script('tools/pc')}",
        _COMMIT,
        f"{_PC} && ln -s scripts tools && ln -s ../../tools/pc .git/hooks/pre-commit",
    ),
    PlantedWay(
        "hook that is a link, in a folder that was moved",
        f"mv scripts old; {script('scripts/pc')}",
        _COMMIT,
        f"{_PC} && ln -s ../../scripts/pc .git/hooks/pre-commit",
    ),
    PlantedWay(
        "hook that is a link to a link",
        script("scripts/pc"),
        _COMMIT,
        f"{_PC} && ln -s scripts/pc pc && ln -s ../../pc .git/hooks/pre-commit",
    ),
    PlantedWay(
        "hook that is a link, in the configured folder of hooks",
        script("scripts/pc"),
        _COMMIT,
        f"{_PC} && mkdir .gh && ln -s ../scripts/pc .gh/pre-commit && git config core.hooksPath .gh",
    ),
    PlantedWay("script that a hook starts", script("scripts/pc"), _COMMIT, f"{_PC} && {hook('exec ./scripts/pc')}"),
    PlantedWay(
        "script that a hook gives to an interpreter",
        script("scripts/pc"),
        _COMMIT,
        f"{_PC} && {hook('set -e; if true; then sh -e scripts/pc; fi')}",
    ),
    PlantedWay(
        "script that a hook starts by the root of the working tree",
        script("scripts/pc"),
        _COMMIT,
        f'{_PC} && {hook("""root=$(git rev-parse --show-toplevel); "$root/scripts/pc" """)}',
    ),
    PlantedWay("script that a hook sources", script("scripts/pc"), _COMMIT, f"{_PC} && {hook('cd scripts && . ./pc')}"),
    # ---------------------------------------------------------------- command lines in the configuration
    PlantedWay(
        "module of a filter",
        "echo 'import os; os.system(\"touch @MARKER@\")' > nbst.py",
        _TOUCH,
        clean("python3 -m nbst"),
    ),
    PlantedWay(
        "module of a filter, in the place of an installed one",
        "echo 'import os; os.system(\"touch @MARKER@\")' > json.py",
        _TOUCH,
        clean("python3 -m json.tool"),
    ),
    PlantedWay(
        "filter in the root of the working tree",
        script("tools/clean", "cat"),
        _TOUCH,
        f"""{_SCRIPT.format("tools", "clean")} && {clean('"$(git rev-parse --show-toplevel)/tools/clean" %f')}""",
    ),
    PlantedWay(
        "filter in a folder that it enters",
        script("tools/clean", "cat"),
        _TOUCH,
        f"{_SCRIPT.format('tools', 'clean')} && {clean('cd tools && ./clean')}",
    ),
    PlantedWay(
        "filter behind a pipe",
        script("tools/clean", "cat"),
        _TOUCH,
        f"{_SCRIPT.format('tools', 'clean')} && {clean('cat | tools/clean %f')}",
    ),
    PlantedWay(
        "file that the script of a filter sources",
        script("tools/lib.sh"),
        _TOUCH,
        f"{_SCRIPT.format('tools', 'lib.sh')} && printf '#!/bin/sh\\n. tools/lib.sh\\ncat\\n' > tools/clean &&"
        f" chmod +x tools/clean && {clean('tools/clean')}",
    ),
    PlantedWay(
        "script that an interpreter runs as monitor",
        script("tools/monitor"),
        before=f"{_SCRIPT.format('tools', 'monitor')} && git config core.fsmonitor 'sh tools/monitor'",
    ),
    PlantedWay(
        "missing script that an interpreter runs as monitor",
        script("tools/monitor"),
        before="git config core.fsmonitor 'sh tools/monitor'",
    ),
    PlantedWay(
        "monitor that is a link",
        script("real/monitor"),
        before=f"{_SCRIPT.format('real', 'monitor')} && mkdir tools && ln -s ../real/monitor tools/monitor &&"
        " git config core.fsmonitor tools/monitor",
    ),
    PlantedWay(
        "monitor in a folder that is a link",
        f"rm tools; {script('tools/monitor')}",
        before=f"{_SCRIPT.format('real', 'monitor')} && ln -s real tools && git config core.fsmonitor tools/monitor",
    ),
    PlantedWay(
        "script of an alias",
        script("tools/x"),
        "git st",
        f"{_SCRIPT.format('tools', 'x')} && git config alias.st '!env A=1 ./tools/x'",
    ),
    # ---------------------------------------------------------------- stopped operations
    PlantedWay(
        "strategy of a stopped rebase",
        f"{_EVIL.format('')} && {_BREAK}; echo x/evil > .git/rebase-merge/strategy; git commit -q --allow-empty -m z",
        "git rebase --continue",
    ),
    PlantedWay(
        "strategy of a rebase of the user",
        f"{_EVIL.format('')} && echo x/evil > .git/rebase-merge/strategy; git commit -q --allow-empty -m z",
        "git rebase --continue",
        f"{_BREAK}",
    ),
    PlantedWay(
        "strategy of a rebase in a linked working tree",
        f"{_EVIL.format('wt/')} && cd wt && {_BREAK}; git commit -q --allow-empty -m z;"
        " echo x/evil > ../.git/worktrees/wt/rebase-merge/strategy",
        "cd wt; git rebase --continue",
        "git worktree add -q wt",
    ),
    PlantedWay(
        "strategy of a stopped cherry-pick",
        f"{_EVIL.format('')} && {_STOPPED_PICK}; printf '[options]\\n\\tstrategy = x/evil\\n' > .git/sequencer/opts",
        "git add a.txt; git -c core.editor=true cherry-pick --continue",
    ),
    # ---------------------------------------------------------------- links through which git writes
    PlantedWay(
        "link in the place of the message of a commit",
        "ln -sf ../../../home/.bashrc .git/COMMIT_EDITMSG && echo 'touch @MARKER@' > .git/SQUASH_MSG",
        f"GIT_EDITOR=false git commit --allow-empty; {_SHELL}",
    ),
    PlantedWay(
        "link in the place of a message in a linked working tree",
        "ln -sf ../../../../../home/.bashrc .git/worktrees/wt/COMMIT_EDITMSG &&"
        " echo 'touch @MARKER@' > .git/worktrees/wt/SQUASH_MSG",
        f"(cd wt && GIT_EDITOR=false git commit --allow-empty); {_SHELL}",
        "git worktree add -q wt",
    ),
    PlantedWay(
        "link in the place of the log of a branch",
        "rm -f .git/logs/HEAD && ln -s ../../../../home/.bashrc .git/logs/HEAD && echo 'x; touch @MARKER@' > message",
        f"git commit --allow-empty -qF message; {_SHELL}",
    ),
    # ---------------------------------------------------------------- a repository of dotfiles as the workspace
    PlantedWay(
        "configuration of git that the home folder links to",
        armed("gitconfig"),
        before='echo > gitconfig && ln -s "$PWD/gitconfig" ~/.gitconfig',
    ),
    PlantedWay(
        "missing configuration of git that the home folder links to",
        armed("gitconfig"),
        before='ln -s "$PWD/gitconfig" ~/.gitconfig',
    ),
    PlantedWay(
        "folder of git's configuration that the home folder links to",
        f"rm -rf git; mkdir -p git; {armed('git/config')}",
        before='mkdir git ~/.config && echo > git/config && ln -s "$PWD/git" ~/.config/git',
    ),
    PlantedWay(
        "folder of all settings that the home folder links to",
        f"mv config old; mkdir -p config/git; {armed('config/git/config')}",
        before='mkdir -p config/git && echo > config/git/config && ln -s "$PWD/config" ~/.config',
    ),
    PlantedWay(
        "start file of the shell that the home folder links to",
        f"echo '{RUN}' >> bashrc",
        _SHELL,
        'echo > bashrc && ln -s "$PWD/bashrc" ~/.bashrc',
    ),
    PlantedWay(
        "start file of the shell that a chain of links leads to",
        f"mv now old; mkdir now; echo '{RUN}' > now/bashrc",
        _SHELL,
        'mkdir v1 && echo > v1/bashrc && ln -s v1 now && ln -s "$PWD/now/bashrc" ~/.bashrc',
    ),
    PlantedWay(
        "part of the settings of an editor that the home folder links to",
        f"""echo 'call system("{RUN}")' > plugin.vim""",
        "vim -N -u NONE -i NONE --cmd 'set rtp^=~/.vim' -es -c 'runtime plugin/x.vim' -c q < /dev/null",
        'mkdir -p ~/.vim/plugin && echo > plugin.vim && ln -s "$PWD/plugin.vim" ~/.vim/plugin/x.vim',
        needs="vim",
    ),
    # ---------------------------------------------------------------- data of git outside of the workspace
    PlantedWay(
        "link in the place of a message, in data elsewhere",
        _THROUGH_LINK.format("../data"),
        "GIT_EDITOR=true git commit -q --allow-empty; git status",
        _ELSEWHERE,
    ),
    PlantedWay(
        "strategy of a stopped rebase, in data elsewhere",
        f"{_EVIL.format('')} && {_BREAK}; echo x/evil > ../data/rebase-merge/strategy;"
        " git commit -q --allow-empty -m z",
        "git rebase --continue",
        _ELSEWHERE,
    ),
    PlantedWay(
        "step of a stopped rebase, in data elsewhere",
        "echo 'x touch @MARKER@' >> ../data/rebase-merge/git-rebase-todo",
        "git rebase --continue",
        f"{_ELSEWHERE} && {_BREAK}",
    ),
    # ---------------------------------------------------------------- words that the shell expands
    *(
        PlantedWay(
            name,
            script("tools/x"),
            fire,
            f"mkdir tools && printf '#!/bin/sh\\n' > tools/x && chmod +x tools/x && git config {setting}",
        )
        for name, fire, setting in (
            ("alias that names a script by its prefix", "git st", "alias.st '!$GIT_PREFIX./tools/x'"),
            (
                "alias that names a script by its toplevel in quotation marks",
                "git st",
                "alias.st '!\"$(git rev-parse --show-toplevel)\"/tools/x'",
            ),
            ("monitor that names a script by a variable", "git status", "core.fsmonitor 'd=tools; $d/x'"),
            ("monitor that names a script by a substitution", "git status", "core.fsmonitor 'eval \"$(cat tools/x)\"'"),
        )
    ),
    PlantedWay(
        "template of the user for new repositories",
        script("tpl/hooks/pre-commit"),
        "git init -q ../new && cd ../new && git -c user.name=x -c user.email=x@e commit -q --allow-empty -m x",
        'mkdir -p tpl/hooks && git config --global init.templateDir "$PWD/tpl"',
    ),
)
