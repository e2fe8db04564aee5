"""From scores by benchmark to one: the weights, the weighted average, and the published baselines."""

from stepwell.ptb.weighting.baselines import Baselines, published_baselines
from stepwell.ptb.weighting.weights import weighted_average, weights_of

__all__ = ["Baselines", "published_baselines", "weighted_average", "weights_of"]
