"""What everyday programs that change files would touch. An option that isn't listed here isn't understood.

Options must stand before operands: systems differ about the others, and here it matters.
"""

import re
from posixpath import basename, dirname

from bradawl.safety.shell.allow.commands.options import options, read_options
from bradawl.safety.shell.allow.commands.readers import Program, Words, check, check_literal
from bradawl.safety.shell.allow.parser import Word
from bradawl.safety.shell.allow.path_effects import NOWHERE, Scene
from bradawl.safety.shell.errors import NotUnderstood


def _tee(scene: Scene, words: Words) -> None:
    _write_each(scene, read_options(_TEE, words).operands)


def _touch(scene: Scene, words: Words) -> None:
    call = read_options(_TOUCH, words)
    for word in call.reads:
        scene.read(word)
    _write_each(scene, _of_their_own(_files(call.operands)))


def _write_each(scene: Scene, files: Words) -> None:
    for word in files:
        scene.write(word)


def _files(operands: Words) -> Words:
    check(bool(operands) and not any(word.text == "-" for word in operands))
    return operands


def _chmod(scene: Scene, words: Words) -> None:
    operands = _files(read_options(_CHMOD, words).operands)
    check(len(operands) > 1 and bool(re.fullmatch(_MODE, operands[0].text)) and not operands[0].is_glob)
    _write_each(scene, _of_their_own(operands[1:]))


def _of_their_own(files: Words) -> Words:
    """Files, of which more changes than the content: what is written to the null device is gone, its mode is not."""
    check(all(word.text != NOWHERE for word in files))
    return files


def _mkdir(scene: Scene, words: Words) -> None:
    call = read_options(_MKDIR, words)
    check_literal(call.operands)
    makes_parents = not {"p", "parents"}.isdisjoint(call.flags)
    for word in _files(call.operands):
        check(not (makes_parents and ".." in word.text.split("/")))
        place = scene.place(word.text)
        while makes_parents and dirname(place) != place and not scene.is_folder(dirname(place)):
            place = dirname(place)
        scene.write_path(place)


def _rm(scene: Scene, words: Words) -> None:
    for word in _files(read_options(_RM, words).operands):
        scene.remove(word)


def _rmdir(scene: Scene, words: Words) -> None:
    for word in _files(read_options(_RMDIR, words).operands):
        scene.remove(word)


# ------------------------------------------------------------------ from one name to another


def _mv(scene: Scene, words: Words) -> None:
    call = read_options(_MV, words)
    *sources, target = _files(call.operands)
    check(bool(sources) and not target.is_glob)
    is_file = not {"T", "no-target-directory"}.isdisjoint(call.flags)
    for source in sources:
        scene.give_away(source)
        if source.is_glob:
            _move_matches(scene, source, target)
            continue
        entry, place = scene.entry(source.text)
        goal = _goal(scene, target, source, is_file=is_file)
        scene.remove(source)
        scene.write_path(goal)
        scene.relink(goal, is_link=entry != place)
        scene.relink(entry, is_link=False)  # the working directory may have moved with it


def _move_matches(scene: Scene, source: Word, target: Word) -> None:
    entry, place = scene.entry(target.text)
    for goal in {entry, place}:
        scene.write_path(goal)
        scene.relink(goal, is_link=goal == entry)
    scene.remove(source)


def _cp(scene: Scene, words: Words) -> None:
    call = read_options(_CP, words)
    *sources, target = _files(call.operands)
    check(bool(sources) and not target.is_glob)
    is_file = not {"T", "no-target-directory"}.isdisjoint(call.flags)
    is_deep = not {"r", "R", "a", "recursive", "archive"}.isdisjoint(call.flags)
    for source in sources:
        # First the goal, because what is read may lie in it.
        goal = target if source.is_glob else Word(_goal(scene, target, source, is_file=is_file))
        scene.read(source)
        scene.give_away(source)
        if is_deep:
            check(not source.is_glob)
            _copy_folder(scene, source, goal.text)
        elif source.is_glob:
            _copy_into(scene, goal)
        else:
            # Through a link, or with -f instead of it.
            scene.write_path(goal.text)
            scene.write(goal)


def _copy_folder(scene: Scene, source: Word, goal: str) -> None:
    """Links inside an older copy would be written through, so there must be none. Systems differ about `folder/`."""
    check(scene.is_new(goal) and not source.text.endswith("/"))
    scene.write_path(goal)
    entry, place = scene.entry(source.text)
    scene.relink(goal, is_link=entry != place)


def _copy_into(scene: Scene, target: Word) -> None:
    """Files whose names aren't known here; links that stand in the folder may be written through."""
    folder = scene.place(target.text)
    check(scene.is_folder(folder))
    for name, is_link in scene.names(folder).items():
        if is_link:
            scene.write(Word(f"{folder}/{name}"))
    scene.write_path(folder)


def _ln(scene: Scene, words: Words) -> None:
    call = read_options(_LN, words)
    check_literal(call.operands)
    check(1 <= len(call.operands) <= 2)
    source = call.operands[0]
    target = call.operands[1] if len(call.operands) == 2 else Word(".")
    if {"s", "symbolic"}.isdisjoint(call.flags):
        scene.give_away(source)
        scene.remove(source)  # from now on a write to one is a write to both
    replaces = not {"n", "T", "no-dereference", "no-target-directory"}.isdisjoint(call.flags)
    goals = {_goal(scene, target, source, is_file=False)}
    goals |= {scene.entry(target.text)[0]} if replaces else set()
    for goal in goals:
        scene.write_path(goal)
        scene.relink(goal, is_link=True)


def _goal(scene: Scene, target: Word, source: Word, *, is_file: bool) -> str:
    """The name that is made: the target, or one in it if it is a folder. If it becomes one on the way, what is made
    lies below the name given here."""
    entry, place = scene.entry(target.text)
    check(place != NOWHERE)
    if is_file or not scene.is_folder(place):
        return entry
    name = basename(source.text.rstrip("/"))
    if name in ("", ".", ".."):
        raise NotUnderstood
    return f"{place.rstrip('/')}/{name}"


_MODE = r"[0-7]{3}|(?:[ugoa]+[+=-]|[+=])[rwxX]+(?:,[ugoa]*[+=-][rwxX]+)*"
_TEE = options("ai", "append ignore-interrupts", mixes=False)
_TOUCH = options("acm d: t: r<", "no-create date= reference<", mixes=False)
_CHMOD = options("Rcfv", "recursive changes silent quiet verbose", mixes=False)
_MKDIR = options("pv m:", "parents verbose mode=", mixes=False)
_RM = options("dfiIRrv", "dir force recursive verbose one-file-system interactive?", mixes=False)
_RMDIR = options("v", "verbose ignore-fail-on-non-empty", mixes=False)
_MV = options("finTuv", "force no-clobber verbose no-target-directory interactive", mixes=False)
_CP = options(
    "afinpRrTuv", "archive force recursive no-clobber verbose no-target-directory interactive preserve?", mixes=False
)
_LN = options("fnsTv", "force symbolic no-dereference no-target-directory verbose", mixes=False)

WRITERS: dict[str, Program] = {
    "tee": Program(_tee),
    "touch": Program(_touch),
    "chmod": Program(_chmod),
    "mkdir": Program(_mkdir),
    "rm": Program(_rm),
    "rmdir": Program(_rmdir),
    "mv": Program(_mv),
    "cp": Program(_cp),
    "ln": Program(_ln),
}
