import unittest

from intervals import IntervalSet, parse


class ParseTest(unittest.TestCase):
    def test_two_ends(self):
        self.assertEqual(parse("3-7"), (3, 7))

    def test_one_number(self):
        self.assertEqual(parse("5"), (5, 5))


class AddTest(unittest.TestCase):
    def setUp(self):
        self.set = IntervalSet()

    def test_empty(self):
        self.assertEqual(self.set.intervals(), [])

    def test_in_order(self):
        self.set.add(10, 12)
        self.set.add(1, 3)
        self.assertEqual(self.set.intervals(), [(1, 3), (10, 12)])

    def test_overlapping(self):
        self.set.add(1, 5)
        self.set.add(4, 9)
        self.assertEqual(self.set.intervals(), [(1, 9)])

    def test_touching(self):
        self.set.add(1, 3)
        self.set.add(4, 6)
        self.assertEqual(self.set.intervals(), [(1, 6)])

    def test_backwards(self):
        with self.assertRaises(ValueError):
            self.set.add(5, 4)


class RemoveTest(unittest.TestCase):
    def setUp(self):
        self.set = IntervalSet()
        self.set.add(10, 20)
        self.set.add(30, 40)

    def test_a_middle(self):
        self.set.remove(13, 15)
        self.assertEqual(self.set.intervals(), [(10, 12), (16, 20), (30, 40)])

    def test_a_whole(self):
        self.set.remove(10, 20)
        self.assertEqual(self.set.intervals(), [(30, 40)])

    def test_backwards(self):
        with self.assertRaises(ValueError):
            self.set.remove(20, 10)
        self.assertEqual(self.set.intervals(), [(10, 20), (30, 40)])


class QueryTest(unittest.TestCase):
    def setUp(self):
        self.set = IntervalSet()

    def test_membership(self):
        self.set.add(3, 5)
        self.assertEqual([number in self.set for number in (2, 3, 5, 6)], [False, True, True, False])

    def test_length(self):
        self.set.add(1, 4)
        self.set.add(6, 6)
        self.assertEqual(len(self.set), 5)

    def test_gaps(self):
        self.set.add(1, 2)
        self.set.add(5, 6)
        self.assertEqual(self.set.gaps(), [(3, 4)])


class RandomTest(unittest.TestCase):
    def test_against_a_plain_set(self):
        import random

        generator = random.Random(3)
        for _ in range(50):
            ours, plain = IntervalSet(), set()
            for _ in range(20):
                first = generator.randrange(30)
                last = first + generator.randrange(8)
                if generator.random() < 0.6:
                    ours.add(first, last)
                    plain |= set(range(first, last + 1))
                else:
                    ours.remove(first, last)
                    plain -= set(range(first, last + 1))
            self.assertEqual([n for n in range(-2, 45) if n in ours], sorted(plain))
            self.assertEqual(len(ours), len(plain))


if __name__ == "__main__":
    unittest.main()
