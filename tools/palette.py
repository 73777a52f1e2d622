"""A screenshot with a palette of 256 colours instead of three bytes a pixel: a third of the size, and nobody sees it.

Enters: a PNG as Chromium writes it (8 bits, RGB or RGBA, not interlaced). Leaves: a PNG of colour type 3.
Source: PNG (Third Edition), W3C 2025, sections 5.3 (chunks) and 9.2 (filter types).
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

__all__ = ["with_palette"]

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOURS = 256
CHANNELS = {2: 3, 6: 4}


def with_palette(png: bytes) -> bytes:
    """Return a picture in its 256 most frequent colours; each other colour becomes the nearest of them."""
    pixels = _pixels(png)  # (rows, columns, 3)
    packed = pixels.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32)
    colours, places, counts = np.unique(packed, return_inverse=True, return_counts=True)
    all_rgb = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=1).astype(np.int32)
    palette = all_rgb[np.argsort(-counts, kind="stable")[:COLOURS]]
    nearest = np.array([int(np.argmin(((palette - one) ** 2).sum(axis=1))) for one in all_rgb], dtype=np.uint8)
    rows = nearest[places.reshape(packed.shape)]
    lines = b"".join(b"\0" + row.tobytes() for row in rows)
    header = struct.pack(">IIBBBBB", rows.shape[1], rows.shape[0], 8, 3, 0, 0, 0)
    parts = [(b"IHDR", header), (b"PLTE", palette.astype(np.uint8).tobytes()), (b"IDAT", zlib.compress(lines, 9))]
    return SIGNATURE + b"".join(_chunk(kind, data) for kind, data in [*parts, (b"IEND", b"")])


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _pixels(png: bytes) -> np.ndarray:
    """Return the pixels of a PNG, (rows, columns, 3) uint8, with the filters of its lines undone."""
    found: dict[bytes, bytes] = {}
    at = len(SIGNATURE)
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        kind = png[at + 4 : at + 8]
        found[kind] = found.get(kind, b"") + png[at + 8 : at + 8 + length]
        at += length + 12
    columns, rows, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", found[b"IHDR"])
    if depth != 8 or colour not in CHANNELS or interlace:
        raise ValueError(f"a PNG of depth {depth} and colour type {colour}, but expected 8 bits of RGB or RGBA")
    channels = CHANNELS[colour]
    lines = np.frombuffer(zlib.decompress(found[b"IDAT"]), dtype=np.uint8).reshape(rows, 1 + columns * channels)
    before = np.zeros((columns, channels), dtype=np.uint8)
    pixels = np.empty((rows, columns, channels), dtype=np.uint8)
    for number, line in enumerate(lines):
        before = _unfiltered(int(line[0]), line[1:].reshape(columns, channels), before)
        pixels[number] = before
    return pixels[:, :, :3]


def _unfiltered(kind: int, line: np.ndarray, above: np.ndarray) -> np.ndarray:
    if kind == 0:
        return line
    if kind == 1:
        return np.add.accumulate(line, axis=0, dtype=np.uint8)
    if kind == 2:
        return line + above
    return _by_pixel(kind, line.tolist(), above.tolist())


def _by_pixel(kind: int, line: list[list[int]], above: list[list[int]]) -> np.ndarray:
    """Undo the filters Average (3) and Paeth (4), which look at the pixel to the left as it came out."""
    left = [0] * len(line[0])
    corner = left
    made = []
    for values, over in zip(line, above, strict=True):
        if kind == 3:
            left = [(value + (a + b) // 2) & 255 for value, a, b in zip(values, left, over, strict=True)]
        else:
            left = [(value + _paeth(a, b, c)) & 255 for value, a, b, c in zip(values, left, over, corner, strict=True)]
        corner = over
        made.append(left)
    return np.array(made, dtype=np.uint8)


def _paeth(left: int, above: int, corner: int) -> int:
    """Return the neighbour that is nearest to left + above - corner.

    >>> _paeth(10, 20, 12)
    20
    """
    guess = left + above - corner
    return min((left, above, corner), key=lambda one: abs(guess - one))
