"""The largest number, as a small pipeline."""

import asyncio


async def _produce(numbers, queue):
    for number in numbers:
        await queue.put(number)
    await queue.put(None)


async def _consume(queue):
    best = await queue.get()
    while (number := await queue.get()) is not None:
        best = number if number > best else best
    return best


async def _run(numbers):
    queue = asyncio.Queue(maxsize=8)
    producer = asyncio.create_task(_produce(numbers, queue))
    best = await _consume(queue)
    await producer
    return best


def largest(numbers):
    """The largest number of a list that is not empty."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_run(numbers))
    finally:
        loop.close()
