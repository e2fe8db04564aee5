"""Which licences let a set of tasks, which hold the source of a package, be passed on. Pure."""

PERMISSIVE = frozenset(
    {"0BSD", "Apache-2.0", "BlueOak-1.0.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC", "MIT", "MIT-0"}
    | {"PSF-2.0", "Python-2.0", "Unlicense", "Zlib"}
)
"""SPDX identifiers of licences that ask for no more than that their text and notices stay."""
_OLD_NAMES = {
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "mit license": "MIT",
    "the mit license": "MIT",
}
"""What metadata from before SPDX says."""
_BY_NAME = {name.lower(): name for name in PERMISSIVE} | _OLD_NAMES


def is_permissive(expression: str) -> bool:
    """Whether a licence expression leaves a choice of permissive licences only: one of those joined by `OR`, each of
    those joined by `AND`. What is not known is not permissive."""
    flat = expression.replace("(", " ").replace(")", " ").strip().rstrip(".")
    # Brackets change what belongs to what: with them, all must be permissive.
    choices = [flat.replace(" OR ", " AND ")] if "(" in expression else flat.split(" OR ")
    return any(map(_all_known, choices))


def _all_known(conjunction: str) -> bool:
    """Whether each of the licences that `AND` joins is permissive."""
    return all(" ".join(one.split()).lower() in _BY_NAME for one in conjunction.split(" AND "))
