// Tables that a click on a heading sorts: numbers from the largest, names from the first.
(() => {
  "use strict";

  const valueOf = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.value === undefined) return cell.textContent;
    const value = Number(cell.dataset.value);
    return Number.isNaN(value) ? -Infinity : value;
  };

  function sort(table, heading, column) {
    const rows = [...table.tBodies[0].rows];
    const numeric = heading.classList.contains("num");
    const before = heading.getAttribute("aria-sort");
    const down = before ? before === "ascending" : numeric;
    const sign = down ? -1 : 1;
    const compare = numeric ? (a, b) => (a > b) - (a < b) : (a, b) => a.localeCompare(b);
    rows.sort((a, b) => sign * compare(valueOf(a, column), valueOf(b, column)));
    table.tBodies[0].append(...rows);
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  }

  document.querySelectorAll("table[data-sortable]").forEach((table) => {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.textContent = heading.textContent;
      button.addEventListener("click", () => sort(table, heading, column));
      heading.replaceChildren(button);
    });
  });
})();
