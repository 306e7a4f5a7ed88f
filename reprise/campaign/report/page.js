"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const numeric = head.classList.contains("n");
      const was = head.getAttribute("aria-sort");
      const down = was ? was === "ascending" : numeric;
      const value = (row) => {
        const cell = row.cells[column];
        const text = cell.dataset.value ?? cell.textContent;
        return numeric ? Number(text) : text.toLowerCase();
      };
      const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
      const rows = [...body.rows].sort((a, b) => (down ? -1 : 1) * order(value(a), value(b)));
      table.querySelectorAll("th[aria-sort]").forEach((th) => th.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...rows);
    });
  });
}
const filters = document.querySelector(".filters");
if (filters) {
  const text = filters.querySelector("input");
  const kind = filters.querySelector("select");
  const said = filters.querySelector("output");
  const rows = [...document.querySelectorAll("#defects tbody tr")];
  const content = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const filter = () => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const fits =
        (kind.value === "all" || row.dataset.kind === kind.value) &&
        words.every((word) => content.get(row).includes(word));
      row.hidden = !fits;
      const article = document.getElementById(row.dataset.id);
      if (article) article.hidden = !fits;
      shown += fits;
    }
    said.textContent = shown === rows.length ? "" : `${shown} of ${rows.length}`;
  };
  text.addEventListener("input", filter);
  kind.addEventListener("change", filter);
  filters.hidden = false;
}
for (const place of document.querySelectorAll("[data-copies]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const source = document.getElementById(place.dataset.copies);
    let done = true;
    try {
      await navigator.clipboard.writeText(source.textContent);
    } catch {
      const details = source.closest("details");
      const open = details ? details.open : true;
      if (details) details.open = true;
      getSelection().selectAllChildren(source);
      done = document.execCommand("copy");
      if (done) {
        getSelection().removeAllRanges();
        if (details) details.open = open;
      }
    }
    button.textContent = done ? "Copied" : "Press Ctrl+C";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  place.append(button);
}
for (const drawing of document.querySelectorAll(".drawing")) {
  const hot = drawing.querySelector(".op.hot");
  if (hot) {
    const middle = (e) => (({ left, right, top, bottom }) => [(left + right) / 2, (top + bottom) / 2])(e.getBoundingClientRect());
    const [x, y] = middle(hot);
    const [left, top] = middle(drawing);
    drawing.scrollLeft += x - left;
    drawing.scrollTop += y - top;
  }
}
