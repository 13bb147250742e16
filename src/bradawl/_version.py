"""The version of bradawl, importable without anything else of it."""

__version__ = "0.1.0"
