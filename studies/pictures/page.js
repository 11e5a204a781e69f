// Turns the headers of tables into buttons that sort the rows: numbers by value, words by letter,
// missing values last.
for (const table of document.querySelectorAll("table.sortable")) {
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => sort(table, headers, column));
  });
}

function sort(table, headers, column) {
  const isUp = headers[column].getAttribute("aria-sort") !== "ascending";
  const isNumeric = headers[column].classList.contains("number");
  for (const header of headers) header.setAttribute("aria-sort", "none");
  headers[column].setAttribute("aria-sort", isUp ? "ascending" : "descending");
  const value = (row) => row.cells[column].dataset.value;
  const compare = (a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
    const order = isNumeric ? Number(x) - Number(y) : x < y ? -1 : x > y ? 1 : 0;
    return isUp ? order : -order;
  };
  const body = table.tBodies[0];
  body.append(...[...body.rows].sort(compare));
}
