"""Decides what calls may do: shell analysis, permission rules, trust, and cleaning of output. Unknown means not
allowed.
"""
