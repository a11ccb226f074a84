#!/usr/bin/env python3
"""The charts are XML, and their lines go where the numbers are."""
import unittest
import xml.etree.ElementTree

import svg

NAMESPACE = "{http://www.w3.org/2000/svg}"


class Svg(unittest.TestCase):
    def test_ticks_are_round_and_cover_the_numbers(self):
        self.assertEqual(svg.ticks(160), [0, 50, 100, 150, 200])
        self.assertEqual(svg.ticks(5), [0, 1, 2, 3, 4, 5])
        self.assertEqual(svg.ticks(0)[0], 0)

    def test_a_line_a_series(self):
        panels = [svg.Panel("a < b", "x", [svg.Series("one", [0, 10]), svg.Series("two", [10, 0])])] * 3
        root = xml.etree.ElementTree.fromstring(svg.draw(panels, columns=2))
        self.assertEqual((root.get("width"), root.get("height")), (str(2 * svg.WIDTH), str(2 * svg.HEIGHT)))
        lines = root.findall(NAMESPACE + "polyline")
        self.assertEqual(len(lines), 6)
        rising = [tuple(map(float, point.split(","))) for point in lines[0].get("points").split()]
        self.assertLess(rising[0][0], rising[1][0])
        self.assertGreater(rising[0][1], rising[1][1], "y grows downwards")


if __name__ == "__main__":
    unittest.main()
