"""Random chunk programs: single copies and reductions, and the patterns that passes look for."""
from reference import Place, Reference, Shape


def random_shape(random):
    chunks = random.choice([2, 4, 5])
    part_chunks = random.choice([1, chunks])
    modes = random.choice([[False], [False], [True], [False, True]])
    offset = random.choice([0, 0, part_chunks]) if True in modes else 0
    return Shape(random.randint(2, 4), chunks, chunks + offset, random.choice([1, 3, chunks]), part_chunks, offset,
                 modes, random.random() < 0.5)


class Generator:
    def __init__(self, random):
        self.random = random
        self.program = Reference(random_shape(random))

    def run(self):
        patterns = [self.copy, self.copy, self.reduce, self.reduce, self.broadcast, self.relay, self.ring, self.gather]
        for _ in range(self.random.randint(3, 16)):
            self.random.choice(patterns)()
        return self.program

    def place(self, buffers, count):
        buffer = self.random.choice(buffers)
        size = self.program.shape.sizes[buffer]
        return Place(buffer, self.random.randrange(self.program.shape.ranks),
                     self.random.randrange(max(1, size - count + 1)))

    def source(self, count):
        """Prefers what was computed to what was there from the beginning."""
        for _ in range(20):
            place = self.place(["input", "output", "scratch", "scratch"], count)
            if self.program.read(place, count):
                return place
        return self.place(["input"], count)

    def target(self, count):
        return self.place(["output", "output", "scratch", "scratch", "scratch", "input"], count)

    def fit(self, place, source):
        """The place, moved to where chunks have the size of the source's, if sizes must be kept."""
        value = self.program.at(source)
        if not value or not self.program.shape.keeps_extents or place.buffer == "scratch":
            return place
        return place._replace(index=value.extent)

    def count(self):
        return self.random.choice([1, 1, 2, 3])

    def channel(self):
        return self.random.choice(["", "", "", "", " channel 1"])

    def chunkwise(self, count, emit):
        """An operation on a range, or the same in steps of one chunk, which aggregation would join."""
        if count > 1 and self.random.random() < 0.5:
            for i in range(count):
                emit(lambda place, i=i: place._replace(index=place.index + i), 1)
        else:
            emit(lambda place: place, count)

    def copy(self):
        count, channel = self.count(), self.channel()
        source = self.source(count)
        target = self.fit(self.target(count), source)
        self.chunkwise(count, lambda shift, n: self.program.copy(shift(source), shift(target), n, channel))

    def reduce(self):
        count, channel = self.count(), self.channel()
        sources = [self.source(count) for _ in range(self.random.choice([2, 2, 3, 4]))]
        target = self.fit(self.target(count), sources[0])
        self.chunkwise(count, lambda shift, n: self.program.reduce([shift(s) for s in sources], shift(target), n,
                                                                   channel))

    def others(self, rank):
        ranks = [r for r in range(self.program.shape.ranks) if r != rank]
        self.random.shuffle(ranks)
        return ranks

    def broadcast(self):
        """One value to several ranks, for multicast."""
        count = self.count()
        source = self.source(count)
        target = self.fit(self.target(count), source)
        for rank in self.others(source.rank):
            self.chunkwise(count, lambda shift, n, rank=rank: self.program.copy(
                shift(source), shift(target._replace(rank=rank)), n))

    def relay(self):
        """From rank to rank, through scratch or output, for fusion."""
        count = self.count()
        place = self.source(count)
        target = self.fit(self.target(count), place)
        for rank in self.others(place.rank) + self.random.choice([[], [place.rank]]):
            following = self.random.choice([target, self.fit(self.target(count), place)])._replace(rank=rank)
            self.chunkwise(count, lambda shift, n, place=place, following=following: self.program.copy(
                shift(place), shift(following), n))
            place = following

    def ring(self):
        """A sum that grows from rank to rank."""
        count = self.count()
        place = self.source(count)
        own, target = (self.fit(at, place) for at in (self.place(["input"], count), self.target(count)))
        for rank in self.others(place.rank):
            operands = [place, own._replace(rank=rank)]
            following = target._replace(rank=rank)
            if self.random.random() < 0.3:
                staged = self.place(["scratch"], count)._replace(rank=rank)
                if self.program.copy(place, staged, count):
                    operands[0] = staged
            if self.random.random() < 0.5:
                operands.reverse()
            self.chunkwise(count, lambda shift, n, operands=operands, following=following: self.program.reduce(
                [shift(place) for place in operands], shift(following), n))
            place = following

    def gather(self):
        """The inputs of all ranks, staged in scratch of one or straight into a fold."""
        count, target = self.count(), self.target(1)
        count = min(count, self.program.shape.sizes["input"])
        own = self.fit(self.place(["input"], count), target)
        target = self.fit(target, own)
        sources = [own._replace(rank=target.rank)] + [own._replace(rank=r) for r in self.others(target.rank)]
        if self.random.random() < 0.5:
            for i, source in enumerate(sources):
                staged = Place("scratch", target.rank, i * count)
                if self.program.copy(source, staged, count):
                    sources[i] = staged
        self.random.shuffle(sources)
        self.program.reduce(sources, target, count)
