"use strict";
const data = JSON.parse(document.getElementById("data").textContent), words = data.words;
const STEPS = 30, ROWS = 60; // put on the page at a time
const at = (id) => document.getElementById(id);
const parts = data.parts, partOf = new Map(parts.map((part) => [part.key, part]));
let rank = data.ranks[0], details = null;

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function ms(time) {
  if (time === null || time === undefined) return "";
  const value = time / 1e6, digits = value >= 100 ? 1 : value >= 1 ? 2 : 3;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
const fill = (sentence, values) => sentence.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const percent = (share) => `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
const swatch = (key) => { const made = element("i"); made.style.background = `var(--${key})`; return made; };
const stepName = (one) => one.step === null ? words.all : `${words.step} ${one.step}`;

function bar(name, lengths, duration, longest, chosen) {
  const row = element("button", "bar-row"), stack = element("span", "stack");
  row.type = "button";
  for (const part of parts) {
    const time = lengths[part.key];
    if (!time) continue;
    const piece = swatch(part.key);
    piece.style.width = `${time / longest * 100}%`;
    piece.title = `${part.name} ${ms(time)} ms, ${percent(time / duration)}`;
    stack.append(piece);
  }
  const label = element("span", "name", name);
  label.title = name;
  row.append(label, stack, element("span", "number", `${ms(duration)} ms`));
  row.addEventListener("click", chosen);
  return row;
}

// ------------------------------------------------------------------------------------------- ranks, tiles and steps
const longestRank = Math.max(1, ...data.ranks.map((one) => one.step_ns));
const rankRows = data.ranks.map((one) => bar(one.short, one.average?.parts ?? {}, one.step_ns, longestRank, () => show(one)));
at("ranks").append(...rankRows);

function tile(tone, name, value, detail) {
  const made = element("div", `tile ${tone}`);
  made.append(element("span", "soft", name), element("b", "", value), element("span", "detail", detail));
  return made;
}

function tiles() {
  const { parts: average, computing, overlapped: hidden, shortest, longest, steps } = rank.average, step = rank.step_ns || 1;
  const group = (name) => parts.filter((part) => part.group === name).reduce((sum, part) => sum + (average[part.key] ?? 0), 0);
  const idle = group("idle"), open = group("communication");
  const made = [tile("", words.average, `${ms(rank.step_ns)} ms`, steps > 1 ? `${ms(shortest)} – ${ms(longest)}` : details ? stepName(details.steps[0]) : "")];
  if (rank.device !== "cpu") {
    const idlest = parts.filter((part) => part.group === "idle" && average[part.key]).sort((a, b) => average[b.key] - average[a.key])[0];
    made.push(tile("good", words.computing, percent(computing / step), `${ms(computing)} ms`));
    if (open || hidden) made.push(tile(open / step > 0.1 ? "warn" : "good", words.communication, percent(open / step), `${ms(open)} ms${hidden ? ` · ${words.hidden} ${ms(hidden)}` : ""}`));
    made.push(tile(idle / step > 0.3 ? "bad" : idle / step > 0.1 ? "warn" : "good", words.idle, percent(idle / step), idlest ? `${idlest.name} ${ms(average[idlest.key])}` : ""));
  }
  if (rank.findings.length) made.push(tile("warn", words.together, `−${ms(rank.together)} ms`, fill(words.atMost, { share: percent(rank.together / step) })));
  at("tiles").replaceChildren(...made);
}

let stepsShown = 0;
function moreSteps() {
  const steps = details.steps, end = Math.min(stepsShown + STEPS, steps.length);
  for (; stepsShown < end; stepsShown++) {
    const place = stepsShown, one = steps[place];
    at("steps").append(bar(stepName(one), one.parts, one.duration, rank.average.longest || 1, () => {
      const found = details?.timelines.findIndex((line) => line.at === place) ?? -1;
      if (found < 0) return;
      chooseStep(found);
      at("of-timeline").scrollIntoView({ behavior: "smooth" });
    }));
  }
  at("more-steps").hidden = stepsShown >= steps.length;
  at("first-steps").hidden = stepsShown < steps.length || steps.length === rank.average.steps;
}
at("more-steps").addEventListener("click", moreSteps);

function legend() {
  const average = rank.average.parts;
  at("legend").replaceChildren(...parts.filter((part) => average[part.key]).map((part) => {
    const made = element("span");
    made.append(swatch(part.key), `${part.name} `, element("span", "soft", `${ms(average[part.key])} ms · ${percent(average[part.key] / rank.step_ns)}`));
    return made;
  }));
}

// ---------------------------------------------------------------------------------------------------- one step's time
const canvas = at("timeline"), AXIS = 22;
let line = null, lanes = [], from = 0, to = 1, dragged = null;
const gutter = () => canvas.clientWidth > 700 ? 230 : 0; // names stand beside their lanes where there is room
const rowHeight = () => gutter() ? 21 : 32;

function unpacked(packed) {
  const spans = new Float64Array(packed.length);
  let time = 0;
  for (let place = 0; place < packed.length; place += 2) {
    spans[place] = time + packed[place];
    spans[place + 1] = time = spans[place] + packed[place + 1];
  }
  return spans;
}

function chooseStep(place) {
  at("step").value = place;
  line = details.timelines[place];
  const step = details.steps[line.at];
  lanes = parts.filter((part) => line.parts[part.key]).map((part) => ({ name: part.name, key: part.key, spans: unpacked(line.parts[part.key]) }));
  const kernels = line.kernels.spans, spans = [], labels = [];
  for (let one = 0; one < kernels.length; one += 3) { labels.push(line.kernels.names[kernels[one]]); spans.push(kernels[one + 1], kernels[one + 1] + kernels[one + 2]); }
  if (labels.length) lanes.push({ name: words.kernels, key: "kernel", spans, labels });
  rank.findings.forEach((finding, number) => {
    if (line.findings[number].length) lanes.push({ name: `${words.finding} ${number + 1} · ${finding.code} ${finding.place}`, key: null, spans: unpacked(line.findings[number]) });
  });
  [...at("steps").children].forEach((row, number) => row.classList.toggle("here", number === line.at));
  at("at").textContent = line.bin ? fill(words.coarse, { time: `${(line.bin / 1e3).toFixed(1)} µs` }) : "";
  zoomTo(0, step.duration);
}

function zoomTo(first, last) {
  const whole = details.steps[line.at].duration, least = Math.min(200, whole), length = Math.min(Math.max(last - first, least), whole);
  from = Math.min(Math.max(first, 0), whole - length);
  to = from + length;
  draw();
}
const zoomBy = (factor, centre = (from + to) / 2) => zoomTo(centre - (centre - from) * factor, centre + (to - centre) * factor);

function colourOf(name) {
  const probe = element("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

function firstAfter(spans, time) { // the place of the first span that ends after a time
  let low = 0, high = spans.length / 2;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans[middle * 2 + 1] > time) high = middle; else low = middle + 1;
  }
  return low * 2;
}

function draw() {
  if (!line) return;
  const scale = window.devicePixelRatio || 1, beside = gutter(), row = rowHeight(), width = canvas.clientWidth - beside, height = AXIS + lanes.length * row;
  canvas.style.height = `${height}px`;
  canvas.width = canvas.clientWidth * scale;
  canvas.height = height * scale;
  const paper = canvas.getContext("2d"), x = (time) => beside + (time - from) / (to - from) * width;
  const text = colourOf("text"), soft = colourOf("soft"), grid = colourOf("line"), warn = colourOf("warn");
  paper.scale(scale, scale);
  paper.font = "12px system-ui, sans-serif";
  const rough = (to - from) / Math.max(width / 110, 1), power = 10 ** Math.floor(Math.log10(rough)), tick = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const unit = tick >= 1e6 ? ["ms", 1e6] : tick >= 1e3 ? ["µs", 1e3] : ["ns", 1];
  for (let time = Math.ceil(from / tick) * tick; time <= to; time += tick) {
    paper.fillStyle = grid;
    paper.fillRect(x(time), 14, 1, height);
    paper.fillStyle = soft;
    const label = `${+(time / unit[1]).toFixed(2)} ${unit[0]}`;
    if (x(time) + paper.measureText(label).width < beside + width) paper.fillText(label, x(time) + 3, 11);
  }
  lanes.forEach((lane, number) => {
    const top = AXIS + number * row, bars = beside ? top + 4 : top + 14;
    paper.fillStyle = lane.key ? text : warn;
    paper.fillText(lane.name, 2, beside ? top + 15 : top + 11, (beside || width) - 10);
    const colour = lane.key ? colourOf(lane.key) : warn;
    paper.fillStyle = colour;
    const first = lane.labels ? 0 : firstAfter(lane.spans, from); // kernels of several streams overlap: all are looked at
    for (let place = first; place < lane.spans.length && lane.spans[place] < to; place += 2) {
      if (lane.spans[place + 1] < from) continue;
      const left = Math.max(x(lane.spans[place]), beside), right = Math.min(x(lane.spans[place + 1]), beside + width);
      paper.fillRect(left, lane.key ? bars : bars + 4, Math.max(right - left, 0.7), lane.key ? 14 : 6);
      if (!lane.labels || right - left < 30) continue;
      paper.fillStyle = text;
      const letters = Math.floor((right - left - 6) / 6.5), label = lane.labels[place / 2];
      paper.fillText(label.length > letters ? `${label.slice(0, letters - 1)}…` : label, left + 3, bars + 11, right - left - 4);
      paper.fillStyle = colour;
    }
  });
  if (dragged && dragged.now !== dragged.start) {
    paper.fillStyle = soft;
    paper.globalAlpha = 0.25;
    paper.fillRect(Math.min(dragged.start, dragged.now), 0, Math.abs(dragged.now - dragged.start), height);
  }
}

const timeAt = (x) => from + Math.max(x - gutter(), 0) / (canvas.clientWidth - gutter()) * (to - from);
canvas.addEventListener("pointerdown", (event) => { dragged = { start: event.offsetX, now: event.offsetX }; canvas.setPointerCapture(event.pointerId); });
canvas.addEventListener("pointermove", (event) => {
  if (!line) return;
  if (dragged) { dragged.now = event.offsetX; draw(); }
  const lane = lanes[Math.floor((event.offsetY - AXIS) / rowHeight())], time = timeAt(event.offsetX);
  let place = lane && !lane.labels ? firstAfter(lane.spans, time) : 0;
  if (lane?.labels) while (place < lane.spans.length && !(lane.spans[place] <= time && time < lane.spans[place + 1])) place += 2;
  const inside = lane && place < lane.spans.length && lane.spans[place] <= time;
  at("at").textContent = inside ? `${lane.labels?.[place / 2] ?? lane.name} · ${ms(lane.spans[place])} ms + ${ms(lane.spans[place + 1] - lane.spans[place])} ms` : `${ms(time)} ms`;
});
canvas.addEventListener("pointerup", () => {
  if (!dragged) return;
  const [first, last] = [dragged.start, dragged.now].sort((a, b) => a - b);
  dragged = null;
  if (last - first > 4) zoomTo(timeAt(first), timeAt(last)); else draw();
});
canvas.addEventListener("pointercancel", () => { dragged = null; draw(); });
canvas.addEventListener("dblclick", () => zoomTo(0, details.steps[line.at].duration));
canvas.addEventListener("wheel", (event) => {
  if (!event.ctrlKey) return;
  event.preventDefault();
  zoomBy(event.deltaY > 0 ? 1.25 : 0.8, timeAt(event.offsetX));
}, { passive: false });
canvas.addEventListener("keydown", (event) => {
  const shift = { ArrowLeft: -0.2, ArrowRight: 0.2 }[event.key], factor = { "+": 0.5, "=": 0.5, "-": 2 }[event.key];
  if (shift) zoomTo(from + (to - from) * shift, to + (to - from) * shift);
  if (factor) zoomBy(factor);
  if (shift || factor) event.preventDefault();
});
for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => +button.dataset.zoom ? zoomBy(+button.dataset.zoom) : zoomTo(0, details.steps[line.at].duration));
at("step").addEventListener("change", () => chooseStep(+at("step").value));

// ------------------------------------------------------------------------------------------------------- findings
function inTimeline(number) {
  const place = [line.at, ...details.timelines.map((one) => one.at)].map((step) => details.timelines.findIndex((one) => one.at === step)).find((one) => details.timelines[one].findings[number].length);
  if (place === undefined) return null;
  return () => {
    chooseStep(place);
    const spans = unpacked(line.findings[number]);
    let longest = 0;
    for (let one = 0; one < spans.length; one += 2) if (spans[one + 1] - spans[one] > spans[longest + 1] - spans[longest]) longest = one;
    const margin = Math.max((spans[longest + 1] - spans[longest]) * 0.6, rank.step_ns / 200);
    zoomTo(spans[longest] - margin, spans[longest + 1] + margin);
    at("of-timeline").scrollIntoView({ behavior: "smooth" });
  };
}

function finding(one, number) {
  const made = element("article", `advice ${one.share >= 0.1 ? "high" : one.share >= 0.03 ? "medium" : ""}`), head = element("div", "head");
  head.append(element("b", "", number + 1), element("span", "gain", one.saved || `${fill(words.gain, { time: ms(one.gain_ns) })} · ${percent(one.share)}`), element("span", "mono", one.place), element("span", "soft", `${one.code} · ${fill(words.costs, { time: ms(one.cost_ns) })} · ${words.confidence}: ${words[one.confidence]}`));
  const jump = details && details.timelines.length ? inTimeline(number) : null;
  if (jump) {
    const button = element("button", "plain", words.show);
    button.type = "button";
    button.addEventListener("click", jump);
    head.append(button);
  }
  made.append(head, element("div", "seen", one.seen), element("div", "fix", one.fix), element("div", "soft", `${words.check}: ${one.check}${one.basis ? ` [${one.basis}]` : ""}`));
  const others = rank.overlapping.flatMap(([a, b]) => a === number ? [b + 1] : b === number ? [a + 1] : []);
  if (others.length) made.append(element("div", "overlap", fill(words.same, { others: others.join(", ") })));
  const events = details?.evidence[number] ?? [];
  if (events.length) {
    const more = element("details"), list = element("ul");
    for (const [id, name, step, start, length] of events) list.append(element("li", "mono", `${one.evidence_table}[${id}] ${name} · ${step === null ? "" : `${words.step} ${step}, `}${start === null ? "" : `${ms(start)} ms + `}${ms(length)} ms`));
    more.append(element("summary", "", `${words.evidence} (${one.events.toLocaleString()})`), list);
    if (one.line && one.line !== one.place) more.append(element("div", "mono soft", one.line));
    made.append(more);
  }
  return made;
}

// ---------------------------------------------------------------------------------------------------------- frames
let flame = null, ends = [], parents = [], top_ = 0, measure = "device";
function frames() {
  flame = details.flame;
  const count = flame.name.length, open = [];
  ends = new Array(count).fill(count);
  parents = new Array(count).fill(-1);
  for (let place = 0; place < count; place++) {
    while (open.length && flame.depth[open.at(-1)] >= flame.depth[place]) ends[open.pop()] = place;
    parents[place] = open.at(-1) ?? -1;
    open.push(place);
  }
  measure = flame.device[0] ? "device" : "host";
  for (const radio of document.querySelectorAll("[name=measure]")) { radio.checked = radio.value === measure; radio.disabled = !flame[radio.value][0]; }
  top_ = 0;
  drawFlame();
}

const frameName = (place) => place ? (flame.kind[place] === "section" ? words[flame.names[flame.name[place]]] : flame.names[flame.name[place]]) : words.whole;
function describe(place) {
  const count = flame.count[place];
  at("frame").textContent = `${frameName(place)}${count ? ` · ${count} ${words.count}` : ""} · ${words.device} ${ms(flame.device[place])} ms · ${words.host} ${ms(flame.host[place])} ms · ${percent(flame[measure][place] / (flame[measure][0] || 1))}`;
}

function drawFlame() {
  const holder = at("flame"), width = holder.clientWidth, wanted = at("find").value.toLowerCase(), made = [];
  const times = flame[measure];
  let deepest = 0;
  const put = (place, left, size, above) => {
    const name = frameName(place), one = element("button", `${flame.kind[place]}${above ? " above" : ""}${wanted && name.toLowerCase().includes(wanted) ? " found" : ""}`, size > 24 ? name : "");
    one.type = "button";
    one.style.cssText = `left:${left}px;width:${size}px;top:${flame.depth[place] * 21}px`;
    one.addEventListener("click", () => { top_ = place; drawFlame(); describe(place); });
    for (const kind of ["pointerenter", "focus"]) one.addEventListener(kind, () => describe(place));
    made.push(one);
    deepest = Math.max(deepest, flame.depth[place]);
  };
  for (let place = parents[top_]; place >= 0; place = parents[place]) put(place, 0, width, true);
  const lay = (place, left, size) => {
    put(place, left, size, false);
    for (let child = place + 1; child < ends[place]; child = ends[child]) {
      const share = times[place] ? Math.min(times[child] / times[place], 1) * size : 0;
      if (share >= 2) lay(child, left, share);
      left += share;
    }
  };
  lay(top_, 0, width);
  holder.style.height = `${(deepest + 1) * 21}px`;
  holder.replaceChildren(...made);
}
for (const radio of document.querySelectorAll("[name=measure]")) radio.addEventListener("change", () => { measure = radio.value; drawFlame(); describe(top_); });
at("find").addEventListener("input", drawFlame);

// ---------------------------------------------------------------------------------------------------------- tables
let table = "kernels", sorted = { key: "share", descending: true }, matching = [], rowsShown = 0;
const body = document.querySelector("#table tbody");
const costOf = (row) => table === "kernels" ? row[3] : details.flame.device[0] ? row[3] : row[2];

function moreRows() {
  const all = details[table].reduce((sum, row) => sum + costOf(row), 0) || 1, end = Math.min(rowsShown + ROWS, matching.length), part = document.createDocumentFragment();
  for (; rowsShown < end; rowsShown++) {
    const row = matching[rowsShown], made = element("tr"), share = element("td", "number bar", percent(costOf(row) / all));
    share.style.setProperty("--share", `${costOf(row) / all * 100}%`);
    const count = (value) => element("td", "number", value.toLocaleString("en"));
    made.append(element("td", "mono", row[0]));
    if (table === "kernels") made.append(element("td", "soft", row[1]), count(row[2]), element("td", "number", ms(row[3])), share, element("td", "number", ms(row[4])));
    else made.append(count(row[1]), element("td", "number", ms(row[2])), element("td", "number", ms(row[3])), share);
    part.append(made);
  }
  body.append(part);
  at("more-rows").hidden = rowsShown >= matching.length;
}

function fillTable() {
  const wanted = at("search").value.toLowerCase().split(/\s+/).filter(Boolean), key = sorted.key, value = (row) => key === "share" ? costOf(row) : row[+key], sign = sorted.descending ? -1 : 1;
  matching = details[table].filter((row) => wanted.every((word) => `${row[0]} ${row[1]}`.toLowerCase().includes(word)));
  matching.sort((a, b) => (typeof value(a) === "string" ? value(a).localeCompare(value(b)) : value(a) - value(b)) * sign);
  at("table").className = table;
  at("table").classList.toggle("no-core", table === "kernels" && !details.kernels.some((row) => row[1]));
  for (const button of document.querySelectorAll("#table th button")) button.parentElement.ariaSort = button.dataset.key === key && button.closest("thead").classList.contains(table) ? (sorted.descending ? "descending" : "ascending") : null;
  at("shown").textContent = matching.length.toLocaleString();
  rowsShown = 0;
  body.replaceChildren();
  moreRows();
}
for (const button of document.querySelectorAll("#table th button")) button.addEventListener("click", () => {
  const key = button.dataset.key, numeric = button.parentElement.classList.contains("number");
  sorted = { key, descending: sorted.key === key ? !sorted.descending : numeric };
  fillTable();
});
for (const radio of document.querySelectorAll("[name=table]")) radio.addEventListener("change", () => { table = radio.value; sorted = { key: "share", descending: true }; fillTable(); });
at("search").addEventListener("input", fillTable);
at("more-rows").addEventListener("click", moreRows);

function communication() {
  at("of-communication").hidden = !details?.communication.length;
  at("communication").replaceChildren(...(details?.communication ?? []).map((row) => {
    const made = element("tr");
    made.append(element("td", "mono", row[0]), element("td", "soft", row[1]), element("td", "number", row[2].toLocaleString("en")), ...row.slice(3).map((time) => element("td", "number", ms(time))));
    return made;
  }));
}

// ---------------------------------------------------------------------------------------------------------- memory
function size(bytes) {
  if (bytes === null) return "–";
  return bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(2)} GiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

function curve(one) {
  const WIDTH = 600, HEIGHT = 120, most = Math.max(one.peak ?? 0, one.peak_reserved ?? 0), length = one.length || 1;
  const path = (values) => {
    let made = "", before = null;
    one.time.forEach((time, place) => {
      if (values[place] === null) return;
      const x = (time / length * WIDTH).toFixed(1), y = (HEIGHT - values[place] / most * (HEIGHT - 6)).toFixed(1);
      made += before === null ? `M${x} ${y}` : `H${x}V${y}`;
      before = x;
    });
    return before === null ? "" : `${made}h2`; // nothing is known after the last record
  };
  const made = element("div", "card"), head = element("div"), picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  head.append(element("b", "", words[one.component] ?? one.component), element("span", "soft", one.device === null ? "" : ` · ${words.device} ${one.device}`));
  const key = element("div", "soft");
  if (one.peak) key.append(element("i", "swatch allocated"), `${words.allocated}, ${words.peak} ${size(one.peak)} `);
  if (one.peak_reserved) key.append(element("i", "swatch reserved"), `${words.reserved}, ${words.peak} ${size(one.peak_reserved)}`);
  picture.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  picture.setAttribute("preserveAspectRatio", "none");
  for (const [kind, values] of [["area", one.allocated], ["line", one.reserved]]) {
    const outline = path(values);
    if (!outline) continue;
    const shape = document.createElementNS("http://www.w3.org/2000/svg", "path");
    shape.setAttribute("class", kind);
    shape.setAttribute("d", kind === "area" ? `${outline}V${HEIGHT}H${outline.slice(1, outline.indexOf(" "))}Z` : outline);
    picture.append(shape);
  }
  const limits = element("div", "ends soft");
  limits.append(element("span", "", "0 ms"), element("span", "", `${ms(length)} ms`));
  made.append(head, key, picture, limits);
  return made;
}

function held() {
  at("of-held").hidden = !details.held.length;
  at("held").replaceChildren(...details.held.map(([bytes, pieces, operator, module, place]) => {
    const made = element("tr"), where = element("td", "mono soft", place.split("/").at(-1));
    where.title = place;
    made.append(element("td", "number", size(bytes)), element("td", "number", pieces.toLocaleString("en")), element("td", "mono", operator), element("td", "mono", module), where);
    return made;
  }));
}

// ------------------------------------------------------------------------------------------------------- the whole
function show(one) {
  rank = one;
  details = one.details;
  rankRows.forEach((row, place) => row.classList.toggle("here", data.ranks[place] === one));
  at("about").replaceChildren(...[one.title, ...one.notes, details ? "" : words.without].filter(Boolean).map((note) => element("div", "", note)));
  for (const name of ["timeline", "flame", "table", "memory"]) at(`of-${name}`).hidden = !details;
  at("steps").replaceChildren();
  stepsShown = 0;
  line = null;
  at("more-steps").hidden = at("first-steps").hidden = true;
  if (one.average) { tiles(); legend(); if (details) moreSteps(); } else for (const id of ["tiles", "legend"]) at(id).replaceChildren();
  if (details) {
    at("step").replaceChildren(...details.timelines.map((timeline, place) => {
      const option = element("option", "", `${stepName(details.steps[timeline.at])} · ${ms(details.steps[timeline.at].duration)} ms`);
      option.value = place;
      return option;
    }));
    at("of-timeline").hidden = !details.timelines.length;
    if (details.timelines.length) chooseStep(0);
    at("of-flame").hidden = details.flame.name.length < 2;
    if (details.flame.name.length > 1) { frames(); describe(0); }
    table = details.kernels.length ? "kernels" : "operators";
    sorted = { key: "share", descending: true };
    for (const radio of document.querySelectorAll("[name=table]")) { radio.checked = radio.value === table; radio.disabled = !details[radio.value].length; }
    at("of-table").hidden = !details[table].length;
    fillTable();
    at("of-memory").hidden = !details.memory.length;
    at("memory").replaceChildren(...details.memory.map(curve));
    held();
  }
  communication();
  at("together").textContent = one.findings.length ? [`${words.together}: ${fill(words.gain, { time: ms(one.together) })}`, fill(words.atMost, { share: percent(one.together / (one.step_ns || 1)) }), one.hidden ? fill(words.smaller, { number: one.hidden }) : ""].filter(Boolean).join(" · ") : words.none;
  at("findings").replaceChildren(...one.findings.map(finding));
}
if (data.ranks.length) show(rank);
window.addEventListener("resize", () => { draw(); if (flame && !at("of-flame").hidden) drawFlame(); });
const save = at("save");
save.href = URL.createObjectURL(new Blob([JSON.stringify(data.ranks)], { type: "application/json" }));
