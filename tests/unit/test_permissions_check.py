"""`bradawl permissions check` decides about a command with the settings' rules and the real files, and runs nothing."""

import io
import json
from pathlib import Path

import msgspec
import pytest

from bradawl.app.build.agent import build_agent
from bradawl.app.cli import run
from bradawl.app.console import Console
from bradawl.app.permissions_check import run_check, verdict_in_sandbox
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Sandbox
from bradawl.safety.permissions.dry_run import Verdict
from bradawl.testing.virtual_tree import Overlay, VirtualTree, links_in


class CheckRunner:
    """Runs `permissions check` with a home folder and a project."""

    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "project"
        self.home.mkdir()
        self.project.mkdir()
        self.environ = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "BRADAWL_SANDBOX": "off"}

    def run(self, *arguments: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        words = ["permissions", "check", "--workspace", str(self.project), *arguments]
        code = run(words, self.environ, Console(io.StringIO(), out, err, self.environ))
        return code, out.getvalue(), err.getvalue()

    def check(self, *arguments: str) -> dict:
        code, out, err = self.run(*arguments)
        answer = json.loads(out)
        assert (code, err) == (2 if answer["decision"] == "error" else 0, "")
        return answer

    def configure(self, text: str) -> None:
        folder = self.home / ".config" / "bradawl"
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text(text)


@pytest.fixture
def place(tmp_path):
    return CheckRunner(tmp_path)


def test_a_command_is_decided_by_its_effects_and_not_run(place):
    answer = place.check("touch new && ls")
    assert answer["decision"] == "ask"
    assert answer["effects"]["writes"] == [str(place.project / "new")]
    assert answer["effects"]["commands"] == [["touch", "new"]]  # `ls` needs no rule
    assert answer["effects"]["inner"] == [["ls"]]
    assert len(answer["grant"]["command_hash"]) == 64
    assert list(place.project.iterdir()) == []


def test_no_model_is_needed(place):
    assert place.check("ls")["decision"] == "allow"


def test_the_users_rules_apply(place):
    place.configure('[permissions]\nallow = ["Bash(npm test)"]\ndeny = ["Bash(ls *)"]\n')
    assert place.check("npm test")["decision"] == "allow"
    assert place.check("npm test; npm install")["decision"] == "ask"
    assert place.check("ls -la")["decision"] == "deny"


def test_a_connection_is_decided_by_the_rules_about_hosts_and_names_the_rule(place):
    place.configure(
        'network = ["a.example", "*.b.example:81"]\n[permissions]\ndeny = ["WebFetch(domain:evil.example)"]\n'
    )
    answer = place.check("--connect", "A.example.")
    assert answer["decision"] == "allow" and "config.toml:1: network" in answer["reason"]
    assert place.check("--connect", "x.b.example:81")["decision"] == "allow"
    assert place.check("--connect", "x.b.example")["decision"] == "ask"
    assert "WebFetch(domain:evil.example)" in place.check("--connect", "x.evil.example:22")["reason"]
    assert place.check("--mode", "plan", "--connect", "a.example")["decision"] == "deny"
    for host in ("https://a.example", "127.0.0.1", "*.a.example", ""):
        assert place.check("--connect", host)["decision"] == "error"
    code, _, err = place.run("ls", "--connect", "a.example")
    assert code == 2 and "--connect HOST" in err


@pytest.mark.parametrize(
    ("host", "decision", "reason"),
    [
        ("localhost", "deny", "the name of this machine"),
        ("a.localhost:8000", "deny", "the name of this machine"),
        ("metadata.google.internal", "deny", "cloud metadata is never reachable"),
        ("intranet", "deny", "a name of a private network"),
        ("nas.local", "deny", "a name of a private network"),
        ("git.corp", "ask", "the rule Network(git.corp)"),
        ("git.corp:81", "ask", "the rule Network(git.corp)"),
        ("127.0.0.1", "error", "addresses are not permitted"),
        ("[::1]:443", "error", "addresses are not permitted"),
        ("a.example:80:81", "error", "there is more than one port"),
        ("a.example:65616", "error", "the port 65616 is not a number from 1 to 65535"),
        ("https://a.example", "error", "that is a URL"),
        ("a b.example", "error", "that is not the name of a host"),
        ("stra\u00dfe.example", "error", "punycode"),
    ],
)
def test_a_connection_is_judged_as_the_proxy_judges_it(place, host, decision, reason):
    place.configure('network = ["git.corp"]\n[permissions]\nask = ["Network(git.corp)"]\n')
    answer = place.check("--connect", host)
    assert answer["decision"] == decision and reason in answer["reason"]


def test_a_host_may_be_named_with_a_standard_port_and_the_answer_grants_no_network(place):
    place.configure('network = ["x.org"]\n')
    for host in ("x.org", "x.org:443", "x.org:80", "X.org."):
        answer = place.check("--connect", host)
        assert answer["decision"] == "allow" and answer["effects"]["hosts"] == ["x.org"]
        assert "grant" not in answer
    assert place.check("--connect", "b\u00fccher.example")["effects"]["hosts"] == ["xn--bcher-kva.example"]


def test_a_project_may_restrict_but_not_permit(place):
    (place.project / ".bradawl").mkdir()
    (place.project / ".bradawl" / "config.toml").write_text(
        '[permissions]\nallow = ["Bash(npm test)"]\ndeny = ["Bash(ls *)"]\n'
    )
    assert place.check("npm test")["decision"] == "ask"
    assert place.check("ls -la")["decision"] == "deny"


def test_a_pattern_is_expanded_in_the_project(place):
    (place.project / "notes").write_text("")
    assert place.check("cat n*")["decision"] == "allow"
    (place.project / "name").symlink_to("/etc/hosts")
    assert place.check("cat n*")["decision"] == "ask"


@pytest.mark.parametrize(
    ("mode", "decision"), [("default", "ask"), ("plan", "deny"), ("bypass", "allow"), ("auto", "ask")]
)
def test_the_mode_decides(place, mode, decision):
    place.environ["BRADAWL_SANDBOX"] = "off"
    assert place.check("--mode", mode, "make")["decision"] == decision


def test_a_command_inside_a_sandbox_is_allowed_in_auto(place):
    out = io.StringIO()
    console = Console(io.StringIO(), out, io.StringIO(), {})
    options = {"workspace": str(place.project), "mode": "auto", "shell_line": "make"}

    def build(settings):
        agent = build_agent(settings)
        return msgspec.structs.replace(
            agent, policy=lambda: msgspec.structs.replace(agent.policy(), sandbox=Sandbox("some"))
        )

    assert run_check(options, place.environ, console, "/", build) == 0
    answer = json.loads(out.getvalue())
    assert answer["decision"] == "allow"
    assert answer["grant"]["writable"] == [str(place.project)]
    assert "network" not in answer["grant"]


def test_a_line_that_is_no_command_gives_the_decision_error(place):
    assert place.check("  ")["decision"] == "error"
    assert place.check("ls \x1b[2J")["decision"] == "error"


@pytest.mark.parametrize(
    "arguments",
    [(), ("ls", "--stdin"), ("ls", "src"), ("--mode", "all", "ls"), ("--nothing", "ls"), ("--home", "\0", "ls")],
)
def test_wrong_usage_is_reported_on_one_line(place, arguments):
    code, out, err = place.run(*arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


# ------------------------------------------------------------------ the virtual tree


@pytest.mark.parametrize(
    ("setup", "links"),
    [
        ("ln -s ~/.ssh keys", {"/ws/keys": "/home/u/.ssh"}),
        ("ln -s ~ all && ln -s ~/.. up", {"/ws/all": "/home/u", "/ws/up": "/home/u/.."}),
        ("ln -s ~other/x keys", None),
        ("ln -s /outside link", {"/ws/link": "/outside"}),
        ("ln -s .. up", {"/ws/up": ".."}),
        ("ln -sfn /a b/c", {"/ws/b/c": "/a"}),
        ("ln -s /x/y src", {"/ws/src/y": "/x/y"}),
        ("ln -s a b && ln -s b c", {"/ws/b": "a", "/ws/c": "b"}),
        ("ln -s /a d; ln -s /x d/e", {"/ws/d": "/a", "/a/e": "/x"}),
        ("mkdir x", None),
        ("ln a b", None),
        ("ln -s a", None),
        ("ln -s $HOME x", None),
        ("ln -s 'a' x", None),
        ("ln -s a b; rm b", None),
        ("ln -s a b | x y", None),
    ],
)
def test_a_setup_may_only_create_links(setup, links):
    assert links_in(setup, "/ws", "/home/u") == links


def test_real_and_virtual_links_are_followed_alike(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "there").symlink_to("real")
    tree = VirtualTree("", Overlay(links={f"{tmp_path}/not": "there/../there"}))
    assert tree.resolve("not/x/../y", str(tmp_path)) == f"{tmp_path}/real/y"
    assert tree.resolve("/../..", "/") == "/"


def test_links_in_a_circle_are_an_error(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for tree, path in (
        (VirtualTree("", Overlay()), "a/x"),
        (VirtualTree("", Overlay(links={f"{tmp_path}/c": "c"})), "c"),
    ):
        with pytest.raises(ToolError):
            tree.resolve(path, str(tmp_path))


def test_a_virtual_project_has_the_entries_of_a_usual_one(tmp_path):
    project = f"{tmp_path}/made-up"
    tree = VirtualTree("", Overlay(project, {f"{project}/link": "/outside"}))
    names = tree.entries(project)
    assert names is not None
    assert names.items() >= {".git": False, "src": False, "link": True}.items()
    assert tree.entries(f"{project}/README.md") is None
    assert [tree.kind(f"{project}{name}") for name in ("", "/src", "/any.py", "/%2e%2e/x")] == [
        "folder",
        "folder",
        "file",
        "missing",
    ]
    assert tree.kind(f"{tmp_path}/elsewhere") == "unknown"


def test_a_command_that_a_run_allows_only_if_undo_covers_the_workspace_says_so(place, tmp_path):
    def build(settings):
        agent = build_agent(settings)
        sandbox = Sandbox("some")
        return msgspec.structs.replace(agent, policy=lambda: msgspec.structs.replace(agent.policy(), sandbox=sandbox))

    def reason(line):
        out = io.StringIO()
        options = {"workspace": str(place.project), "mode": "auto", "shell_line": line}
        console = Console(io.StringIO(), out, io.StringIO(), place.environ)
        run_check(options, place.environ, console, str(place.project), build)
        answer = json.loads(out.getvalue())
        assert answer["decision"] == "allow", answer
        return answer["reason"]

    assert reason("git reset --hard").endswith(
        "; a run asks if undo does not cover the whole workspace, which this check does not search"
    )
    assert "undo" not in reason("git status")
    place.configure('[permissions]\nallow = ["Bash(git reset --hard)"]\n')
    assert "undo" not in reason("git reset --hard")


def test_a_file_that_the_home_folder_links_to_is_decided_as_the_link_itself(place):
    (place.home / ".bashrc").symlink_to(place.project / "bashrc")
    (place.home / ".vimrc").symlink_to(place.project / "vimrc")
    assert place.check("--mode", "bypass", "echo x >> bashrc")["decision"] == "deny"
    assert place.check("--mode", "accept-edits", "echo x >> vimrc")["decision"] == "ask"
    assert place.check("--mode", "bypass", "echo x >> other")["decision"] == "allow"


@pytest.mark.parametrize("decision", ["allow", "ask", "deny", "error"])
def test_where_the_sandbox_cant_limit_hosts_no_connection_is_allowed_by_its_host(decision):
    ruled = Verdict(decision, "preset pip allows it")
    for sandbox in (Sandbox("bubblewrap"), Sandbox("landlock", ("credentials",)), Sandbox()):
        assert verdict_in_sandbox(ruled, sandbox) == ruled
    found = verdict_in_sandbox(ruled, Sandbox("landlock", ("domains",)))
    assert found.decision == ("ask" if decision == "allow" else decision)
    assert "can't limit the network to domains" in found.reason and "preset pip allows it" in found.reason
