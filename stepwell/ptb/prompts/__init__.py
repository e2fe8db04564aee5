"""Prompts of trials, by versions of the rules; and whether they say what is so."""

from stepwell.ptb.prompts.enforced import Enforced, Internet, RuleCheck
from stepwell.ptb.prompts.prompt import (
    RULES,
    Prompt,
    PromptContradicts,
    Task,
    UnknownRules,
    go_on_text,
    settled,
    trial_prompt,
)
from stepwell.ptb.prompts.statements import Claim, Contradiction, Statement, Tag, check_statements, honest_claims

__all__ = [
    "RULES",
    "Claim",
    "Contradiction",
    "Enforced",
    "Internet",
    "Prompt",
    "PromptContradicts",
    "RuleCheck",
    "Statement",
    "Tag",
    "Task",
    "UnknownRules",
    "check_statements",
    "go_on_text",
    "honest_claims",
    "settled",
    "trial_prompt",
]
