"""Executes a plan, as read from JSON, on expressions: in a random order, with no more messages than the depth allows."""
from collections import namedtuple

# finals: how many reductions marked final the value has passed, at most, on one way.
Value = namedtuple("Value", "expression extent finals")


class Stuck(Exception):
    pass


class Connection:
    def __init__(self, destinations):
        self.messages = []
        self.received = {rank: 0 for rank in destinations}

    def in_flight(self):
        return len(self.messages) - min(self.received.values())


class Execution:
    def __init__(self, plan, in_place, random):
        self.plan, self.in_place, self.random = plan, in_place, random
        self.connections = [Connection(destinations) for _, _, destinations in plan["connections"]]
        self.memory = {}
        self.done = {}  # instructions that are complete, for each thread block
        for number, rank in enumerate(plan["ranks"]):
            for chunk in range(rank["inputChunks"]):
                self.memory[self.address(number, "input", chunk)] = Value(("in", number, chunk),
                                                                          chunk % plan["partChunks"], 0)
            for block in range(len(rank["threadBlocks"])):
                self.done[number, block] = 0

    def address(self, rank, buffer, index):
        size = self.plan["ranks"][rank][buffer + "Chunks"]
        assert 0 <= index < size, f"{buffer}[{index}] of rank {rank} does not exist"
        if self.in_place and buffer == "input":
            return rank, "output", index + self.plan["ranks"][rank]["inPlaceOffset"]
        return rank, buffer, index

    def run(self):
        """Blocks have priorities that change now and then: some orders are even, others far from it."""
        open_blocks = sorted(self.done)
        priority = {block: self.random.random() for block in open_blocks}
        while open_blocks:
            for block in sorted(open_blocks, key=priority.get):
                instruction = self.next(block)
                if instruction is None:
                    open_blocks.remove(block)
                    break
                if self.is_enabled(block[0], instruction):
                    self.execute(block[0], instruction)
                    self.done[block] += 1
                    if self.random.random() < 0.3:
                        priority[block] = self.random.random()
                    break
            else:
                raise Stuck(f"thread blocks {open_blocks} wait for each other")
        for connection in self.connections:
            assert connection.in_flight() == 0, "a message is left"

    def next(self, block):
        instructions = self.plan["ranks"][block[0]]["threadBlocks"][block[1]]
        return instructions[self.done[block]] if self.done[block] < len(instructions) else None

    def is_enabled(self, rank, instruction):
        for block, position in instruction.get("after", []):
            if self.done[rank, block] <= position:
                return False
        for kind, index in instruction["src"]:
            if kind == "connection":
                connection = self.connections[index]
                if connection.received[rank] == len(connection.messages):
                    return False
        return all(kind != "connection" or self.connections[index].in_flight() < self.plan["depth"]
                   for kind, index in instruction["dst"])

    def execute(self, rank, instruction):
        count = instruction["count"]
        operands = [self.load(rank, place, count) for place in instruction["src"]]
        values = [self.fold(column, instruction.get("final", False)) for column in zip(*operands)]
        extent = instruction.get("extent", 0)
        for i, value in enumerate(values):
            assert self.plan["uniformChunks"] or value.extent == (extent + i) % self.plan["partChunks"], instruction
        for kind, index in instruction["dst"]:
            if kind == "connection":
                assert self.plan["connections"][index][0] == rank, f"rank {rank} does not own connection {index}"
                self.connections[index].messages.append(values)
            else:
                self.store(rank, kind, index, values)

    def load(self, rank, place, count):
        kind, index = place
        if kind == "connection":
            connection = self.connections[index]
            values = connection.messages[connection.received[rank]]
            connection.received[rank] += 1
            assert len(values) == count, "a message has another count than its receiver"
            return values
        return [self.memory[self.address(rank, kind, index + i)] for i in range(count)]

    def store(self, rank, kind, index, values):
        assert kind != "input" or self.in_place, "the input is written out of place"
        for i, value in enumerate(values):
            at = self.address(rank, kind, index + i)
            assert (self.plan["uniformChunks"] or kind == "scratch" or
                    (index + i) % self.plan["partChunks"] == value.extent), f"{at} has another size than its value"
            self.memory[at] = value

    def fold(self, values, final):
        expression = values[0].expression
        for value in values[1:]:
            assert self.plan["uniformChunks"] or value.extent == values[0].extent, "operands of different sizes"
            expression = ("+", expression, value.expression)
        return Value(expression, values[0].extent, max(value.finals for value in values) + final)
