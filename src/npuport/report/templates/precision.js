"use strict";
const data = JSON.parse(document.getElementById("data").textContent), calls = data.calls;
const PAGE = 200; // rows put on the page at a time: a browser lays out thousands slowly
const count = calls.m.length, body = document.querySelector("#calls tbody"), more = document.getElementById("more");
const search = document.getElementById("search"), everything = document.getElementById("everything");
const boxes = [...document.querySelectorAll(".tools input[type=checkbox]")];
const suspects = new Set([...document.querySelectorAll(".go")].map((one) => +one.dataset.call));
let matching = [], shown = 0, within = null, sorted = { key: "i", descending: false }, chosen = -1;

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

const number = (value) => value === null ? "–" : value === 0 ? "0" : value >= 10 && value < 1e6 ? Math.round(value).toLocaleString() : value >= 0.1 && value < 10 ? value.toFixed(1) : value.toExponential(1);

// 0 at the noise floor, 100 at a hundred times that, by the logarithm.
function heated(cell, times) {
  cell.textContent = times === null ? "–" : number(times);
  cell.classList.add("heat", ...(times === null ? ["none"] : []));
  if (times !== null) cell.style.setProperty("--heat", Math.round(Math.min(100, Math.max(0, Math.log10(Math.max(times, 1)) * 50))));
  return cell;
}

// The modules as a tree, in the order in which they first run.
const root = { name: "", path: "", children: new Map(), calls: 0, forward: null, backward: null, suspects: 0 };
const forward = calls.phases.indexOf("forward"), backward = calls.phases.indexOf("backward");
const nodes = calls.modules.map((path) => {
  const chain = [root];
  if (path) for (const name of path.split(".")) {
    const parent = chain.at(-1);
    if (!parent.children.has(name)) parent.children.set(name, { name, path: parent.path ? `${parent.path}.${name}` : name, children: new Map(), calls: 0, forward: null, backward: null, suspects: 0 });
    chain.push(parent.children.get(name));
  }
  return chain;
});
for (let at = 0; at < count; at++) {
  const times = calls.t[at], phase = calls.p[at] === forward ? "forward" : calls.p[at] === backward ? "backward" : null;
  for (const node of nodes[calls.m[at]]) {
    node.calls++;
    node.suspects += suspects.has(at);
    if (phase && times !== null && (node[phase] === null || times > node[phase])) node[phase] = times;
  }
}

function row(node, depth) {
  const line = element("div", "row"), name = element("div", "name");
  name.style.setProperty("--depth", depth);
  const toggle = element(node.children.size ? "button" : "span", "toggle", node.children.size ? "▸" : "");
  const label = element("button", "mono", node === root ? calls.classes[""] ?? data.words["no module"] : node.name);
  label.addEventListener("click", () => { within = node.path; filter(); document.getElementById("calls-head").scrollIntoView(); });
  name.append(toggle, label, ...(node.suspects ? [element("span", "tag refused", node.suspects)] : []));
  line.append(name, element("span", "soft", calls.classes[node.path] ?? ""), element("span", "number", node.calls.toLocaleString()), heated(element("span"), node.forward), heated(element("span"), node.backward));
  const holder = element("div");
  holder.append(line);
  let inside = null;
  const open = () => {
    if (inside === null) {
      inside = element("div");
      for (const child of node.children.values()) inside.append(row(child, depth + 1));
      holder.append(inside);
    } else inside.hidden = !inside.hidden;
    toggle.textContent = inside.hidden ? "▸" : "▾";
  };
  toggle.addEventListener("click", open);
  // Opened at first: the top, and whatever leads to a suspect.
  if (node.children.size && (depth === 0 || (node.suspects && depth < 6))) open();
  return holder;
}
const head = element("div", "row head");
head.append(...["", "", data.words.calls, data.words.forward, data.words.backward].map((word, place) => element("span", place > 1 ? "number" : "", word)));
document.getElementById("tree").append(head, row(root, 0));

const texts = (at) => `${calls.modules[calls.m[at]]} ${calls.operators[calls.o[at]]} ${calls.lines[calls.l[at]]}`.toLowerCase();
const values = { i: (at) => at, m: (at) => calls.modules[calls.m[at]], o: (at) => calls.operators[calls.o[at]], l: (at) => calls.lines[calls.l[at]], p: (at) => calls.phases[calls.p[at]], t: (at) => calls.t[at], e: (at) => calls.e[at], r: (at) => calls.r[at], a: (at) => calls.a[at] };

function append() {
  const part = document.createDocumentFragment(), last = Math.min(shown + PAGE, matching.length);
  for (; shown < last; shown++) {
    const at = matching[shown], line = element("tr", at === chosen ? "chosen" : "");
    line.append(element("td", "number", at), element("td", "mono", values.m(at)), element("td", "mono", values.o(at)), element("td", "soft", data.words[values.p(at)] ?? values.p(at)), heated(element("td", "number"), calls.t[at]), element("td", "number", number(calls.e[at])), element("td", "number", number(calls.r[at])), element("td", "number", number(calls.a[at])), element("td", "mono soft", values.l(at)));
    part.append(line);
  }
  body.append(part);
  more.hidden = shown >= matching.length;
}

function filter() {
  const wanted = new Set(boxes.filter((box) => box.checked).map((box) => calls.phases.indexOf(box.value)));
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean), value = values[sorted.key];
  matching = [];
  for (let at = 0; at < count; at++) {
    const path = calls.modules[calls.m[at]];
    if (!wanted.has(calls.p[at]) || (within && path !== within && !path.startsWith(`${within}.`))) continue;
    if (words.length && !words.every((word) => texts(at).includes(word))) continue;
    matching.push(at);
  }
  const sign = sorted.descending ? -1 : 1;
  if (sorted.key !== "i" || sorted.descending) matching.sort((a, b) => {
    const one = value(a), other = value(b);
    if (one === null || other === null) return (one === null) - (other === null) || a - b;
    return (typeof one === "string" ? one.localeCompare(other) : one - other) * sign || a - b;
  });
  everything.hidden = !within;
  everything.textContent = within ? `${within} ✕` : "";
  shown = 0;
  body.replaceChildren();
  document.getElementById("shown").textContent = matching.length.toLocaleString();
  append();
}

for (const button of document.querySelectorAll("#calls th button")) button.addEventListener("click", () => {
  const key = button.dataset.key, numeric = button.parentElement.classList.contains("number") && key !== "i";
  sorted = { key, descending: sorted.key === key ? !sorted.descending : numeric };
  for (const one of document.querySelectorAll("#calls th")) one.ariaSort = null;
  button.parentElement.ariaSort = sorted.descending ? "descending" : "ascending";
  filter();
});
for (const button of document.querySelectorAll(".go")) button.addEventListener("click", () => {
  chosen = +button.dataset.call;
  within = null; search.value = ""; sorted = { key: "i", descending: false };
  for (const box of boxes) box.checked = true;
  filter();
  while (shown <= matching.indexOf(chosen)) append();
  body.querySelector(".chosen")?.scrollIntoView({ block: "center" });
});
everything.addEventListener("click", () => { within = null; filter(); });
search.addEventListener("input", filter);
for (const box of boxes) box.addEventListener("change", filter);
more.addEventListener("click", append);
filter();
const save = document.getElementById("save");
save.href = URL.createObjectURL(new Blob([JSON.stringify(data.steps)], { type: "application/json" }));
