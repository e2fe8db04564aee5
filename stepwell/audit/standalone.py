#!/usr/bin/env python3
"""Checks an exported run without Stepwell, a database or a network: Python 3.11 and its standard library alone.

    python3 verify.py FOLDER [--key HEX] [--anchor LINE]...

FOLDER is from `stepwell audit export`. Checked: streams, commitments, blobs, scores, fates, versions, attestations,
members of batches, signed heads, anchors; only `stepwell audit verify` computes advantages, packing and facts digests.
Take this file, key and anchors from elsewhere than the bundle. Exit 0: it holds; 1: it does not; 2: it is unreadable.
"""

import argparse
import hashlib
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D, ROOT = -121665 * pow(121666, -1, P) % P, pow(2, (P - 1) // 4, P)
Point = tuple[int, int, int, int]
Body = dict[str, Any]
Event = NamedTuple("Event", [("stream", str), ("seq", int), ("hash", str), ("type", str), ("body", Body)])  # noqa: UP014
OWNERS = dict(rollout="sandbox", verdict="sandbox", weights="trainer", engine="engine", quarantine="operator")  # noqa: C408
LAST = ("RunFinished", "GroupClosed", "ValidationClosed", "VerdictReached", "PayloadDeleted")
FIELDS = ["actor", "body", "key", "prev", "schema", "seq", "stream", "time", "type"]
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
FOLDERS = {"StepTrained": "export", "VersionCreated": "export", "CheckpointSaved": "files"}
NAMED = ("tasks", "payload", "changed", "report", "manifest", "task_set", "export", "files", "history")
canonical = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode


def point_of(data: bytes) -> Point | None:
    """RFC 8032, 5.1.3; None for bytes that are no point."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x * ROOT % P if (x * x - square) % P else x
    if y >= P or (x * x - square) % P or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


def add(a: Point, b: Point) -> Point:
    """RFC 8032, 5.1.4."""
    low, high = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    c, d = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = high - low, d - c, d + c, high + low
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(factor: int, point: Point) -> Point:
    """The point so many times."""
    result = (0, 1, 1, 0)
    while factor:
        result, point, factor = add(result, point) if factor & 1 else result, add(point, point), factor >> 1
    return result


def is_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature is the key's: RFC 8032, 5.1.7."""
    base, factor = point_of((4 * pow(5, -1, P) % P).to_bytes(32, "little")), int.from_bytes(signature[32:], "little")
    public, nonce = point_of(key), point_of(signature[:32])
    if len(key) != 32 or len(signature) != 64 or not base or not public or not nonce or factor >= L:
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    a, b = times(factor, base), add(nonce, times(challenge, public))
    return (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


class Verifier:
    """Checks one bundle; `faults` are (rule, stream, seq, what)."""

    def __init__(self, folder: Path, key: str = "", anchors: Sequence[str] = ()) -> None:
        info = json.loads((folder / "bundle.json").read_bytes())
        self.folder, self.key, self.anchors, self.run = folder, key, anchors, str(info["run"])
        self.withheld, self.signed = dict[str, str](info["withheld"]), "not signed"
        self.faults, self.unproven = list[tuple[str, str, int, str]](), list[str]()
        self.streams, self.of = defaultdict[str, list[Event]](list), defaultdict[str, list[Event]](list)
        self.seen, self.proven = set[str](), set[tuple[str, int]]()
        self.prompts, self.trained = dict[str, list[str]](), dict[str, int]()

    def verify(self) -> "Verifier":
        self.chains()
        self.each("curriculum", self.dispatched, "StepDispatched", "ValidationOpened", "PromptReplaced")
        self.begins = (fork := self.first(f"run/{self.run}", "RunForked")).get("step", 0)
        self.taken = [child["stream"].split("/")[2:] for child in fork.get("reused", ())]
        self.made = {shared["version"]: {"digests": shared} for shared in fork.get("versions", ())}
        self.of["GroupClosed"] = [e for e in self.of["GroupClosed"] if e.stream.split("/")[2:] not in self.taken]
        self.unproven += [f"version {self.begins}, {len(self.taken)} groups are run {fork['parent']}'s"] if fork else []
        self.made |= {e.body.get("version", 0): e.body for e in (*self.of["VersionCreated"], *self.of["StepTrained"])}
        self.each("attestations", self.attested, "VersionAttested")
        self.each("versions", self.turn, "TurnRecorded")
        self.each("scores", self.graded, "RolloutGraded")
        self.each("fates", self.group, "GroupClosed")
        self.each("validations", self.validation, "ValidationClosed")
        self.each("steps", self.step, "StepDispatched", "StepAdmitted", "StepTrained", "StepCompleted")
        self.each("batches", self.batch, "StepAdmitted")
        self.each("blobs", self.blobs, *self.of)
        self.each("seals", self.seal, "HeadSigned")
        self.outside()
        return self

    def expect(self, holds: object, rule: str, at: Event, what: str) -> None:
        if not holds:
            self.faults.append((rule, at.stream, at.seq, what))

    def each(self, rule: str, check: Callable[[Event], None], *types: str) -> None:
        """Checks every event of some types; a body that cannot be read is a fault of that event."""
        for event in [event for type in types for event in self.of[type]]:
            try:
                check(event)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError, OSError) as error:
                self.expect(False, rule, event, f"{event.type} cannot be checked: {error!r}")

    def first(self, stream: str, type: str) -> Body:
        return next((event.body for event in self.streams.get(stream, ()) if event.type == type), {})

    def json(self, digest: str) -> Any:
        data = (self.folder / "blobs" / digest[:2] / digest).read_bytes()
        if hashlib.sha256(data).hexdigest() != digest:
            raise ValueError(f"blob {digest} has other bytes")
        return json.loads(data)

    def chains(self) -> None:  # Takes in each stream up to its first event that does not hold.
        broken, keys = set[str](), set[tuple[str, str]]()
        for number, line in enumerate((self.folder / "events.txt").open("rb")):
            said, exact, last = str(line[:64], "latin-1"), line[65:-1], Event("events.txt", number - 1, "", "", {})
            found = hashlib.sha256(b"stepwell/event\0" + len(exact).to_bytes(8, "big") + exact).hexdigest()
            event = Body()
            try:
                event = json.loads(exact)
                stream, kind = str(event["stream"]), str(event["stream"]).partition("/")[0]
                last = self.streams[stream][-1] if stream in self.streams else Event(stream, -1, "0" * 64, "", {})
                checks = (
                    (found == said, f"the bytes hash to {found}, the bundle says {said}"),
                    (canonical(event).encode() == exact, "the bytes are not in canonical form"),
                    (sorted(event) == FIELDS and TIME.fullmatch(event["time"]), "the fields are not those of an event"),
                    (event["seq"] == last.seq + 1, f"the event is missing: #{event['seq']} is the next"),
                    (event["prev"] == last.hash, f"names {event['prev']} as the event before it, which is {last.hash}"),
                    (event["actor"].split(":")[0] == OWNERS.get(kind, "control"), f"appended by {event['actor']}"),
                    ((stream, event["key"]) not in keys, f"the key {event['key']} stands twice"),
                    (last.type not in LAST, f"an event after {last.type}, which is the last"),
                    (kind in ("verdict", "deleted") or stream.split("/")[1] == self.run, "a stream of another run"),
                )
                why = next((why for holds, why in checks if not holds), "")
            except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
                why = f"no event: {error!r}"
            if why and last.stream not in broken:
                self.faults.append(("chains", last.stream, last.seq + 1, why))
                broken.add(last.stream)
            if last.stream not in broken:
                keys.add((last.stream, event["key"]))
                self.streams[last.stream].append(Event(last.stream, event["seq"], found, event["type"], event["body"]))
                self.of[event["type"]].append(self.streams[last.stream][-1])

    def head(self, at: Event, stream: str, seq: int, head: str, ends: bool = True, rule: str = "commitments") -> None:
        """An event says which hash stands at a place of another stream, and mostly that this is its end."""
        events = self.streams.get(stream, [])
        found = events[seq].hash if 0 <= seq < len(events) else "no such event"
        self.expect(found == head, rule, at, f"says that {stream} #{seq} is {head}, found {found}")
        self.expect(not ends or seq >= len(events) - 1, rule, at, f"says that {stream} ends at #{seq}, it goes on")

    def children(self, at: Event, commitment: Body, scope: str) -> None:
        """A list of children names just the prompts of its step or validation, each as it ended."""
        listed, wanted = self.json(commitment["heads"]), sorted(self.prompts.get(scope, []))
        is_all = [child["stream"] for child in listed] == wanted
        self.expect(is_all, "commitments", at, f"commits to {len(listed)} prompts, dispatched: {len(wanted)}")
        for child in listed:
            self.head(at, child["stream"], child["seq"], child["head"])
            self.expect(self.first(child["stream"], "GroupClosed"), "fates", at, f"{child['stream']} has no fate")

    def dispatched(self, e: Event) -> None:
        scope = e.stream.split("/")[2] if e.type == "ValidationOpened" else str(e.body["step"])
        prompts = self.prompts.setdefault(scope, [])
        prompts += [f"prompt/{self.run}/{scope}/{len(prompts) + at}" for at, _ in enumerate(e.body.get("tasks", [""]))]

    def attested(self, e: Event) -> None:
        made = self.made[e.body["version"]]["digests"]["exported"]
        self.expect(e.body["digest"] == made, "attestations", e, f"attests {e.body['digest']}, trained was {made}")
        self.proven.add((e.stream, e.body["version"]))

    def turn(self, e: Event) -> None:
        group, version = "prompt/" + e.stream.removeprefix("rollout/").rpartition("/")[0], e.body["version"]
        engine, wanted = f"engine/{self.run}/{e.body['engine']}", self.first(group, "GroupOpened")["version"]
        self.expect(version == wanted, "versions", e, f"by version {version}, its group by {wanted}")
        self.expect((engine, version) in self.proven, "attestations", e, f"{engine} never attested version {version}")

    def graded(self, e: Event) -> None:
        key, ended = e.body["verdict_key"], self.first(e.stream, "RolloutEnded").get("verdict_key")
        self.head(e, f"verdict/{key}", 0, e.body["verdict_head"])
        said = self.first(f"verdict/{key}", "VerdictReached").get("score")
        self.expect((e.body["score"], key) == (said, ended), "scores", e, f"its verdict {ended} says {said}")

    def group(self, e: Event) -> None:
        below, named = f"rollout/{e.stream.removeprefix('prompt/')}/", {child["stream"] for child in e.body["children"]}
        for child in e.body["children"]:
            self.head(e, child["stream"], child["seq"], child["head"])
        for sample, score in enumerate(e.body["scores"]):
            name, found = f"{below}{sample}", self.first(f"{below}{sample}", "RolloutGraded").get("score")
            self.expect(name in named or name not in self.streams, "commitments", e, f"does not name {name}")
            self.expect(found == score, "scores", e, f"sample {sample} has score {score}, its rollout {found}")

    def validation(self, e: Event) -> None:
        scope, opened = e.stream.split("/")[2], self.streams[e.stream][0]
        self.children(e, e.body["children_heads"], scope)
        is_made = opened.body["weights_digest"] == self.made[opened.body["version"]]["digests"]["exported"]
        self.expect(is_made, "validations", opened, "of other weights than its version's")
        passed = [sum(map(bool, self.first(name, "GroupClosed")["scores"])) for name in self.prompts[scope]]
        self.expect(passed == e.body["passed"], "validations", e, f"passed {e.body['passed']}, its groups {passed}")
        for said in [r for r in self.of["ValidationRecorded"] if f"v{r.body['version']}-{r.body['dataset']}" == scope]:
            self.head(said, e.stream, e.seq, said.body["stream_head"])
            self.expect(said.body["pass_k"] == e.body["pass_k"], "validations", said, "another pass@k than its own")

    def step(self, e: Event) -> None:
        number = self.begins + [other.seq for other in self.of[e.type]].index(e.seq)
        self.expect(e.body["step"] == number, "steps", e, f"{e.type} of step {e.body['step']}, wanted {number}")
        if e.type == "StepTrained":
            made = e.body["parent"], e.body["version"]
            self.expect(made == (number, number + 1), "steps", e, f"made version {made[1]} of version {made[0]}")
        if e.type == "StepCompleted":
            self.head(e, f"weights/{self.run}", e.body["weights_seq"], e.body["weights_head"], ends=False)

    def batch(self, e: Event) -> None:
        self.children(e, e.body["group_heads"], str(e.body["step"]))
        trained = self.made.get(e.body["step"] + 1, e.body)["manifest"]
        self.expect(trained == e.body["manifest"], "batches", e, f"admitted, but trained was {trained}")
        for sample in self.json(e.body["manifest"])["samples"]:
            name, reward = sample["stream"], self.first(sample["stream"], "RolloutGraded").get("score")
            is_once = self.trained.setdefault(name, e.seq) == e.seq and name.split("/")[2] == str(e.body["step"])
            self.expect(is_once, "batches", e, f"{name} is of another step, or trained twice")
            if name.split("/")[2:4] not in self.taken:
                self.expect(reward == sample["reward"], "batches", e, f"{name} of {sample['reward']}, scored {reward}")

    def blobs(self, e: Event) -> None:
        named = [e.body[field] for field in (*NAMED, *["task"] * (e.type == "PromptReplaced")) if field in e.body]
        digests = [each for value in named for each in (value if isinstance(value, list) else [value])]
        digests += self.json(e.body[FOLDERS[e.type]]).values() if e.type in FOLDERS else []
        for digest in [digest for digest in digests if digest not in self.seen and not self.seen.add(digest)]:
            try:
                with (self.folder / "blobs" / digest[:2] / digest).open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
                self.expect(found == digest, "blobs", e, f"blob {digest} has bytes that hash to {found}")
            except FileNotFoundError:
                why = self.withheld.get(digest) or self.first(f"deleted/{digest}", "PayloadDeleted").get("reason")
                self.expect(why, "blobs", e, f"blob {digest} is missing")
                self.unproven += [f"blob {digest} of {e.stream} #{e.seq} is not there: {why}"] if why else []

    def seal(self, e: Event) -> None:
        said, heads = {name: e.body[name] for name in ("at", "before", "heads")}, self.of["HeadSigned"]
        key, message = self.first(e.stream, "KeyDeclared")["public_key"], canonical({**said, "stream": e.stream})
        signature, before = e.body["signature"], heads[heads.index(e) - 1].body["signature"] if e != heads[0] else ""
        holds = is_signed(bytes.fromhex(key), b"stepwell/head\0" + message.encode(), bytes.fromhex(signature))
        self.expect(holds and before == e.body["before"], "seals", e, f"not signed by {key}, or not after {before}")
        for at in (Event(head["stream"], head["seq"], head["head"], "", {}) for head in e.body["heads"]):
            self.head(at, at.stream, at.seq, at.hash, ends=False, rule="seals")
        self.signed = f"signed up to {e.body['at']} by {key}"

    def outside(self) -> None:
        """What was kept elsewhere, and what cannot be told without it."""
        seal, declared = Event(f"seal/{self.run}", 0, "", "", {}), self.first(f"seal/{self.run}", "KeyDeclared")
        for form, anchored, stream, seq, head in map(str.split, self.anchors):
            self.expect(form == "stepwell-anchor-1", "anchors", seal, f"{form} is an unknown form of anchor")
            self.head(Event(stream, int(seq), "", "", {}), stream, int(seq), head, ends=False, rule="anchors")
            self.key = self.key or anchored.strip("-")
        key = declared.get("public_key", "")
        self.expect(self.key in ("", key), "seals", seal, f"signed by {key or 'nobody'}, the key given is {self.key}")
        for name in [name for name, given in (("key", self.key), ("anchor", self.anchors)) if not given]:
            self.unproven.append(f"no {name} was given: all of it may be made anew, or cut off at its end")
        last = {head["stream"]: head["seq"] for e in self.of["HeadSigned"][-1:] for head in e.body.get("heads", ())}
        for stream in [f"{kind}/{self.run}" for kind in ("run", "operator", "health", "weights")]:
            if (after := len(self.streams.get(stream, ())) - 1 - last.get(stream, -1)) > 0:
                self.unproven.append(f"the last {after} events of {stream} are in no signed head")


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks an exported run.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--key", default="", help="the run's public key, in hex, from elsewhere")
    parser.add_argument(
        "--anchor", action="append", default=[], dest="anchors", help="a line of `stepwell audit anchor`"
    )
    try:
        found = Verifier(**vars(parser.parse_args())).verify()
    except (OSError, ValueError, KeyError, TypeError) as error:
        parser.error(f"it cannot be read as a bundle: {error!r}")
    said = [f"run {found.run}: {sum(map(len, found.streams.values())):,} events, {len(found.seen):,} blobs"]
    said += [f"broken  {rule}: {stream} #{seq}: {what}" for rule, stream, seq, what in found.faults] + [found.signed]
    said += [f"not proven: {what}" for what in found.unproven]
    sys.stdout.write("\n".join([*said, "it does not hold" if found.faults else "what can be checked holds", ""]))
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
