"""What of a submitted folder is evaluated: a few files by name, each looked at before anything reads it.

Read are the configuration, weights in safetensors, the tokenizer, and settings of generation. No program of the folder
is run, no pickle loaded, no template taken: what else lies there is not even to be seen in the sandbox.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open

from stepwell.events.canonical import digest_of_json
from stepwell.ptb.evaluation.result import SubmissionFacts
from stepwell.ptb.evaluation.sampling import Stops, sampling_of, stops_of
from stepwell.ptb.evaluation.small_files import Links, Refused, read_object, regular_files, sha256_of, strings_of
from stepwell.ptb.identity.adapters import CONFIG_FILE as ADAPTER_CONFIG
from stepwell.ptb.identity.adapters import WEIGHTS_FILE as ADAPTER_WEIGHTS

CONFIG, TOKENIZER = "config.json", "tokenizer.json"
GENERATION, TOKENIZER_CONFIG = "generation_config.json", "tokenizer_config.json"
WEIGHTS = "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
MOST_TOKENIZER_BYTES = 256 << 20
MOST_IGNORED = 100
FLOATS = ("F64", "F32", "F16", "BF16")
_NEVER_READ = {
    **dict.fromkeys((".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".npy", ".npz"), "may hold a pickle"),
    **dict.fromkeys((".h5", ".msgpack", ".gguf", ".onnx"), "no safetensors"),
    ".py": "a program, and none of a submission is run",
    ".so": "a program, and none of a submission is run",
    ".jinja": "the template follows from the base model's name",
}
_FOREIGN_CODE = ("auto_map", "custom_pipelines")


@dataclass(frozen=True)
class Submission:
    """A folder that was accepted."""

    files: Mapping[str, Path]
    """What the sandbox is given, by name."""
    config: Mapping[str, object]
    """Of the model, without what asks for programs; of an adapter, its own."""
    stops: Stops
    facts: SubmissionFacts


def accept(folder: Path, links: Links = "inside") -> Submission:
    """Looks at a folder.

    Raises:
        Refused: it cannot be evaluated, and why.
    """
    there = regular_files(folder, links)
    if ADAPTER_CONFIG in there and WEIGHTS not in there and INDEX not in there:
        return _adapter(there)
    if CONFIG not in there:
        raise Refused(f"there is no {CONFIG}: wanted a model's folder as transformers saves it")
    weights = _weights(there)
    for name in weights:
        _check_floats(there[name], name)
    if TOKENIZER not in there:
        raise Refused(f"there is no {TOKENIZER}: what the model says would depend on whose tokenizer is put in")
    config, notes = _config(there)
    settings = read_object(there[GENERATION], GENERATION) if GENERATION in there else {}
    tokenizer = read_object(there[TOKENIZER_CONFIG], TOKENIZER_CONFIG) if TOKENIZER_CONFIG in there else {}
    if "chat_template" in tokenizer:
        notes.append(f"{TOKENIZER_CONFIG}: its chat_template is passed over: the template follows from the base model")
    if there[TOKENIZER].stat().st_size > MOST_TOKENIZER_BYTES:
        raise Refused(f"{TOKENIZER} is over {MOST_TOKENIZER_BYTES} bytes")
    read = [CONFIG, TOKENIZER, *weights, *(name for name in (GENERATION, TOKENIZER_CONFIG) if name in there)]
    stops = stops_of(config, settings, tokenizer)
    files = {name: there[name] for name in (TOKENIZER, *weights)}
    return Submission(files, config, stops, _facts("model", there, read, notes, settings, stops))


def _facts(
    kind: str,
    there: Mapping[str, Path],
    read: list[str],
    notes: list[str],
    settings: Mapping[str, object],
    stops: Stops,
) -> SubmissionFacts:
    digests = {name: sha256_of(there[name]) for name in sorted(read)}
    return SubmissionFacts(
        kind="adapter" if kind == "adapter" else "model",
        digest=digest_of_json(digests),
        files=digests,
        ignored=_ignored(there, read),
        notes=tuple(notes),
        sampling=sampling_of(settings),
        stop=(*stops.texts, *(f"token {one}" for one in stops.ids)),
    )


def _ignored(there: Mapping[str, Path], read: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in there:
        if name in read or len(found) >= MOST_IGNORED:
            continue
        why = _NEVER_READ.get(Path(name).suffix.lower())
        if why is None and name.endswith(".safetensors"):
            why = "not among the model's weights"
        if why is not None:
            found[name] = why
    return found


def _weights(there: Mapping[str, Path]) -> list[str]:
    """Names of the files of weights: one, or those that the index names."""
    if WEIGHTS in there:
        return [WEIGHTS]
    if INDEX not in there:
        pickles = [name for name in there if _NEVER_READ.get(Path(name).suffix.lower()) == "may hold a pickle"]
        beside = f" ({', '.join(pickles[:3])} may hold a pickle, which is never loaded)" if pickles else ""
        raise Refused(f"there are no weights in safetensors{beside}: wanted {WEIGHTS}, or {INDEX} and its shards")
    shards = strings_of(read_object(there[INDEX], INDEX, 64 << 20), "weight_map")
    if not shards:
        raise Refused(f"{INDEX} has no weight_map: wanted the file of each tensor")
    names = sorted(set(shards.values()))
    missing = [name for name in names if name not in there or not name.endswith(".safetensors")]
    if missing:
        raise Refused(f"{INDEX} names {missing[0]!r:.100}, which is no safetensors file of the folder")
    return names


def _check_floats(path: Path, name: str) -> None:
    try:
        with safe_open(path, framework="np") as opened:
            kinds = {key: str(opened.get_slice(key).get_dtype()) for key in opened.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise Refused(f"{name} is no safetensors file: {error}") from error
    wrong = next(((key, kind) for key, kind in kinds.items() if kind not in FLOATS), None)
    if wrong is not None:
        raise Refused(
            f"{wrong[0]} in {name} has the type {wrong[1]}: wanted one of {', '.join(FLOATS)}; what was quantised is "
            "to be submitted as it was before"
        )


def _config(there: Mapping[str, Path]) -> tuple[dict[str, object], list[str]]:
    config = read_object(there[CONFIG], CONFIG)
    if not isinstance(config.get("model_type"), str):
        raise Refused(f"{CONFIG} names no model_type: wanted one that transformers has")
    if config.get("quantization_config"):
        raise Refused(f"{CONFIG} has a quantization_config: submit the weights as they were before")
    foreign = [key for key in _FOREIGN_CODE if config.pop(key, None)]
    notes = [f"{CONFIG}: {key} is passed over: no program of a submission is run" for key in foreign]
    # Private settings choose kernels and places of files, not what is computed.
    return {key: value for key, value in config.items() if not key.startswith("_")}, notes


def _adapter(there: Mapping[str, Path]) -> Submission:
    if ADAPTER_WEIGHTS not in there:
        raise Refused(f"there is {ADAPTER_CONFIG}, and neither {ADAPTER_WEIGHTS} nor a whole model")
    config = read_object(there[ADAPTER_CONFIG], ADAPTER_CONFIG)
    _check_floats(there[ADAPTER_WEIGHTS], ADAPTER_WEIGHTS)
    if config.get("peft_type", "LORA") != "LORA":
        raise Refused(f"the adapter's peft_type is {config['peft_type']!r:.80}: put it into the model, and submit that")
    unknown = [key for key in ("use_dora", "fan_in_fan_out", "alpha_pattern", "lora_bias") if config.get(key)]
    if unknown:
        raise Refused(f"the adapter has {unknown[0]}, which is not known here: put it into the model, and submit that")
    settings = read_object(there[GENERATION], GENERATION) if GENERATION in there else {}
    tokenizer = read_object(there[TOKENIZER_CONFIG], TOKENIZER_CONFIG) if TOKENIZER_CONFIG in there else {}
    own = [name for name in (GENERATION, TOKENIZER, TOKENIZER_CONFIG) if name in there]
    stops = stops_of({}, settings, tokenizer)
    files = {name: there[name] for name in (ADAPTER_WEIGHTS, ADAPTER_CONFIG, *own)}
    read = [ADAPTER_CONFIG, ADAPTER_WEIGHTS, *own]
    return Submission(files, config, stops, _facts("adapter", there, read, [], settings, stops))


def config_bytes(submission: Submission) -> bytes:
    """`config.json` as the sandbox gets it."""
    return json.dumps(dict(submission.config), indent=1, sort_keys=True).encode()
