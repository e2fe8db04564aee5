"""Failures that are not retried are named by their class: a renamed class would be retried for days."""

import importlib

import pytest

from stepwell.contracts.rollout import FailureKind
from workflows.contracts import NOT_RETRYABLE

HOMES = {
    "NonFinite": "stepwell.policy.trainers.protocol",
    "DigestMismatch": "stepwell.policy.weights",
    "MismatchTooLarge": "activities.training",
    "MissingLogprob": "stepwell.rl.samples",
    "Inadmissible": "stepwell.rl.admission",
    "UnfinishedValidation": "activities.validation",
    "RecipeError": "stepwell.recipe.loading",
    "WrongDemonstration": "stepwell.policy.gold_demonstrations",
    "UnsupportedModel": "stepwell.policy.trainers.protocol",
    "AgentHostDied": "stepwell.ptb.supervisor",
    "PromptContradicts": "stepwell.ptb.prompts",
}


def test_every_name_has_a_home() -> None:
    assert {*HOMES, FailureKind.DATA.value} == set(NOT_RETRYABLE)


@pytest.mark.parametrize("name", HOMES)
def test_named_class_exists(name: str) -> None:
    assert issubclass(getattr(importlib.import_module(HOMES[name]), name), Exception)
