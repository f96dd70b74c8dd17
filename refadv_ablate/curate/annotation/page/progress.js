// Progress: how far everybody is, and how far they agree.
"use strict";

function cell(text) {
  const node = document.createElement("td");
  node.textContent = text;
  return node;
}

function row(one) {
  const node = document.createElement("tr");
  const bar = document.createElement("progress");
  bar.value = one.total ? one.done / one.total : 0;
  bar.setAttribute("aria-label", `${one.name}: ${one.done} of ${one.total}`);
  const wide = cell("");
  wide.className = "bar";
  wide.append(bar);
  node.append(cell(one.name), cell(`${one.done} of ${one.total}`), wide, cell(pace(one).replace(" · ", "")));
  return node;
}

function show(told) {
  $("count").textContent = `${told.kept} kept · ${told.dropped} dropped · ${told.open} open`;
  $("outcome").textContent = `${told.kept} expressions have ${told.needed} of ${told.needed} annotators behind them.`;
  $("people").replaceChildren(...told.people.map(row));
  $("facts").replaceChildren(...told.lines.map((line) => {
    const node = document.createElement("li");
    node.textContent = line.trim();
    return node;
  }));
}

async function watch() {
  for (;;) {
    show(await patiently("/api/progress"));
    await pause(5000);
  }
}

watch().catch((error) => banner(error.detail || String(error), "warn"));
