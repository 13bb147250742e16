"""Suggested rules are narrow, cover the call together, and are omitted if a rule would allow too much."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.permissions import Allow, Policy, Request, decide
from bradawl.safety.permissions.headless_rules import rules_to_allow
from bradawl.safety.permissions.path_globs import Bases
from bradawl.safety.permissions.rule_syntax import parse_rule
from bradawl.safety.permissions.suggestions import proposals


def suggested(effects, tool="bash"):
    return proposals(Request(tool, "d", effects), cwd="/ws", home="/home/u", roots=("/ws",))


def line(*commands, **more):
    return Effects(commands=tuple(tuple(each) for each in commands), **{"unknown": True, "seal": "s", **more})


def for_command(text):
    return suggested(line(text.split()))


def allows(texts, effects, tool="bash"):
    found = [rule for text in texts for rule in parse_rule(text, "allow", "x", Bases("/ws", "/home/u", "/ws"), str)]
    return isinstance(decide(Policy(rules=tuple(found), roots=("/ws",)), Request(tool, "d", effects)), Allow)


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("npm run test", "npm run test"),
        ("npm run test:unit -- --watch", "npm run test:unit -- --watch"),
        ("npm test", "npm test"),
        ("yarn run build", "yarn run build"),
        ("cargo test --release", "cargo test --release"),
        ("go test ./...", "go test ./..."),
        ("pytest -q", "pytest -q"),
        ("pytest -q tests/x.py", "pytest -q tests/x.py"),
        ("pytest --rootdir=x", "pytest --rootdir=x"),
        ("black src", "black src"),
        ("touch notes", "touch notes"),
        ("python3 -m pytest t/x.py", "python3 -m pytest t/x.py"),
        ("python3.11 -m pytest -q", "python3.11 -m pytest -q"),
        ("git add -A", "git add:*"),
        ("git commit -m x", "git commit:*"),
        ("git diff HEAD~1", "git diff 'HEAD~1'"),
        ("pylint -j1 --version", "pylint -j1 --version"),
        ("go vet", "go vet"),
        ("mypy --strict", "mypy --strict"),
        ("black --check", "black --check"),
        ("cargo build", "cargo build"),
        ("clang-tidy --quiet", "clang-tidy --quiet"),
        ("npm ls --all", "npm ls:*"),
        ("go version", "go version:*"),
        ("ruff check src", "ruff check src"),
        ("tsc --noEmit", "tsc --noEmit"),
        ("mytool build --fast", "mytool build --fast"),
        ("mytool secrets", "mytool secrets"),
        ("janet main x", "janet main x"),
        ("mytool --check a.txt", "mytool --check a.txt"),
        ("sort -k 2 *.txt", "sort -k 2 '*.txt'"),
    ],
)
def test_a_command_is_suggested_with_the_words_that_identify_it(command, rule):
    assert for_command(command) == (f"Bash({rule})",)
    assert allows(for_command(command), line(command.split()))


@pytest.mark.parametrize(
    "command",
    [
        *(
            "python x.py",
            "python -c x",
            "python3 -",
            "python3.12 -m http.server",
            "node x.js",
            "perl -e x",
            "awk x",
            "sed s/a/b/ f",
        ),
        *(
            "bash x.sh",
            "sh -c x",
            "/bin/bash x",
            "env x",
            "nice x",
            "timeout 5 x",
            "xargs rm",
            "nohup x",
            "exec x",
            "eval x",
        ),
        *(
            "sudo x",
            "doas x",
            "su x",
            "time x",
            "watch x",
            "command x",
            "source x",
            ". x",
            "busybox sh",
            "find . -delete",
        ),
        *(
            "npm install",
            "npm i",
            "npm ci",
            "npm exec x",
            "npx x",
            "npm run",
            "npm --prefix .. run x",
            "yarn add x",
            "yarn build",
        ),
        *(
            "pnpm dlx x",
            "bun run ./x.ts",
            "bun x.ts",
            "pip install x",
            "pip3.11 install x",
            "uv run x",
            "uvx x",
            "poetry run x",
        ),
        *("cargo install x", "cargo run", "go run x.go", "go get x", "go generate", "deno run x"),
        *(
            "make",
            "make test",
            "just x",
            "gradle test",
            "docker run x",
            "docker ps",
            "kubectl get x",
            "ssh h",
            "scp a b",
            "rsync a b",
        ),
        *(
            "curl x",
            "wget x",
            "nc h 1",
            "gh pr merge",
            "aws s3 rm x",
            "terraform apply",
            "systemctl stop x",
            "crontab x",
        ),
        *(
            "git reset --hard",
            "git clean -fd",
            "git checkout .",
            "git restore .",
            "git stash drop",
            "git push",
            "git rebase x",
        ),
        *("git branch -D x", "git config a b", "git -C x add .", "git", "git fetch", "git rm x", "git update-ref -d x"),
        *("rm x", "mv a b", "dd if=x", "chmod 777 x", "kill 1", "tee x", "vim x", "export A=b", "unset A", "alias x=y"),
        *(
            "./run.sh",
            "../x",
            "bin/tool build",
            "~/x",
            "mytool exec x",
            "mytool install",
            "mytool run x",
            "mytool deploy prod",
        ),
        *("Python x.py", "PYTHON3 x", "RM x", "python2.7 x", "ruby3.2 x", "clang++-15 run"),
    ],
)
def test_no_rule_is_suggested_for_commands_that_can_run_or_delete_anything(command):
    assert for_command(command) == ()


def test_each_command_of_a_line_has_a_rule_and_all_rules_together_allow_the_line():
    effects = line(["cd", "web"], ["npm", "run", "lint"], ["git", "add", "."], ["npm", "run", "lint"], ["tail", "-5"])
    assert suggested(effects) == ("Bash(npm run lint)", "Bash(git add:*)", "Bash(tail -5)")
    assert allows(suggested(effects), effects)


def test_one_command_without_a_rule_leaves_the_line_without_rules():
    assert suggested(line(["npm", "test"], ["bash", "x"])) == ()
    assert suggested(line(*[["pytest"]] * 3, *[[f"tool{n}", "a.b"] for n in range(11)])) == ()


@pytest.mark.parametrize(
    "effects",
    [
        UNKNOWN,
        Effects(unknown=True, seal="s"),
        line(["npm", "test"], danger="it deletes the home folder"),
        line(["npm", "test"], lifts=("network",)),
        line(["npm", "test"], lifts=("sandbox",)),
        line(["npm", "test"], hosts=("*",)),
        line(["npm", "test"], session=("env", "env:PATH")),
        line(["cd", "x"]),
        line(["echo", "x"], unknown=False, understood=True, writes=("/ws/f",)),
        line(["cat", "x"], unknown=False, understood=True, writes=("/ws/f",)),
        line(["mkdir", "/opt/x"], unknown=False, understood=True, writes=("/opt/x",)),
    ],
)
def test_no_rule_is_suggested_for_a_line_with_further_effects(effects):
    assert suggested(effects) == ()


def test_a_read_outside_the_workspace_is_suggested_as_a_whole_command():
    effects = line(["cat", "/etc/hosts"], unknown=False, understood=True, reads=("/etc/hosts",))
    assert suggested(effects) == ("Bash(cat /etc/hosts)",)
    assert allows(suggested(effects), effects)


@pytest.mark.parametrize(
    ("effects", "tool", "texts"),
    [
        (Effects(writes=("/ws/src/app/a.py",)), "edit_file", ("Edit(src/app/**)",)),
        (Effects(writes=("/ws/README.md",)), "write_file", ("Edit(./README.md)",)),
        (Effects(writes=("/ws/app/[id]/page.tsx",)), "write_file", (r"Edit(app/\[id]/**)",)),
        (Effects(writes=("/ws/a/x", "/ws/a/y", "/ws/b/z")), "multi_edit", ("Edit(a/**)", "Edit(b/**)")),
        (Effects(writes=("/home/u/notes/x.md",)), "write_file", ("Edit(~/notes/**)",)),
        (Effects(writes=("/home/u/x.md",)), "write_file", ("Edit(~/x.md)",)),
        (Effects(writes=("/srv/data/x/y",)), "write_file", ("Edit(//srv/data/x/**)",)),
        (Effects(writes=("/etc/x",)), "write_file", ("Edit(//etc/x)",)),
        (Effects(reads=("/usr/include/x.h",)), "read_file", ("Read(//usr/include/**)",)),
        (Effects(writes=("/ws/conf/.env",)), "write_file", ("Edit(conf/.env)",)),
        (Effects(writes=("/ws/.github/workflows/ci.yml",)), "edit_file", ("Edit(.github/workflows/ci.yml)",)),
        (Effects(reads=("/home/u/.aws/config",)), "read_file", ("Read(~/.aws/config)",)),
        (Effects(reads=("/ws/a", "/home/u/lib/b")), "grep", ("Read(~/lib/**)",)),
        (Effects(hosts=("docs.python.org",)), "web_fetch", ("WebFetch(domain:docs.python.org)",)),
        (Effects(hosts=("docs.python.org:8443",)), "web_fetch", ("WebFetch(domain:docs.python.org)",)),
        (Effects(hosts=("2606:4700::1111",)), "web_fetch", ("WebFetch(domain:2606:4700::1111)",)),
        (Effects(external=True, unknown=True), "mcp__github__get_issue", ("mcp__github__get_issue",)),
        (Effects(external=True), "deploy", ("deploy",)),
        (Effects(spends=True, reads=("/ws",)), "agent", ("Agent",)),
    ],
)
def test_rules_for_other_tools_name_a_folder_a_host_or_the_tool(effects, tool, texts):
    assert suggested(effects, tool) == texts
    if tool != "agent":
        assert allows(texts, effects, tool)


@pytest.mark.parametrize(
    ("effects", "tool"),
    [
        (Effects(writes=("/ws/a\nb",)), "write_file"),
        (Effects(writes=("/ws/a\udc80/b",)), "write_file"),
        (Effects(writes=("/ws/\u202ea/b",)), "write_file"),
        (Effects(hosts=("*",)), "web_fetch"),
        (UNKNOWN, "read"),
        (UNKNOWN, "mcp__a*__b"),
        (UNKNOWN, "evil\x1b[2J"),
        (Effects(), "grep"),
    ],
)
def test_no_rule_is_suggested_for_what_a_rule_can_not_name_exactly(effects, tool):
    assert suggested(effects, tool) == ()


@pytest.mark.parametrize("command", ["cat x", "mytool x", "pytest x", "black x", "touch x", "tsc -p x", "wc -l x"])
def test_a_rule_suggested_for_one_file_covers_no_other(command):
    texts = for_command(command)
    assert allows(texts, line(command.split()))
    for other in (command.replace(" x", " y"), f"{command} y", command.replace(" x", " ~/.ssh/id_rsa")):
        assert not allows(texts, line(other.split())), other


NAMES = st.text(st.sampled_from("ab*?[]\\!~$ ().'\"é/"), min_size=1, max_size=8).filter(
    lambda name: "//" not in name and not {".", ".."} & set(name.split("/")) and name.strip("/") == name
)


@given(st.sampled_from(["/ws", "/home/u", "/srv/x", ""]), NAMES)
def test_rules_suggested_for_any_path_are_valid_and_cover_it(folder, name):
    effects = Effects(writes=(f"{folder}/{name}",))
    texts = suggested(effects, "write_file")
    assert not texts or allows(texts, effects, "write_file")
    assert texts or name != name.strip() or not name.isprintable()


WORDS = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(["*", "[", "a:*", "-x"])
)


@given(st.sampled_from(["mytool", "sort", "git", "npm", "pytest", "cat"]), WORDS)
def test_rules_suggested_for_any_command_are_valid_and_cover_it(program, words):
    effects = line([program, *words])
    if texts := suggested(effects):
        assert allows(texts, effects)


def test_a_rule_for_a_whole_command_allows_no_other():
    effects = line(["sort", "a*", "it", "x y"])
    texts = suggested(effects)
    assert texts == ("Bash(sort 'a*' it 'x y')",)
    for other in (["sort", "ab", "it", "x y"], ["sort", "a*", "it"], ["sort", "a*", "it", "x y", "-o"]):
        assert not allows(texts, line(other))


@pytest.mark.parametrize("below", ["", "/x", "/a/b"])
def test_no_rule_names_what_a_session_calls_tmp(below):
    path = f"/home/u/.local/share/bradawl/projects/p/tmp/01M85F1K59CFJ6BRCX1SEN8T2P{below}"
    for effects in (Effects(writes=(path,)), Effects(reads=(path,))):
        assert suggested(effects, "write_file") == ()
    asking = Policy("default", roots=("/ws",))
    for redirects in ((path,), ()):
        request = Request("bash", "d", line(("echo", "x"), writes=(path,), redirects=redirects))
        assert not [rule for rule in rules_to_allow(request, asking, cwd="/ws", home="/home/u") if "tmp/" in rule]
