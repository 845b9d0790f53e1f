"""What a run computes: its configuration, the data it reads, and the version of the code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from orbit.core.fingerprint import Fingerprint, digest
from runners.tracking.record import Record


def add_fingerprints(record: Record, files: Iterable[Fingerprint]) -> None:
    """Record the fingerprints of the files that a run reads."""
    found = list(files)
    record.files, record.data_hash = [asdict(file) for file in found], digest(found)


def identity(record: Record) -> str:
    """Equal for two runs that compute the same from the same data."""
    return f"{record.config_hash}-{record.data_hash}"


def in_common(record: Record, run_id: str, tags: Mapping[str, str]) -> str:
    """What a run has in common with a finished one, of that id and tags, in one line."""
    names = ", ".join(Path(file["path"]).name for file in record.files[:3]) + (", ..." if len(record.files) > 3 else "")
    data = f"data (content of {names}: {record.data_hash})" if record.files else "generated data"
    return (
        f"run {run_id} has finished with the same configuration ({record.config_hash}), the same {data}, "
        f"and code of {_code(tags)}"
    )


def other_code(record: Record, run_id: str, tags: Mapping[str, str]) -> str | None:
    """A warning if the code of the finished run may be another one; None if both are of one clean commit."""
    if _code(record.tags) == _code(tags) and record.tags.get("git.dirty", "false") == "false":
        return None
    return (
        f"the code of run {run_id} may differ: it is of {_code(tags)}, this one of {_code(record.tags)}; "
        "set resume=false to run again"
    )


def _code(tags: Mapping[str, str]) -> str:
    """The version of a run's code, from its tags."""
    commit = tags.get("git.commit")
    if commit is None:
        return f"version {tags.get('version.orbit', 'unknown')}"
    changes = " with uncommitted changes" if tags.get("git.dirty") == "true" else ""
    return f"commit {commit[:10]}{changes}"
