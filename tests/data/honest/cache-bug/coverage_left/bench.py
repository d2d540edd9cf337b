"""How fast is it? python bench.py"""

import random
import time

from cache import Cache


def main() -> None:
    random.seed(1)
    cache, started, hits = Cache(100), time.perf_counter(), 0
    for _ in range(20_000):
        key = random.randrange(200)
        hits += cache.get(key) is not None
        cache.put(key, key)
    print(f"{hits} hits in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
