"""The files and processes of the machine, behind ports."""
