"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const PAGE = 200; // findings put on the page at a time: a browser lays out thousands slowly
const list = document.getElementById("findings"), more = document.getElementById("more");
const search = document.getElementById("search"), rule = document.getElementById("rule");
const boxes = [...document.querySelectorAll(".filters input[type=checkbox]")];
const texts = data.findings.map((one) => [data.files[one.file], one.code, data.rules[one.code].name, one.message, one.before, ...one.after].join("\n").toLowerCase());
let matching = [], shown = 0;

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// The part in which two lines differ is marked in each.
function marked(className, text, other) {
  const block = element("pre", className);
  let start = 0, end = 0;
  while (start < Math.min(text.length, other.length) && text[start] === other[start]) start++;
  while (end < Math.min(text.length, other.length) - start && text.at(-1 - end) === other.at(-1 - end)) end++;
  const middle = text.slice(start, text.length - end);
  block.append(text.slice(0, start), ...(middle ? [element("mark", "", middle)] : []), text.slice(text.length - end));
  return block;
}

function card(one) {
  const box = element("article", `finding ${one.group.replaceAll(" ", "-")}`);
  const head = element("div", "head");
  head.append(element("b", "mono", one.cell === null ? `${one.line}` : `[${one.cell}] ${one.line}`), element("span", "mono", one.code), element("span", "", data.rules[one.code].name));
  head.append(element("span", "tag", data.words[one.group]), element("span", "soft", data.words[one.fix]));
  box.append(head, element("div", "message", one.message));
  if (one.after.length) {
    const sides = element("div", "sides");
    const after = one.after.join("\n");
    sides.append(marked("before", one.before, after), marked("after", after, one.before));
    box.append(sides);
  } else if (one.before.trim()) {
    const single = element("div", "one");
    single.append(element("pre", "", one.before));
    box.append(single);
  }
  if (one.basis) box.append(element("div", "soft", `[${one.basis}]`));
  return box;
}

function append() {
  const part = document.createDocumentFragment();
  const last = Math.min(shown + PAGE, matching.length);
  for (; shown < last; shown++) {
    const one = data.findings[matching[shown]];
    if (shown === 0 || one.file !== data.findings[matching[shown - 1]].file) {
      const name = element("h3", "file mono", data.files[one.file]);
      part.append(name);
    }
    part.append(card(one));
  }
  list.append(part);
  more.hidden = shown >= matching.length;
}

function filter() {
  const wanted = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  matching = [];
  data.findings.forEach((one, index) => {
    const kept = wanted.has(`group:${one.group}`) && wanted.has(`fix:${one.fix}`) && (!rule.value || rule.value === one.code);
    if (kept && words.every((word) => texts[index].includes(word))) matching.push(index);
  });
  shown = 0;
  list.replaceChildren();
  document.getElementById("shown").textContent = matching.length.toLocaleString();
  append();
}

search.addEventListener("input", filter);
rule.addEventListener("change", filter);
for (const box of boxes) box.addEventListener("change", filter);
more.addEventListener("click", append);
filter();
