"""What a model means by the name of a tool that does not exist: tools of other agents under other names."""

import re
from collections.abc import Collection, Mapping
from typing import Final

_LEAST_LIKENESS: Final = 0.75
_NAMES: Final[Mapping[str, str]] = {
    "read_file": "read view cat open open_file view_file file_read read_files get_file_contents notebook_read",
    "edit_file": "edit str_replace str_replace_editor str_replace_based_edit_tool replace search_replace apply_patch "
    "patch apply_diff edit_files replace_in_file replace_string_in_file notebook_edit",
    "write_file": "write create create_file file_write write_to_file save_file insert_edit_into_file",
    "bash": "shell sh terminal exec execute execute_bash execute_command exec_command run_command run_terminal_cmd "
    "run_in_terminal run_shell_command run_bash cmd command local_shell powershell python",
    "bash (ls)": "ls list list_dir list_directory list_files dir tree",
    "bash_output": "bash_output_tool get_terminal_output task_output shell_output write_stdin",
    "bash_kill": "kill_shell kill_bash task_stop kill_terminal",
    "grep": "search search_files rg ripgrep grep_search file_search_content search_file_content codebase_search "
    "search_code search_for_pattern",
    "glob": "find find_files file_search glob_search glob_file_search",
    "agent": "task dispatch_agent subagent sub_agent new_task spawn_agent delegate run_subagent",
    "todo_write": "todo todo_read update_plan update_todo_list manage_todo_list write_todos",
    "web_fetch": "fetch fetch_url fetch_webpage browse read_url",
    "ask_user": "ask ask_question ask_user_question ask_followup_question request_user_input question",
    "exit_plan": "exit_plan_mode present_plan plan_mode_respond",
}
_OTHER_NAMES: Final = {
    re.sub(r"[^a-z0-9]", "", other): tool for tool, others in _NAMES.items() for other in (*others.split(), tool)
}


def meant_by(name: str, offered: Collection[str]) -> str:
    """A sentence on what to use instead of a tool that does not exist; empty if it is not known."""
    plain = re.sub(r"[^a-z0-9]", "", re.split(r"[.:/]", name.lower())[-1])
    known = _OTHER_NAMES.get(plain, "")
    if known == "ask_user" and known not in offered:
        return "Nobody can answer here: decide, and say in the answer what you assumed."
    if known.split(" ")[0] in offered:
        return f"Did you mean {known}?"
    from difflib import get_close_matches  # rarely needed

    near = get_close_matches(name.lower(), tuple(offered), 1, _LEAST_LIKENESS)
    return f"Did you mean {near[0]}?" if near else ""


def unknown_tool(name: str, offered: tuple[str, ...], *, was_removed: bool) -> str:
    """The result of a call of a tool that does not exist."""
    tools = f"The tools are: {', '.join(offered)}." if offered else "This session has no tools."
    if was_removed:
        return f"The tool {name!r} was removed from this session; nothing was run. {tools}"
    guess = f" {meant}" if (meant := meant_by(name, offered)) else ""
    return f"There is no tool named {name!r}; nothing was run.{guess} {tools}"
