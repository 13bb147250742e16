"""Find what needs protection: repositories, files with keys, other users, git data outside the workspace."""
