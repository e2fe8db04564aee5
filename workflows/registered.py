"""The workflows that a control worker decides, and an auditor replays."""

from workflows.prompt_group import PromptGroup
from workflows.training_run import TrainingRun
from workflows.validation import Validation

WORKFLOWS: tuple[type, ...] = (TrainingRun, PromptGroup, Validation)
