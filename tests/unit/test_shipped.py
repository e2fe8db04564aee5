"""The version 0 that is shipped is what it says it is."""

from stepwell.policy.micro.config import WarmUpConfig
from stepwell.policy.micro.shipped import FOLDER, shipped
from stepwell.policy.weights import load_folder, weights_digest


def test_shipped_weights_have_the_digest_that_is_written_beside_them() -> None:
    assert weights_digest(load_folder(FOLDER)) == shipped().weights


def test_shipped_version_was_made_by_the_default_warm_up() -> None:
    assert shipped().warm_up == WarmUpConfig()
