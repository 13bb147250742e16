"""Owners of files, folders and links: recorded where a new one would get another, and given back."""

import os

from bradawl.checkpoints.record import Owner


def owner_of(found: os.stat_result, parent: int) -> Owner | None:
    """The owner of an entry of an open folder; None if what is made there now gets the same. Raises `OSError`."""
    own = (found.st_uid, found.st_gid)
    return None if own == _usual_owner(parent) else own


def _usual_owner(parent: int) -> Owner:
    """The owner that undo gives to what it makes: what root makes belongs to the owner of its folder."""
    if os.geteuid() != 0:
        return (os.geteuid(), os.getegid())
    like = os.fstat(parent)
    return (like.st_uid, like.st_gid)


def give_owner(parent: int, name: bytes, owner: Owner | None) -> bool:
    """Give an entry of an open folder its owner, or the usual one; no link is followed. False if that is refused."""
    if owner is None and os.geteuid() != 0:
        return True
    wanted = owner or _usual_owner(parent)
    for uid, gid in (wanted, (-1, wanted[1])):  # a user may give a file to a group that they are in
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if (found.st_uid, found.st_gid) == wanted:
            return True
        try:
            os.chown(name, uid, gid, dir_fd=parent, follow_symlinks=False)
        except PermissionError:
            continue
        except OSError:  # a user that the namespace does not have, or a file system without owners
            return False
        if uid == wanted[0]:
            return True
    found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    return (found.st_uid, found.st_gid) == wanted
