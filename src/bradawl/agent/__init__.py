"""Orchestration: turns, steps and calls, against ports only."""
