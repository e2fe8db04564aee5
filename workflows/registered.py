"""The workflows that a control worker decides, and an auditor replays."""

from workflows.prompt_group import PromptGroup
from workflows.run_set import RunSet
from workflows.training_run import TrainingRun
from workflows.trial import Trial
from workflows.validation import Validation

WORKFLOWS: tuple[type, ...] = (TrainingRun, PromptGroup, Validation, RunSet, Trial)
