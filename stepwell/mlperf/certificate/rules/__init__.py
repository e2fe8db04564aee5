"""One rule a file, as under `stepwell.audit.rules`: what a benchmark's run must show beyond what any run must."""
