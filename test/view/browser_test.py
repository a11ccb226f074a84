#!/usr/bin/env python3
"""The page of `occl view` in a headless Chromium: each arrow where its message is, colours, hints, and how fast it is. From
the repository: test/view/browser_test.py OCCLC OCCL_RUN."""

import sys
import tempfile

from browser import Browser
from pages import Tools, data_of, expected_messages

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
# Of each instruction [rank, thread block, instruction, x of begin, x of end, y of the middle of its row, colour].
INSTRUCTIONS = """model.layers[0].shownSpans().filter(span => model.layers[0].instructionOf[span] >= 0).map(span => {
  const layer = model.layers[0], lane = layer.lane[span];
  return [model.lanes[lane].rank, Number(model.lanes[lane].name.split(" ")[2]), layer.instructionOf[span],
          picture.xOf(layer.begin[span]), picture.xOf(layer.end[span]), picture.yOf(lane, 0) + BAR / 2,
          colourOf(layer.texts[layer.nameOf[span]])];
})"""
PIXEL = """(([x, y]) => {
  const scale = devicePixelRatio, at = [Math.floor(x * scale), Math.floor(y * scale)];
  return Array.from(picture.context.getImageData(...at, 1, 1).data.slice(0, 3));
})"""
# The milliseconds from frame to frame while it moves in both directions.
FRAMES = """new Promise(done => {
  const times = [], step = now => {
    times.push(now);
    if (times.length > 60) return done((times[60] - times[0]) / 60);
    picture.scrollTo(picture.top + (times.length % 40 < 20 ? 12 : -12));
    picture.moveBy((picture.to - picture.from) / 200 * (times.length % 30 < 15 ? 1 : -1));
    redraw();
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


def expected_lines(browser: Browser, plan: str) -> list[tuple]:
    """From where the sender has ended, or begun if it is still at it, to where the receiver begins."""
    places = {tuple(place): rest for *place, begin, end, y, colour in browser.evaluate(INSTRUCTIONS)
              for rest in [(begin, end, y, colour)]}
    lines = []
    for sender, receiver in expected_messages(plan):
        begin, end, y, _ = places[sender]
        to, _, to_y, _ = places[receiver]
        lines.append((end if end <= to + 1e-6 else begin, y, to, to_y))
    return lines


def same(drawn: list, expected: list) -> bool:
    return len(drawn) == len(expected) and all(
        any(all(abs(a - b) < 0.01 for a, b in zip(line, other)) for other in drawn) for line in expected)


def open_page(browser: Browser, page: str) -> None:
    browser.events.clear()
    browser.open(page)
    assert not browser.complaints(), browser.complaints()


def test_arrows_and_colours(browser: Browser, tools: Tools) -> None:
    for name, *options in (("allreduce/ring", "-D", "ranks=4"), ("allreduce/double_binary_tree", "-D", "ranks=6"),
                           ("allreduce/all_pairs", "-D", "ranks=4", "--direct", "--max-thread-blocks=2")):
        plan = tools.compile(name, *options)
        open_page(browser, tools.view(plan, "--bytes", "16KiB"))
        drawn, expected = browser.evaluate(STROKED), expected_lines(browser, plan)
        assert expected and same(drawn, expected), (name, len(drawn), len(expected))
        # Pixels: arrows are dark on their way, instructions have their colours where no arrow covers them.
        dark = [min(sum(browser.evaluate(f"{PIXEL}([{x0 + (x1 - x0) * part + dx}, {y0 + (y1 - y0) * part + dy}])"))
                    for dx in (-1, 0, 1) for dy in (0, 1))
                for x0, y0, x1, y1 in expected[:12] for part in (0.3, 0.5)]
        assert all(value < 450 for value in dark), dark
        browser.evaluate("picture.model.layers[0].arrows.length = 0, picture.draw()")
        for *_, begin, end, y, colour in browser.evaluate(INSTRUCTIONS):
            if end - begin >= 3:
                pixel = browser.evaluate(f"{PIXEL}([{(begin + end) / 2}, {y}])")
                assert "#%02x%02x%02x" % tuple(pixel) == colour, (begin, end, y, colour, pixel)


def test_a_wrong_arrow_is_seen(browser: Browser, tools: Tools) -> None:
    plan = tools.compile("allreduce/ring", "-D", "ranks=4")
    page = tools.view(plan, "--bytes", "16KiB")
    data = data_of(page)
    old = '"arrows":[' + ",".join(map(str, data["layers"][0]["arrows"]))
    arrows = list(data["layers"][0]["arrows"])
    arrows[1], arrows[4] = arrows[4], arrows[1]
    with open(page, encoding="utf-8") as file:
        text = file.read()
    assert old in text
    with open(page, "w", encoding="utf-8") as file:
        file.write(text.replace(old, '"arrows":[' + ",".join(map(str, arrows))))
    open_page(browser, page)
    assert not same(browser.evaluate(STROKED), expected_lines(browser, plan))


def test_the_mouse(browser: Browser, tools: Tools) -> None:
    open_page(browser, tools.view(tools.compile("allreduce/ring", "-D", "ranks=4"), "--bytes", "16KiB"))
    rank, _, _, begin, end, y, _ = browser.evaluate(INSTRUCTIONS)[9]
    left, top = browser.evaluate("(({left, top}) => [left, top])(element('canvas').getBoundingClientRect())")
    browser.mouse(left + (begin + end) / 2, top + y)
    hint = browser.evaluate("element('hint').style.display + element('hint').textContent")
    assert hint.startswith(f"blockrank {rank}, thread block 0") and "ring.coll:" in hint, hint
    browser.mouse(left + 20, top + 500)
    assert browser.evaluate("element('hint').style.display") == "none"


def test_recorded_over_predicted(browser: Browser, tools: Tools) -> None:
    plan = tools.compile("allreduce/ring", "-D", "ranks=2")
    trace = tools.record(plan, "--count", "3000", "--iterations", "3")
    open_page(browser, tools.view(plan, "--trace", trace))
    shown = browser.evaluate("model.layers.map(layer => layer.shownSpans().length)")
    options = browser.evaluate("Array.from(element('invocation').options, one => one.value)")
    assert all(shown) and len(options) >= 3, (shown, options)
    browser.evaluate(f"element('invocation').value = {options[0]},"
                     "element('invocation').dispatchEvent(new Event('change'))")
    assert browser.evaluate("model.layers[1].shownSpans().every(span => "
                            f"model.layers[1].invocationOf[span] === {options[0]})")
    assert "measured" in browser.evaluate("element('panels').textContent")


def test_ranks_are_chosen(browser: Browser, tools: Tools) -> None:
    open_page(browser, tools.view(tools.compile("allreduce/ring", "-D", "ranks=8"), "--bytes", "16KiB"))
    browser.evaluate("element('ranks').value = '1, 3-4', element('ranks').dispatchEvent(new Event('input'))")
    assert browser.evaluate("picture.shown.map(lane => model.lanes[lane].rank)") == [1, 3, 4]
    lines = browser.evaluate(STROKED)
    assert len(lines) == 14, "from 3 to 4 in 2 (n - 1) steps"


def test_a_hundred_thousand_events(browser: Browser, tools: Tools) -> None:
    page = tools.view(tools.compile("allreduce/ring", "-D", "ranks=40"), "--bytes", "64MiB")
    open_page(browser, page)
    events = browser.evaluate("model.layers[0].count")
    assert "tiles" in browser.evaluate("element('panels').textContent")
    opened = browser.evaluate("performance.timing.loadEventEnd - performance.timing.navigationStart")
    assert events >= 100_000, events
    assert 0 < opened <= 2000, opened
    for share in (1, 0.1, 0.01):
        browser.evaluate(f"picture.fit(), picture.zoom({share}, 700)")
        before = browser.processor_seconds()
        elapsed = browser.evaluate(FRAMES)
        # On a machine that does other things, too, the time of processors counts: that of all of the browser.
        busy = (browser.processor_seconds() - before) * 1000 / 60
        print(f"  {events} events, opened in {opened} ms; of {share} of the time {elapsed:.1f} ms a frame, {busy:.1f} ms busy")
        assert min(elapsed, busy) <= 1000 / 30, (elapsed, busy)


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            print(name, flush=True)
            with tempfile.TemporaryDirectory() as folder, Browser() as browser:
                test(browser, Tools(sys.argv[1], sys.argv[2], folder))
