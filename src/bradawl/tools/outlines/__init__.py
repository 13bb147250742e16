"""Outlines of source files: finds classes, functions and constants with their lines, without running the code."""
