"""Files of package indexes for a stand-in of the internet. Each index is on one host and its files on files.example."""

import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

FILES = "https://files.example"


def wheel_index(folder: Path) -> None:
    """An index for pip and uv with the package demo."""
    name = "demo-1.0-py3-none-any.whl"
    (folder / name).write_bytes(
        _zip(
            {
                "demo.py": "ANSWER = 42\n",
                "demo-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
                "demo-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
                "demo-1.0.dist-info/RECORD": "demo.py,,\n",
            }
        )
    )
    (folder / "simple/demo").mkdir(parents=True)
    (folder / "simple/demo/index.html").write_text(f"<a href='{FILES}/{name}'>{name}</a>")


def crate_index(folder: Path) -> None:
    """A sparse index for cargo with the crate demo."""
    manifest = '[package]\nname = "demo"\nversion = "1.0.0"\nedition = "2021"\n'
    packed = _tar_gz({"demo-1.0.0/Cargo.toml": manifest, "demo-1.0.0/src/lib.rs": "pub fn answer() -> u8 { 42 }\n"})
    _write(folder / "crates/demo/1.0.0/download", packed)
    entry = {"name": "demo", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False}
    entry["cksum"] = hashlib.sha256(packed).hexdigest()
    _write(folder / "index/de/mo/demo", json.dumps(entry).encode())
    _write(folder / "index/config.json", json.dumps({"dl": f"{FILES}/crates"}).encode())


def module_proxy(folder: Path) -> None:
    """A module proxy for Go with the module demo.example/demo."""
    module = "module demo.example/demo\n"
    top = folder / "demo.example/demo/@v"
    _write(top / "list", b"v1.0.0\n")
    _write(top / "v1.0.0.info", b'{"Version": "v1.0.0", "Time": "2026-01-02T03:04:05Z"}')
    _write(top / "v1.0.0.mod", module.encode())
    prefix = "demo.example/demo@v1.0.0"
    _write(top / "v1.0.0.zip", _zip({f"{prefix}/go.mod": module, f"{prefix}/demo.go": "package demo\n"}))


def debian_repository(folder: Path) -> None:
    """A flat repository for apt with the package demo."""
    package = b"the bytes of a package\n"
    _write(folder / "debian/demo.deb", package)
    fields = {
        "Package": "demo",
        "Version": "1.0",
        "Architecture": "all",
        "Filename": "./demo.deb",
        "Size": str(len(package)),
        "SHA256": hashlib.sha256(package).hexdigest(),
        "Description": "a package",
    }
    _write(folder / "debian/Packages", "".join(f"{name}: {value}\n" for name, value in fields.items()).encode())


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _zip(files: Mapping[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        for name, text in files.items():
            file.writestr(name, text)
    return data.getvalue()


def _tar_gz(files: Mapping[str, str]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as file:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            file.addfile(entry, io.BytesIO(text.encode()))
    return gzip.compress(data.getvalue())
