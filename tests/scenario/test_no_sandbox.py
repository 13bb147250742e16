"""Without a sandbox, a command with unpredictable effects asks, and is refused if there is no user to ask."""

import pytest
from scripted_agent import build, results

from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.core.events import PermissionAsked, PermissionDecided, ToolStarted
from bradawl.core.permissions import Policy, Sandbox
from bradawl.safety.permissions.protected_paths import built_in_rules
from bradawl.sandbox.guarantees import GUARANTEES
from bradawl.testing.fake_processes import ScriptedProcesses
from bradawl.testing.fakes import RecordingEmit
from bradawl.tools.bash import Bash

HOME, ROOT = "/home/u", "/project"
# Simple commands, which the parser understands, and lines that it does not.
COMMANDS = {
    "write_outside": ["touch /srv/x", "echo x > /srv/x", 'python3 -c \'open("/srv/x", "w")\'', "cp a /srv/x", "make"],
    "chmod_outside": ["chmod 777 /srv/x", "touch -d 2001-01-01 /srv/x", "chown 1 /srv/x", "python3 fix_modes.py"],
    "hard_link_in": ["ln /srv/x here", "cp -l /srv/x here"],
    "symlinked_root": ["ln -s /srv out", "ln -s /srv out && echo x > out/x"],
    "remount": ["mount -o remount,rw /", "umount /proc"],
    "nested_userns": ["unshare -Ur true", "bwrap --bind / / true"],
    "tcp": ["curl http://example.org", "exec 3<>/dev/tcp/example.org/80", "nc example.org 80", "git fetch"],
    "udp": ["dig example.org", "getent hosts example.org", "echo x > /dev/udp/192.0.2.1/53"],
    "domains": ["pip install x", "npm install", "git clone https://example.org/x"],
    "icmp": ["ping -c 1 example.org"],
    "netlink": ["ip link", "ss -l"],
    "unix_sockets": ["docker ps", "ssh-add -l", "curl --unix-socket /run/x http://x"],
    "abstract_sockets": ["socat - ABSTRACT-CONNECT:x", "python3 connect.py"],
    "tiocsti": ["python3 -c 'import fcntl; fcntl.ioctl(0, 0x5412, b\"x\")'", "setsid -c sh"],
    "proc_root": ["cat /proc/1/root/etc/shadow", "ls -l /proc/1/cwd/x; sh x", "cp -r /proc/1/root ."],
    "agent_environ": ["cat /proc/1/environ", "cat /proc/$PPID/environ", "xxd /proc/1/environ"],
    "ptrace": ["gdb -p 1", "strace -p 1", "kill -STOP 1"],
    "credentials": ["cat ~/.ssh/id_ed25519", "grep -r x ~/.aws", "tar cf x ~/.ssh", "cat .env", "head ~/.netrc"],
    "symlinked_git": ["ln -s data .git", "git config --file data/config core.fsmonitor x"],
    "new_protected_file": ["touch .mcp.json", "mkdir -p .bradawl", "echo x > .git/hooks/pre-commit"],
    "rename_protected": ["mv .git old", "mv .bradawl x"],
    "protected_file": ["git config core.fsmonitor x", "sed -i s/a/b/ .git/config", "git remote add o x"],
    "private_tmp": ["echo x > /tmp/x", "mktemp", "rm -r /tmp/x"],
    "escapees": ["setsid sleep 60 &", "env -i setsid sleep 60", "nohup sleep 60 &"],
    "no_new_privileges": ["sudo -n true", "su -c true", "pkexec true"],
}
CASES = [(line, command) for line, commands in COMMANDS.items() for command in commands]


def test_each_line_has_its_commands():
    assert set(COMMANDS) == set(GUARANTEES)


def policy() -> Policy:
    return Policy("auto", rules=built_in_rules((ROOT,), HOME), roots=(ROOT,), sandbox=Sandbox())


@pytest.mark.parametrize(("line", "command"), CASES)
async def test_without_a_user_a_command_that_needs_a_sandbox_is_not_run(line, command):
    processes, approver, emit = ScriptedProcesses(), DenyAllApprover(), RecordingEmit()
    script = [{"tool_calls": [{"name": "bash", "arguments": {"command": command}}]}, {"text": "I could not"}]
    bash = Bash(home=HOME, search_path="/usr/bin:/bin", workspace=(ROOT,), sandbox=Sandbox)
    agent, *_ = build(script, tools=(bash,), processes=processes, approver=approver, policy=policy)

    async with agent.open() as session:
        result = await session.run("go", emit)
        told = results(session.transcript.messages)
    asked = [event for event in emit.events if isinstance(event, PermissionAsked)]
    decided = [event.by for event in emit.events if isinstance(event, PermissionDecided)]
    assert processes.commands == [], told
    assert not any(isinstance(event, ToolStarted) for event in emit.events)
    # Commands that are not asked about are refused in every mode.
    assert decided == (["nobody"] if asked else ["policy"])
    assert len(approver.refused) == len(asked)
    assert result.reason == ("refused" if asked else "completed")


async def test_a_command_that_only_reads_runs_without_a_question():
    """Shows that the test above refuses commands because of their effects."""
    processes = ScriptedProcesses({"ls -l": "x"})
    script = [{"tool_calls": [{"name": "bash", "arguments": {"command": "ls -l"}}]}, {"text": "done"}]
    bash = Bash(home=HOME, search_path="/usr/bin:/bin", workspace=(ROOT,), sandbox=Sandbox)
    agent, *_ = build(script, tools=(bash,), processes=processes, approver=DenyAllApprover(), policy=policy)

    async with agent.open() as session:
        assert (await session.run("go")).reason == "completed"
    assert len(processes.commands) == 1
