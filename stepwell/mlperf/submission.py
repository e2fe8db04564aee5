"""The submission file: what the rules ask for and no ledger knows.

[mlperf]                       # keys as the log has them
submission_org = "Example"
submission_division = "open"
…

[system]                       # for `stepwell mlperf package`: fields of the system description
system_name = "one-machine"
…
"""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stepwell.nearest_names import did_you_mean

Precision = Literal[
    "fp64",
    "fp32",
    "tf32",
    "fp16",
    "fp8",
    "mxfp6",
    "nvfp4",
    "mxfp4",
    "bfloat16",
    "Graphcore FLOAT 16.16",
    "int8",
    "uint8",
    "int4",
    "uint4",
]
"""As the rules name them."""


class SubmissionError(ValueError):
    """A submission file that will not do; the message names the key, what was found and what is allowed."""


class Submission(BaseModel):
    """The table `[mlperf]`. What a ledger does say may be left out, and may not be declared otherwise."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    submission_org: str = Field(pattern=r"^[^./\s][^/]*$")
    """Who submits: a name without a slash that does not begin with a dot."""
    submission_platform: str = Field(min_length=1)
    """The system, in words: `2xExample (8x accelerator)`."""
    submission_division: Literal["closed", "open"]
    """`closed` or `open`."""
    submission_status: Literal["onprem", "cloud", "preview", "research"]
    """`onprem`, `cloud`, `preview` or `research`."""
    cache_clear: Literal[True]
    """`true`: that caches of the system were cleared before the run, which the submitter vouches for."""
    lowest_numerical_precision_in_comm: Precision
    """Of what goes between accelerators: `fp32`, `bfloat16`, `fp8`, …."""
    lowest_numerical_precision_in_linear: Precision | None = None
    """Of linear layers: `fp32`, `bfloat16`, `fp8`, …."""
    lowest_numerical_precision_in_attn: Precision | None = None
    """Of attention: `fp32`, `bfloat16`, `fp8`, …."""
    tensor_parallelism: int | None = Field(default=None, ge=1)
    """Of the trainer: a whole number from 1."""
    pipeline_parallelism: int | None = Field(default=None, ge=1)
    """Of the trainer: a whole number from 1."""
    context_parallelism: int | None = Field(default=None, ge=1)
    """Of the trainer: a whole number from 1."""
    expert_parallelism: int | None = Field(default=None, ge=1)
    """Of the trainer: a whole number from 1."""
    micro_batch_size: int | None = Field(default=None, ge=1)
    """Rows that go through the model together, at most: a whole number from 1."""
    gradient_accumulation_steps: int | None = Field(default=None, ge=1)
    """Micro-batches that a rank adds up in a step: a whole number from 1."""


def allowed(key: str) -> str:
    """What a key of the submission file may say."""
    return str(Submission.model_fields[key].description)


def load_submission(path: Path) -> Submission:
    """The table `[mlperf]` of a submission file.

    Raises:
        SubmissionError: no such file, no TOML, or a key or value that is not allowed.
    """
    try:
        return Submission.model_validate(_table(path, "mlperf"))
    except ValidationError as error:
        lines = [_explain(dict(item)) for item in error.errors(include_url=False)]
        raise SubmissionError("\n".join([f"{path}: [mlperf] has {len(lines)} error(s)", *lines])) from None


SYSTEM_FIELDS = (
    "status",
    "system_name",
    "number_of_nodes",
    "host_processors_per_node",
    "host_processor_model_name",
    "host_processor_core_count",
    "host_processor_vcpu_count",
    "host_processor_frequency",
    "host_processor_caches",
    "host_processor_interconnect",
    "host_memory_capacity",
    "host_storage_type",
    "host_storage_capacity",
    "host_networking",
    "host_networking_topology",
    "host_memory_configuration",
    "accelerators_per_node",
    "accelerator_model_name",
    "accelerator_host_interconnect",
    "accelerator_frequency",
    "accelerator_on-chip_memories",
    "accelerator_memory_configuration",
    "accelerator_memory_capacity",
    "accelerator_interconnect",
    "accelerator_interconnect_topology",
    "cooling",
    "hw_notes",
    "framework",
    "other_software_stack",
    "operating_system",
    "sw_notes",
)
"""What a system description must say, besides who submits and in which division."""
SYSTEM_COUNTS = ("number_of_nodes", "host_processors_per_node", "accelerators_per_node")
"""Those of which the official summary of results makes whole numbers."""
AVAILABILITY = ("Available on-premise", "Available cloud", "Research, Development, or Internal (RDI)", "Preview")
"""What its `status` may be."""


def load_system(path: Path, submission: Submission) -> Mapping[str, str]:
    """The system description: the table `[system]`, with who submits and in which division.

    Raises:
        SubmissionError: a field is missing, unknown, no string, or no number where one is wanted.
    """
    table = _table(path, "system")
    wrong = [f"  {name}: missing; a string, which may be empty" for name in SYSTEM_FIELDS if name not in table]
    for name, value in table.items():
        if name not in SYSTEM_FIELDS:
            wrong.append(f"  {name}: unknown field{_hint(name, SYSTEM_FIELDS)}")
        elif not isinstance(value, str):
            wrong.append(f"  {name} = {value!r}: a string is wanted, in quotes")
        elif name in SYSTEM_COUNTS and not (value.isascii() and value.isdecimal()):
            wrong.append(f"  {name} = {value!r}: a whole number is wanted, in quotes")
    if table.get("status", AVAILABILITY[0]) not in AVAILABILITY:
        wrong.append(f"  status = {table['status']!r}: allowed are {', '.join(map(repr, AVAILABILITY))}")
    name = table.get("system_name", "one")
    if isinstance(name, str) and (not name or "/" in name or name.startswith(".")):
        wrong.append(f"  system_name = {name!r}: it names files, so no slash, and no dot at its beginning")
    if wrong:
        raise SubmissionError("\n".join([f"{path}: [system] has {len(wrong)} error(s)", *wrong]))
    own = {"submitter": submission.submission_org, "division": submission.submission_division}
    return own | {key: str(table[key]) for key in SYSTEM_FIELDS}


def _table(path: Path, name: str) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SubmissionError(f"{path}: {error.strerror}; docs/mlperf.md shows what a submission file says") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SubmissionError(f"{path} is no TOML: {error}") from None
    table: object = document.get(name)
    if not isinstance(table, dict):
        raise SubmissionError(f"{path}: no table [{name}]; docs/mlperf.md shows what a submission file says")
    return cast(dict[str, Any], table)


def _explain(item: Mapping[str, Any]) -> str:
    key = str(item["loc"][0])
    if item["type"] == "extra_forbidden":
        return f"  {key}: unknown key{_hint(key, Submission.model_fields)}"
    if item["type"] == "missing":
        return f"  {key}: missing. {allowed(key)}"
    return f"  {key} = {item['input']!r}: {item['msg']}. {allowed(key)}"


def _hint(name: str, known: Iterable[str]) -> str:
    meant = did_you_mean(name, known)
    return f"; {meant or 'there are ' + ', '.join(known)}"
