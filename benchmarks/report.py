"""Writes the result of a benchmark as a Markdown table and as JSON."""

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median

from figures import Figure, Runs, figures, quiet

_PACKAGES = ("bradawl", "msgspec", "h11", "httpx2", "prompt_toolkit")


def machine() -> dict[str, str | int]:
    """Description of the machine."""
    return {
        "cpu": _line_of("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count() or 0,
        "memory": _line_of("/proc/meminfo", "MemTotal"),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """Versions of bradawl, Python and the main dependencies."""
    return {name: version(name) for name in _PACKAGES}


def table(runs: Mapping[str, Runs], when: datetime, count: int) -> str:
    """A Markdown page. The first program is the measured one, the second the one it is compared with."""
    (name, measured), (other_name, other) = runs.items()
    mine, theirs = figures(measured), {figure.name: figure for figure in figures(other)}
    facts = machine()
    lines = [
        f"# {when:%Y-%m-%d %H:%M}, {count} steps",
        "",
        ", ".join(f"{key} {value}" for key, value in facts.items()) + ".",
        ", ".join(f"{key} {value}" for key, value in versions().items()) + ".",
        "",
        f"| | {name} | {other_name} | ratio | {name}, range | {other_name}, range |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_row(figure, theirs[figure.name]) for figure in mine if figure.name in theirs]
    lines += ["", *(_kept(label, part) for label, part in runs.items())]
    return "\n".join(lines) + "\n"


def save(folder: Path, runs: Mapping[str, Runs], when: datetime, count: int) -> Path:
    """Write both files into `folder`, named by the time. Returns the path of the table. Raises `OSError`."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "date": when.isoformat(timespec="seconds"),
        "steps": count,
        "machine": machine(),
        "versions": versions(),
        "figures": {name: [asdict(figure) for figure in figures(part)] for name, part in runs.items()},
        "runs": {name: asdict(part) for name, part in runs.items()},
    }
    path = folder / f"{when:%Y-%m-%dT%H%M%S}.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    path = path.with_suffix(".md")
    path.write_text(table(runs, when, count))
    return path


def _row(figure: Figure, other: Figure) -> str:
    ratio = f"{figure.middle / other.middle:.2f}" if figure.low > 0 and other.low > 0 else "-"
    cells = [
        f"{figure.name}, {figure.unit}" if figure.unit else figure.name,
        _number(figure.middle),
        _number(other.middle),
        ratio,
        f"{_number(figure.low)} to {_number(figure.high)}",
        f"{_number(other.low)} to {_number(other.high)}",
    ]
    return f"| {' | '.join(cells)} |"


def _number(value: float) -> str:
    if value == int(value):
        return str(int(value))
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _kept(name: str, runs: Runs) -> str:
    used = f"{len(quiet(runs.starts))} of {len(runs.starts)} starts, {len(quiet(runs.long))} of {len(runs.long)} long"
    noises = [run.noise_cores for run in (*quiet(runs.starts), *quiet(runs.long)) if run.noise_cores is not None]
    noise = f"; others kept {median(noises):.2f} processors busy meanwhile" if noises else ""
    server = median(run.server_s for run in runs.long) * 1000
    return f"- {name}: medians over {used} conversations{noise}; the server took {server:.2f} ms for an answer."


def _line_of(path: str, name: str) -> str:
    """The value of `name` in a file of `name: value` lines, or an empty string."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")
