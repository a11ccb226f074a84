"""Pages of `occlc view`, what is in them, and what should be, from the plan alone."""

import collections
import json
import subprocess

SPAN, ARROW = 8, 3


class Tools:
    def __init__(self, occlc: str, run: str, folder: str):
        self.occlc, self.run, self.folder = occlc, run, folder

    def compile(self, name: str, *options: str) -> str:
        plan = f"{self.folder}/{name.replace('/', '_')}.plan.json"
        subprocess.run([self.occlc, "compile", f"algorithms/{name}.coll", *options, "-o", plan], check=True)
        return plan

    def record(self, plan: str, *options: str) -> str:
        trace = plan.replace(".plan.json", ".trace.json")
        subprocess.run([self.run, "--plan", plan, "--trace", trace, *options], check=True, stdout=subprocess.DEVNULL)
        return trace

    def view(self, file: str, *options: str) -> str:
        return subprocess.run([self.occlc, "view", file, *options], check=True, capture_output=True,
                              text=True).stdout.strip()


def data_of(page: str) -> dict:
    with open(page, encoding="utf-8") as file:
        text = file.read()
    return json.loads(text.split('<script type="application/json" id="data">')[1].split("</script>")[0])


def spans_of(layer: dict) -> list[list]:
    flat = layer["spans"]
    return [flat[at:at + SPAN] for at in range(0, len(flat), SPAN)]


def expected_messages(plan: str) -> set[tuple]:
    """(sender, receiver) as (rank, thread block, instruction): the k-th message that is appended to a connection is the
    k-th that each destination takes from it; a wait for v signals is ended by the v-th."""
    with open(plan, encoding="utf-8") as file:
        document = json.load(file)
    places = [((rank, block, index), instruction) for rank, of_rank in enumerate(document["ranks"])
              for block, of_block in enumerate(of_rank["threadBlocks"]) for index, instruction in enumerate(of_block)]
    sent = collections.defaultdict(list)
    for place, instruction in places:
        for operand in instruction.get("dst", ()):
            if operand[0] == "connection":
                sent[operand[1]].append(place)
    taken, found = collections.Counter(), set()
    for place, instruction in places:
        for operand in instruction.get("src", ()):
            if operand[0] == "connection":
                key = operand[1], place[0]
                number = instruction["value"] - 1 if instruction["op"] == "wait" else taken[key]
                taken[key] += 1
                found.add((sent[operand[1]][number], place))
    return found


def drawn_messages(data: dict, layer: dict) -> collections.Counter:
    """The same of a page's arrows, and how often."""
    spans = spans_of(layer)

    def place(span: int) -> tuple:
        lane, instruction = spans[span][0], spans[span][7]
        rank, name, _ = data["lanes"][lane]
        return rank, int(name.split(" ")[2]), instruction

    arrows = layer["arrows"]
    return collections.Counter((place(arrows[at]), place(arrows[at + 1])) for at in range(0, len(arrows), ARROW))


def check_arrows(plan: str, data: dict, layer: dict, times: int) -> None:
    drawn = drawn_messages(data, layer)
    assert drawn == {message: times for message in expected_messages(plan)}, (plan, layer["name"])
