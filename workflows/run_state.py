"""What a run's workflow has in hand: a view of the ledger plus what is under way, and how it shows it."""

from temporalio import workflow
from temporalio.common import SearchAttributeKey

from stepwell.contracts.operators import OperatorFold
from stepwell.contracts.rollout import GroupsClosed
from stepwell.contracts.run import (
    Dispatch,
    Progress,
    RunFold,
    RunInput,
    Stall,
    Usage,
    ValidationScore,
    VersionRef,
)
from stepwell.events.run_finished import RunEnd
from workflows.run_page import run_page

RECIPE = SearchAttributeKey.for_keyword("StepwellRecipe")
STATE = SearchAttributeKey.for_keyword("StepwellState")
STEP = SearchAttributeKey.for_int("StepwellStep")
VERSION = SearchAttributeKey.for_int("StepwellVersion")


class RunState:
    """Rebuilt by the fold whenever the workflow starts."""

    def __init__(self, run: RunInput) -> None:
        self._recipe = run.recipe
        self._run = run.run
        self._plan = run.plan
        self._waiting = {"generation": "the ledger", "training": ""}
        self._scores: list[ValidationScore] = []
        self._shown: tuple[str, int, int] | None = None
        self._scope = ""
        self._prompts: dict[int, int] = {}
        self._open_validation = ""
        self.max_steps = run.plan.max_steps
        self.version: VersionRef | None = None
        self.published = -1
        self.admitted = 0
        self.training = 0
        self.generating = 0
        self.serving = -1
        self.engines: tuple[str, ...] = ()
        self.open_prompts: set[int] = set()
        self.stalls: tuple[Stall, ...] = ()
        self.usage: Usage | None = None
        self.end: RunEnd | None = None
        self.end_cause = ""
        self.last_event = ""
        """The newest of the run's own events, in words."""
        self.training_over = False
        self.over = False

    def take(self, fold: RunFold) -> None:
        """Starts from what the ledger says."""
        self.version = fold.version
        self.admitted = fold.admitted
        self.training = fold.completed
        self.generating = fold.admitted
        self.published = self.newest - 1  # the newest one's gates are looked at again; what is older was served
        self._scores = list(fold.validations)

    @property
    def newest(self) -> int:
        """Newest weight version, -1 before version 0."""
        return -1 if self.version is None else self.version.version

    @property
    def scope(self) -> str:
        """Scope of the step whose groups are open."""
        return self._scope

    @property
    def open_validation(self) -> str:
        """Scope of the validation that is under way; empty if there is none."""
        return self._open_validation

    def open(self, step: int, dispatch: Dispatch) -> None:
        """A step's groups are open."""
        self.generating = step
        if self._scope != dispatch.scope:
            self.last_event = f"step {step} was dispatched"
        self._scope = dispatch.scope
        self._prompts[step] = len(dispatch.open) + dispatch.closed
        self.open_prompts = {prompt.prompt for prompt in dispatch.open}

    def closed(self, closed: GroupsClosed) -> None:
        """Groups of the open step are closed; word of another step comes late and says nothing new."""
        if closed.scope == self._scope:
            self.open_prompts -= {group.prompt for group in closed.groups}

    def prompts_of(self, step: int) -> int:
        """Prompts of a step, those among them that replace others."""
        return self._prompts.get(step, self._plan.prompts)

    def is_closed(self, step: int, prompt: int) -> bool:
        """Whether a prompt has its fate already."""
        return self._scope == str(step) and step in self._prompts and prompt not in self.open_prompts

    def validating(self, scope: str) -> None:
        """A validation begins, or (empty) has ended."""
        self._open_validation = scope

    def score(self, version: int, dataset: str) -> ValidationScore | None:
        """A validation's result, if it is known."""
        for score in self._scores:
            if score.version == version and score.dataset == dataset:
                return score
        return None

    def scored(self, score: ValidationScore) -> None:
        """A validation ended."""
        self._scores.append(score)
        self.last_event = f"version {score.version} was validated on {score.dataset}"

    def finish(self, end: RunEnd, cause: str) -> None:
        """The run ends at the next boundary; the first reason stands."""
        if self.end is None:
            self.end, self.end_cause = end, cause

    def wait(self, what: str, lane: str = "generation") -> None:
        """Names what one of the two coroutines waits for; empty: nothing."""
        self._waiting[lane] = what

    @property
    def waiting(self) -> str:
        """What the run waits for, in words."""
        if self.over:
            return "nothing: the run is over"
        waits = [what for what in self._waiting.values() if what]
        return "; ".join([*(f"{stall.what}: {stall.cause}" for stall in self.stalls), *waits]) or "nothing"

    def progress(self, operators: OperatorFold) -> Progress:
        """What the run does now."""
        mains = [score for score in self._scores if score.dataset == "main"]
        return Progress(
            state=self._name(operators),
            waiting_for=self.waiting,
            version=self.newest,
            generating=self.generating,
            open_groups=len(self.open_prompts),
            training=self.training,
            serving=self.serving,
            last_validation=mains[-1] if mains else None,
            holds=operators.holds,
            stalls=self.stalls,
            usage=self.usage,
            settings=operators.settings,
        )

    def show(self, operators: OperatorFold) -> None:
        """Writes the details page; search attributes only when they change, since each change is a history event."""
        progress = self.progress(operators)
        workflow.set_current_details(
            run_page(self._run, self._plan, progress, self._scores[-8:], self.engines, operators, self.last_event)
        )
        shown = (progress.state, self.generating, self.newest)
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

    def _name(self, operators: OperatorFold) -> str:
        if self.over:
            return "finished"
        if self.end is not None:
            return "stopping"
        if operators.depth == "drain":
            return "drained" if not self.open_prompts and self.training >= self.admitted else "draining"
        if operators.depth is not None:
            return "paused"
        if operators.holds:
            return "waiting"
        return "stalled" if self.stalls else "running"
