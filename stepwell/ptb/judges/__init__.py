"""Judges of a trial: whether rules were broken that no program can decide, by three votes with cited evidence."""

from stepwell.ptb.judges.charges import CHARGES, Charge, ChargeName
from stepwell.ptb.judges.judging import Asked, Record, judge, judge_trial, prepare
from stepwell.ptb.judges.signals import Signal, changed_files, file_digests, signals_of
from stepwell.ptb.judges.sources import Source, TrialSources, trial_sources
from stepwell.ptb.judges.verdict import JudgeVerdict, read_verdict
from stepwell.ptb.judges.votes import Judged, Override, Vote, agreement, fleiss_kappa, ruling
from stepwell.ptb.secrets import SecretSurvives

__all__ = [
    "CHARGES",
    "Asked",
    "Charge",
    "ChargeName",
    "JudgeVerdict",
    "Judged",
    "Override",
    "Record",
    "SecretSurvives",
    "Signal",
    "Source",
    "TrialSources",
    "Vote",
    "agreement",
    "changed_files",
    "file_digests",
    "fleiss_kappa",
    "judge",
    "judge_trial",
    "prepare",
    "read_verdict",
    "ruling",
    "signals_of",
    "trial_sources",
]
