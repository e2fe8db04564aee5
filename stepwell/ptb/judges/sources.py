"""What a judge may be shown of a trial: traces, programs and traffic logs, redacted, in numbered lines."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stepwell.ptb.secrets import Secrets

SourceKind = Literal["trace", "file", "traffic"]
"""Where text comes from: what the agent said and did, what it left, what the proxy saw."""

_SUFFIXES = ".py .sh .ipynb .json .jsonl .yaml .yml .toml .cfg .ini .txt .md .log .jinja .csv"
READ_SUFFIXES = frozenset(_SUFFIXES.split())
"""Files of an agent's folder that are read."""
LARGEST_FILE = 2 << 20
"""Bytes; larger ones are data, which the contamination check reads, and are named as left out."""

_TOKENS = re.compile(
    r"\b(?:sk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|AIza[A-Za-z0-9_-]{30,}"
    r"|AKIA[A-Z0-9]{16}|xai-[A-Za-z0-9]{20,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})"
)
_ASSIGNED = re.compile(
    r"(?i)\b([A-Z0-9_]*(?:api_?key|secret|token|password))(\"?'?\s*[:=]\s*[\"']?)([A-Za-z0-9_/+.-]{16,})"
)
_BEARER = re.compile(r"(?i)\b(bearer\s+)[A-Za-z0-9_/+.=-]{16,}")


@dataclass(frozen=True)
class Source:
    """One text."""

    kind: SourceKind
    path: str
    """Where it lies, from the trial's folder."""
    lines: tuple[str, ...]
    """Redacted."""


@dataclass(frozen=True)
class TrialSources:
    """All texts of a trial."""

    sources: tuple[Source, ...]
    """In the order of kind and path."""
    left_out: tuple[str, ...] = ()
    """Paths that were not read: too large, no text, a link."""


def redacted(text: str, secrets: Mapping[str, str]) -> str:
    """A text without secrets: those given, by name and in all their forms, and what looks like one.

    Raises:
        SecretTooShort: one has fewer than `LEAST_SECRET` characters.
    """
    if secrets:
        text = Secrets(secrets).redact(text.encode("utf-8", "replace")).decode("utf-8", "replace")
    text = _TOKENS.sub("[redacted]", text)
    text = _ASSIGNED.sub(r"\1\2[redacted]", text)
    return _BEARER.sub(r"\1[redacted]", text)


def check_no_secret(text: str, secrets: Mapping[str, str]) -> None:
    """Fails closed before anything is sent.

    Raises:
        SecretSurvives: a secret is in the text, in any of its forms.
        SecretTooShort: as `redacted`.
    """
    Secrets(secrets).check(text.encode("utf-8", "replace"), "what a judge would be sent")


def trial_sources(
    traces: Sequence[Path], folder: Path, traffic: Sequence[Path] = (), secrets: Mapping[str, str] | None = None
) -> TrialSources:
    """Reads a trial. Links are not followed.

    Args:
        traces: Files of what the agent said and did.
        folder: What it left.
        traffic: Logs of the proxy.
        secrets: Value by name.

    Raises:
        OSError: a trace or log, or the folder, cannot be read.
        SecretTooShort: as `redacted`.
    """
    secrets = secrets or {}
    found: list[Source] = []
    found += [_source("trace", path.name, path.read_bytes(), secrets) for path in traces]
    found += [_source("traffic", path.name, path.read_bytes(), secrets) for path in traffic]
    left_out: list[str] = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            left_out.append(name)
        elif path.is_file() and path.suffix in READ_SUFFIXES:
            if path.stat().st_size > LARGEST_FILE:
                left_out.append(name)
            else:
                found.append(_source("file", name, path.read_bytes(), secrets))
    return TrialSources(tuple(sorted(found, key=lambda each: (each.kind, each.path))), tuple(left_out))


def _source(kind: SourceKind, path: str, data: bytes, secrets: Mapping[str, str]) -> Source:
    text = redacted(data.decode("utf-8", "replace"), secrets)
    return Source(kind, path, tuple(text.split("\n")))
