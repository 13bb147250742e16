"""Files that archivers, compressors and transfer programs write: output options, and the contents of archives."""

import re
from collections.abc import Callable
from itertools import pairwise
from posixpath import basename, join

from bradawl.safety.shell.arguments import arguments
from bradawl.safety.shell.argv import Argv, names
from bradawl.safety.shell.paths.file_changes import NO_CHANGES, Changes, Copies
from bradawl.safety.shell.program_options import program_arguments

# ------------------------------------------------------------------ archives


def _tar(argv: Argv) -> Changes:
    call = program_arguments(argv)
    scripts = call.values("", "transform", "xform")
    named = tuple(part for script in scripts for part in _replacements(script))
    folders = call.values("C", "directory") or (".",)
    if call.has("x", "extract", "get"):
        named = (*named, *call.values("", "one-top-level"))
        named += tuple(join(folder, word) for word in call.operands for folder in folders)
        unpacked = _unpacked(call.values("f", "file") or ("-",), folders)
        return Changes(files=(*call.values("C", "directory"), *named), trees=named, copies=unpacked)
    outputs = (*call.values("f", "file"), *call.values("g", "listed-incremental", "index-file"))
    if not call.has("cruA", "create", "append", "update", "catenate", "concatenate"):
        outputs = call.values("", "index-file")
    sources = tuple(join(folder, word) for word in call.operands for folder in folders)
    removed = sources if call.has("", "remove-files") else ()
    packed = tuple((folder, word) for word in call.operands for folder in folders)
    trees = removed or tuple(part for part in named if part)
    return Changes(files=(*outputs, *named, *removed), trees=trees, removes=bool(removed), packed=packed)


def _replacements(script: str) -> list[str]:
    """The replacements in a transform expression such as `s,old,new,`."""
    found: list[str] = []
    for part in script.split(";"):
        match = re.match(r"(?:flags=\w+;)?s(.)", part)
        pieces = part[2:].split(match[1]) if match else []
        found += pieces[1:2]
    return found


def _unpacked(archives: Argv, folders: Argv) -> tuple[Copies, ...]:
    return tuple(Copies((archive,), folder, True, True, True) for archive in archives for folder in folders)


def _zip(argv: Argv) -> Changes:
    call = program_arguments(argv)
    sources = call.operands[1:]
    excluded = next((place for place, word in enumerate(argv) if word in ("-x", "-i", "--exclude")), len(argv))
    deleted = tuple(word for word in argv[1:excluded] if word in sources) if call.has("m", "move") else ()
    packed = tuple((".", word) for word in sources)
    outputs = (*call.operands[:1], *call.values("O", "output-file"))
    return Changes(files=(*outputs, *deleted), trees=deleted, removes=True, packed=packed)


def _unzip(argv: Argv) -> Changes:
    call = program_arguments(argv)
    if call.has("lptvzZ"):
        return NO_CHANGES
    folder = (call.last("d") or ".",)
    return Changes(files=call.values("d"), copies=_unpacked(call.operands[:1], folder))


def _seven_zip(argv: Argv) -> Changes:
    command, rest = (argv[1], argv[2:]) if len(argv) > 1 else ("", ())
    outputs = tuple(word[2:] for word in rest if word.startswith("-o"))
    operands = tuple(word for word in rest if word[:1] != "-")
    deleted = operands[1:] if "-sdel" in rest else ()
    if command in ("x", "e"):
        return Changes(files=outputs, copies=_unpacked(operands[:1], outputs or (".",)))
    return (
        Changes(files=(*operands[:1], *deleted), trees=deleted, removes=True)
        if command in ("a", "u", "d", "rn")
        else NO_CHANGES
    )


def _compressor(argv: Argv) -> Changes:
    call = arguments(argv, "SoDTM", "suffix output files files0")
    if call.has("ctl", "stdout", "to-stdout", "test", "list"):
        return Changes(files=call.values("o", "output"))
    deep = call.operands if call.has("r", "recursive") else ()
    return Changes(files=(*call.operands, *call.values("o", "output")), trees=deep)


def _cpio(argv: Argv) -> Changes:
    call = arguments(argv, "FHIOECMRSDfs", "file directory")
    outputs = (*call.values("OF", "file"), *call.values("D", "directory"))
    return Changes(
        files=(*outputs, *call.operands) if call.has("p", "pass-through") or argv[0].endswith("pax") else outputs
    )


# ------------------------------------------------------------------ parts and transfers


def _split(argv: Argv) -> Changes:
    if argv[0].endswith("csplit"):
        call = program_arguments(argv)
        prefix = call.values("f", "prefix")[-1:] or ("xx",)
        return Changes(files=(prefix[0], f"{prefix[0]}*", f"{prefix[0]}00"))
    call = program_arguments(argv)
    prefix = call.operands[1:2] or ("x",)
    return Changes(files=(prefix[0], f"{prefix[0]}*", f"{prefix[0]}aa"))


def _dd(argv: Argv) -> Changes:
    return Changes(files=tuple(word[3:] for word in argv[1:] if word.startswith("of=")))


def _curl(argv: Argv) -> Changes:
    call = program_arguments(argv)
    outputs = call.values("oDc", "output", "dump-header", "cookie-jar", "trace", "trace-ascii", "stderr", "etag-save")
    outputs += call.values("", "hsts", "alt-svc", "libcurl")
    folders = call.values("", "output-dir") or (".",)
    if call.has("O", "remote-name", "remote-name-all"):
        outputs += tuple(basename(url.partition("?")[0]) for url in call.operands)
    return Changes(files=tuple(join(folder, file) for file in outputs if file != "-" for folder in folders))


def _wget(argv: Argv) -> Changes:
    call = program_arguments(argv)
    outputs = call.values("Ooa", "output-document", "output-file", "append-output")
    outputs += call.values("", "save-cookies", "warc-file", "hsts-file", "rejected-log")
    folders = call.values("P", "directory-prefix")
    names = (
        tuple(basename(url.partition("?")[0]) for url in call.operands) if not call.has("O", "output-document") else ()
    )
    return Changes(
        files=(*outputs, *folders, *(join(folder, name) for folder in folders or (".",) for name in names if name))
    )


def _openssl(argv: Argv) -> Changes:
    """Every subcommand has its own options, with one dash. The names of output options begin alike."""
    outputs = [after for word, after in pairwise(argv) if re.fullmatch(_OPENSSL_OUTPUTS, word)]
    is_drawn = argv[1:2] in (("rand",), ("genrsa",))
    return Changes(files=(*outputs, *(argv[-1:] if is_drawn and len(argv) > 2 and "-" not in argv[-1][:1] else ())))


def _ssh_keygen(argv: Argv) -> Changes:
    call = arguments(argv, "fCNPbtmnIVzDEwOsYaRFrMJjWZ")
    if call.has("lyeFBD") or call.has("Y"):
        return NO_CHANGES
    return Changes(files=tuple(place for file in call.values("f") for place in (file, f"{file}.pub")))


def _patch(argv: Argv) -> Changes:
    call = program_arguments(argv)
    if call.has("", "dry-run"):
        return NO_CHANGES
    outputs = call.values("or", "output", "reject-file")
    patches = (*call.values("i", "input"), *call.operands[1:2])
    return Changes(
        files=(*call.operands[:1], *outputs), texts=("",), maybe_changed=tuple(f"@{patch}" for patch in patches)
    )


# ------------------------------------------------------------------ tables

_OPENSSL_OUTPUTS = (
    r"-(?:out[a-z_]*|keyout|writerand|CAserial|sigfile|noverify_out|certsout|keylogfile|sess_out|msgfile)"
)

ARCHIVERS: dict[str, Callable[[Argv], Changes]] = {
    **dict.fromkeys(("tar", "gtar", "bsdtar"), _tar),
    "zip": _zip,
    "unzip": _unzip,
    **dict.fromkeys(("7z", "7za", "7zr"), _seven_zip),
    **dict.fromkeys(
        names(
            "gzip gunzip bzip2 bunzip2 xz unxz lzma unlzma zstd unzstd lz4 unlz4 compress uncompress pigz pbzip2 brotli"
        ),
        _compressor,
    ),
    **dict.fromkeys(("cpio", "pax"), _cpio),
    **dict.fromkeys(("split", "csplit"), _split),
    "dd": _dd,
    "curl": _curl,
    "wget": _wget,
    "openssl": _openssl,
    "ssh-keygen": _ssh_keygen,
    "patch": _patch,
}
"""Handlers by program name."""
