"""Effects of common programs that change files. An option that isn't listed raises `UnsupportedSyntax`.

Options must precede operands: systems differ about options behind operands, and here the difference matters.
"""

import re
from posixpath import basename, dirname

from bradawl.safety.shell.allow.commands.options import options, read_options
from bradawl.safety.shell.allow.commands.readers import Program, Words, require, require_literal
from bradawl.safety.shell.allow.parser import Word
from bradawl.safety.shell.allow.path_effects import NULL_DEVICE, PathRecorder
from bradawl.safety.shell.errors import UnsupportedSyntax


def _tee(recorder: PathRecorder, words: Words) -> None:
    _write_each(recorder, read_options(_TEE, words).operands)


def _touch(recorder: PathRecorder, words: Words) -> None:
    call = read_options(_TOUCH, words)
    for word in call.reads:
        recorder.read(word)
    _write_each(recorder, _without_null_device(_file_operands(call.operands)))


def _write_each(recorder: PathRecorder, files: Words) -> None:
    for word in files:
        recorder.write(word)


def _file_operands(operands: Words) -> Words:
    require(bool(operands) and not any(word.text == "-" for word in operands))
    return operands


def _chmod(recorder: PathRecorder, words: Words) -> None:
    operands = _file_operands(read_options(_CHMOD, words).operands)
    require(len(operands) > 1 and bool(re.fullmatch(_MODE, operands[0].text)) and not operands[0].is_glob)
    _write_each(recorder, _without_null_device(operands[1:]))


def _without_null_device(files: Words) -> Words:
    """Reject the null device: its content is discarded, but its mode and times would change."""
    require(all(word.text != NULL_DEVICE for word in files))
    return files


def _mkdir(recorder: PathRecorder, words: Words) -> None:
    call = read_options(_MKDIR, words)
    require_literal(call.operands)
    makes_parents = not {"p", "parents"}.isdisjoint(call.flags)
    for word in _file_operands(call.operands):
        require(not (makes_parents and ".." in word.text.split("/")))
        place = recorder.real_path(word.text)
        while makes_parents and dirname(place) != place and not recorder.is_folder(dirname(place)):
            place = dirname(place)
        recorder.write_path(place)


def _rm(recorder: PathRecorder, words: Words) -> None:
    for word in _file_operands(read_options(_RM, words).operands):
        recorder.remove(word)


def _rmdir(recorder: PathRecorder, words: Words) -> None:
    for word in _file_operands(read_options(_RMDIR, words).operands):
        recorder.remove(word)


# ------------------------------------------------------------------ from one name to another


def _mv(recorder: PathRecorder, words: Words) -> None:
    call = read_options(_MV, words)
    *sources, target = _file_operands(call.operands)
    require(bool(sources) and not target.is_glob)
    is_file = not {"T", "no-target-directory"}.isdisjoint(call.flags)
    for source in sources:
        recorder.record_copied(source)
        if source.is_glob:
            _move_matches(recorder, source, target)
            continue
        entry, place = recorder.entry(source.text)
        goal = _created_path(recorder, target, source, is_file=is_file)
        recorder.remove(source)
        recorder.write_path(goal)
        recorder.mark_links_unknown(goal, is_link=entry != place)
        recorder.mark_links_unknown(entry, is_link=False)  # the working directory may have been moved with it


def _move_matches(recorder: PathRecorder, source: Word, target: Word) -> None:
    entry, place = recorder.entry(target.text)
    for goal in {entry, place}:
        recorder.write_path(goal)
        recorder.mark_links_unknown(goal, is_link=goal == entry)
    recorder.remove(source)


def _cp(recorder: PathRecorder, words: Words) -> None:
    call = read_options(_CP, words)
    *sources, target = _file_operands(call.operands)
    require(bool(sources) and not target.is_glob)
    is_file = not {"T", "no-target-directory"}.isdisjoint(call.flags)
    is_deep = not {"r", "R", "a", "recursive", "archive"}.isdisjoint(call.flags)
    for source in sources:
        # The target first: the source may lie in it.
        goal = target if source.is_glob else Word(_created_path(recorder, target, source, is_file=is_file))
        recorder.read(source)
        recorder.record_copied(source)
        if is_deep:
            require(not source.is_glob)
            _copy_folder(recorder, source, goal.text)
        elif source.is_glob:
            _copy_into(recorder, goal)
        else:
            # `cp` writes through a link, or with -f replaces it.
            recorder.write_path(goal.text)
            recorder.write(goal)


def _copy_folder(recorder: PathRecorder, source: Word, goal: str) -> None:
    """Copy a folder. The target must be new: links in an existing copy would be written through.

    A source that ends with `/` is rejected: systems differ about it.
    """
    require(recorder.is_new(goal) and not source.text.endswith("/"))
    recorder.write_path(goal)
    entry, place = recorder.entry(source.text)
    recorder.mark_links_unknown(goal, is_link=entry != place)


def _copy_into(recorder: PathRecorder, target: Word) -> None:
    """Copy files whose names aren't known into a folder. Links that exist in the folder may be written through."""
    folder = recorder.real_path(target.text)
    require(recorder.is_folder(folder))
    for name, is_link in recorder.names(folder).items():
        if is_link:
            recorder.write(Word(f"{folder}/{name}"))
    recorder.write_path(folder)


def _ln(recorder: PathRecorder, words: Words) -> None:
    call = read_options(_LN, words)
    require_literal(call.operands)
    require(1 <= len(call.operands) <= 2)
    source = call.operands[0]
    target = call.operands[1] if len(call.operands) == 2 else Word(".")
    if {"s", "symbolic"}.isdisjoint(call.flags):
        recorder.record_copied(source)
        recorder.remove(source)  # from now on a write to one name changes both
    replaces = not {"n", "T", "no-dereference", "no-target-directory"}.isdisjoint(call.flags)
    goals = {_created_path(recorder, target, source, is_file=False)}
    goals |= {recorder.entry(target.text)[0]} if replaces else set()
    for goal in goals:
        recorder.write_path(goal)
        recorder.mark_links_unknown(goal, is_link=True)


def _created_path(recorder: PathRecorder, target: Word, source: Word, *, is_file: bool) -> str:
    """The path that is created: the target, or a name in it if it is a folder.

    If the target becomes a folder meanwhile, the created path lies below the path given here.
    """
    entry, place = recorder.entry(target.text)
    require(place != NULL_DEVICE)
    if is_file or not recorder.is_folder(place):
        return entry
    name = basename(source.text.rstrip("/"))
    if name in ("", ".", ".."):
        raise UnsupportedSyntax
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
