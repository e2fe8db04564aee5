"""`stepwell ptb identity`: whether a submitted model was made of the base."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from cli.arguments import Subparsers

if TYPE_CHECKING:
    from stepwell.ptb.identity import IdentityReport, LayerLine

SHOWN = 12
"""Tensors without a known origin that the text names."""


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "identity",
        help="tell whether a model was made of the base, by configuration and weights",
        description="Reads safetensors tensor by tensor and prints where each layer lies between base and instruct "
        "model. Exit status 0 if the model was made of the base, 1 if not or undecided, 2 if a folder cannot be read. "
        "docs/identity.md has the rules.",
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="folder that was submitted; an adapter is one too")
    parser.add_argument("--base", type=Path, required=True, metavar="FOLDER", help="what it was to be made of")
    parser.add_argument("--instruct", type=Path, metavar="FOLDER", help="what it must not be made of")
    parser.add_argument("--json", action="store_true", help="print one JSON object, with every tensor")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compares: 1 if the model does not pass, 2 if it cannot be compared."""
    from stepwell.ptb.identity import UnreadableModel, check_identity

    try:
        report = check_identity(args.model, args.base, args.instruct)
    except UnreadableModel as error:
        print(f"stepwell ptb identity: {error}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(_as_json(report), indent=1))
    else:
        _print(report)
    return 0 if report.passed else 1


def _as_json(report: "IdentityReport") -> dict[str, object]:
    tensors = [{**asdict(each), "origin": each.origin} for each in report.tensors]
    layers = [asdict(line) for line in report.layers()]
    verdict = {"verdict": report.verdict, "passed": report.passed, "unchanged": report.is_unchanged}
    return {**verdict, **asdict(report), "tensors": tensors, "layers": layers}


def _print(report: "IdentityReport") -> None:
    unchanged = ", every matrix unchanged" if report.is_unchanged else ""
    adapter = "" if report.declared_base is None else f"; an adapter that says it is for {report.declared_base!r}"
    print(f"{report.verdict}{unchanged}{adapter}")
    for each in report.differences:
        weight = "" if each.is_core else " (does not decide)"
        print(f"  config.json: {each.field} is {each.submitted!r}, the base's {each.base!r}{weight}")
    print(f"  {'layer':<24}{'weights':>12}{'to base':>10}{'cosine':>9}{'to instruct':>13}{'place':>8}  origin")
    for line in report.layers():
        print(_line(line))
    named = [each for each in report.tensors if each.found is not None]
    for each in named[:SHOWN]:
        assert each.found is not None
        print(f"  {each.name} is {each.found.name} of the {each.found.model} model, {each.found.order}")
    if report.unread or report.missing:
        print(f"  not read: {len(report.unread)} tensors; missing: {', '.join(report.missing[:SHOWN]) or 'none'}")


def _line(line: "LayerLine") -> str:
    instruct = "" if line.to_instruct is None else f"{line.to_instruct:.4f}"
    place = "" if line.place is None else f"{line.place:.3f}"
    measures = f"{line.elements:>12}{line.to_base:>10.4f}{line.cosine_base:>9.4f}{instruct:>13}{place:>8}"
    return f"  {line.layer:<24}{measures}  {', '.join(line.origins)}"
