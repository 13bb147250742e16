"""A coding agent for the terminal, and a library for building one."""

__version__ = "0.1.0"
