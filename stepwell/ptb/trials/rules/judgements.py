"""Every charge was voted on before anything was scored, and what the votes come to is counted right."""

from stepwell.audit.finding import Finding, Tally
from stepwell.events import AgentEnded, JudgementReached, PassScored, TrialScored
from stepwell.events.canonical import digest_of_json
from stepwell.ptb.judges.question import QUESTION_VERSION
from stepwell.ptb.judges.votes import VOTES as WANTED
from stepwell.ptb.seeds import sample_seed
from stepwell.ptb.trials.audited import QUESTION, VOTES, AuditedTrial, RunSetRecord

HOLDS = "each charge of the recipe has three votes of the basis' judge on the stored question, before it was scored"
UNIT = "judgements"


def check(record: RunSetRecord, tally: Tally) -> None:
    """Applies the rule to each trial of an agent."""
    for trial in record.trials:
        for seq, reached in trial.stream.every(JudgementReached):
            _check_votes(record, trial, seq, reached, tally)
        _check_all_there(record, trial, tally)


def _check_all_there(record: RunSetRecord, trial: AuditedTrial, tally: Tally) -> None:
    ended = trial.counting(AgentEnded)
    scored = trial.counting(PassScored)[:1] or trial.counting(TrialScored)
    judges = None if record.recipe is None else record.recipe.judges
    if judges is None or not scored or not ended or ended[-1][1].secrets:
        return  # nobody is asked about a trial that a secret has failed
    done = {reached.charge for seq, reached in trial.counting(JudgementReached) if seq < scored[0][0]}
    for charge in judges.charges:
        tally.expect(charge in done, trial.name, scored[0][0], f"scored without votes on {charge} before it")


def _check_votes(record: RunSetRecord, trial: AuditedTrial, seq: int, reached: JudgementReached, tally: Tally) -> None:
    judged = record.read(reached.votes, VOTES)
    if judged is None:
        return  # the rules `blobs` and `documents` say so
    said = (reached.charge, reached.outcome, reached.judged)
    found = (judged.charge, judged.outcome, judged.digest)
    tally.expect(said == found, trial.name, seq, f"says {said}, its votes come to {found}")
    seed = sample_seed(trial.created.seed, "judges")
    seeds = [sample_seed(seed, reached.charge, epoch=number) for number in range(WANTED)]
    if [vote.seed for vote in judged.votes] != seeds:
        given = [vote.seed for vote in judged.votes]
        tally.findings.append(
            Finding(trial.name, seq, f"{reached.charge}: votes under the seeds {given}, wanted {seeds}")
        )
    known = () if record.basis is None else record.basis.checks
    for vote in judged.votes if record.basis is not None else ():
        if f"{reached.charge} by {vote.judge}" not in known:
            what = f"{reached.charge}: a vote by {vote.judge}, whom the basis has not"
            tally.findings.append(Finding(trial.name, seq, what))
    asked = record.read(reached.question, QUESTION)
    if asked is not None:
        digest = digest_of_json([QUESTION_VERSION, [[each.get("role"), each.get("content")] for each in asked]])
        if digest != judged.question:
            what = f"{reached.charge}: the votes are on the question {judged.question}, stored is {digest}"
            tally.findings.append(Finding(trial.name, seq, what))
