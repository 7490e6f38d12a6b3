"""Runs in the brokers' own environment: `nats_client.py URL SECONDS SENDERS CONTENT_BYTES`.

Publishes to JetStream with nats-py, each sender waiting for its acknowledgment before the next, and
prints `{"took": [seconds of each publish], "elapsed": seconds}`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import nats


async def main(url: str, seconds: float, senders: int, size: int) -> None:
    """The whole run."""
    first = await nats.connect(url)
    await first.jetstream().add_stream(name=f"work{senders}", subjects=[f"work{senders}"])
    clients = [await nats.connect(url) for _ in range(senders)]
    took: list[float] = []
    began = time.perf_counter()
    until = began + seconds
    content = b"x" * size
    await asyncio.gather(
        *[_publish(each, f"work{senders}", content, until, took) for each in clients]
    )
    print(json.dumps({"took": took, "elapsed": time.perf_counter() - began}))
    for client in [first, *clients]:
        await client.close()


async def _publish(
    client: nats.NATS, subject: str, content: bytes, until: float, took: list[float]
) -> None:
    stream = client.jetstream()
    while (began := time.perf_counter()) < until:
        await stream.publish(subject, content)
        took.append(time.perf_counter() - began)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
