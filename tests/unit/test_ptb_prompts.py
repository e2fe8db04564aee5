"""A prompt says what is enforced, the same to every agent; one that misleads is refused, or put right in its text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.ptb.prompts import (
    RULES,
    Claim,
    Enforced,
    PromptContradicts,
    Task,
    UnknownRules,
    check_statements,
    go_on_text,
    settled,
    trial_prompt,
)
from stepwell.ptb.prompts.statements import CHECKED
from stepwell.ptb.scaffolds import SCAFFOLDS, scaffold

TASK = Task("Qwen/Qwen3-1.7B-Base", "GSM8K")
BLOCKED = ("*.example.org", "example.net")


def enforced(**more: Any) -> Enforced:
    return Enforced(**{"internet": "none", "hours": 10.0, "gpus": 1, **more})


HOLDS = st.builds(
    Enforced,
    internet=st.sampled_from(["none", "allow", "deny", "open"]),
    hosts=st.lists(st.sampled_from(BLOCKED), max_size=2, unique=True).map(tuple),
    hours=st.floats(0.01, 100),
    gpus=st.integers(0, 8),
    tokens=st.none() | st.integers(1, 10**9),
    money=st.none() | st.floats(0.01, 10**4),
    evaluation=st.sampled_from(["own", "submitted"]),
    decontamination=st.booleans(),
    checks=st.lists(st.sampled_from(CHECKED), unique=True).map(tuple),
)


@given(HOLDS, st.sampled_from(RULES))
def test_what_is_said_by_default_is_so_whatever_holds(holds: Enforced, rules: str) -> None:
    prompt = settled(trial_prompt(TASK, holds, rules), holds)
    assert not [each for each in prompt.contradictions if each.misleads]
    for statement in prompt.statements:
        assert statement.text in prompt.text
        assert "{" not in statement.text
    assert all(host in prompt.text for host in holds.hosts if holds.internet in ("allow", "deny"))


FALSE: list[tuple[Claim, dict[str, Any], str]] = [
    (Claim("internet", "open"), {"internet": "deny", "hosts": BLOCKED}, "says 'open', and 'deny: *.example.org"),
    (Claim("internet", "open"), {"internet": "none"}, "internet: the prompt says 'open', and 'none' is enforced"),
    (Claim("internet", "none"), {"internet": "open"}, "says 'none', and 'open'"),
    (Claim("internet", "deny", BLOCKED[:1]), {"internet": "deny", "hosts": BLOCKED}, "says 'deny: *.example.org', and"),
    (Claim("time", "10"), {"hours": 5}, "time: the prompt says '10', and '5' is enforced"),
    (Claim("tokens", "2000"), {"tokens": 1000}, "tokens: the prompt says '2000', and '1000'"),
    (Claim("gpus", "8"), {}, "gpus: the prompt says '8', and '1'"),
    (Claim("evaluation", "own"), {"evaluation": "submitted"}, "evaluation: the prompt says 'own'"),
    (Claim("decontamination", "given"), {}, "decontamination: the prompt says 'given', and 'none'"),
]


@pytest.mark.parametrize(("claim", "holds", "message"), FALSE)
def test_a_prompt_that_says_what_is_not_so_is_refused_or_put_right(
    claim: Claim, holds: dict[str, Any], message: str
) -> None:
    held = enforced(**holds)
    told = {each.claim.tag: each.claim for each in trial_prompt(TASK, held, "v1.0").statements}
    prompt = trial_prompt(TASK, held, "v1.0", [*(told | {claim.tag: claim}).values()])
    with pytest.raises(PromptContradicts) as error:
        settled(prompt, held)
    assert message in str(error.value)
    said = settled(prompt, held, "say")
    assert "## Corrections" in said.text
    assert said.text.startswith(prompt.text)
    assert [each.kind for each in said.contradictions if each.misleads] == ["false"]
    assert any(line.startswith("false: ") for line in said.said)
    assert said.digest != prompt.digest


@pytest.mark.parametrize(
    ("holds", "tag"),
    [
        ({"internet": "none"}, "internet"),
        ({"internet": "open"}, "internet"),
        ({"tokens": 5}, "tokens"),
        ({"money": 1.5}, "money"),
        ({"checks": ("lookup",)}, "lookup"),
        ({"checks": ("distillation",)}, "distillation"),
    ],
)
def test_silence_on_what_an_agent_would_run_into_is_refused(holds: dict[str, Any], tag: str) -> None:
    held = enforced(**holds)
    claims = [each.claim for each in trial_prompt(TASK, held).statements if each.claim.tag != tag]
    prompt = trial_prompt(TASK, held, claims=claims)
    assert [(each.kind, each.tag) for each in check_statements(prompt.statements, held) if each.misleads] == [
        ("unsaid", tag)
    ]
    with pytest.raises(PromptContradicts, match=f"{tag}: the prompt says nothing"):
        settled(prompt, held)


def test_a_rule_that_nobody_checks_is_recorded_and_refuses_nothing() -> None:
    held = enforced(checks=("test_data", "base_model"))
    prompt = settled(trial_prompt(TASK, held, "v1.1"), held)
    assert [(each.kind, each.tag) for each in prompt.contradictions] == [
        ("unchecked", "derived_data"),
        ("unchecked", "evaluation_edits"),
        ("unchecked", "distillation"),
    ]


def test_versions_state_their_own_rules_and_those_that_are_checked() -> None:
    def rules(version: str, **holds: Any) -> set[str]:
        return {each.claim.tag for each in trial_prompt(TASK, enforced(**holds), version).statements} & set(CHECKED)

    assert rules("v1.0") == {"test_data", "base_model", "evaluation_edits"}
    assert rules("v1.1") == {"test_data", "base_model", "evaluation_edits", "derived_data", "distillation"}
    assert rules("v1.0", checks=("lookup",)) == {"test_data", "base_model", "evaluation_edits", "lookup"}
    with pytest.raises(UnknownRules, match=r"no rules 'v1'; there are v1.0, v1.1; did you mean 'v1.\d'"):
        trial_prompt(TASK, enforced(), "v1")


def test_the_copy_of_the_test_set_is_told_of_only_where_it_is_given() -> None:
    given_it = trial_prompt(TASK, enforced(decontamination=True)).text
    assert TASK.decontamination in given_it
    assert "must not be trained on" in given_it
    assert TASK.decontamination not in trial_prompt(TASK, enforced()).text


def test_every_agent_on_a_cell_is_told_the_same_but_for_what_its_scaffold_adds() -> None:
    prompt = trial_prompt(TASK, enforced())
    told = {name: prompt.for_scaffold(scaffold(name).addition) for name in SCAFFOLDS}
    assert {each.digest for each in told.values()} == {prompt.digest}
    assert [name for name, each in told.items() if each.text != prompt.text] == ["claude_code"]
    assert told["claude_code"].text.startswith(f"{prompt.text}\n\nNobody talks to you while you work")
    assert trial_prompt(Task("Qwen/Qwen3-4B-Base", "GSM8K"), enforced()).digest != prompt.digest


def test_a_judged_benchmark_s_own_calls_are_no_breach() -> None:
    judged = Task("Qwen/Qwen3-1.7B-Base", "HealthBench", judged=True)
    assert "the evaluation's own calls of its judge are no breach" in trial_prompt(judged, enforced()).text
    assert "of its judge" not in trial_prompt(TASK, enforced()).text


@pytest.mark.parametrize(
    ("hours", "said"), [(10, "10 hours"), (1, "1 hour of"), (0.1, "6 minutes"), (2.5, "2.5 hours")]
)
def test_time_is_said_in_its_own_unit(hours: float, said: str) -> None:
    assert f"You have {said}" in trial_prompt(TASK, enforced(hours=hours)).text


def test_going_on_says_what_is_left() -> None:
    assert "3 h 20 min left" in go_on_text("3", "20")
    assert "{hours} h {minutes} min" in go_on_text()
