"""Digests as people read them."""

import re

SHOWN = 12
"""Characters that tell digests of one run apart."""


def short_digests(text: str) -> str:
    """The text with each SHA-256 in hex cut to its first characters."""
    return re.sub(r"\b[0-9a-f]{64}\b", lambda found: f"{found[0][:SHOWN]}…", text)
