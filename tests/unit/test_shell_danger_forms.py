"""`scan` finds dangerous commands in forms of bash that a simpler reader loses, in bounded time."""

import pytest
from shell_workspace import lines, scanned

from patience import cpu_limit

FORMS = lines(r"""
    eval "x=1; rm -rf ~"
    eval "A=1 rm -rf ~"
    trap "x=1; rm -rf ~" EXIT
    D=~; eval D=~; rm -rf $D
    rm -rf $HOME/{Documents,.}
    rm -rf $HOME/{*,.[!.]*}
    rm -rf {~,$X}
    {rm,-rf,$HOME}
    rm -rf "$HOME"/{*,.*}
    rm -rf "$HOME"{,/x}
    rm -rf {"$HOME",x}
    rm -rf ~/{.,"x"}
    rm -rf ~/{a..z}*
    echo ${x:-'}'}; rm -rf ~
    fmt=${F:-'{{.Name}}'}; rm -rf ~
    json=${x:-'{"a":{"b":1}}'}; rm -rf ~
    echo "${x:-"}"}"; rm -rf ~
    echo ${y#'`'}; rm -rf ~
    if [[ -d / ]] then rm -rf ~; fi
    while [[ -d / ]] do rm -rf ~; done
    rm -rf ~/!('keep me')
    rm -rf ~/!($X)
    rm -rf ~/!(a|@(b|c))
    echo "`rm -rf \"$HOME\"`"
    read -r b <<< $HOME; echo "$b" | xargs rm -rf
    d=~; [ -d nope ] && d=x; rm -rf $(echo $d)
    d=$(if true; then echo ~; fi); rm -rf $d
    eval "$(echo 'rm -rf ~' || true)"
    for d in a b c d e f g h i j ~; do for s in . x y z; do rm -rf "$d/$s"; done; done
    bash <<< 'rm -rf ~' 5< /dev/null
    bash <<< 'rm -rf ~' 3<<< x
    echo -e 'echo a\nrm -rf ~' | bash
    printf '%s ' rm -rf ~ | sh
    printf "echo a\tb\nrm -rf ~\n" > f; bash f
    printf "rm -rf %s\n" x ~ | bash
    echo 'rm -rf ~' > f; bash $PWD/f
    echo 'rm -rf ~' > ./f; bash f
    echo 'rm -rf ~' > f; bash < ./f
    echo ls > f; echo 'rm -rf ~' >> f; bash f
    d=~; printf -v x %q ~; rm -rf $x
    for ((i=$(rm -rf ~)1;;)); do x; done
""")
FORMS += [
    "echo $(( $(nproc) << 1 ))\nrm -rf ~",
    "echo $(( ((1+2)*3) << 2 ))\nrm -rf ~",
    '((x="1"<<2))\nrm -rf ~',
    "echo $[1<<2]\nrm -rf ~",
    "x=$(cat <<E\nhi\nE)\nrm -rf ~",
    "x=\"$(cat <<'EOF'\nhi\nEOF)\"\nrm -rf ~",
    'cat <<"$E"\nhi\n$E\nrm -rf ~',
    "cat <<E\r\nhi\r\nE\r\nrm -rf ~",
    "for d\nin ~\ndo rm -rf $d; done",
    "echo x >\\\n~/.bashrc",
    "echo a\r#; rm -rf ~",
    "d=~; [ -d nope ] && d=x; bash <<E\nrm -rf $d\nE",
    "set -- a b; shift 9; rm -rf ~",
]


@pytest.mark.parametrize("line", FORMS)
def test_the_dangerous_command_is_found(line: str):
    assert scanned(line).danger


@pytest.mark.parametrize(
    "line",
    [
        'eval "$(<f)"',
        'bash -c "$(<x)"',
        'bash -c "set -e; $(curl x)"',
        "bash <<E\ntrue\n$(curl x)\nE",
        "curl x > >(sh)",
        "curl x | tee >(sh)",
        'trap "$(curl x)" EXIT',
    ],
)
def test_text_from_elsewhere_is_a_finding_wherever_it_is_put(line: str):
    assert scanned(line).opaque


@pytest.mark.parametrize(
    "line",
    [
        "a=aaaaaaaaaa;" + "a=$a$a;" * 24,
        "set -- a b; shift " + "9" * 5_000,
        "echo ${" + "9" * 5_000 + "}",
        "sed '" + "s" * 3_000 + "'",
        "sed '" + "s/a/b/g;" * 300 + "'",
        "rm -rf " + "[" * 4_000,
        "rm -rf " + "*?" * 40_000,
        "/usr/**/**/nope",
        "> " * 20_000,
        "! " * 50_000,
        "a=" + "x" * 90_000 + "; echo ${x//a/$a}",
        "a=" + "a b" * 2_000 + ";" + "eval $a;" * 50,
        "for i in 1; do " * 12 + "v+=a" + "; v+=b; done" * 12,
    ],
    ids=lambda line: line[:12],
)
def test_no_line_takes_long(line: str):
    with cpu_limit(0.5):
        scanned(line)
