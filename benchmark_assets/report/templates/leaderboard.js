"use strict";
(() => {
  // Sort keys stand in data-v; a cell without one is unknown and sorts last either way.
  const key = (row, column) => {
    const value = row.cells[column].dataset.v;
    return value === undefined ? null : value;
  };
  const compare = (a, b) => {
    const x = Number(a), y = Number(b);
    if (a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y)) return x - y;
    return a < b ? -1 : a > b ? 1 : 0;
  };
  const sort = (table, head, column) => {
    const first = head.dataset.first || "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const order = head.getAttribute("aria-sort") === first ? other : first;
    for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const body = table.tBodies[0];
    // Array.prototype.sort is stable: equal rows keep the order they are in.
    const rows = Array.from(body.rows).sort((left, right) => {
      const a = key(left, column), b = key(right, column);
      if (a === null || b === null) return (a === null) - (b === null);
      return sign * compare(a, b);
    });
    body.append(...rows);
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      // What stands beneath the name is no part of the button.
      button.append(head.firstChild);
      button.addEventListener("click", () => sort(table, head, column));
      head.prepend(button);
    });
  }
  const save = document.createElement("button");
  save.type = "button";
  save.className = "save";
  save.textContent = "Save these figures as JSON";
  save.addEventListener("click", () => {
    const text = document.getElementById("standings").textContent;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text + "\n"], { type: "application/json" }));
    link.download = "standings.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  document.getElementById("provenance").append(save);
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
})();
