"""The issue text of a defect, from its symptoms: what was called, what should come and what came. Pure."""

from collections.abc import Sequence

from stepwell.tasks.packages.symptoms import Symptom

EXAMPLES = 2
"""Most symptoms told: enough to see what is wrong, too few to write the answers down instead of repairing it."""
OPENINGS = (
    "Something is wrong in `{package}`.",
    "I get a wrong result from `{package}`.",
    "`{package}` does not behave as documented.",
    "Since the last change `{package}` misbehaves.",
)
CLOSINGS = (
    "Find the cause and repair it.",
    "Please repair this; other inputs are affected too.",
    "The cause is in the library, not in how it is called: please repair it.",
)


def issue_text(symptoms: Sequence[Symptom], choice: int) -> str:
    """What the agent is told.

    Args:
        symptoms: At least one, those to be told first.
        choice: Picks the wording.
    """
    parts = [OPENINGS[choice % len(OPENINGS)].format(package=symptoms[0].package)]
    parts += [_told(symptom) for symptom in symptoms[:EXAMPLES]]
    parts.append(CLOSINGS[choice // len(OPENINGS) % len(CLOSINGS)])
    return "\n\n".join(parts)


def _told(symptom: Symptom) -> str:
    call = f"`{symptom.call}`"
    if symptom.expected is None:
        return f"{call} {symptom.came}. It should not."
    if symptom.came is None:
        return f"{call} should be so that it {symptom.expected}. It does not."
    if symptom.expected == "raises nothing":
        return f"{call} {symptom.came}. It should work."
    return f"{call} {symptom.came}. Expected: it {symptom.expected}."
