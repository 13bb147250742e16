"""A session's `/tmp` without a sandbox, and paths of the machine's."""

import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bradawl.sandbox.machine_tmp import MachineTmp
from bradawl.sandbox.path_translation import TEMPORARY
from bradawl.sandbox.scratch import SessionScratch


@contextmanager
def unused_name() -> Iterator[str]:
    """A path in the machine's /tmp where nothing exists; all that begins like it is removed at the end."""
    path = Path(TEMPORARY, f"bradawl-named-{secrets.token_hex(6)}")
    try:
        yield str(path)
    finally:
        for each in path.parent.glob(f"{path.name}*"):
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()


def machine_tmp(
    place: Path, objection: Callable[[str], str] = lambda _: "", *, private: bool = True
) -> tuple[MachineTmp, Path]:
    """The named paths of a session, and the folder behind its `/tmp`. A second one continues the session."""
    scratch = SessionScratch(str(place / "tmp"), str(place))
    scratch.choose("01M85F1K59CFJ6BRCX1SEN8T2P")
    own = Path(scratch.place())
    own.mkdir(parents=True, exist_ok=True)
    return MachineTmp(scratch, (str(place),), lambda: private, lambda: objection), own
