"""Regimes: sets of rules under which scores were made. Scores of two regimes are never compared."""

from stepwell.ptb.regimes.regime import REGIMES, BrokenRegime, Regime, load_regime, regime

__all__ = ["REGIMES", "BrokenRegime", "Regime", "load_regime", "regime"]
