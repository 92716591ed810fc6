"""Clients of a server over TLS that send a byte a second each: `python -m tests.bench.slowclients PORT CA_FILE COUNT`.

Whose connection is closed connects anew. Runs until it is ended; a line says when all are connected for the first time.
"""

import asyncio
import random
import ssl
import sys
from contextlib import suppress

REQUEST = (
    b"POST /mutate/pod?timeout=10s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 1000\r\n\r\n"
)
PAUSE_S = 1.0
RAMP_S = 10.0
"""They do not come all in one moment, as it is not handshakes that are measured."""


async def client(
    port: int, context: ssl.SSLContext, connected: asyncio.Semaphore, *, begins_s: float, in_body: bool
) -> None:
    """One of them; `in_body`: its header comes at once."""
    await asyncio.sleep(begins_s)
    while True:
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            connected.release()
            sent = len(REQUEST) if in_body else 0
            writer.write(REQUEST[:sent])
            while not writer.is_closing():
                await asyncio.sleep(PAUSE_S * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
                writer.write(REQUEST[sent : sent + 1] or b"x")
                sent += 1
                await writer.drain()


async def main(port: int, ca_file: str, count: int) -> None:
    """Runs them all."""
    context, connected = ssl.create_default_context(cafile=ca_file), asyncio.Semaphore(0)
    tasks = [
        asyncio.create_task(client(port, context, connected, begins_s=RAMP_S * each / count, in_body=bool(each % 2)))
        for each in range(count)
    ]
    for _ in tasks:
        await connected.acquire()
    print("connected", flush=True)
    await asyncio.gather(*tasks)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
