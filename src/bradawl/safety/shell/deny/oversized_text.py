"""Searches texts that exceed the scan's budget for the most obvious dangerous commands."""

import re

# Each begins with letters, so that the search passes over the rest at once.
_OBVIOUS_DANGERS = (
    (
        r"rm(?<![\w.-]rm)[ \t]{1,9}(?:-\S{1,20}[ \t]{1,9}){1,4}(?:/|~|\$HOME|\$\{HOME\}|/(?:usr|etc|home|bin|var)\b)"
        r"/?\*?(?=[\s;&|)]|\Z)",
        "it would delete folders that must stay",
    ),
    (r"find[ \t]{1,9}(?:/|~|\$HOME)[ \t][^\n;|&/]{0,60}-delete\b", "it would delete folders that must stay"),
    (r"mkfs(?:\.\w{1,9})?[ \t][^\n;|&]{0,100}/dev/", "it would overwrite a disk"),
    (r"of=/dev/(?:[shv]d|xvd|nvme|mmcblk|mapper|dm-|md|r?disk)", "it would overwrite a disk"),
)


def obvious_danger(text: str) -> str:
    """Why a text must not run, by patterns anywhere in it; empty if none matches."""
    dequoted = text.replace("'", "").replace('"', "").replace("\\", "")
    return next((why for pattern, why in _OBVIOUS_DANGERS if re.search(pattern, dequoted)), "")
