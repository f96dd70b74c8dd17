// Verification: find it blind, then see the gold box and answer.
"use strict";

let task = null;      // what the server told
let mark = null;      // {point: [x, y]} or {box: [x1, y1, x2, y2]}, pixels of the stored image
let verdict = {};     // correct, hard, reconsidered
let begun = 0;        // when the step was shown
let busy = false;

const name = () => $("annotator").value;
const seconds = () => Math.round((performance.now() - begun) / 100) / 10;

async function load(item) {
  if (!name()) { show(null); return; }
  const about = new URLSearchParams({annotator: name(), window: thisWindow});
  if (item) about.set("item", item);
  try {
    const told = await patiently(`/api/next?${about}`);
    if (told.item) await picture(told);
    show(told);
    if (told.upcoming) new Image().src = `/image/${encodeURIComponent(told.upcoming)}`;
  } catch (error) {
    banner(error.detail || String(error), "warn");
  }
}

function picture(told) {
  return new Promise((done) => {
    const image = $("image");
    const url = `/image/${encodeURIComponent(told.item)}`;
    if (image.getAttribute("src") === url && image.complete) { done(); return; }
    image.onload = done;
    image.onerror = () => { banner("The image can't be loaded; try again later.", "warn"); done(); };
    image.src = url;
  });
}

function show(told) {
  task = told;
  mark = null;
  verdict = (told && told.verdict) ? {...told.verdict} : {};
  begun = performance.now();
  $("work").hidden = $("actions").hidden = !(told && told.item);
  $("over").hidden = Boolean(told && told.item);
  if (!told) {
    $("count").textContent = "";
    $("over").querySelector("h1").textContent = "Who are you?";
    $("over-text").textContent = "Choose your name above to begin. You can stop at any time and go on later.";
    $("over-back").hidden = true;
    return;
  }
  $("count").textContent = `${told.done} of ${told.total}${pace(told)}`;
  $("progress").value = told.total ? told.done / told.total : 0;
  for (const id of ["back", "undo", "over-back"]) $(id).disabled = !told.before;
  $("over-back").hidden = !told.before;
  if (!told.item) {
    $("over").querySelector("h1").textContent = "All done";
    $("over-text").textContent = told.total ? `Thank you, ${name()}: you have answered all ${told.total} expressions.` :
      "There is nothing for you to verify yet.";
    return;
  }
  const blind = told.stage === "blind";
  $("expression").textContent = told.expression;
  $("step").textContent = blind ? "1 · Find it: click on it, or draw a box" : "2 · Compare with the orange box";
  $("blind").hidden = $("blind-hint").hidden = !blind;
  $("verdict").hidden = blind;
  $("stage").classList.toggle("active", blind);
  fit(told.width, told.height, blind ? 60 : 45);
  $("note").value = verdict.note || "";
  if (!blind) {
    const missed = !told.hit;
    $("outcome").textContent = told.blind.none ? "You found nothing that fits, or several." :
      missed ? "Your choice (blue) was another one." : "Your choice (blue) is the same.";
    $("outcome").className = "outcome " + (missed ? "missed" : "same");
    $("q-reconsidered").hidden = !missed;
  }
  draw();
  refresh();
  window.scrollTo(0, 0);
}

function draw() {
  const nodes = [];
  if (task.gold) {
    if (task.look_alike) nodes.push(...outline(task.look_alike, "like"));
    nodes.push(...outline(task.gold, "gold"));
  }
  const own = task.stage === "blind" ? mark : task.blind;
  if (own && own.box) nodes.push(...outline(own.box, "own"));
  if (own && own.point) {
    const radius = Math.max(task.width, task.height) / 90;
    const at = {cx: own.point[0], cy: own.point[1], r: radius};
    nodes.push(shape("circle", at, "halo"), shape("circle", at, "own"), shape("circle", {...at, r: radius / 4}, "dot"));
  }
  $("overlay").replaceChildren(...nodes);
}

function refresh() {
  $("confirm").disabled = !mark || busy;
  const questions = ["correct", "hard", "reconsidered"].filter((q) => !$(`q-${q}`).hidden);
  const open = questions.find((q) => typeof verdict[q] !== "boolean");
  for (const q of ["correct", "hard", "reconsidered"]) {
    $(`q-${q}`).classList.toggle("current", q === open);
    for (const button of $(`q-${q}`).querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(String(verdict[q]) === button.dataset.value));
    }
  }
  $("save").disabled = Boolean(open) || busy;
  return open;
}

// ── answering ──────────────────────────────────────────────────────────────────────────────────

async function send(body) {
  if (busy) return;
  busy = true;
  refresh();
  queue.add("/api/answer", {...body, annotator: name(), item: task.item, seconds: seconds(), key: newKey()});
  const item = body.kind === "blind" ? task.item : null;
  let trouble = null;
  try { await queue.flush(); } catch (error) { trouble = error; }
  busy = false;
  await load(trouble ? null : item);
  if (trouble) banner(`Not kept: ${trouble.detail}`, "warn");
}

const ground = (found) => send({kind: "blind", ...found});

function save() {
  if (task.stage !== "verdict" || refresh()) return;
  const {correct, hard} = verdict;
  const reconsidered = $("q-reconsidered").hidden ? null : verdict.reconsidered;
  const replaces = (task.verdict && task.verdict.key) || "";
  send({kind: "verdict", correct, hard, reconsidered, replaces, note: $("note").value});
}

function decide(question, value) {
  verdict[question] = value;
  refresh();
}

// ── pointing ───────────────────────────────────────────────────────────────────────────────────

let from = null;

function spot(event) {
  const at = $("stage").getBoundingClientRect();
  const x = (event.clientX - at.left) / at.width * task.width;
  const y = (event.clientY - at.top) / at.height * task.height;
  return [Math.min(Math.max(0, x), task.width), Math.min(Math.max(0, y), task.height)].map((v) => Math.round(v * 10) / 10);
}

const drawing = () => $("draw").getAttribute("aria-pressed") === "true";

$("stage").addEventListener("pointerdown", (event) => {
  if (!task || task.stage !== "blind" || event.button !== 0) return;
  if (event.pointerType === "touch" && !drawing()) { from = null; return; }
  from = {at: spot(event), x: event.clientX, y: event.clientY};
  $("stage").setPointerCapture(event.pointerId);
});

$("stage").addEventListener("pointermove", (event) => {
  if (!from) return;
  if (Math.hypot(event.clientX - from.x, event.clientY - from.y) < 8) return;
  const to = spot(event);
  const [x1, x2] = [from.at[0], to[0]].sort((a, b) => a - b);
  const [y1, y2] = [from.at[1], to[1]].sort((a, b) => a - b);
  if (x2 - x1 >= 1 && y2 - y1 >= 1) { mark = {box: [x1, y1, x2, y2]}; draw(); refresh(); }
});

$("stage").addEventListener("pointerup", (event) => {
  const moved = from && Math.hypot(event.clientX - from.x, event.clientY - from.y) >= 8;
  from = null;
  if (moved) suppress = true;
});

$("stage").addEventListener("pointercancel", () => { from = null; });

let suppress = false;
$("stage").addEventListener("click", (event) => {
  if (suppress) { suppress = false; return; }
  if (!task || task.stage !== "blind") return;
  mark = {point: spot(event)};
  draw();
  refresh();
});

function nudge(event) {
  const [w, h] = [task.width, task.height];
  const [x, y] = (mark && mark.point) || [w / 2, h / 2];
  const step = (event.shiftKey ? 0.1 : 0.02);
  const move = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
  mark = {point: [Math.min(w, Math.max(0, x + move[0] * step * w)), Math.min(h, Math.max(0, y + move[1] * step * h))]};
  draw();
  refresh();
}

// ── buttons and keys ───────────────────────────────────────────────────────────────────────────

$("confirm").addEventListener("click", () => mark && ground(mark));
$("none").addEventListener("click", () => ground({none: true}));
$("clear").addEventListener("click", () => { mark = null; draw(); refresh(); });
$("draw").addEventListener("click", () => {
  $("draw").setAttribute("aria-pressed", String(!drawing()));
  $("stage").classList.toggle("drawing", drawing());
});
$("save").addEventListener("click", save);
const back = () => task && task.before && !busy && load(task.before);
for (const id of ["back", "undo", "over-back"]) $(id).addEventListener("click", back);
for (const q of ["correct", "hard", "reconsidered"]) {
  for (const button of $(`q-${q}`).querySelectorAll("button")) {
    button.addEventListener("click", () => decide(q, button.dataset.value === "true"));
  }
}

document.addEventListener("keydown", (event) => {
  const undo = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z";
  if (!task || busy || event.altKey || ((event.ctrlKey || event.metaKey) && !undo)) return;
  if (!event.target.matches("input, select") && (undo || event.key.toLowerCase() === "b")) {
    if (task.before) { back(); event.preventDefault(); }
    return;
  }
  if (!task.item || undo) return;
  const typing = event.target.matches("input, select");
  if (event.target.matches("button, a") && event.key === "Enter" && task.stage === "blind" && !mark) return;
  if (typing && event.key !== "Enter") return;
  const key = event.key.toLowerCase();
  if (task.stage === "blind") {
    if (event.key.startsWith("Arrow")) nudge(event);
    else if (event.key === "Enter") { if (!mark) return; ground(mark); }
    else if (key === "escape") { mark = null; draw(); refresh(); }
    else if (key === "0") ground({none: true});
    else return;
  } else {
    const open = refresh();
    if ((key === "y" || key === "n") && open) decide(open, key === "y");
    else if (event.key === "Enter") save();
    else return;
  }
  event.preventDefault();
});

window.addEventListener("beforeunload", (event) => { if (queue.all().length) event.preventDefault(); });

queue.flush().catch((error) => banner(`Not kept: ${error.detail}`, "warn")).then(() => annotators(() => load()));
