"""Adapters for files and processes of the local machine, behind the ports `Files` and `Processes`."""
