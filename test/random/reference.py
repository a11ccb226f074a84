"""What a chunk program means, by executing it directly: the reference that plans are compared with.

A value is an expression: ("in", rank, chunk), or ("+", a, b) with operands in the order of the fold. Equal expressions
are equal bit by bit whatever the elements are.
"""
from collections import namedtuple

Place = namedtuple("Place", "buffer rank index")

# extent: which chunk of a part; reduction: the number of the reduction that computed it, or None.
Value = namedtuple("Value", "expression contributions extent reduction")


class Shape:
    """Sizes and alias modes of a program; the same numbers on all ranks. keeps_extents: no value may meet a place or a
    value of another extent, so that the plan must do without uniform chunks."""

    def __init__(self, ranks, chunks, output_chunks, scratch_chunks, part_chunks, offset, modes, keeps_extents):
        self.ranks = ranks
        self.sizes = {"input": chunks, "output": output_chunks, "scratch": scratch_chunks}
        self.part_chunks = part_chunks
        self.offset = offset
        self.modes = modes  # of: False (out of place), True (in place)
        self.keeps_extents = keeps_extents


def address(shape, in_place, place):
    """Where a place lies: in place, input is a part of output."""
    if in_place and place.buffer == "input":
        return Place("output", place.rank, place.index + shape.offset)
    return place


class Reference:
    """One memory for each alias mode that the program claims. An operation is refused unless it means the same in all."""

    def __init__(self, shape):
        self.shape = shape
        self.lines = []
        self.uniform = False  # whether a value meets a place or a value of another extent
        self.consumed = set()  # reductions whose result another reduction reads
        self.num_reductions = self.num_values = 0
        self.memories = {mode: {} for mode in shape.modes}
        for mode, memory in self.memories.items():
            for rank in range(shape.ranks):
                for chunk in range(shape.sizes["input"]):
                    memory[address(shape, mode, Place("input", rank, chunk))] = Value(
                        ("in", rank, chunk), frozenset([(rank, chunk)]), chunk % shape.part_chunks, None)

    def at(self, place):
        """The value at a place, or None if there is none or it depends on the alias mode."""
        values = {memory.get(address(self.shape, mode, place)) for mode, memory in self.memories.items()}
        return values.pop() if len(values) == 1 else None

    def read(self, place, count):
        values = [self.at(place._replace(index=place.index + i)) for i in range(count)]
        return None if None in values else values

    def note_extents(self, operands, target):
        """Notes that values of different extents meet, or meet a place that has another; false if they must not."""
        results = operands[0]
        mixed = any(value.extent != result.extent for values in operands for value, result in zip(values, results)) or (
            target.buffer != "scratch" and
            any((target.index + i) % self.shape.part_chunks != result.extent for i, result in enumerate(results)))
        self.uniform |= mixed and not self.shape.keeps_extents
        return not mixed or not self.shape.keeps_extents

    def allows(self, sources, target, count):
        """In range, and the target disjoint from each source or equal to it; out of place input is not written."""
        if False in self.shape.modes and target.buffer == "input":
            return False
        for place in [*sources, target]:
            if place.index + count > self.shape.sizes[place.buffer]:
                return False
        for mode in self.shape.modes:
            end = address(self.shape, mode, target)
            for source in sources:
                begin = address(self.shape, mode, source)
                if begin[:2] == end[:2] and 0 < abs(begin.index - end.index) < count:
                    return False
        return True

    def write(self, target, values):
        for i, value in enumerate(values):
            place = target._replace(index=target.index + i)
            for mode, memory in self.memories.items():
                memory[address(self.shape, mode, place)] = value

    def emit(self, operation, place, count):
        name = f"%{self.num_values}"
        self.num_values += 1
        self.lines.append(f"  {name} = {operation}{place.buffer}[{place.rank}][{place.index}] count {count}")
        return name

    def copy(self, source, target, count, channel=""):
        values = self.read(source, count)
        if values is None or not self.allows([source], target, count) or not self.note_extents([values], target):
            return False
        name = self.emit("chunk.read ", source, count)
        self.emit(f"chunk.copy {name} into ", target, count)
        self.lines[-1] += channel
        self.write(target, values)
        return True

    def reduce(self, sources, target, count, channel=""):
        operands = [self.read(source, count) for source in sources]
        if len(operands) < 2 or None in operands or not self.allows(sources, target, count):
            return False
        results = [self.fold([values[i] for values in operands]) for i in range(count)]
        if None in results or not self.note_extents(operands, target):
            return False
        self.consumed |= {value.reduction for values in operands for value in values}
        names = [self.emit("chunk.read ", source, count) for source in sources]
        self.emit(f"chunk.reduce {', '.join(names)} into ", target, count)
        self.lines[-1] += channel
        self.num_reductions += 1
        self.write(target, results)
        return True

    def fold(self, values):
        """The reduction of values, or None if a contribution would be in it twice."""
        expression, contributions = values[0].expression, values[0].contributions
        for value in values[1:]:
            if contributions & value.contributions:
                return None
            expression = ("+", expression, value.expression)
            contributions |= value.contributions
        return Value(expression, contributions, values[0].extent, self.num_reductions)

    def required(self):
        """(rank, chunk, value) for the outputs that a collective can ask for: what was reduced further is an
        intermediate result, which `average` must not divide, so it is left out."""
        for rank in range(self.shape.ranks):
            for chunk in range(self.shape.sizes["output"]):
                value = self.at(Place("output", rank, chunk))
                if value and (value.reduction is None or value.reduction not in self.consumed):
                    yield rank, chunk, value

    def text(self):
        shape, requirements = self.shape, []
        for rank, chunk, value in self.required():
            requirements += [rank, chunk, 1, len(value.contributions)]
            requirements += [number for pair in sorted(value.contributions) for number in pair]
        if not requirements:
            return None

        def array(numbers):
            return f"array<i32: {', '.join(map(str, numbers))}>"

        def each(number):
            return array([number] * shape.ranks)

        return (f'chunk.program "random" implements "random" ranks {shape.ranks} attributes {{\n'
                f'    input_chunks = {each(shape.sizes["input"])}, output_chunks = {each(shape.sizes["output"])},\n'
                f'    scratch_chunks = {each(shape.sizes["scratch"])}, in_place_offsets = {each(shape.offset)},\n'
                f'    part_chunks = {shape.part_chunks} : i32, out_of_place = {str(False in shape.modes).lower()},\n'
                f'    in_place = {str(True in shape.modes).lower()}, requirements = {array(requirements)}}} {{\n' +
                "\n".join(self.lines) + "\n}\n")
