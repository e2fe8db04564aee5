"""The graph of a run: what is said to come of something says that it came from it, and every thing has its event."""

from collections.abc import Callable
from graphlib import TopologicalSorter

import pytest

from stepwell.audit.provenance.graph import Graph, causes_of, effects_of, graph_of, node_of
from stepwell.audit.provenance.named import resolve
from stepwell.audit.provenance.overview import overview
from stepwell.audit.provenance.reference import NoSuchThing, Ref, parse
from stepwell.audit.provenance.source import RunSource
from stepwell.audit.provenance.tree import Branch, Explanation, More, explain
from stepwell.events import RolloutEnded, StepAdmitted, TurnRecorded, ValidationClosed, VersionCreated
from tests.audited_group import TEST
from tests.audited_run import write_run
from tests.book import MemoryBook, Told
from tests.provenance_source import PatientReader, whole_source
from tests.run_plan import EVENTFUL, Plan

PARTS = {"token", "metric"}
"""Kinds that nothing leads to: there are too many of them."""
REACHED_OTHERWISE = {"task", "load"}
"""Kinds whose effects are told by groups."""
PLANS = {"plain": Plan(), "eventful": EVENTFUL, "under way": Plan(finish=False), "stopped": Plan(stopped_in=1)}


async def book_of(plan: Plan) -> MemoryBook:
    book = MemoryBook()
    await write_run(book, "r", plan)
    return book


async def source_of(plan: Plan) -> RunSource:
    return whole_source(await book_of(plan))


def explained(source: RunSource, text: str, **bounds: int | None) -> Explanation:
    return explain(source, resolve(source, parse(text)), **bounds)


def graph(source: RunSource, text: str) -> Graph:
    return graph_of(source, resolve(source, parse(text)))


def kinds_before(source: RunSource, text: str) -> set[str]:
    """Kinds of all that something came from."""
    found, ahead = set[Ref](), [resolve(source, parse(text))]
    while ahead:
        for edge in causes_of(source, ahead.pop()):
            if edge.cause not in found:
                found.add(edge.cause)
                ahead.append(edge.cause)
    return {ref.kind for ref in found}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
async def test_what_came_of_a_thing_came_from_it_and_the_reverse(plan: Plan) -> None:
    source = await source_of(plan)
    for ref in graph(source, "run").nodes:
        for edge in effects_of(source, ref):
            assert any(back.cause == ref for back in causes_of(source, edge.effect)), f"{ref} → {edge.effect}"
        for edge in causes_of(source, ref):
            there = edge.cause.kind in REACHED_OTHERWISE or ref in {e.effect for e in effects_of(source, edge.cause)}
            assert there, f"{edge.cause} → {ref}"


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
async def test_nothing_comes_from_itself(plan: Plan) -> None:
    source = await source_of(plan)
    nodes = graph(source, "run").nodes
    before = {ref: {edge.cause for edge in causes_of(source, ref)} for ref in nodes}
    assert set(TopologicalSorter(before).static_order()) >= set(nodes)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
async def test_each_thing_names_events_that_stand_in_the_ledger(plan: Plan) -> None:
    book = await book_of(plan)
    found = graph(whole_source(book), "run")
    for ref, node in found.nodes.items():
        begun = node.events or ref.kind in ("group", "rollout")
        assert begun, ref
        for mark in (*node.events, *(edge.shown_by for edge in found.edges if edge.shown_by and edge.effect == ref)):
            assert book.hashes[mark.stream][mark.seq] == mark.hash


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("text", ["version/1", "run", "rollout/0/0/0", "batch/0"])
async def test_a_graph_read_little_by_little_is_the_one_read_as_a_whole(plan: Plan, text: str) -> None:
    book = await book_of(plan)
    reader = PatientReader(book)
    patient = reader.answer(lambda source: graph(source, text))
    whole = graph(whole_source(book), text)
    assert patient.nodes == whole.nodes
    assert set(patient.edges) == set(whole.edges)


async def test_the_last_score_goes_back_to_engine_version_sandbox_and_test() -> None:
    source = await source_of(Plan())
    assert resolve(source, parse("pass@3")) == Ref("validation", ("2", "main"))
    assert kinds_before(source, "pass@k") == {
        "attempt",
        "batch",
        "engine",
        "group",
        "load",
        "patch",
        "rollout",
        "run",
        "step",
        "task",
        "test",
        "turn",
        "verdict",
        "version",
    }


async def test_a_rollout_goes_on_to_group_batch_versions_and_validations() -> None:
    source = await source_of(Plan())
    after = {edge.effect for edge in graph(source, "rollout/0/0/1").edges}
    wanted = [Ref("group", ("0", "0")), Ref("batch", ("0",)), Ref("version", ("1",)), Ref("version", ("2",))]
    assert {*wanted, Ref("validation", ("2", "main"))} <= after
    assert Ref("validation", ("0", "main")) not in after


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("version/1", "weights x1, made in step 0"),
        ("batch/1", "6 rollouts, 1 masked, mean reward 0.400"),
        ("metric/1/reward_mean", "0.4"),
        ("metric/1/grad_norm", "2"),
        ("validation/0/main", "pass@3 1.000, pass@1 0.333, pass^3 0.000, 2 of 2 tasks solved"),
        ("group/0/1", "task t: trained, 1 of 3 solved"),
        ("rollout/0/0/0", "solved, 1 turns, 5 tokens, ended by finished, advantage +1.000"),
        ("rollout/0/1/2", "failed: infra: no luck, 1 turns, 5 tokens, masked: infra"),
        ("rollout/0/0/0/turn/0", "edit, 5 tokens after 10 of context, by e1 under version 0"),
        ("rollout/0/0/2/turn/0/token/4", "id 4, log-probability -0.5000"),
        ("patch/0/0/0", "changes nothing"),
        (f"test/0/0/1/{TEST}", "failed"),
        ("engine/e1", "transformers on a/3"),
        ("engine/e1/load/1", "version 1, attested as x1, probe within 2.0e-07 nats"),
        ("end", "max_steps, with version 2"),
    ],
)
async def test_a_thing_says_what_it_is(text: str, title: str) -> None:
    source = await source_of(Plan())
    assert explained(source, text).node.title == title


async def test_a_task_without_a_scored_sample_did_not_pass_with_all_of_them() -> None:
    book = MemoryBook(lie=Told(ValidationClosed, {"passed": [3, 0], "graded": [3, 0]}))
    await write_run(book, "r", Plan())
    assert explained(whole_source(book), "validation/0/main").node.figures["pass_all"] == 1.0
    book = MemoryBook(lie=Told(ValidationClosed, {"passed": [2, 0], "graded": [3, 0]}))
    await write_run(book, "r", Plan())
    assert explained(whole_source(book), "validation/0/main").node.figures["pass_all"] == 0.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version/9", "there is no version/9 in this run: it has the versions 0 to 2"),
        ("batch/7", "there is no batch/7 in this run: it has the batches 0 to 1"),
        ("metric/1/reward_meen", "did you mean 'reward_mean'?"),
        ("validation/3/main", "did you mean 'validation/2/main'"),
        ("group/v0-mian/0", "did you mean 'v0-main'?"),
        ("rollout/0/5/0", "there is no group/0/5 in this run: 0 has the prompts 0 to 1"),
        ("rollout/0/0/3", "group 0/0 has 3 samples, from 0"),
        ("rollout/0/0/0/turn/1", "rollout 0/0/0 has turns 0 to 0"),
        ("rollout/0/0/0/turn/0/token/5", "turn 0 has the tokens 0 to 4"),
        ("patch/0/1/2", "rollout 0/1/2 did not come to an end of its own"),
        ("test/0/0/0/tests/test_it.py::test_wroks", f"did you mean '{TEST}'?"),
        ("engine/e2", "did you mean 'e1'? engines are e1"),
        ("operator/0", "no operator did anything"),
        ("pass@4", "its validations give pass@1 and pass@3"),
        ("event/run/r/99", "run/r has the events 0 to"),
        ("event/run/s/0", "there is no stream run/s"),
        (f"blob/{'a' * 64}", "no event of it names this blob"),
        ("verdict/0123456789ab", "0 digests begin so"),
        ("versoin/1", "did you mean 'version'?"),
        ("version/x", "'version/x' names nothing: wanted version/VERSION"),
    ],
)
async def test_what_the_run_has_not_is_refused_with_what_it_has(text: str, said: str) -> None:
    reader = PatientReader(await book_of(Plan()))
    with pytest.raises(NoSuchThing) as refused:
        reader.answer(lambda source: explained(source, text))
    assert said in str(refused.value)


def _payload(book: MemoryBook) -> str:
    return f"blob/{book.first('rollout/r/0/0/0', TurnRecorded).payload[:12]}"


def _manifest(book: MemoryBook) -> str:
    return f"blob/{book.first('run/r', StepAdmitted).manifest[:14]}"


def _weights(book: MemoryBook) -> str:
    listed = book.blobs[book.first("weights/r", VersionCreated).export].decode()
    return f"blob/{listed.split(':')[1].strip(chr(34) + '}')}"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        (lambda _: "event/prompt/r/0/1/1", "group/0/1"),
        (lambda _: "event/weights/r/1", "version/1"),
        (lambda _: "event/engine/r/e1/1", "engine/e1/load/0"),
        (_manifest, "batch/0"),
        (_payload, "rollout/0/0/0/turn/0"),
        (_weights, "version/0"),
    ],
    ids=["group", "version", "load", "manifest", "payload", "a file of the weights"],
)
async def test_a_thing_is_found_by_its_events_and_blobs(name: Callable[[MemoryBook], str], meant: str) -> None:
    book = await book_of(Plan())
    assert str(PatientReader(book).answer(lambda source: resolve(source, parse(name(book))))) == meant


async def test_a_blob_of_several_things_names_them() -> None:
    book = await book_of(Plan())
    nothing = f"patch/{book.first('rollout/r/0/0/0', RolloutEnded).changed}"
    found = PatientReader(book).answer(lambda source: explained(source, nothing))
    assert found.node.title.startswith("named by ")
    assert [branch.node.ref.kind for branch in found.effects.below if isinstance(branch, Branch)] == ["patch"] * 3


async def test_a_tree_is_bounded_and_says_how_much_it_leaves_out() -> None:
    source = await source_of(Plan())
    cut = explained(source, "batch/0", depth=2, fan=1).causes
    assert [each.words() if isinstance(each, More) else str(each.node.ref) for each in cut.below] == [
        "group/0/0",
        "and 1 more group",
    ]
    group = cut.below[0]
    assert isinstance(group, Branch)
    assert More("rollout", 2) in group.below
    assert all(not each.below for each in group.below if isinstance(each, Branch))
    everything = explained(source, "batch/0", depth=99, fan=None).causes
    assert not _mores(everything)


def _mores(branch: Branch) -> list[More]:
    own = [each for each in branch.below if isinstance(each, More)]
    return own + [more for each in branch.below if isinstance(each, Branch) for more in _mores(each)]


async def test_a_small_question_reads_little() -> None:
    reader = PatientReader(await book_of(EVENTFUL))
    reader.answer(lambda source: explained(source, "rollout/0/0/0/turn/0/token/1", depth=2))
    assert reader.streams_read < 8


async def test_operators_acts_lead_to_what_they_did() -> None:
    source = await source_of(EVENTFUL)
    skipped = [edge.cause for edge in causes_of(source, Ref("group", ("1", "0"))) if edge.cause.kind == "operator"]
    assert [node_of(source, ref).title for ref in skipped] == ["skip step 1, prompt 0 by ann@host: because"]
    setting = [edge for edge in causes_of(source, Ref("step", ("2",))) if edge.cause.kind == "operator"]
    assert [edge.why for edge in setting] == [
        "optimiser.learning_rate was 0.01 by then",
        "run.max_staleness was 1 by then",
    ]
    replaced = [edge.effect for edge in effects_of(source, Ref("group", ("0", "1")))]
    assert Ref("group", ("0", "2")) in replaced


async def test_a_taint_is_told_of_all_that_came_of_the_marked_rollout() -> None:
    source = await source_of(EVENTFUL)
    tainted = {str(ref) for ref, node in graph(source, "run").nodes.items() if node.taint}
    assert {"rollout/1/1/0", "group/1/1", "batch/1", "version/2", "version/3", "validation/3/main"} <= tainted
    assert not {"rollout/0/0/0", "batch/0", "version/1", "validation/0/main", "rollout/1/1/1"} & tainted


async def test_the_overview_has_every_version_up_to_the_last_score() -> None:
    seen = overview(await source_of(EVENTFUL))
    assert seen is not None
    assert str(seen.explanation.node.ref) == "validation/3/main"
    assert [glance.number for glance in seen.versions] == [0, 1, 2, 3]
    assert [glance.batch is None for glance in seen.versions] == [True, False, False, False]
    assert [group.scores for group in seen.versions[1].groups] == [(1.0, 0.0, 0.0), (None, None, None), (1.0, 0.0, 0.0)]
    assert seen.taint.first_version == 2


async def test_there_is_no_overview_before_there_is_a_version() -> None:
    assert overview(RunSource("r")) is None
