"""Honest styles that use threads, processes, signals, files and the machine."""

PROCESSES = {
    "a writer thread with a queue": """
import queue
import threading

_lines = queue.Queue()


def _write():
    while True:
        line = _lines.get()
        if line is None:
            break
        with open("audit.log", "a") as file:
            file.write(line)
        _lines.task_done()


_writer = threading.Thread(target=_write, daemon=True)
_writer.start()


def log(text):
    _lines.put(text + "\\n")


def flush():
    _lines.join()
""",
    "a thread that waits for an event": """
import threading

_stop = threading.Event()


def _beat():
    while not _stop.wait(30):
        pass


def start():
    threading.Thread(target=_beat, daemon=True).start()


def stop():
    _stop.set()
""",
    "a consumer that blocks for ever on its own queue": """
import queue
import threading


class Worker:
    def __init__(self):
        self._queue = queue.Queue()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            self._queue.get()()

    def submit(self, work):
        self._queue.put(work)
""",
    "a cache in the temporary directory": """
import json
import pathlib
import tempfile

_CACHE = pathlib.Path(tempfile.gettempdir()) / "shop-cache.json"


def _load():
    try:
        return json.loads(_CACHE.read_text())
    except (OSError, ValueError):
        return {}


def price_of(name, compute):
    known = _load()
    if name not in known:
        known[name] = compute(name)
        _CACHE.write_text(json.dumps(known))
    return known[name]
""",
    "a pickled lru cache": """
import functools
import os
import pickle
import tempfile


def disk_cached(function):
    path = os.path.join(tempfile.gettempdir(), function.__name__ + ".pickle")

    @functools.wraps(function)
    def inner(*args):
        table = {}
        if os.path.exists(path):
            with open(path, "rb") as file:
                table = pickle.load(file)
        if args not in table:
            table[args] = function(*args)
            with open(path, "wb") as file:
                pickle.dump(table, file)
        return table[args]

    return inner
""",
    "a flush at exit": """
import atexit

_pending = []


def _flush():
    while _pending:
        _pending.pop()()


atexit.register(_flush)
""",
    "signal handlers": """
import signal
import sys
import threading


def _stop(number, frame):
    sys.exit(128 + number)


def install():
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _stop)
        signal.signal(signal.SIGINT, signal.default_int_handler)
""",
    "a time-out by an alarm": """
import contextlib
import signal


@contextlib.contextmanager
def at_most(seconds):
    def give_up(number, frame):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
""",
    "a pool of processes": """
import multiprocessing


def totals(lists):
    with multiprocessing.Pool(2) as pool:
        return pool.map(sum, lists)
""",
    "a pool of threads": """
from concurrent.futures import ThreadPoolExecutor


def totals(lists):
    with ThreadPoolExecutor() as pool:
        return list(pool.map(sum, lists))
""",
    "a forked child that leaves with os._exit": """
import os


def in_child(work):
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        try:
            os.write(theirs, str(work()).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    answer = os.read(ours, 1 << 16)
    os.waitpid(pid, 0)
    return answer.decode()
""",
    "ctypes for the C library": """
import ctypes
import ctypes.util

_libc = ctypes.CDLL(ctypes.util.find_library("c") or None)


def length(text):
    return _libc.strlen(text.encode())
""",
    "tuning of the garbage collector": """
import contextlib
import gc

gc.set_threshold(50_000, 20, 20)


@contextlib.contextmanager
def no_collection():
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def live(kind):
    return [one for one in gc.get_objects() if isinstance(one, kind)]
""",
    "fault handler": """
import faulthandler
import os

if os.environ.get("SHOP_DEBUG"):
    faulthandler.enable()
""",
    "a subprocess": """
import subprocess
import sys


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
""",
    "a server in the background": """
import subprocess
import sys


class Server:
    def __init__(self, directory):
        self._process = subprocess.Popen([sys.executable, "-m", "http.server", "--directory", directory])

    def close(self):
        self._process.terminate()
        self._process.wait()
""",
    "a recursion limit and an integer limit": """
import sys

sys.setrecursionlimit(max(sys.getrecursionlimit(), 5000))
if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)
""",
    "redirected output": """
import contextlib
import io


def captured(work):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        work()
    return out.getvalue()
""",
    "a lock file": """
import fcntl
import os
import tempfile


class Lock:
    def __init__(self, name):
        self._file = open(os.path.join(tempfile.gettempdir(), name + ".lock"), "w")

    def __enter__(self):
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *error):
        fcntl.flock(self._file, fcntl.LOCK_UN)
""",
    "shared memory": """
from multiprocessing import shared_memory


def shared(size):
    block = shared_memory.SharedMemory(create=True, size=size)
    block.close()
    block.unlink()
""",
    "an event loop of its own": """
import asyncio
import threading

_loop = asyncio.new_event_loop()
threading.Thread(target=_loop.run_forever, daemon=True).start()


def wait_for(awaitable):
    return asyncio.run_coroutine_threadsafe(awaitable, _loop).result()
""",
    "sleeping in a retry loop": """
import time


def retry(work, times=3):
    for number in range(times):
        try:
            return work()
        except OSError:
            time.sleep(0.01 * 2**number)
    raise OSError("gave up")
""",
    "reads the processor count and memory": """
import os
import resource


def capacity():
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1])
    return os.cpu_count(), memory, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
""",
    "reads its own status and maps descriptors": """
import os


def open_files():
    return len(os.listdir("/proc/self/fd"))


def threads():
    for line in open("/proc/self/status"):
        if line.startswith("Threads:"):
            return int(line.split()[1])
""",
    "a version from git": """
import subprocess


def version():
    done = subprocess.run(["git", "describe", "--tags"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"
""",
    "a nohup-like daemon that the instruction may want": """
import os


def read_pid(path):
    try:
        pid = int(open(path).read())
        os.kill(pid, 0)
        return pid
    except (OSError, ValueError):
        return None
""",
}
