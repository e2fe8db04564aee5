"""What the certificate reads of a run's recipe."""

from pydantic import BaseModel, ConfigDict, ValidationError

from stepwell.audit.record import RunRecord
from stepwell.contracts.run import ValidationSchedule
from stepwell.recipe.sections import RunSection
from stepwell.recipe.validating import ValidationSection


class CertifiedRecipe(BaseModel):
    """Sections of `stepwell.recipe.recipe.Recipe`, by the same names."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    run: RunSection
    """How long, how many samples."""
    validation: ValidationSection
    """Which versions are evaluated, and what ends the run."""

    @property
    def samples_per_step(self) -> int:
        """The benchmark's global batch size."""
        return self.run.prompts_per_step * self.run.samples_per_prompt

    @property
    def schedule(self) -> ValidationSchedule:
        """Which versions are evaluated."""
        return self.validation.plan(self.samples_per_step)

    def is_required(self, version: int) -> bool:
        """Whether a version is evaluated on the set `main`: those that are due, and the last."""
        return self.schedule.due(version) or version == self.run.max_steps


def recipe_of(record: RunRecord) -> CertifiedRecipe | None:
    """The recipe of a run; None where these sections cannot be read, of which the rule `whole` tells."""
    try:
        return None if record.created is None else CertifiedRecipe.model_validate(record.created.recipe)
    except ValidationError:
        return None
