"""Signs a run's heads: what stands after a step can later be held against whoever might change it.

A run does not stand or fall with its signatures: a control worker that has not the run's private key signs nothing and
says so, and the next head that is signed covers what was missed.
"""

import logging

from activities.stores import APPEND_TRIES, Stores
from db.errors import Fenced
from stepwell.events import HeadSigned, KeyDeclared
from stepwell.events.head_signed import StreamHead
from stepwell.events.streams import (
    engine_stream,
    health_stream,
    operator_stream,
    run_stream,
    seal_stream,
    weights_stream,
)
from stepwell.signing import SigningKey, SigningKeys, UnusableKey, head_message


class Sealer:
    """Signs with the keys of this machine.

    Args:
        stores: where heads are read and signatures recorded.
        keys: private keys.
    """

    def __init__(self, stores: Stores, keys: SigningKeys) -> None:
        self._stores = stores
        self._keys = keys

    async def declare(self, run: str) -> None:
        """Records which key signs the run, once: this machine's, drawn now if it has none yet."""
        stream = seal_stream(run)
        if await self._stores.ledger.head(stream) is not None:
            return
        try:
            key = self._keys.make(run)
        except UnusableKey as error:
            logging.warning("run %s is not signed: %s", run, error)
            return
        declared = KeyDeclared(public_key=key.public)
        try:
            await self._stores.ledger.append(stream, [declared], expected_seq=0, actor=self._stores.actor)
        except Fenced as fenced:
            logging.info("run %s is signed by another control worker: %s", run, fenced)

    async def sign(self, run: str, at: str) -> None:
        """Signs the heads as they are now, once for each `at`: the step that was completed, or `finished`."""
        for _ in range(APPEND_TRIES):
            await self.declare(run)
            recorded = await self._stores.ledger.read(seal_stream(run))
            events = [each.event for each in recorded]
            if any(event.key() == f"head/{at}" for event in events):
                return
            key = self._key_of(run, events[0] if events else None)
            if key is None:
                return
            before = next((event.signature for event in reversed(events) if isinstance(event, HeadSigned)), "")
            heads = await self._heads(run)
            signature = key.sign(head_message(seal_stream(run), at, heads, before))
            event = HeadSigned(at=at, heads=heads, before=before, signature=signature)
            try:
                await self._stores.ledger.append(
                    seal_stream(run), [event], expected_seq=len(events), actor=self._stores.actor
                )
            except Fenced:
                continue  # another head was signed in between, which this one has to name
            return
        raise RuntimeError(f"{seal_stream(run)}: other writers were faster {APPEND_TRIES} times")

    def _key_of(self, run: str, declared: object) -> SigningKey | None:
        """The private half of the run's key; None, with a warning, where this machine has it not."""
        if not isinstance(declared, KeyDeclared):
            return None
        try:
            key = self._keys.find(run)
        except UnusableKey as error:
            logging.warning("run %s is not signed: %s", run, error)
            return None
        if key is None or key.public != declared.public_key:
            logging.warning(
                "run %s is not signed: its key %s is not on this machine; give all control workers one key by "
                "STEPWELL_SIGNING_KEY",
                run,
                declared.public_key,
            )
            return None
        return key

    async def _heads(self, run: str) -> list[StreamHead]:
        ledger = self._stores.ledger
        names = (run_stream(run), weights_stream(run), operator_stream(run), health_stream(run))
        found = {name: await ledger.head(name) for name in names} | await ledger.heads(engine_stream(run, ""))
        return [StreamHead(stream=name, seq=head.seq, head=head.hash) for name, head in sorted(found.items()) if head]
