"""The package that the ranks import."""

PACKAGE = "megatron-core"
MISSING = f'the package {PACKAGE} is not installed: pip install "stepwell[megatron]"'
