/* Tables marked nb-sortable: a click on a heading, or Enter on it, sorts their rows; a second one turns the order. */
(function () {
  "use strict";
  function value(row, column) {
    var text = row.cells[column].textContent.trim();
    var number = parseFloat(text.replace("−", "-").replace("<", "").replace(/,/g, ""));
    return isNaN(number) ? text : number;
  }
  function sort(table, column, header) {
    var falling = header.getAttribute("aria-sort") !== "descending";
    Array.from(table.tHead.rows[0].cells).forEach(function (cell) { cell.removeAttribute("aria-sort"); });
    header.setAttribute("aria-sort", falling ? "descending" : "ascending");
    var body = table.tBodies[0], rows = Array.from(body.rows);
    rows.sort(function (a, b) {
      var x = value(a, column), y = value(b, column);
      if (x === "–" || y === "–") return (x === "–") - (y === "–");
      var order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
      return falling ? -order : order;
    });
    rows.forEach(function (row) { body.appendChild(row); });
  }
  document.addEventListener("DOMContentLoaded", function () {
    document.querySelectorAll("table.nb-sortable").forEach(function (table) {
      Array.from(table.tHead.rows[0].cells).forEach(function (header, column) {
        header.tabIndex = 0;
        header.title = "Sort by this column";
        header.addEventListener("click", function () { sort(table, column, header); });
        header.addEventListener("keydown", function (event) {
          if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(table, column, header); }
        });
      });
    });
  });
})();
