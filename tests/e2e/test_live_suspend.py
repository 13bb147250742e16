"""Ctrl+Z at a live terminal, under a shell that controls jobs."""

import shlex
import sys

from live_terminal import bash


def test_ctrl_z_gives_the_terminal_to_the_shell_and_fg_brings_it_back(live, project):
    """Defect: Ctrl+Z inserted a character."""
    shell = ("bash", "--norc", "--noprofile", "-i")
    (project / "start").write_text(
        f'exec {shlex.quote(sys.executable)} -c "import sys; from bradawl.app.cli import main; sys.exit(main())" -y\n'
    )
    talk = live([{"text": "Back."}], program=shell, environ={"PS1": "SHELL> ", "HISTFILE": "/dev/null"})
    talk.wait_for("SHELL>")
    talk.type("sh start\r")
    talk.wait_idle()
    talk.type("half a li")
    talk.until(lambda: talk.typed == "half a li", "the text")
    talk.press("ctrl+z")
    talk.wait_for("Stopped")
    talk.until(lambda: talk.text.endswith("SHELL>"), "the shell's prompt")
    assert talk.screen.private == {7, 25} | ({2004} & talk.screen.private)  # the shell has pastes marked as well
    talk.type("echo $((6 * 7))\r")
    talk.wait_for("\n42")
    talk.type("fg\r")
    talk.until(lambda: talk.typed == "half a li", "the text as it was")
    talk.type("ne\r")
    talk.wait_for("Back.")
    talk.wait_turns(1)
    talk.press("ctrl+d")
    talk.until(lambda: talk.text.endswith("SHELL>"), "the shell's prompt")
    talk.type("exit\r")
    assert talk.end() == 0
    talk.assert_no_leaks()


def test_ctrl_z_while_a_command_runs(live, project):
    shell = ("bash", "--norc", "--noprofile", "-i")
    (project / "start").write_text(
        f'exec {shlex.quote(sys.executable)} -c "import sys; from bradawl.app.cli import main; sys.exit(main())" -y\n'
    )
    script = [bash("until [ -e go ]; do sleep 0.05; done; echo gone"), {"text": "Done."}]
    talk = live(script, program=shell, environ={"PS1": "SHELL> ", "HISTFILE": "/dev/null"})
    talk.wait_for("SHELL>")
    talk.type("sh start\r")
    talk.wait_idle()
    talk.send("work")
    talk.wait_for("until [ -e go ]", "esc stops")
    talk.press("ctrl+z")
    talk.wait_for("Stopped")
    talk.type("touch go; fg\r")
    talk.wait_for("Done.")
    talk.wait_turns(1)
    talk.press("ctrl+d")
    talk.until(lambda: talk.text.endswith("SHELL>"), "the shell's prompt")
    talk.type("exit\r")
    talk.end()
