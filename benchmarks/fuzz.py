"""Callers that mean no good: a fuzzer over raw sockets.

`python -m benchmarks.fuzz [SECONDS]` lets attackers loose on a real server for 20 seconds, or as
long as you say: requests with bytes changed, random bytes, many requests in one packet, heads that
drip, bodies that never end, bad chunks, giant heads, floods of idle connections, callers that hang
up or never read. Meanwhile a good caller ranks and clicks, and asks for `/healthz`.

No answer may be a 5xx, no memory or file may stay behind, and the good caller must be served.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.figure import Figure, folder_on_disk, print_figures
from benchmarks.service import resident_bytes
from tests.serving import Server, serving

SECONDS = 20.0
ATTACKERS = 12
READ_SECONDS = 0.3
WARM = 0.2
"""Share of the time after which memory is first looked at."""
MOST_GROWTH = 0.05
SLOWEST_HEALTH = 2.0
CONFIG = (
    "[limits]\nbody_seconds = 2.0\nidle_seconds = 5\n"
    "[training]\nevery_seconds = 0\nafter_events = 0\n"
)
FLOOD = 5000
HELD_BACK = b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8000000\r\n\r\n{"
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")

EVENT = {"event_id": "e", "ranking_id": "r", "item": "a", "type": "click", "time": 1.0}
BODIES: list[tuple[str, str, object]] = [
    ("POST", "/v1/rank", {"query": "tea", "k": 3, "user": "u", "explain": True}),
    ("POST", "/v1/rank", {"query": "tea", "items": ["a", {"id": "b", "features": [1.0, 2.0]}]}),
    ("POST", "/v1/feedback", {"events": [EVENT, EVENT]}),
    ("PUT", "/v1/queries/tea/items", {"items": [{"id": "a", "features": [1.0, 2.0]}]}),
    ("DELETE", "/v1/queries/tea/items/never", None),
    ("GET", "/v1/queries/tea", None),
    ("GET", "/v1/models", None),
    ("GET", "/v1/insights", None),
    ("POST", "/v1/models/0/activate", None),
    ("GET", "/metrics", None),
    ("GET", "/docs", None),
    ("GET", "/dashboard/main.js", None),
    ("HEAD", "/", None),
]
STRANGE = [0, -1, 1e308, 2**63, "", "\u0000", "x" * 300, None, True, [], {}, [[]], "\U0001f375"]
SIGNS = b"\r\n\t :;%/?#{}[]\"'\\\x00\x7f\xff0123456789ABCDEFabcdef"


def request(method: str, path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    if body or method in ("POST", "PUT"):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def valid(rng: random.Random) -> bytes:
    """Return a request as it should be."""
    method, path, body = rng.choice(BODIES)
    return request(method, path, b"" if body is None else json.dumps(body).encode())


def odd(rng: random.Random) -> bytes:
    """Return a request with a body that is JSON, and not what it should be."""
    method, path, body = rng.choice([one for one in BODIES if one[2] is not None])
    return request(method, path, json.dumps(twisted(rng, body)).encode())


def twisted(rng: random.Random, value: object) -> object:
    """Return a value with some of its parts replaced, left out or doubled."""
    if rng.random() < 0.1:
        return rng.choice(STRANGE)
    if isinstance(value, dict):
        kept = {key: twisted(rng, part) for key, part in value.items() if rng.random() > 0.05}
        return kept | ({"more": 1} if rng.random() < 0.05 else {})
    if isinstance(value, list):
        return [twisted(rng, part) for part in value for _ in range(rng.choice((0, 1, 1, 1, 2)))]
    return value


def changed(rng: random.Random, data: bytes) -> bytes:
    """Return bytes with a few of them replaced, removed or added."""
    mutable = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(mutable) + 1)
        kind = rng.random()
        if kind < 0.4 and at < len(mutable):
            mutable[at] = rng.choice(SIGNS) if rng.random() < 0.7 else rng.randrange(256)
        elif kind < 0.7:
            mutable[at:at] = bytes(rng.choice(SIGNS) for _ in range(rng.randint(1, 4)))
        else:
            del mutable[at : at + rng.randint(1, 6)]
    return bytes(mutable)


def chunked(rng: random.Random) -> bytes:
    """Return a request in chunks, most of them wrong somewhere."""
    body = json.dumps({"query": "tea"}).encode()
    head = b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    parts = []
    for piece in (body[:5], body[5:], b""):
        size = len(piece) if rng.random() < 0.8 else rng.choice((0, 1, 7, 2**31, 2**63, 2**70))
        parts.append(b"%x%s\r\n%s\r\n" % (size, rng.choice((b"", b";a=b", b" ", b"zz")), piece))
    whole = head + b"".join(parts)
    return whole if rng.random() < 0.5 else changed(rng, whole)


@dataclass
class Battle:
    """What attackers and the good caller have seen."""

    port: int
    statuses: Counter[int] = field(default_factory=Counter)
    connections: int = 0
    sent_bytes: int = 0
    health: list[float] = field(default_factory=list)
    good: int = 0
    wrong: list[str] = field(default_factory=list)

    async def opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a new connection."""
        self.connections += 1
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def exchange(self, *pieces: bytes, pause: float = 0.0, half_close: bool = False) -> None:
        """Send some pieces, and note the status of every answer."""
        reader, writer = await self.opened()
        try:
            for piece in pieces:
                writer.write(piece)
                self.sent_bytes += len(piece)
                await writer.drain()
                if pause:
                    await asyncio.sleep(pause)
            if half_close:
                writer.write_eof()
            await self.answers(reader)
        finally:
            writer.transport.abort()

    async def answers(self, reader: asyncio.StreamReader) -> None:
        """Note the status of all that comes within a moment."""
        received = bytearray()
        with suppress(TimeoutError):
            async with asyncio.timeout(READ_SECONDS):
                while piece := await reader.read(65536):
                    received += piece
        self.statuses.update(int(status) for status in STATUS.findall(received))


Attack = Callable[[Battle, random.Random], Awaitable[None]]


async def random_bytes(battle: Battle, rng: random.Random) -> None:
    await battle.exchange(rng.randbytes(rng.choice((1, 20, 1000, 70_000))))


async def changed_requests(battle: Battle, rng: random.Random) -> None:
    await battle.exchange(changed(rng, valid(rng)))


async def odd_bodies(battle: Battle, rng: random.Random) -> None:
    await battle.exchange(*(odd(rng) for _ in range(rng.randint(1, 5))))


async def pipelines(battle: Battle, rng: random.Random) -> None:
    many = [valid(rng) for _ in range(rng.randint(2, 60))]
    many[rng.randrange(len(many))] = changed(rng, valid(rng))
    await battle.exchange(b"".join(many), half_close=rng.random() < 0.3)


async def dripping_heads(battle: Battle, rng: random.Random) -> None:
    data = valid(rng)
    pieces = [data[at : at + 3] for at in range(0, min(len(data), 60), 3)]
    await battle.exchange(*pieces, pause=rng.choice((0.0, 0.01, 0.1)))


async def half_closed(battle: Battle, rng: random.Random) -> None:
    data = valid(rng)
    await battle.exchange(data[: rng.randrange(len(data) + 1)], half_close=True)


async def giant_heads(battle: Battle, rng: random.Random) -> None:
    value = "x" * rng.choice((1000, 60_000, 300_000))
    many = [f"X-{at}: {value}" for at in range(rng.choice((1, 3)))] + ["A: b"] * rng.choice(
        (0, 200)
    )
    await battle.exchange(request("GET", "/healthz", b"", *many))


async def bad_chunks(battle: Battle, rng: random.Random) -> None:
    await battle.exchange(chunked(rng))


async def lying_lengths(battle: Battle, rng: random.Random) -> None:
    length = rng.choice(("-1", "1e3", "99999999999999999999", "5", "+2", "0x10", "2, 2", " 2"))
    head = f"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
    await battle.exchange(head.encode() + b'{"query": "tea"}')


async def held_back_bodies(battle: Battle, rng: random.Random) -> None:
    path = rng.choice(("/v1/rank", "/healthz", "/nothing", "/v1/feedback"))
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\n"
    await battle.exchange(head.encode() + b" " * rng.choice((1, 1000, 200_000)))


async def idle_floods(battle: Battle, rng: random.Random) -> None:
    begun = rng.choice((b"", b"GET /healthz HTT", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"))
    some = [await battle.opened() for _ in range(150)]
    for _, writer in some:
        writer.write(begun)
    await asyncio.sleep(rng.random())
    for _, writer in some:
        writer.transport.abort()


async def deaf_callers(battle: Battle, rng: random.Random) -> None:
    _, writer = await battle.opened()
    writer.write(request("GET", "/openapi.json", b"") * 300)
    await asyncio.sleep(rng.random())
    writer.transport.abort()


ATTACKS: list[Attack] = [
    random_bytes,
    changed_requests,
    changed_requests,
    changed_requests,
    odd_bodies,
    odd_bodies,
    pipelines,
    dripping_heads,
    half_closed,
    giant_heads,
    bad_chunks,
    lying_lengths,
    held_back_bodies,
    idle_floods,
    deaf_callers,
]


async def attacker(battle: Battle, seed: int, until: float) -> None:
    rng = random.Random(seed)
    while time.monotonic() < until:
        try:
            await rng.choice(ATTACKS)(battle, rng)
        except ConnectionError:
            continue  # it hung up: that is its right
        except TimeoutError:
            battle.wrong.append("a connection was not taken")


async def ask(battle: Battle, message: bytes) -> tuple[int, bytes]:
    """Return the answer to a good caller, which tries again if it made room for others."""
    for _ in range(20):
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection("127.0.0.1", battle.port)
            try:
                writer.write(message)
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                return int(head.split()[1]), await reader.readexactly(length)
            finally:
                writer.transport.abort()
        await asyncio.sleep(0.05)
    return 0, b""


async def good_caller(battle: Battle, until: float) -> None:
    """Rank and click; note what is not as it should be, and how long `/healthz` took."""
    number = 0
    while time.monotonic() < until:
        began = time.monotonic()
        status, _ = await ask(battle, request("GET", "/healthz", b""))
        battle.health.append(time.monotonic() - began)
        number += 1
        ranked = json.dumps({"query": "good", "k": 2}).encode()
        rank_status, body = await ask(battle, request("POST", "/v1/rank", ranked))
        if (status, rank_status) != (200, 200):
            battle.wrong.append(f"health {status}, rank {rank_status}: {body[:100]!r}")
            continue
        served = json.loads(body)
        event = {"event_id": f"good {number}", "ranking_id": served["ranking_id"], "type": "click"}
        events = [{**event, "item": served["items"][0]["id"]}]
        sent = request("POST", "/v1/feedback", json.dumps({"events": events}).encode())
        status, body = await ask(battle, sent)
        told = json.loads(body) if status == 200 else {}
        if told.get("accepted", 0) + told.get("duplicate", 0) != 1:
            battle.wrong.append(f"feedback {status}: {body[:100]!r}")
        battle.good += 1
        await asyncio.sleep(0.1)


async def fought(server: Server, seconds: float) -> tuple[Battle, int, int]:
    """Return what was seen, and the memory after the first part and at the end."""
    battle = Battle(server.port)
    items = [{"id": name, "features": [1.0, 2.0]} for name in "abc"]
    for query in ("tea", "good"):
        body = json.dumps({"items": items}).encode()
        assert (await ask(battle, request("PUT", f"/v1/queries/{query}/items", body)))[0] == 200
    until = time.monotonic() + seconds
    attacks = [attacker(battle, seed, until) for seed in range(ATTACKERS)]
    whole = asyncio.gather(*attacks, good_caller(battle, until))
    await asyncio.sleep(seconds * WARM)
    before = resident_bytes(server)
    await whole
    await asyncio.sleep(3.0)  # what is left is closed
    return battle, before, resident_bytes(server)


async def flooded(server: Server) -> tuple[float, int]:
    """Return how long `/healthz` took at worst, and how many bytes of memory a flood took."""
    battle, worst, writers = Battle(server.port), 0.0, []
    before = resident_bytes(server)
    for begun in (b"", b"GET /healthz HTTP/1.1\r\nHost: lo", HELD_BACK):
        for _ in range(FLOOD // 100):
            for _ in range(100):
                with suppress(ConnectionError):
                    _, writer = await battle.opened()
                    writer.write(begun)
                    writers.append(writer)
            began = time.monotonic()
            status, _ = await ask(battle, request("GET", "/healthz", b""))
            assert status == 200, status
            worst = max(worst, time.monotonic() - began)
    grown = resident_bytes(server) - before
    for writer in writers:
        writer.transport.abort()
    return worst, grown


def flood_figure() -> Figure:
    """Open thousands of connections that want nothing, against the default limits."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with folder_on_disk() as folder, serving(folder / "store") as server:
        worst, grown = asyncio.run(flooded(server))
    return Figure(
        f"{FLOOD:,} idle connections, {FLOOD:,} half heads, {FLOOD:,} held-back bodies",
        f"/healthz at worst {worst * 1e3:.0f} ms; {grown / 2**20:+.0f} MB",
        f"≤ {SLOWEST_HEALTH:g} s; ≤ 160 MB",
        worst <= SLOWEST_HEALTH and grown <= 160 * 2**20,
    )


def figures(seconds: float = SECONDS) -> Iterator[Figure]:
    yield flood_figure()
    with folder_on_disk() as folder, serving(folder / "store", config=CONFIG) as server:
        files = Path(f"/proc/{server.process.pid}/fd")
        before_files = len(list(files.iterdir()))
        battle, before, after = asyncio.run(fought(server, seconds))
        left_files = len(list(files.iterdir())) - before_files
        code, errors = server.stop()
    failed = sum(count for status, count in battle.statuses.items() if status >= 500)
    requests = sum(battle.statuses.values())
    shown = ", ".join(f"{status}: {count:,}" for status, count in sorted(battle.statuses.items()))
    yield Figure(
        f"fuzzer over raw sockets for {seconds:g} s: 5xx",
        f"{failed} of {requests:,} answers over {battle.connections:,} connections ({shown})",
        "0, and no traceback",
        failed == 0 and "Traceback" not in errors and code == 0,
    )
    growth = after / before - 1.0
    yield Figure(
        "… growth of memory",
        f"{growth:+.1%} ({before / 2**20:.0f} → {after / 2**20:.0f} MB)",
        f"≤ {MOST_GROWTH:.0%}",
        growth <= MOST_GROWTH,
    )
    yield Figure("… files left open", str(left_files), "≤ 2", left_files <= 2)
    yield Figure(
        "… a good caller meanwhile",
        f"{battle.good:,} lists and clicks, {len(battle.wrong)} wrong; /healthz at worst "
        f"{max(battle.health) * 1e3:.0f} ms",
        f"0 wrong, ≤ {SLOWEST_HEALTH:g} s",
        not battle.wrong and max(battle.health) <= SLOWEST_HEALTH,
    )
    for line in [*battle.wrong[:5], *errors.splitlines()[:20]]:
        print(line, file=sys.stderr)


if __name__ == "__main__":
    print_figures(figures(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS))
