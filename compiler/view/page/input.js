// Mouse, keys and fields.

const model = new Model(JSON.parse(document.getElementById("data").textContent));
const element = id => document.getElementById(id);
const picture = new Picture(model, element("canvas"));
let isAsked = false;

function draw() {
  isAsked = false;
  picture.draw();
  element("note").textContent =
    picture.hidden ? `${picture.hidden} messages are not drawn: zoom in, or choose ranks` : "";
}
function redraw() {
  if (!isAsked) requestAnimationFrame(draw);
  isAsked = true;
}

/** "0-3,7" as a function of a rank; all for "". */
function ranksOf(text) {
  const ranges = text.split(",").map(part => part.trim().match(/^(\d+)(?:\s*-\s*(\d+))?$/))
                     .filter(Boolean).map(([, low, high]) => [Number(low), Number(high ?? low)]);
  return rank => ranges.length === 0 || ranges.some(([low, high]) => low <= rank && rank <= high);
}

function hover(event) {
  picture.hovered = picture.at(event.offsetX, event.offsetY);
  const hint = element("hint");
  hint.style.display = picture.hovered ? "block" : "none";
  if (picture.hovered) {
    hint.textContent = describe(model, picture.hovered);
    const {offsetWidth: width, offsetHeight: height} = hint;
    hint.style.left = `${Math.max(0, Math.min(event.clientX + 14, innerWidth - width - 4))}px`;
    hint.style.top = `${Math.max(0, Math.min(event.clientY + 14, innerHeight - height - 4))}px`;
  }
  redraw();
}

function addMouse(canvas) {
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    if (event.ctrlKey) picture.zoom(1.2 ** (event.deltaY / 50), event.offsetX);
    else {
      const across = event.shiftKey ? event.deltaY : event.deltaX;
      picture.moveBy(picture.timeAt(across) - picture.timeAt(0));
      if (!event.shiftKey) picture.scrollTo(picture.top + event.deltaY);
    }
    redraw();
  }, {passive: false});
  canvas.addEventListener("pointermove", event => {
    if (event.buttons & 1) {
      picture.moveBy(picture.timeAt(-event.movementX) - picture.timeAt(0));
      picture.scrollTo(picture.top - event.movementY);
    }
    hover(event);
  });
  canvas.addEventListener("pointerdown", event => canvas.setPointerCapture(event.pointerId));
  canvas.addEventListener("pointerleave", () => {
    picture.hovered = null;
    element("hint").style.display = "none";
    redraw();
  });
}

function addKeys(canvas) {
  const steps = {w: () => picture.zoom(0.8, (LABEL + picture.width) / 2),
                 s: () => picture.zoom(1.25, (LABEL + picture.width) / 2),
                 a: () => picture.moveBy((picture.from - picture.to) / 10),
                 d: () => picture.moveBy((picture.to - picture.from) / 10)};
  canvas.addEventListener("keydown", event => {
    steps[event.key]?.();
    redraw();
  });
}

/** Of a recorded layer over a predicted one a single invocation is shown. */
function addInvocations() {
  if (model.layers.length < 2) return;
  const layer = model.layers[1], field = element("invocation"), {median, all} = layer.medianInvocation();
  for (const invocation of all) field.add(new Option(layer.invocations[invocation], invocation));
  const choose = () => {
    layer.select(Number(field.value));
    picture.fit();
    fillPanels(element("panels"), model);
    redraw();
  };
  field.value = median;
  field.addEventListener("change", choose);
  element("runs").hidden = false;
  choose();
}

element("title").textContent = document.title = model.title;
addMouse(picture.canvas);
addKeys(picture.canvas);
element("fit").addEventListener("click", () => { picture.fit(); redraw(); });
element("more").addEventListener("click", () => { element("panels").classList.toggle("closed"); redraw(); });
element("ranks").addEventListener("input", event => {
  picture.showRanks(ranksOf(event.target.value));
  picture.scrollTo(0);
  redraw();
});
new ResizeObserver(redraw).observe(element("picture"));
fillPanels(element("panels"), model);
addInvocations();
draw();
