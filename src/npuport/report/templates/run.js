"use strict";
// A click on a head sorts by that column: numbers from the largest, words from A.
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.parentElement, body = head.closest("table").tBodies[0];
    const column = head.cellIndex, numeric = head.classList.contains("number");
    const descending = head.ariaSort ? head.ariaSort === "ascending" : numeric;
    for (const other of head.parentElement.cells) other.ariaSort = null;
    head.ariaSort = descending ? "descending" : "ascending";
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
    const compare = numeric ? (a, b) => key(a) - key(b) : (a, b) => key(a).localeCompare(key(b));
    const rows = [...body.rows].sort(compare);
    body.append(...(descending ? rows.reverse() : rows));
  });
}
// The tools above a table show the rows of the chosen kinds that hold every word.
for (const tools of document.querySelectorAll(".tools[data-table]")) {
  const search = tools.querySelector("input[type=search]"), boxes = [...tools.querySelectorAll("input[type=checkbox]")];
  const rows = document.querySelectorAll(`#${tools.dataset.table} tbody tr`);
  const filter = () => {
    const wanted = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !(wanted.has(row.dataset.status) && words.every((word) => text.includes(word)));
      count += !row.hidden;
    }
    tools.querySelector(".shown").textContent = count;
  };
  search.addEventListener("input", filter);
  for (const box of boxes) box.addEventListener("change", filter);
}
const save = document.getElementById("save");
save.href = URL.createObjectURL(new Blob([document.getElementById("data").textContent], { type: "application/json" }));
