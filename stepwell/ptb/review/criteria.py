"""The rubric's checks: what each is called, and what would make it come out otherwise."""

from collections.abc import Mapping
from dataclasses import dataclass

from stepwell.ptb.review.finding import Group, Standing


@dataclass(frozen=True)
class Criterion:
    """One check."""

    id: str
    group: Group
    title: str
    would_change: Mapping[Standing, str]
    """By how it came out."""


def _decides(identity: str, group: Group, title: str, passes: str, unknown: str, flagged: str) -> Criterion:
    """A check that decides: what would take away its pass, end its not knowing, and lift its flag."""
    change = {Standing.PASS: passes, Standing.UNKNOWN: unknown, Standing.FLAGGED: flagged}
    return Criterion(identity, group, title, change)


def _tells(identity: str, title: str, change: str) -> Criterion:
    return Criterion(identity, Group.QUALITY, title, {Standing.REPORTED: change})


_FIELDS = "the fields that the evidence names, in the trials' records"

CRITERIA: Mapping[str, Criterion] = {
    one.id: one
    for one in (
        _decides(
            "R1",
            Group.REVIEWABILITY,
            "What was run is recorded",
            "a trial without one of these fields",
            _FIELDS,
            "prompt, command, resolved model, limits and network policy in the records of the trials named",
        ),
        _decides(
            "R2",
            Group.REVIEWABILITY,
            "What happened is kept",
            "a trial without one of these files, or a secret that outlived redaction",
            _FIELDS,
            "raw trace, answers with their scores and digest of the weights of the trials named; no secret in them",
        ),
        _decides(
            "R3",
            Group.REVIEWABILITY,
            "Scores can be made again",
            "a stored trial that scores otherwise when it is scored again",
            "the scorer's code, the benchmark's files, the command, and a trial of each key that was scored again",
            "the scorer's code, and a second scoring that gives the same to the bit",
        ),
        _decides(
            "R4",
            Group.REVIEWABILITY,
            "The prompt says what is enforced",
            "a statement of the prompt that is not so",
            "the prompt's statements about its surroundings, and what was enforced",
            "a prompt or a policy that says what the other says",
        ),
        _decides(
            "S1",
            Group.SCORING,
            "Scorers agree with known cases",
            "a known case that a scorer gets wrong, on a fifth of the score",
            "for each benchmark the cases that the evidence names, as the scorer finds them",
            "scorers that get the named cases right, and results scored by them",
        ),
        _decides(
            "S2",
            Group.SCORING,
            "Gold scores all, nothing scores nothing",
            "gold answers below 100, or empty ones above the floor, on a fifth of the score",
            "scores of gold, empty and constant answers to each benchmark",
            "a scorer, or gold answers, that are mended, and results scored anew",
        ),
        _decides(
            "S3",
            Group.SCORING,
            "A sample of scores, looked at by people",
            "errors in the sample that come to a fifth of the score",
            "answers with their scores in the trials' records, and verdicts on the sample that `--sample` writes",
            "scores made anew by a mended scorer, and a fresh sample of them",
        ),
        _decides(
            "S4",
            Group.SCORING,
            "No answer is unscored in silence, and judges of answers are sound",
            "a score over fewer answers than there are, a judge that agrees with less than four fifths of known cases",
            "items expected and scored in each pass, judges' errors, and calibration on known cases",
            "scores over all answers, by a judge that agrees with known cases",
        ),
        _decides(
            "S5",
            Group.SCORING,
            "Templates and budgets come from the trial, not from the submission",
            "a template chosen by a path or by the submission, on a fifth of the score",
            "the template's digest, what it was chosen by, and the limit of tokens of each scored trial",
            "scores made anew with the base model's template",
        ),
        _decides(
            "S6",
            Group.SCORING,
            "Raw, flagged and imputed are told apart",
            "a trial of which it is not said what ended it",
            "what ended each trial, and base scores, so that the imputed share can be told",
            "raw scores, flags and imputed scores in columns of their own",
        ),
        _decides(
            "C1",
            Group.CONSISTENCY,
            "One key is one way of scoring",
            "a trial that was scored by other data, scorer, template, judge or image than its key says",
            "what each trial was really scored with, and what changed from key to key",
            "scores made anew on the basis that they claim, or under a key of their own",
        ),
        _decides(
            "C2",
            Group.CONSISTENCY,
            "Every scored trial has every verdict",
            "a scored trial without a verdict that the rules require, or a violation that is not flagged",
            "the verdicts that the rules require, and those of each trial",
            "the missing verdicts, or the trials left out; flags where the ruling is a violation",
        ),
        _decides(
            "E1",
            Group.ELICITATION,
            "Agents ended by themselves or by their budget",
            "crashes, rate limits, spent credit or lost machines that were not made good, on a fifth of the score",
            "what ended each trial, its interruptions, how often it was started, and the policy of retries",
            "the trials named, run again",
        ),
        _decides(
            "E2",
            Group.ELICITATION,
            "Surroundings were tested before the clock",
            "a trial that began without a passed test, on a fifth of the score",
            "each trial's test of its surroundings",
            "the trials named, run again after a test that passes",
        ),
        _decides(
            "E3",
            Group.ELICITATION,
            "What differs is another configuration",
            "runs of one configuration that differ in effort, scaffold, model, limits or temperature",
            "effort, scaffold's version, resolved model, temperature and limits of each trial",
            "a configuration, and a row, for each of what differs",
        ),
        _decides(
            "E4",
            Group.ELICITATION,
            "What was submitted loads, or it is said why there is nothing",
            "scores of models that do not load",
            "whether each submitted model loads, or why there is none",
            "the trials named without a score, with the reason",
        ),
        _decides(
            "B1",
            Group.BIAS,
            "Agents were told the same",
            "prompts of one task that differ between agents beyond the additions that are listed",
            "digest of each trial's prompt without its scaffold's additions, and these additions",
            "the trials named, run again with the prompt of the others",
        ),
        _decides(
            "B2",
            Group.BIAS,
            "Judges and names favour nobody",
            "a judge of the agent's own vendor that is compared with no other, or a score that follows a name",
            "vendors of agents and judges, keys given, and one submission scored under other names",
            "judges of other vendors, or their agreement with such; equal keys; scorers blind to names",
        ),
        _decides(
            "B3",
            Group.BIAS,
            "Agents had the same",
            "other hardware, image, time or number of runs for one agent than for another",
            "hardware, image and time of each trial, and how many runs were planned",
            "the runs that are missing, or the trials named, run again on what the others had",
        ),
        _tells("Q1", "Resources", "what ended each trial: Sufficient while budgets end less than a fifth of the score"),
        _tells("Q2", "Fairness of scaffolds", "one scaffold for all rows is shared; each vendor's own is native"),
        _tells("Q3", "Contamination", "a check of each trial, planted leaks that it finds, votes, data with digests"),
        _tells("Q4", "Completability by people", "people who did the tasks, or tasks of the kind, in the time"),
        _tells("Q5", "Range of scores", "scores of base, few-shot and instruct models, and a ceiling with its reason"),
        _tells("Q6", "Statistics", "five runs or more of each configuration on every cell"),
        _tells("Q7", "Construct validity", "scores on benchmarks that were not trained for, and agents' own measures"),
        _tells("Q8", "What means are mixtures of", "fewer flagged, failed or missing cells"),
    )
}
"""By id, in the rubric's order."""
