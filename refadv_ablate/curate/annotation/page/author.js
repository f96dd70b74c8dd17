// Authoring: choose target and look-alike, write what tells them apart.
"use strict";

let scene = null;
let target = 0;
let distractor = 0;

const name = () => $("annotator").value;
const place = () => `refadv-scene-${name()}`;

async function load(index) {
  $("work").hidden = $("actions").hidden = !name();
  $("over").hidden = Boolean(name());
  if (!name()) return;
  if (index === undefined) index = Number(localStorage.getItem(place())) || 0;
  try {
    scene = await patiently(`/api/scene?${new URLSearchParams({annotator: name(), index})}`);
  } catch (error) {
    banner(error.detail || String(error), "warn");
    return;
  }
  localStorage.setItem(place(), scene.index);
  target = distractor = 0;
  $("text").value = "";
  $("image").src = `/image/${encodeURIComponent(scene.scene)}`;
  fit(scene.width, scene.height, 45);
  $("count").textContent = `scene ${scene.index + 1} of ${scene.total} · ${scene.all_written} written`;
  $("title").textContent = `${scene.boxes.length} × ${scene.category}`;
  $("written").replaceChildren(...scene.written.map((one) => {
    const item = document.createElement("li");
    const remove = document.createElement("button");
    remove.type = "button";
    remove.className = "quiet";
    remove.textContent = "Remove";
    remove.setAttribute("aria-label", `Remove: ${one.expression}`);
    remove.addEventListener("click", () => withdraw(one.item));
    item.append(one.expression, " ", remove);
    return item;
  }));
  draw();
}

function draw() {
  const nodes = [];
  scene.boxes.forEach((box, i) => {
    const kind = i + 1 === target ? "gold" : i + 1 === distractor ? "own" : "candidate";
    nodes.push(...outline(box, kind));
  });
  // the smallest on top, so that each can be chosen
  const area = ([x1, y1, x2, y2]) => (x2 - x1) * (y2 - y1);
  [...scene.boxes.keys()].sort((a, b) => area(scene.boxes[b]) - area(scene.boxes[a])).forEach((i) => {
    const [x1, y1, x2, y2] = scene.boxes[i];
    const hit = shape("rect", {x: x1, y: y1, width: x2 - x1, height: y2 - y1}, "hit");
    hit.setAttribute("tabindex", "0");
    hit.setAttribute("role", "button");
    hit.setAttribute("aria-label", `candidate ${i + 1}`);
    hit.addEventListener("click", () => choose(i + 1));
    hit.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { choose(i + 1); event.preventDefault(); } });
    nodes.push(hit);
  });
  $("overlay").replaceChildren(...nodes);
  $("step").textContent = !target ? "1 · Choose the target" :
    !distractor ? "2 · Choose the one that looks most like it" : "3 · Write an expression for the orange one";
  refresh();
}

function choose(number) {
  if (number === target) target = 0;
  else if (number === distractor) distractor = 0;
  else if (!target) target = number;
  else distractor = number;
  draw();
}

function refresh() {
  $("swap").disabled = !(target && distractor);
  $("save").disabled = !(target && distractor && $("text").value.trim());
}

async function save() {
  if ($("save").disabled) return;
  const body = {annotator: name(), scene: scene.scene, target, distractor, expression: $("text").value, key: newKey()};
  $("save").disabled = true;
  queue.add("/api/author", body);
  try {
    await queue.flush();
    const kept = [target, distractor];
    await load(scene.index);
    [target, distractor] = kept;
    draw();
    banner("Saved.");
  } catch (error) {
    banner(error.detail, "warn");
    refresh();
  }
}

/** Takes back an expression that nobody has judged yet; its words are there again to be mended. */
async function withdraw(item) {
  const gone = scene.written.find((one) => one.item === item);
  queue.add("/api/withdraw", {annotator: name(), item, key: newKey()});
  try {
    await queue.flush();
    await load(scene.index);
    [target, distractor] = [gone.target, gone.distractor];
    $("text").value = gone.expression;
    draw();
    banner("Removed. Its words are below, to be mended or left.");
  } catch (error) {
    banner(error.detail, "warn");
  }
}

$("text").addEventListener("input", refresh);
$("save").addEventListener("click", save);
$("swap").addEventListener("click", () => { [target, distractor] = [distractor, target]; draw(); });
$("previous").addEventListener("click", () => load((scene.index + scene.total - 1) % scene.total));
$("following").addEventListener("click", () => load(scene.index + 1));
document.addEventListener("keydown", (event) => {
  if (!scene || $("work").hidden) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
  else if (event.key === "PageDown") $("following").click();
  else if (event.key === "PageUp") $("previous").click();
  else return;
  event.preventDefault();
});

queue.flush().catch((error) => banner(error.detail, "warn")).then(() => annotators(() => load()));
