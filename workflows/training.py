"""The coroutine of a run that trains what was admitted, and says which version may be served."""

from datetime import timedelta

from temporalio import workflow

from stepwell.contracts.run import CompleteRequest, RunFold, RunInput, RunRef, StepRef, VersionRef
from workflows import contracts as activity
from workflows.generation import Generation
from workflows.operator_desk import DEPTH, OperatorDesk
from workflows.run_state import RunState
from workflows.steering import Steering

LANE = "training"


class Training:
    """Makes version 0, then a version of each admitted batch, in order: however the run ends, no batch is left over."""

    def __init__(self, run: RunInput, state: RunState, desk: OperatorDesk, steering: Steering) -> None:
        self._run = run.run
        self._plan = run.plan
        self._state = state
        self._desk = desk
        self._steering = steering

    async def run(self, fold: RunFold, generation: Generation) -> None:
        """Trains until nothing more will be admitted."""
        try:
            await self._versions(fold, generation)
        finally:
            self._state.training_over = True

    async def _versions(self, fold: RunFold, generation: Generation) -> None:
        state = self._state
        if fold.version is None:
            await self._steering.gate("version 0", DEPTH["drain"], LANE)
            state.version = await activity.CREATE_POLICY(
                RunRef(run=self._run), attempt=timedelta(seconds=self._plan.warm_up_timeout_s)
            )
        assert state.version is not None
        await self._publish(state.version, fold.first_step)
        step = fold.completed
        while True:
            state.training = step
            state.wait("", LANE)
            await workflow.wait_condition(lambda step=step: state.admitted > step or generation.over)
            if state.admitted <= step:
                return
            await self._steering.gate(f"training of step {step}", DEPTH["drain"], LANE)
            made = await activity.TRAIN_STEP(
                StepRef(run=self._run, step=step),
                attempt=timedelta(
                    seconds=generation.settings_of(step).get("failures.step_timeout_s", self._plan.step_timeout_s)
                ),
            )
            await activity.COMPLETE_STEP(CompleteRequest(run=self._run, step=step, made=made))
            state.version = made
            state.last_event = f"step {step} was trained: version {made.version}"
            step += 1
            state.training = step
            self._steering.show()
            await self._publish(made, fold.first_step)

    async def _publish(self, made: VersionRef, first: int) -> None:
        """Lets a version be served when its gates are open; the one that the run begins with has none."""
        state, gates = self._state, self._plan.gates
        if state.end is not None and self._desk.fold.stop != "validation":
            return  # nothing is served any more
        if made.version > first:
            for name, cause in await self._out_of_band(made):
                if not await self._steering.ask(f"band/{name}/{made.version}", cause, LANE):
                    return
            if gates.publish and not await self._steering.ask(
                f"publish/{made.version}",
                f"gates.publish asks for an approval before version {made.version} is served",
                LANE,
            ):
                return
        state.published = made.version
        state.wait("", LANE)
        self._steering.show()

    async def _out_of_band(self, made: VersionRef) -> list[tuple[str, str]]:
        """Metrics of the step that made a version which leave their band, each with its figures in words."""
        bands = [band for band in self._plan.gates.bands if band.metric != "pass_k"]
        if not bands:
            return []
        admitted = await activity.ADMIT_STEP(StepRef(run=self._run, step=made.version - 1))
        measured = {
            "reward": admitted.reward_mean,
            "mask_rate": admitted.masked / admitted.rollouts if admitted.rollouts else 0.0,
            "grad_norm": made.metrics["grad_norm"],
            "kl": made.metrics["kl_mean"],
        }
        return [
            (
                band.metric,
                f"{band.metric} of step {made.version - 1} is {measured[band.metric]:.4g}, outside of {band.low:g} to "
                f"{band.high:g}",
            )
            for band in bands
            if not band.low <= measured[band.metric] <= band.high
        ]
