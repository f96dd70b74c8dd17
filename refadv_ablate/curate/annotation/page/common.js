// Shared by the two pages: who annotates, asking the server, and answers that outlive server and tab.
"use strict";

const $ = (id) => document.getElementById(id);

/** Asks the server; throws {offline} when nobody answers, {detail} when it refuses. */
async function ask(path, body) {
  let response;
  try {
    response = await fetch(path, body === undefined ? {} : {
      method: "POST",
      headers: {"Content-Type": "application/json"},
      body: JSON.stringify(body),
    });
  } catch {
    throw {offline: true};
  }
  const told = await response.json().catch(() => ({}));
  if (response.ok) return told;
  if (response.status >= 500) throw {offline: true};
  throw {detail: typeof told.detail === "string" ? told.detail : "the server can't use this answer"};
}

function banner(text, kind = "") {
  $("banner").textContent = text;
  $("banner").className = "banner " + kind;
  $("banner").hidden = !text;
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

/** This window, the same after a reload: what it shows isn't offered in another one of the same person. */
const thisWindow = sessionStorage.getItem("refadv-window") || newKey();
sessionStorage.setItem("refadv-window", thisWindow);

/** "· 12 s each · about 33 min left", once there is a pace. */
function pace(told) {
  if (typeof told.pace !== "number" || told.done >= told.total) return "";
  const minutes = Math.ceil((told.total - told.done) * told.pace / 60);
  const left = minutes < 90 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
  return ` · ${Math.round(told.pace)} s each · about ${left} left`;
}

/** Answers wait in this browser's storage until the server has them on disk. */
const queue = {
  name: "refadv-unsent",
  all() { try { return JSON.parse(localStorage.getItem(this.name)) || []; } catch { return []; } },
  put(list) { localStorage.setItem(this.name, JSON.stringify(list)); },
  add(path, body) { this.put([...this.all(), {path, body}]); },
  busy: null,
  /** Sends all that wait, one after another; comes back when nothing is left. */
  flush() { this.busy = this.busy || this._flush().finally(() => { this.busy = null; }); return this.busy; },
  async _flush() {
    let trouble = null;
    for (let tries = 0; this.all().length; ) {
      const [first] = this.all();
      try {
        await ask(first.path, first.body);
        this.put(this.all().filter((one) => one.body.key !== first.body.key));
        tries = 0;
        banner("");
      } catch (error) {
        if (!error.offline) {
          this.put(this.all().filter((one) => one.body.key !== first.body.key));
          trouble = error;
          continue;
        }
        tries += 1;
        banner(`The server doesn't answer. ${this.all().length} answer(s) are safe in this browser; trying again…`, "warn");
        await pause(Math.min(5000, 400 * tries));
      }
    }
    if (trouble) throw trouble;
  },
};

/** Asks until somebody answers. */
async function patiently(path) {
  for (let tries = 1; ; tries++) {
    try {
      const told = await ask(path);
      if (tries > 1) banner("");
      return told;
    } catch (error) {
      if (!error.offline) throw error;
      banner("The server doesn't answer; trying again…", "warn");
      await pause(Math.min(5000, 400 * tries));
    }
  }
}

/** Fills the list of names; calls `chosen(name)` now if it is known, and whenever it changes. */
async function annotators(chosen) {
  const setup = await patiently("/api/setup");
  const select = $("annotator");
  const known = localStorage.getItem("refadv-annotator") || "";
  select.replaceChildren(new Option("choose your name", ""), ...setup.annotators.map((n) => new Option(n, n)));
  select.value = setup.annotators.includes(known) ? known : "";
  select.addEventListener("change", () => {
    localStorage.setItem("refadv-annotator", select.value);
    select.blur();
    chosen(select.value);
  });
  chosen(select.value);
}

const SVG = "http://www.w3.org/2000/svg";

function shape(name, attributes, kind) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.setAttribute("class", kind);
  return node;
}

/** A box as two outlines, so that it shows on any ground. */
function outline([x1, y1, x2, y2], kind) {
  const at = {x: x1, y: y1, width: Math.max(0, x2 - x1), height: Math.max(0, y2 - y1)};
  return [shape("rect", at, "halo"), shape("rect", at, kind)];
}

/** Shows an image as large as the page allows, up to twice its own size; boxes lie on top of it. */
function fit(width, height, share) {
  const image = $("image");
  image.width = width;
  image.height = height;
  image.style.height = "auto";
  image.style.width = `min(100vw - 2rem, 968px, ${2 * width}px, calc(${share}dvh * ${width} / ${height}))`;
  $("overlay").setAttribute("viewBox", `0 0 ${width} ${height}`);
}
