// The search box: an editable combobox with a list (WAI-ARIA 1.2), and a panel that explains it.
import { explain, summarise } from "./reasons.js";

const $ = (id) => document.getElementById(id);
const input = $("q"), list = $("list");

let introduction = $("summary").textContent;
const state = {
  user: storedUser(),
  composition: null, // of the query being typed; a new one after each submission
  suggestions: [],
  answered: "", // the text that they answer
  active: -1,
  request: null,
};

function randomId() {
  // randomUUID exists only where the page is served from this machine or over TLS.
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function storedUser(renew = false) {
  let user = randomId();
  try {
    user = (!renew && localStorage.getItem("telic-user")) || user;
    localStorage.setItem("telic-user", user);
  } catch {
    // Storage is blocked: someone new at each visit.
  }
  return user;
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// The text as the index matches it: no case, no diacritics. (Close to telic.completion.fold.)
const fold = (text) => text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase();

function typedPart(text, typed) {
  const wanted = fold(typed).trimStart().replace(/\s+/g, " ");
  let end = 0;
  for (const character of text) {
    if (fold(text.slice(0, end)).length >= wanted.length) break;
    end += character.length;
  }
  return fold(text.slice(0, end)) === wanted ? end : 0;
}

function moveMark(places) {
  if (!places) return element("span", { class: "move", "aria-hidden": "true" });
  const [kind, arrow] = places > 0 ? ["up", "▲"] : ["down", "▼"];
  const count = Math.abs(places);
  return element(
    "span", { class: `move ${kind}` },
    element("span", { "aria-hidden": "true" }, `${arrow} ${count}`),
    element("span", { class: "hidden" }, `, moved ${kind} ${count} ${count > 1 ? "places" : "place"}`),
  );
}

function drawList() {
  const options = state.suggestions.map((suggestion, i) => {
    const end = typedPart(suggestion.text, input.value);
    const typed = element("span", { class: "typed" }, suggestion.text.slice(0, end));
    const text = element("bdi", { class: "text" }, typed, suggestion.text.slice(end));
    return element(
      "li", { role: "option", id: `option-${i}`, "aria-selected": "false" },
      text, moveMark(suggestion.static_position - i - 1),
    );
  });
  list.replaceChildren(...options);
}

function drawPanel() {
  $("reasons").replaceChildren(...state.suggestions.map((suggestion, i) => {
    const why = explain(suggestion, i + 1, state.suggestions);
    const bar = element("i", { class: "relevance" });
    bar.style.setProperty("--from", "0%");
    bar.style.setProperty("--width", `${100 * Math.min(why.base, why.total)}%`);
    const change = element("i", { class: why.kind });
    change.style.setProperty("--from", `${100 * Math.min(why.base, why.total)}%`);
    change.style.setProperty("--width", `${100 * Math.abs(why.total - why.base)}%`);
    return element(
      "li", { id: `reason-${i}` },
      element(
        "div", { class: "name" },
        element("span", { class: "place" }, `${i + 1}`),
        element("b", { dir: "auto" }, suggestion.text), moveMark(suggestion.static_position - i - 1),
      ),
      element(
        "div", { class: "scores" },
        element("div", { class: "track", "aria-hidden": "true" }, bar, change),
        element(
          "div", { class: "numbers" },
          element("span", { class: "hidden" }, "relevance "), why.relevance, " ",
          element("span", { class: "hidden" }, "feedback "), element("span", { class: why.kind }, why.feedback),
        ),
      ),
      element("p", {}, why.words),
    );
  }));
  $("key").hidden = !state.suggestions.length;
  $("summary").textContent = state.suggestions.length
    ? summarise(state.suggestions)
    : input.value ? "Nothing in the catalogue is like this." : introduction;
}

function activate(i) {
  for (const old of document.querySelectorAll("[aria-selected=true], #reasons .active")) {
    old.classList.remove("active");
    if (old.matches("[role=option]")) old.setAttribute("aria-selected", "false");
  }
  state.active = i;
  if (i < 0) return input.removeAttribute("aria-activedescendant");
  const option = $(`option-${i}`);
  option.setAttribute("aria-selected", "true");
  option.scrollIntoView({ block: "nearest" });
  $(`reason-${i}`).classList.add("active");
  input.setAttribute("aria-activedescendant", option.id);
}

function expand(open) {
  const shown = open && state.suggestions.length > 0;
  list.hidden = !shown;
  input.setAttribute("aria-expanded", String(shown));
  if (!shown) activate(-1);
}

/** An answer to other text than stands now is greyed, and nothing of it can be picked. */
function markOld() {
  const old = isOld();
  list.toggleAttribute("data-old", old);
  for (const option of list.children) option.setAttribute("aria-disabled", String(old));
  if (old) activate(-1);
}

const isOld = () => state.answered !== input.value;

let announcement;
function announce(text) {
  // A moment later, so that a screen reader is not interrupted at every key.
  clearTimeout(announcement);
  announcement = setTimeout(() => { $("status").textContent = text; }, 600);
}

function outcome(title, detail, failed = false) {
  const card = $("outcome");
  card.classList.toggle("failed", failed);
  card.replaceChildren(element("strong", {}, ...[title].flat()), element("p", {}, detail));
  card.hidden = false;
}

async function answerOf(response) {
  const answer = await response.json();
  if (!response.ok) throw new Error(`${answer.error.message} ${answer.error.hint}`);
  return answer;
}

async function suggest() {
  const at = performance.now(); // the keystroke's own time: the network takes none of the dwell
  state.request?.abort();
  const request = state.request = new AbortController();
  state.composition ??= randomId();
  const q = input.value;
  list.setAttribute("aria-busy", "true");
  markOld();
  const parameters = new URLSearchParams({
    q, user: state.user, composition: state.composition, t: at.toFixed(1), explain: "1",
  });
  if ($("consents").checked) parameters.set("consent", "1");
  try {
    const response = await fetch(`/suggest?${parameters}`, { signal: request.signal });
    const answer = await answerOf(response);
    if (request !== state.request) return;
    state.suggestions = answer[4].suggestions;
    state.answered = q;
    activate(-1);
    drawList();
    drawPanel();
    markOld();
    expand(true);
    announce(`${state.suggestions.length} suggestions`);
  } catch (error) {
    if (request !== state.request || error.name === "AbortError") return;
    outcome("No suggestions", error.message, true);
  } finally {
    if (request === state.request) list.setAttribute("aria-busy", "false");
  }
}

function cancel() {
  state.request?.abort();
  state.request = null;
  list.setAttribute("aria-busy", "false");
}

async function submit(query) {
  if (!query.trim()) return;
  cancel();
  const composition = state.composition ?? randomId();
  state.composition = null;
  input.value = query;
  markOld();
  expand(false);
  $("clear").hidden = false;
  try {
    const response = await fetch("/submit", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ user: state.user, composition, query }),
      keepalive: true,
    });
    const { learned, updates } = await answerOf(response);
    const times = updates === 1 ? "1 search" : `${updates} searches`;
    outcome(
      ["You searched for “", element("bdi", {}, query), "”"],
      learned
        ? `Learned: what you passed over and what you picked moved your weights. They rest on ${times} of yours by now.`
        : "Remembered as a search of yours. There was no choice to learn from: it was not among the suggestions, or this model does not learn online.",
    );
  } catch (error) {
    outcome(["“", element("bdi", {}, query), "” was not sent"], error.message, true);
  }
}

function empty() {
  cancel();
  state.composition = null;
  state.suggestions = [];
  input.value = state.answered = "";
  $("clear").hidden = true;
  drawList();
  drawPanel();
  markOld();
  expand(false);
  input.focus();
}

input.addEventListener("input", () => {
  $("clear").hidden = !input.value;
  $("outcome").hidden = true;
  suggest();
});

input.addEventListener("keydown", (event) => {
  if (event.isComposing || event.ctrlKey || event.metaKey) return;
  const count = isOld() ? 0 : state.suggestions.length;
  const open = !list.hidden;
  const move = (i) => { if (count) { expand(true); activate(i); } };
  const keys = {
    ArrowDown: () => (event.altKey ? expand(true) : move(open ? (state.active + 1) % count : 0)),
    ArrowUp: () => {
      if (event.altKey) expand(false);
      else move(open && state.active > 0 ? state.active - 1 : count - 1);
    },
    Home: state.active >= 0 && (() => move(0)),
    End: state.active >= 0 && (() => move(count - 1)),
    Escape: () => (open ? expand(false) : empty()),
    Enter: state.active >= 0 && (() => submit(state.suggestions[state.active].text)),
  };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  submit(input.value);
});
$("clear").addEventListener("click", empty);

// The list must not take the focus from the box.
list.addEventListener("pointerdown", (event) => event.preventDefault());
list.addEventListener("mousedown", (event) => event.preventDefault());
list.addEventListener("click", (event) => {
  const option = event.target.closest("[role=option]");
  if (option && !isOld()) submit(state.suggestions[[...list.children].indexOf(option)].text);
});
input.addEventListener("click", () => { if (state.composition) expand(true); });
input.addEventListener("blur", (event) => { if (event.relatedTarget) expand(false); });
document.addEventListener("pointerdown", (event) => {
  if (!event.target.closest("main")) expand(false);
});

$("forget").addEventListener("click", () => {
  state.user = storedUser(true);
  empty();
  outcome("You are someone new", "The box knows nothing about you in this browser any more.");
});

const MODELS = {
  "static": "no feedback: the static order",
  "signals": "one conditional logit over groups of signals",
  "adaqac-unp": "adaQAC-UnP, the same weights for everybody",
  "adaqac-batch": "adaQAC-Batch, weights of your own, fixed",
  "adaqac-online": "adaQAC-Online, which learns from each search",
  "appaware": "AppAware, for phones: installed and opened apps",
  "appaware-adaqac": "AppAware with adaQAC-UnP, for phones",
};
const about = await fetch("/about").then(answerOf).catch((error) => {
  outcome("This box cannot suggest anything", error.message, true);
  throw error;
});
const kept = about.feedback[0].toUpperCase() + about.feedback.slice(1);
if (about.model === "static") {
  $("tagline").textContent = "Suggestions while you type";
  $("hint").textContent = "Searches of yours are remembered. What you pass over moves nothing.";
  introduction = $("summary").textContent = "Each suggestion has a relevance: how popular it is, and how often you searched for it.";
}
if (about.model === "signals") {
  $("tagline").textContent = "Suggestions while you type";
  const passedOver = about.feedback.includes("feedback") ? "sinks in the next list" : "moves nothing";
  $("hint").textContent = `Your searches are remembered, and when they were. What you pass over ${passedOver}.`;
  introduction = $("summary").textContent = "Each suggestion has a relevance: how popular it is. Trends, the hour, your own searches and this session add to it.";
  for (const verb of ["raise", "lower"]) document.querySelector(`.swatch.${verb}s`).nextSibling.data = `signals ${verb}`;
}
$("about").replaceChildren(
  element("b", {}, "Model: "), `${MODELS[about.model]}, over ${about.phrases.toLocaleString("en")} phrases. `,
  element("b", {}, "Trained on: "), `${about.trained_on}. `,
  element("b", {}, "Where it acts: "), `${kept}.`,
);
if (about.records === "who consents") {
  const kept = "telic-consents";
  try {
    $("consents").checked = localStorage.getItem(kept) === "yes";
    $("consents").addEventListener("change", (event) => localStorage.setItem(kept, event.target.checked ? "yes" : "no"));
  } catch {
    // Storage is blocked: asked at each visit.
  }
  $("records").hidden = false;
} else if (about.records === "everybody") {
  $("records").textContent = "What is typed and shown here is recorded, to improve suggestions.";
  $("records").hidden = false;
}
if (input.value) {
  $("clear").hidden = false;
  suggest();
} else if (matchMedia("(pointer: fine)").matches) {
  input.focus(); // on a phone this would raise the keyboard before anybody asked
}
