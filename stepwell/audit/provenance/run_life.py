"""How a run began, who acted in it, how it ended."""

from stepwell.audit.provenance.node import Edge, Figure, Node
from stepwell.audit.provenance.places import (
    dispatch,
    refuse,
    scopes,
    steps,
    tasks_of,
    versions,
)
from stepwell.audit.provenance.reference import Ref
from stepwell.audit.provenance.source import Fact, RunSource
from stepwell.events import OperatorActed, RunCreated, RunFinished, ValidationRecorded
from stepwell.events.run_finished import RunEnd
from stepwell.events.streams import operator_stream
from stepwell.report.recipe_figures import number_of

RUN, END = Ref("run"), Ref("end")


SCHEDULE = "the recipe's curriculum gives its prompts"
"""Why a step follows from the run."""


def run(source: RunSource, ref: Ref) -> Node:
    """The run's first event."""
    created = source.of_run(RunCreated)
    if not created:
        raise refuse(ref, "its first event does not stand")
    said = created[0].event
    name = str(said.recipe.get("name", "?"))
    figures: dict[str, Figure] = {"recipe": name, "recipe_digest": said.recipe_digest, "task_set": said.task_set}
    return Node(ref, f"run {source.run} of recipe {name}", (created[0].mark,), figures)


def run_effects(source: RunSource, ref: Ref) -> list[Edge]:
    """Version 0, the steps, and the tasks that they took."""
    made, found = versions(source).get(0), list[Edge]()
    if made is not None:
        found.append(Edge(ref, Ref("version", ("0",)), "the recipe says where version 0 comes from", made.mark))
    for step, dispatched in sorted(steps(source).items()):
        fact = dispatch(source, step)
        found.append(Edge(ref, Ref("step", (str(dispatched.event.step),)), SCHEDULE, fact.mark if fact else None))
    tasks = dict.fromkeys(task for scope in scopes(source) for task in tasks_of(source, scope))
    mark = source.of_run(RunCreated)[0].mark
    return found + [Edge(ref, Ref("task", (task,)), "it is in the run's task set", mark) for task in tasks]


def end(source: RunSource, ref: Ref) -> Node:
    """How the run ended."""
    facts = ends(source)
    if not facts:
        raise refuse(ref, "it has not ended")
    said = facts[0].event
    cause = f": {said.cause}" if said.cause else ""
    return Node(ref, f"{said.end.value}{cause}, with version {said.version}", (facts[0].mark,))


def end_causes(source: RunSource, ref: Ref) -> list[Edge]:
    """The newest version, the score that reached the target, the operator who stopped it."""
    found = list[Edge]()
    for fact in ends(source):
        found.append(Edge(Ref("version", (str(fact.event.version),)), ref, "the newest version then", fact.mark))
        found += [Edge(cause, ref, why, fact.mark) for cause, why in deciders(source, fact)]
    return found


def deciders(source: RunSource, fact: Fact[RunFinished]) -> list[tuple[Ref, str]]:
    """What ended the run, besides its newest version being there."""
    if fact.event.end is RunEnd.TARGET:
        return [
            (Ref("validation", (str(version), "main")), "its pass@k is above the target")
            for version in _passing(source)
        ]
    if fact.event.end is RunEnd.STOPPED:
        acts = source.every(operator_stream(source.run), OperatorActed)
        return [(operator_ref(act), "an operator stopped it") for act in acts if act.event.action == "stop"]
    return []


def _passing(source: RunSource) -> list[int]:
    """The version that reached the target: offline, others are validated after it."""
    scored = [each.event for each in source.of_run(ValidationRecorded) if each.event.dataset == "main"]
    created = source.of_run(RunCreated)
    target = number_of(created[0].event.recipe, "validation", "target") if created else None
    above = [each.version for each in scored if target is not None and each.version > 0 and each.pass_k > target]
    return [min(above)] if above else [each.version for each in scored[-1:]]


def operator(source: RunSource, ref: Ref) -> Node:
    """What an operator did."""
    acts = source.every(operator_stream(source.run), OperatorActed)
    act = next((each for each in acts if each.seq == int(ref.parts[0])), None)
    if act is None:
        there = ", ".join(str(each.seq) for each in acts)
        raise refuse(ref, f"operators' acts are {there}" if there else "no operator did anything")
    said = act.event
    with_what = ", ".join(f"{key} {value}" for key, value in said.arguments.items())
    title = f"{said.action} {with_what}".strip() + f" by {said.who}: {said.reason}"
    return Node(ref, title, (act.mark,))


def operator_effects(source: RunSource, ref: Ref) -> list[Edge]:
    """Steps with a setting, a prompt that was skipped, the end."""
    found = list[Edge]()
    for number, dispatched in sorted(steps(source).items()):
        for key, value in dispatched.event.settings.items():
            act, fact = setting_act(source, key, value), dispatch(source, number)
            if act is not None and operator_ref(act) == ref and fact is not None:
                found.append(Edge(ref, Ref("step", (str(number),)), f"{key} was {value:g} by then", fact.mark))
    for fact in source.every(operator_stream(source.run), OperatorActed):
        if operator_ref(fact) == ref and fact.event.action == "skip":
            group = Ref("group", (str(fact.event.arguments.get("step")), str(fact.event.arguments.get("prompt"))))
            found.append(Edge(ref, group, "an operator took it out", fact.mark))
    return found + [edge for edge in end_causes(source, END) if edge.cause == ref]


def skips(source: RunSource, group: Ref) -> list[Edge]:
    """Acts that took a group's prompt out."""
    return [
        Edge(operator_ref(fact), group, "an operator took it out", fact.mark)
        for fact in source.every(operator_stream(source.run), OperatorActed)
        if fact.event.action == "skip"
        and group.parts == (str(fact.event.arguments.get("step")), str(fact.event.arguments.get("prompt")))
    ]


def setting_act(source: RunSource, key: str, value: float) -> Fact[OperatorActed] | None:
    """The newest act that set a key to a value."""
    acts = source.every(operator_stream(source.run), OperatorActed)
    fitting = [act for act in acts if act.event.action == "set" and act.event.arguments == {"key": key, "value": value}]
    return fitting[-1] if fitting else None


def operator_ref(act: Fact[OperatorActed]) -> Ref:
    """The name of an act."""
    return Ref("operator", (str(act.seq),))


def ends(source: RunSource) -> list[Fact[RunFinished]]:
    """How it ended, if it did."""
    return source.of_run(RunFinished)
