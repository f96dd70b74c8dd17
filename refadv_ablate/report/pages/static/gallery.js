"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const about = JSON.parse($("about").textContent);
  const cards = [];
  for (let i = 0, block; (block = $("cards-" + i)); i++) cards.push(...JSON.parse(block.textContent));
  const [FIRST, SECOND] = about.arms;
  const compared = FIRST !== "original";
  document.querySelectorAll(".arm0").forEach((node) => { node.textContent = FIRST; });
  document.querySelectorAll(".arm1").forEach((node) => { node.textContent = SECOND; });
  const SVG = "http://www.w3.org/2000/svg";

  const make = (tag, cls, text) => {
    const node = document.createElement(tag);
    if (cls) node.className = cls;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const fixed = (x) => (x === null ? "–" : x.toFixed(2));
  const number = (x) => x.toLocaleString("en");

  // ── what is looked for ────────────────────────────────────────────────────────────────────────
  const haystack = (card) => {
    if (card.hay === undefined) {
      const words = card.words.flat().map((segment) => segment[1]).join(" ");
      card.hay = [card.id, card.cat, words, card.o.text, card.p.text, card.o.think, card.p.think, card.o.why, card.p.why, ...card.o.notes, ...card.p.notes].join("\n").normalize("NFKC").toLowerCase();
    }
    return card.hay;
  };
  const kinds = new Set();
  let found = cards, page = 0, at = 0;

  const matches = (card) => {
    if (kinds.size && !kinds.has(card.flip)) return false;
    if ($("cond").value && card.cond !== $("cond").value) return false;
    const n = $("n").value;
    if (n === "?" && card.n !== null) return false;
    if (n && n !== "?") {
      const [low, high] = n.split("-").map(Number);
      if (card.n === null || card.n < low || card.n > high) return false;
    }
    const arms = $("nobox").value;
    if (arms && ![...arms].some((arm) => !["box", "missing", "not_perturbable"].includes(card[arm].out))) return false;
    if ($("neg").value && card.neg !== ($("neg").value === "1")) return false;
    const low = Number($("low").value || 0), high = $("high").value === "" ? 1 : Number($("high").value);
    if (low > 0 || high < 1) {
      const iou = card[$("arm").value].iou;
      if (iou === null || iou < low || iou > high) return false;
    }
    const q = $("q").value.trim().normalize("NFKC").toLowerCase();
    return !q || q.split(/\s+/).every((word) => haystack(card).includes(word));
  };
  // where no IoU says how right an answer is, right counts as 1
  const worth = (answer) => answer.iou ?? (answer.ok ? 1 : 0);
  const drop = (card) => worth(card.o) - worth(card.p);
  const search = () => {
    found = cards.filter(matches);
    const sort = $("sort").value;
    if (sort !== "data") found = [...found].sort((a, b) => (sort === "drop" ? drop(b) - drop(a) : drop(a) - drop(b)));
    page = 0; at = 0;
    remember(null);
    show();
  };

  // ── the address: a view can be sent ───────────────────────────────────────────────────────────
  const FIELDS = ["q", "cond", "n", "neg", "nobox", "arm", "low", "high", "sort"];
  const plainly = {};
  const remember = (example) => {
    const params = new URLSearchParams();
    for (const id of FIELDS) if ($(id).value !== plainly[id]) params.set(id, $(id).value);
    if (kinds.size) params.set("kind", [...kinds].join(","));
    if (example) { params.set("example", example.id); if (example.draw) params.set("draw", example.draw); }
    const text = params.toString().replaceAll("+", "%20");
    try { history.replaceState(null, "", text ? "#" + text : location.pathname + location.search); } catch { /* a page that is held in a frame has no address of its own */ }
  };
  const recall = () => {
    const params = new URLSearchParams(location.hash.slice(1));
    for (const id of FIELDS) {
      const value = params.get(id) ?? plainly[id];
      $(id).value = value;
      if ($(id).value !== value) $(id).value = plainly[id];
    }
    kinds.clear();
    for (const kind of (params.get("kind") ?? "").split(",")) if (kind in about.kinds) kinds.add(kind);
    paint(); search();
    if (!params.has("example")) return;
    const draw = Number(params.get("draw") ?? 0);
    const place = found.findIndex((card) => card.id === params.get("example") && card.draw === draw);
    if (place >= 0) enlarge(place);
    else $("where").textContent += " · that example is not among those on this page";
  };

  // ── a card ────────────────────────────────────────────────────────────────────────────────────
  const rectangle = (svg, box, cls) => {
    const rect = document.createElementNS(SVG, "rect");
    rect.setAttribute("class", cls);
    rect.setAttribute("x", box[0]); rect.setAttribute("y", box[1]);
    rect.setAttribute("width", Math.max(box[2] - box[0], 0.1)); rect.setAttribute("height", Math.max(box[3] - box[1], 0.1));
    svg.append(rect);
  };
  const frame = (card, tag) => {
    if (!card.made) return picture(card, tag, card.img, card.size, [[card.target, "b target"], [card.o.box, "b original"], [card.p.box, "b perturbed"]]);
    // each answer on the picture that it was given for, side by side
    const node = make(tag, "frame two"), made = card.made;
    node.append(
      picture(card, "span", card.img, card.size, [[card.target, "b target"], [card.o.box, "b original"]]),
      picture(card, "span", made.img, made.size, [[made.target, "b target"], [made.box, "b perturbed"]]));
    return node;
  };
  const picture = (card, tag, img, [width, height], lines) => {
    const node = make(tag, "frame");
    node.style.aspectRatio = width + " / " + height;
    const source = img === null ? null : $("img-" + img);
    if (source) {
      const image = make("img");
      image.loading = "lazy"; image.decoding = "async";
      image.alt = plain(card.words[0]) + ": " + about.kinds[card.flip][0] + ", IoU " + fixed(card.o.iou) + (card.p.old ? "" : ", then " + fixed(card.p.iou));
      image.src = source.textContent;
      node.append(image);
    } else node.append(make("span", "nothing", "no image here"));
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    // light rims below all lines, so that boxes that coincide show through each other's gaps
    const boxes = lines.filter(([box]) => box);
    boxes.forEach(([box]) => rectangle(svg, box, "halo"));
    boxes.forEach(([box, cls]) => rectangle(svg, box, cls));
    node.append(svg);
    return node;
  };
  const plain = (segments) => segments.map((segment) => segment[1]).join(" ");
  const said = (who, label, segments, answer) => {
    const node = make("p", "said " + who), head = make("span", "who");
    head.append(make("b", "", label));
    const hit = answer.ok === true, mark = hit ? " ✓" : answer.ok === false ? " ✗" : "";
    const result = answer.out !== "box" ? answer.out.replace("_", " ") + (hit ? " ✓" : "")
      : answer.old ? "a box" + mark : "IoU " + fixed(answer.iou) + mark;
    head.append(make("span", "iou" + (hit ? " hit" : ""), result));
    const text = make("span"); text.dir = "auto";
    segments.forEach(([kind, words], i) => {
      if (i) text.append(" ");
      text.append(kind === "same" ? words : make("mark", kind, words));
    });
    node.append(head, text);
    return node;
  };
  const folded = (label, text) => {
    const node = make("details"), body = make("pre", "", text);
    body.dir = "auto";
    node.append(make("summary", "", label), body);
    return node;
  };
  const body = (card, open) => {
    const node = make("div", "body"), top = make("div", "top");
    top.append(make("span", "kind " + card.flip, about.kinds[card.flip][0]), make("bdi", "", card.id));
    node.append(top, said("original", FIRST, card.words[0], card.o), said("perturbed", (compared ? SECOND : card.cond) + (card.draw ? " #" + card.draw : ""), card.words[1], card.p));
    const facts = [];
    if (card.n !== null) facts.push(card.n + " distractors");
    if (card.neg !== null) facts.push(card.neg ? "negation" : "no negation");
    if (card.cat) facts.push(card.cat);
    if (card.status !== "changed" && !compared) facts.push("text " + card.status.replace("_", " "));
    for (const [who, answer] of [[FIRST, card.o], [SECOND, card.p]]) {
      if (answer.land) facts.push(who + ": " + answer.land);
      if (answer.notes.length) facts.push(who + ": " + answer.notes.join(", "));
      if (answer.why) facts.push(who + ": " + answer.why);
    }
    if (facts.length) { const line = make("p", "facts", facts.join(" · ")); line.dir = "auto"; node.append(line); }
    for (const [who, answer] of [[FIRST, card.o], [SECOND, card.p]]) {
      if (answer.think) node.append(folded("reasoning, " + who, answer.think));
      if (answer.text) node.append(folded("answer, " + who, answer.text));
    }
    if (open) node.querySelectorAll("details").forEach((d) => { d.open = true; });
    return node;
  };
  const drawn = (card, index) => {
    const node = make("article", "card"), picture = frame(card, "button");
    picture.type = "button"; picture.title = "enlarge";
    picture.addEventListener("click", () => enlarge(index));
    node.tabIndex = -1;
    node.append(picture, body(card, false));
    return node;
  };

  // ── a page of cards ───────────────────────────────────────────────────────────────────────────
  const per = () => Number($("per").value);
  const pages = () => Math.max(1, Math.ceil(found.length / per()));
  const show = () => {
    const first = page * per(), some = found.slice(first, first + per());
    $("grid").replaceChildren(...some.map((card, i) => drawn(card, first + i)));
    if (!some.length) $("grid").append(make("p", "none", "No example fits these filters."));
    $("where").textContent = found.length ? `${number(first + 1)}–${number(first + some.length)} of ${number(found.length)}` : "0";
    document.querySelectorAll("[data-go]").forEach((b) => { b.disabled = b.dataset.go < 0 ? page === 0 : page >= pages() - 1; });
  };
  const turn = (step) => {
    const next = Math.min(Math.max(page + step, 0), pages() - 1);
    if (next === page) return;
    page = next; at = page * per();
    show();
    $("grid").scrollIntoView({ block: "start" });
  };
  const select = (index, focus) => {
    if (!found.length) return;
    at = Math.min(Math.max(index, 0), found.length - 1);
    const wanted = Math.floor(at / per());
    if (wanted !== page) { page = wanted; show(); }
    const node = $("grid").children[at - page * per()];
    if (focus && node) { node.focus({ preventScroll: true }); node.scrollIntoView({ block: "nearest" }); }
  };

  // ── one, large ────────────────────────────────────────────────────────────────────────────────
  const dialog = $("dialog");
  const enlarge = (index) => {
    select(index, false);
    const card = found[at];
    if (!card) return;
    const bar = make("div", "close"), inner = make("div", "inner");
    for (const [label, action] of [["← previous", () => enlarge(at - 1)], ["next →", () => enlarge(at + 1)], ["close", () => dialog.close()]]) {
      const button = make("button", "", label);
      button.type = "button"; button.addEventListener("click", action);
      bar.append(button);
    }
    remember(card);
    inner.append(frame(card, "div"), body(card, true));
    dialog.replaceChildren(bar, inner);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  };
  dialog.addEventListener("close", () => { remember(null); select(at, true); });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

  // ── controls ──────────────────────────────────────────────────────────────────────────────────
  const toggle = (kind) => {
    if (kinds.has(kind)) kinds.delete(kind); else kinds.add(kind);
    paint(); search();
  };
  const paint = () => document.querySelectorAll("#chips button").forEach((b) => b.setAttribute("aria-pressed", kinds.has(b.dataset.kind)));
  const here = {};
  for (const card of cards) here[card.flip] = (here[card.flip] ?? 0) + 1;
  for (const [kind, [name]] of Object.entries(about.kinds)) {
    const all = about.kinds[kind][1], some = here[kind] ?? 0;
    const button = make("button", "", `${name} ${number(some)}${some < all ? " of " + number(all) : ""}`);
    button.type = "button"; button.dataset.kind = kind; button.disabled = !here[kind];
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => toggle(kind));
    $("chips").append(button);
  }
  const any = make("option", "", "any"); any.value = "";
  $("cond").append(any, ...about.conditions.map((name) => { const option = make("option", "", name); option.value = name; return option; }));
  if (about.conditions.length < 2) $("cond").closest("label").hidden = true;
  const total = Object.values(about.kinds).filter(([, n]) => n).map(([name, n]) => `${number(n)} ${name}`).join(", ");
  $("count").textContent = (cards.length < about.total ? `${number(cards.length)} of ${number(about.total)} examples, flips first, the others evenly spaced; all of them: ` : `${number(about.total)} examples: `) + total + ".";
  let timer;
  $("filters").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, 120); });
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("filters").addEventListener("reset", () => { kinds.clear(); paint(); setTimeout(search); });
  $("per").addEventListener("change", () => { page = Math.floor(at / per()); show(); });
  document.querySelectorAll("[data-go]").forEach((b) => b.addEventListener("click", () => turn(Number(b.dataset.go))));
  if (matchMedia("(max-width: 640px)").matches) document.querySelector(".filters").open = false;

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape" && typing) { event.target.blur(); return; }
    if (typing) return;
    const step = { ArrowRight: 1, j: 1, ArrowLeft: -1, k: -1 }[event.key];
    if (step) {
      const started = document.activeElement && document.activeElement.closest(".card");
      if (dialog.open) enlarge(at + step); else select(started ? at + step : at, true);
      event.preventDefault();
    } else if (dialog.open) return;
    else if (event.key === "/") { document.querySelector(".filters").open = true; $("q").focus(); event.preventDefault(); }
    else if (event.key === "n") turn(1);
    else if (event.key === "p") turn(-1);
    else if (event.key === "Enter" && event.target.tagName !== "BUTTON" && event.target.tagName !== "SUMMARY") { enlarge(at); event.preventDefault(); }
    else if (event.key >= "1" && event.key <= "5") { const kind = Object.keys(about.kinds)[Number(event.key) - 1]; if (here[kind]) toggle(kind); }
  });
  document.addEventListener("focusin", (event) => {
    const card = event.target.closest && event.target.closest(".card");
    if (card) at = page * per() + [...$("grid").children].indexOf(card);
  });
  for (const id of FIELDS) plainly[id] = $(id).value;
  recall();
  window.addEventListener("hashchange", recall);
})();
