"""Adapters for files, processes, clock and ids of the local machine, behind the ports of the same names."""
