"""Finds what needs protection: repositories, files with keys, git data outside the workspace, files of other users."""
