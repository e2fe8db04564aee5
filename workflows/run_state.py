"""What a run's workflow has in hand, and how it shows it: details and search attributes in the Temporal UI."""

from temporalio import workflow
from temporalio.common import SearchAttributeKey

from stepwell.contracts.rollout import GroupsClosed
from stepwell.contracts.run import Dispatch, Progress, RunFold, RunInput, ValidationScore, VersionRef
from stepwell.events.run_finished import RunEnd

RECIPE = SearchAttributeKey.for_keyword("StepwellRecipe")
STATE = SearchAttributeKey.for_keyword("StepwellState")
STEP = SearchAttributeKey.for_int("StepwellStep")
VERSION = SearchAttributeKey.for_int("StepwellVersion")


class RunState:
    """A view of the ledger plus what is under way; rebuilt by the fold whenever the workflow starts."""

    def __init__(self, run: RunInput) -> None:
        self._recipe = run.recipe
        self._run = run.run
        self._plan = run.plan
        self._waiting = "the ledger"
        self._scores: list[ValidationScore] = []
        self._shown: tuple[str, int, int] | None = None
        self._scope = ""
        self.version: VersionRef | None = None
        self.admitted = 0
        self.training = 0
        self.generating = 0
        self.serving = -1
        self.engines: tuple[str, ...] = ()
        self.open_prompts: set[int] = set()
        self.paused = False
        self.end: RunEnd | None = None
        self.end_cause = ""

    def take(self, fold: RunFold) -> None:
        """Starts from what the ledger says."""
        self.version = fold.version
        self.admitted = fold.admitted
        self.training = fold.completed
        self.paused = fold.paused or self.paused
        self._scores = list(fold.validations)
        if fold.stop_reason is not None:
            self.finish(RunEnd.STOPPED, fold.stop_reason)
        self.show()

    @property
    def newest(self) -> int:
        """Newest weight version, -1 before version 0."""
        return -1 if self.version is None else self.version.version

    def open(self, step: int, dispatch: Dispatch) -> None:
        """A step's groups are open."""
        self.generating = step
        self._scope = dispatch.scope
        self.open_prompts = {prompt.prompt for prompt in dispatch.open}
        self.show()

    def closed(self, closed: GroupsClosed) -> None:
        """Groups of the open step are closed; word of another step comes late and says nothing new."""
        if closed.scope == self._scope:
            self.open_prompts -= {group.prompt for group in closed.groups}
            self.show()

    def score(self, version: int, dataset: str) -> ValidationScore | None:
        """A validation's result, if it is known."""
        for score in self._scores:
            if score.version == version and score.dataset == dataset:
                return score
        return None

    def scored(self, score: ValidationScore) -> None:
        """A validation ended."""
        self._scores.append(score)
        self.show()

    def finish(self, end: RunEnd, cause: str) -> None:
        """The run ends at the next boundary; the first reason stands."""
        if self.end is None:
            self.end, self.end_cause = end, cause
            self.show()

    def close(self, end: RunEnd) -> None:
        """The run's stream is closed."""
        self.end = end
        self._waiting = "nothing: the run is over"
        self.show()

    def wait(self, what: str) -> None:
        """Names what the run waits for."""
        self._waiting = what
        self.show()

    def refuse_if(self, condition: bool, reason: str) -> None:
        """Refuses an Update: it leaves no trace in the state.

        Raises:
            ValueError: with the reason, if the condition holds.
        """
        if condition:
            raise ValueError(reason)

    def progress(self) -> Progress:
        """What the run does now."""
        mains = [score for score in self._scores if score.dataset == "main"]
        return Progress(
            state=self._name(),
            waiting_for=self._waiting,
            version=self.newest,
            generating=self.generating,
            open_groups=len(self.open_prompts),
            training=self.training,
            serving=self.serving,
            last_validation=mains[-1] if mains else None,
        )

    def show(self) -> None:
        """Writes the details page; search attributes only when they change, since each change is a history event."""
        workflow.set_current_details(self._details())
        shown = (self._name(), self.generating, self.newest)
        if shown != self._shown:
            self._shown = shown
            workflow.upsert_search_attributes(
                [
                    RECIPE.value_set(self._recipe),
                    STATE.value_set(shown[0]),
                    STEP.value_set(shown[1]),
                    VERSION.value_set(shown[2]),
                ]
            )

    def _name(self) -> str:
        if self._waiting.startswith("nothing"):
            return "finished"
        if self.end is not None:
            return "stopping"
        return "paused" if self.paused else "running"

    def _details(self) -> str:
        rows = [
            ("State", self._name()),
            ("Waits for", self._waiting),
            ("Step", f"{self.generating} of {self._plan.max_steps} being generated, {self.training} being trained"),
            ("Open groups", str(len(self.open_prompts))),
            (
                "Weight version",
                f"{self.newest} newest, {self.serving} served by {', '.join(self.engines) or 'no engine'}",
            ),
        ]
        lines = [f"## {self._run}", "", *(f"- **{name}**: {value}" for name, value in rows)]
        if self._scores:
            lines += ["", "### Validations (newest last)", ""]
            lines += [
                f"- version {score.version} on {score.dataset}: pass@1 **{score.pass_1:.3f}**, "
                f"pass@{score.k} **{score.pass_k:.3f}**"
                for score in self._scores[-8:]
            ]
        return "\n".join(lines)
