"""Screenshots: colours, and the arrows that one has and another, of the same page without them, has not."""

import math
import struct
import zlib


class Screenshot:
    """A PNG of 8 bits a channel, without interlacing, as Chromium makes them."""

    def __init__(self, png: bytes):
        assert png[:8] == b"\x89PNG\r\n\x1a\n"
        at, packed = 8, b""
        while at < len(png):
            length, kind = struct.unpack_from(">I4s", png, at)
            content = png[at + 8:at + 8 + length]
            if kind == b"IHDR":
                self.width, self.height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", content)
                assert (depth, interlace) == (8, 0) and colour in (2, 6), (depth, colour, interlace)
                self.channels = 3 if colour == 2 else 4
            packed += content if kind == b"IDAT" else b""
            at += 12 + length
        self.rows = self._rows(zlib.decompress(packed))

    def _rows(self, raw: bytes) -> list[bytes]:
        """Undoes the filter of each row, which the PNG specification has in section 9."""
        size, step, rows = self.width * self.channels, self.channels, []
        above = bytes(size)
        for at in range(0, self.height * (size + 1), size + 1):
            kind, row = raw[at], bytearray(raw[at + 1:at + 1 + size])
            for i in range(size if kind else 0):
                left, corner = (row[i - step], above[i - step]) if i >= step else (0, 0)
                up = above[i]
                if kind == 4:
                    near = [abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)]
                    row[i] = (row[i] + (left, up, corner)[near.index(min(near))]) & 255
                else:
                    row[i] = (row[i] + (left, up, (left + up) // 2)[kind - 1]) & 255
            rows.append(bytes(row))
            above = rows[-1]
        return rows

    def at(self, x: float, y: float) -> tuple[int, int, int]:
        begin = int(x) * self.channels
        return tuple(self.rows[int(y)][begin:begin + 3])


def ink_of(shot: Screenshot, before: Screenshot) -> set[tuple[int, int]]:
    """The pixels that have become darker by a third."""
    return {(x, y) for y in range(shot.height) if shot.rows[y] != before.rows[y]
            for x in range(shot.width) if 3 * sum(shot.at(x, y)) < 2 * sum(before.at(x, y))}


def distance(x: float, y: float, line: tuple) -> float:
    x0, y0, x1, y1 = line
    length = math.hypot(x1 - x0, y1 - y0)
    part = 0 if length == 0 else max(0.0, min(1.0, ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / length ** 2))
    return math.hypot(x - x0 - part * (x1 - x0), y - y0 - part * (y1 - y0))


def has_arrow(ink: set[tuple[int, int]], line: tuple) -> bool:
    """Whether there is ink all the way, and beside its end, where the head is wider than the line."""
    def is_near(x: float, y: float) -> bool:
        return any((int(x) + dx, int(y) + dy) in ink for dx in (-1, 0, 1) for dy in (-1, 0, 1))
    x0, y0, x1, y1 = line
    length = max(1.0, math.hypot(x1 - x0, y1 - y0))
    along = ((x1 - x0) / length, (y1 - y0) / length)
    beside = [(x1 - 4 * along[0] - side * along[1], y1 - 4 * along[1] + side * along[0]) for side in (-1, 1)]
    steps = max(2, int(length / 3))
    return all((int(x), int(y)) in ink for x, y in beside) and all(
        is_near(x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps) for i in range(1, steps))


def what_differs(ink: set[tuple[int, int]], lines: list[tuple]) -> list[tuple]:
    """Of the arrows that belong into a picture those that are not there, and ink that belongs to none."""
    strangers = [place for place in ink
                 if all(distance(place[0] + 0.5, place[1] + 0.5, line) > 3.5 for line in lines)]
    return [line for line in lines if not has_arrow(ink, line)] + strangers
