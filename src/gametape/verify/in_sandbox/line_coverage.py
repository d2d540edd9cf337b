"""Which lines of the given files ran, by coverage.py; nothing where the interpreter does not have it."""

from collections.abc import Callable

Answer = Callable[[], dict[str, list[int]]]


def start_line_coverage(files: list[str]) -> Answer:
    """Start to collect; call the returned function at the end. Frames of other files cost next to nothing."""
    try:
        from coverage import Coverage  # noqa: PLC0415 - few processes need it, and importing it takes a while
    except ImportError:
        return dict
    collector = Coverage(data_file=None, config_file=False, include=files, concurrency="thread")
    collector.start()

    def answer() -> dict[str, list[int]]:
        collector.stop()
        data = collector.get_data()
        return {path: sorted(data.lines(path) or ()) for path in data.measured_files() if path in files}

    return answer
