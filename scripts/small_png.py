"""Makes a screenshot small: at most 256 colours, of which a page hardly has more that can be told apart."""

import struct
import zlib

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOURS = 256
_KEPT_BITS = 0xF8


def small_png(png: bytes) -> bytes:
    """The same picture with a palette. Takes what Chromium writes: 8 bits for each of three or four channels."""
    pixels = _read(png)
    height, width, _ = pixels.shape
    colours, places = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True)
    counts = np.bincount(places.ravel())
    _, coarse = np.unique(colours & _KEPT_BITS, axis=0, return_inverse=True)
    totals = np.bincount(coarse.ravel(), counts)
    first = np.array([np.argmax(np.where(coarse.ravel() == number, counts, -1)) for number in range(len(totals))])
    palette = colours[first[np.argsort(-totals)[:_COLOURS]]]
    nearest = np.empty(len(colours), dtype=np.uint8)
    for start in range(0, len(colours), 4096):
        part = colours[start : start + 4096, None].astype(np.int32) - palette[None]
        nearest[start : start + 4096] = (part**2).sum(-1).argmin(-1)
    rows = nearest[places.ravel()].reshape(height, width)
    lines = np.hstack([np.zeros((height, 1), dtype=np.uint8), rows]).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    data = zlib.compress(lines, 9)
    parts = [(b"IHDR", head), (b"PLTE", palette.tobytes()), (b"IDAT", data), (b"IEND", b"")]
    return _SIGNATURE + b"".join(_chunk(kind, body) for kind, body in parts)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _read(png: bytes) -> Pixels:
    at, data, shape = len(_SIGNATURE), b"", (0, 0, 0)
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colours, *_ = struct.unpack(">IIBBBBB", body)
            if depth != 8 or colours not in (2, 6):
                raise ValueError("expected 8 bits for each of three or four channels")
            shape = (height, width, 3 if colours == 2 else 4)
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    return _unfiltered(zlib.decompress(data), shape)[:, :, :3]


def _unfiltered(data: bytes, shape: tuple[int, int, int]) -> Pixels:
    height, width, channels = shape
    lines = np.frombuffer(data, dtype=np.uint8).reshape(height, 1 + width * channels)
    done = np.zeros((height + 1, width * channels), dtype=np.uint8)
    for number, line in enumerate(lines):
        done[number + 1] = _unfiltered_line(int(line[0]), line[1:], done[number], channels)
    return done[1:].reshape(shape)


def _unfiltered_line(kind: int, line: Pixels, above: Pixels, step: int) -> Pixels:
    if kind == 0:
        return line
    if kind == 1:
        return np.cumsum(line.reshape(-1, step), axis=0, dtype=np.uint8).ravel()
    if kind == 2:
        return line + above
    values, up = line.tolist(), above.tolist()
    for at, value in enumerate(values):
        left = values[at - step] if at >= step else 0
        corner = up[at - step] if at >= step else 0
        values[at] = (value + ((left + up[at]) // 2 if kind == 3 else _paeth(left, up[at], corner))) & 255
    return np.array(values, dtype=np.uint8)


def _paeth(left: int, up: int, corner: int) -> int:
    away = (abs(up - corner), abs(left - corner), abs(left + up - 2 * corner))
    return (left, up, corner)[away.index(min(away))]
