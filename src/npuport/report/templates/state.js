"use strict";
const data = JSON.parse(document.getElementById("data").textContent), words = data.words;
const NOT_FINITE = 254, MISSING = 255, ROWS = 100;

// From dark blue over green to yellow: lightness grows, also for eyes that see few colours.
const stops = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
function colour(code) {
  if (code === NOT_FINITE) return [214, 51, 108, 255];
  if (code === MISSING) return [0, 0, 0, 0];
  const place = code / 250 * (stops.length - 1), at = Math.min(Math.floor(place), stops.length - 2);
  return [...stops[at].map((from, i) => from + (stops[at + 1][i] - from) * (place - at)), 255];
}
function paint(canvas, codes) {
  const image = new ImageData(codes.length, 1);
  codes.forEach((code, at) => image.data.set(colour(code), 4 * at));
  [canvas.width, canvas.height] = [codes.length, 1];
  canvas.getContext("2d").putImageData(image, 0, 0);
}
function number(measure, code) {
  if (code === NOT_FINITE) return words["not finite"];
  if (code === MISSING) return words.missing;
  const place = measure.low + code / 250 * (measure.high - measure.low);
  return String(Number((measure.log ? 10 ** place : place).toPrecision(2)));
}
function fill(text, values) { return text.replace(/\{(\w+)\}/g, (_, key) => values[key]); }

const maps = data.maps.map((map, index) => {
  const on = (selector) => document.querySelector(`${selector}[data-map="${index}"]`);
  const table = on("table"), body = table.tBodies[0], search = on("input"), more = on(".more"), tools = search.parentElement;
  const alerts = new Map(data.alerts.map((one) => [one.layer, one]));
  const decoded = map.measures.map((one) => Uint8Array.from(atob(one.codes), (c) => c.charCodeAt(0)));
  let chosen = 0, found = [], shown = 0;

  function row(layer) {
    const name = map.layers[layer], line = body.insertRow(), width = map.bins.length;
    const codes = decoded[chosen].subarray(layer * width, (layer + 1) * width), canvas = document.createElement("canvas");
    const first = line.insertCell();
    first.textContent = name;
    first.className = "mono";
    if (alerts.has(name)) { line.className = "alert"; first.title = alerts.get(name).said; }
    const time = line.insertCell();
    time.className = "time";
    time.append(canvas);
    paint(canvas, codes);
    canvas.addEventListener("mousemove", (event) => {
      const at = Math.min(width - 1, Math.floor(event.offsetX / canvas.clientWidth * width)), [from, to] = map.bins[at];
      const when = from === to ? fill(words.step, { step: from }) : fill(words.steps, { first: from, last: to });
      canvas.title = `${when}: ${number(map.measures[chosen], codes[at])}`;
    });
    for (const text of map.ends[layer]) {
      const cell = line.insertCell();
      cell.className = "number";
      cell.textContent = text;
    }
  }
  function append() {
    const end = Math.min(shown + ROWS, found.length);
    while (shown < end) row(found[shown++]);
    more.hidden = shown >= found.length;
  }
  function show() {
    const wanted = search.value.trim().toLowerCase(), measure = map.measures[chosen];
    found = map.layers.map((_, at) => at).filter((at) => map.layers[at].toLowerCase().includes(wanted));
    shown = 0;
    body.replaceChildren();
    tools.querySelector(".low").textContent = number(measure, 0);
    tools.querySelector(".high").textContent = number(measure, 250);
    append();
  }
  map.measures.forEach((measure, at) => {
    const label = document.createElement("label"), choice = document.createElement("input");
    choice.type = "radio";
    choice.name = `measure${index}`;
    choice.checked = at === 0;
    choice.addEventListener("change", () => { chosen = at; show(); });
    label.append(choice, ` ${words[measure.name]}`);
    on(".choices").append(label);
  });
  paint(tools.querySelector(".scale"), Uint8Array.from({ length: 251 }, (_, at) => at));
  search.addEventListener("input", show);
  more.addEventListener("click", append);
  show();
  return { search, show, table };
});
for (const button of document.querySelectorAll("button.layer")) button.addEventListener("click", () => {
  for (const map of maps) { map.search.value = button.dataset.layer; map.show(); }
  maps[0].table.scrollIntoView({ block: "center" });
});
