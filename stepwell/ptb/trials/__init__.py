"""Trials: a run set's recipe and its matrix of cells, where a trial stands by its events, and what came of it."""

from stepwell.ptb.trials.cells import Places, TrialCell, matrix, slug
from stepwell.ptb.trials.loading import load_run_set, regime_of, resolve_run_set
from stepwell.ptb.trials.recipe import AgentSection, RunSetRecipe

__all__ = [
    "AgentSection",
    "Places",
    "RunSetRecipe",
    "TrialCell",
    "load_run_set",
    "matrix",
    "regime_of",
    "resolve_run_set",
    "slug",
]
