// The scripts of a page in a document that only remembers what they do with it: enough of the DOM for compiler/view/page. Each line of
// standard input is a JSON string: ["open", page] or ["evaluate", expression]; the answer is a line of JSON, [value] or {error}.
"use strict";
const fs = require("fs"), readline = require("readline"), vm = require("vm");

class FakeElement {
  constructor() {
    Object.assign(this, {style: {}, options: [], children: [], cells: [], listeners: {}, hidden: false, text: "", chosen: "",
                         offsetWidth: 200, offsetHeight: 60});
    this.classList = {toggle: () => {}};
  }
  get textContent() { return this.text + this.children.map(child => child.textContent).join(""); }
  set textContent(text) {
    this.text = String(text);
    this.children = [];
  }
  get value() { return this.chosen; }
  set value(value) { this.chosen = String(value); }
  add(option) { this.options.push(option); }
  append(...children) { this.children.push(...children); }
  replaceChildren() { this.textContent = ""; }
  appendNew() {
    this.children.push(new FakeElement());
    return this.children.at(-1);
  }
  insertRow() { return this.appendNew(); }
  insertCell() { return this.appendNew(); }
  addEventListener(type, listener) { (this.listeners[type] ||= []).push(listener); }
  dispatchEvent(event) {
    for (const listener of this.listeners[event.type] || []) listener(Object.assign(event, {target: this, preventDefault() {}}));
  }
}

class Canvas extends FakeElement {
  constructor() {
    super();
    Object.assign(this, {clientWidth: 1000, clientHeight: 600, width: 0, height: 0});
    // Whatever a script calls on the context is there, and does nothing.
    this.context = new Proxy({}, {get: (object, name) => object[name] ?? (() => {})});
  }
  getContext() { return this.context; }
}

class Event {
  constructor(type, fields) { Object.assign(this, {type}, fields); }
}

function open(page) {
  const text = fs.readFileSync(page, "utf8"), elements = {canvas: new Canvas()}, frames = [];
  const ids = new Set([...text.matchAll(/ id="(\w+)"/g)].map(match => match[1]));
  const [, data] = text.match(/<script type="application\/json" id="data">(.*?)<\/script>/s);
  const [, scripts] = text.match(/<script>\n(.*?)<\/script>/s);
  elements.data = new FakeElement();
  elements.data.textContent = data;
  const document = {
    getElementById: id => ids.has(id) ? elements[id] ||= new FakeElement() : null,
    createElement: () => new FakeElement(),
  };
  const context = vm.createContext({
    document, Event, innerWidth: 1000, innerHeight: 700,
    Option: class { constructor(text, value) { Object.assign(this, {text, value: String(value)}); } },
    ResizeObserver: class { observe() {} },
    requestAnimationFrame: frame => frames.push(frame),
  });
  context.window = context;
  vm.runInContext(scripts, context);
  return expression => {
    const value = vm.runInContext(expression, context);
    while (frames.length > 0) frames.shift()(0);
    return value;
  };
}

let evaluate;
readline.createInterface({input: process.stdin}).on("line", line => {
  const [command, text] = JSON.parse(line);
  let answer;
  try {
    if (command === "open") evaluate = open(text);
    answer = [command === "open" ? null : evaluate(text) ?? null];
  } catch (error) {
    answer = {error: String(error.stack)};
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
});
