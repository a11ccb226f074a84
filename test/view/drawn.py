"""What a page draws, and what it should draw, from plan and data alone. A page is a Dom or a Browser."""

import json

from pages import data_of, expected_messages, spans_of

# The lines that a draw() strokes, as [x, y, x, y].
STROKED = """(() => {
  const lines = [], context = picture.context, real = {};
  for (const name of ["moveTo", "lineTo", "stroke"]) real[name] = context[name];
  let path = [];
  context.moveTo = (x, y) => { path = [x, y]; real.moveTo.call(context, x, y); };
  context.lineTo = (x, y) => { path.push(x, y); real.lineTo.call(context, x, y); };
  context.stroke = () => { lines.push(path); real.stroke.call(context); };
  picture.draw();
  Object.assign(context, real);
  return lines;
})()"""
# The rectangles that it fills, as [x, y, width, height, colour].
FILLED = """(() => {
  const boxes = [], context = picture.context, real = context.fillRect;
  context.fillRect = (...box) => { boxes.push([...box, context.fillStyle]); real.apply(context, box); };
  picture.draw();
  context.fillRect = real;
  return boxes;
})()"""
# The corner, what is above the lanes, the height of a row, what is below those of a lane and of a rank, and the width.
GEOMETRY = "[LABEL, TOP, BAR, GAP, RANK_GAP, picture.width]"


def boxes_of(page: object, data: dict, layer: int = 0, run: int = -1, is_shown=lambda rank: True) -> dict[tuple, tuple]:
    """Of each instruction, as (rank, thread block, instruction), of a run (-1: all): (x of begin, x of end, y of the middle of
    its row, name), when a page shows all of the time and is not scrolled."""
    label, top, bar, gap, rank_gap, width = page.evaluate(GEOMETRY)
    rows, y, before = {}, top, None
    for lane, (rank, _, _) in enumerate(data["lanes"]):
        if is_shown(rank):
            y += rank_gap if before not in (None, rank) else 0
            rows[lane], before = y + (layer + 0.5) * bar, rank
            y += bar * len(data["layers"]) + gap
    shown = [span for number, each in enumerate(data["layers"]) for span in spans_of(each) if number == 0 or run in (-1, span[6])]
    begin, end = min(span[1] for span in shown), max(span[1] + span[2] for span in shown)
    begin, end = begin - (end - begin) * 0.01, end + (end - begin) * 0.01

    def x(time: float) -> float:
        return label + (time - begin) * (width - label) / (end - begin)
    boxes = {}
    for lane, at, duration, name, _, _, invocation, instruction in spans_of(data["layers"][layer]):
        if lane in rows and instruction >= 0 and (layer == 0 or run in (-1, invocation)):
            rank, block, _ = data["lanes"][lane]
            boxes[rank, int(block.split(" ")[2]), instruction] = (
                x(at), x(at + duration), rows[lane], data["layers"][layer]["texts"][name])
    return boxes


def lines_between(plan: str, boxes: dict[tuple, tuple]) -> list[tuple]:
    """The arrows that belong there: from where the sender has ended, or begun if it is still at it, to where the receiver
    begins. Those of ranks that are not shown do not."""
    lines = []
    for sender, receiver in expected_messages(plan):
        if sender in boxes and receiver in boxes:
            (begin, end, y, _), (to, _, to_y, _) = boxes[sender], boxes[receiver]
            lines.append((end if end <= to + 1e-6 else begin, y, to, to_y))
    return lines


def same(drawn: list, expected: list) -> bool:
    def close(line: list, other: list) -> bool:
        return all(abs(a - b) < 0.01 for a, b in zip(line, other))
    left = list(expected)
    for line in drawn:
        found = next((other for other in left if close(line, other)), None)
        if found is None:
            return False
        left.remove(found)
    return not left


def draws_the_plan(page: object, path: str, plan: str, is_shown=lambda rank: True) -> bool:
    """Whether the arrows are the plan's, in a page of a plan alone."""
    expected = lines_between(plan, boxes_of(page, data_of(path), is_shown=is_shown))
    assert expected
    return same(page.evaluate(STROKED), expected)


def with_other_arrows(path: str) -> None:
    """Two arrows of the page begin where the other does."""
    arrows = data_of(path)["layers"][0]["arrows"]
    others = [arrows[3], *arrows[1:3], arrows[0], *arrows[4:]]
    assert arrows[0] != arrows[3]
    replace_once(path, '"arrows":' + json.dumps(arrows, separators=(",", ":")),
                 '"arrows":' + json.dumps(others, separators=(",", ":")))


def replace_once(path: str, old: str, new: str) -> None:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert text.count(old) == 1, old
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))
