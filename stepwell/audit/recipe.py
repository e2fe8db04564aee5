"""What the rules read of a run's recipe.

A recipe is checked as a whole when a run is created; an auditor years later reads only the sections that decide what
must hold, so that a policy that can no longer be loaded hinders nobody.
"""

from pydantic import BaseModel, ConfigDict

from stepwell.recipe.sections import FailureSection, GateSection, LimitSection, RunSection, SamplingSection
from stepwell.rl.config import GrpoConfig, PackingConfig


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class AuditedTrainer(_Part):
    """Of the trainer."""

    packing: PackingConfig = PackingConfig()
    """How a batch is cut."""


class AuditedRecipe(_Part):
    """Sections of `stepwell.recipe.recipe.Recipe`, by the same names."""

    run: RunSection
    """How long, how exact."""
    sampling: SamplingSection = SamplingSection()
    """Its temperature stands in each batch."""
    rl: GrpoConfig = GrpoConfig()
    """Advantages and masks."""
    trainer: AuditedTrainer = AuditedTrainer()
    """Packing."""
    failures: FailureSection = FailureSection()
    """Reserve, and how small a step may be."""
    limits: LimitSection = LimitSection()
    """What is held by operators."""
    gates: GateSection = GateSection()
    """Where an operator is asked."""
