// Two phones with different apps, asked for the same prefix.
const $ = (id) => document.getElementById(id);
const input = $("q");
const about = await answerOf(fetch("/about")).catch((error) => ({ apps: [], failed: error.message }));
const shown = about.apps.slice(0, 6);
const phones = {
  left: { installed: new Set(shown.filter((app) => /football/i.test(app))), opened: new Set(shown.filter((app) => /football/i.test(app))) },
  right: { installed: new Set(shown.filter((app) => /homes/i.test(app))), opened: new Set() },
};

async function answerOf(response) {
  const answered = await response;
  const answer = await answered.json();
  if (!answered.ok) throw new Error(`${answer.error.message} ${answer.error.hint}`);
  return answer;
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function toggle(id, kind, app) {
  const button = element("button", { type: "button", "aria-pressed": String(phones[id][kind].has(app)) }, app);
  button.addEventListener("click", () => {
    const set = phones[id][kind];
    if (!set.delete(app)) set.add(app);
    button.setAttribute("aria-pressed", String(set.has(app)));
    suggest(id);
  });
  return button;
}

function draw(id) {
  const row = (kind, name) => element(
    "div", { class: "apps", role: "group", "aria-label": name }, `${name}: `,
    ...shown.map((app) => toggle(id, kind, app)),
  );
  $(id).append(row("installed", "Installed"), row("opened", "Opened 2 minutes ago"), element("ol"));
}

const latest = {}; // phone → its last question: answers to earlier ones are too late

async function suggest(id) {
  const asked = latest[id] = {};
  const { installed, opened } = phones[id];
  const list = $(id).querySelector("ol");
  const typed = input.value;
  if (!typed.trim()) return list.replaceChildren();
  let answer;
  try {
    answer = await answerOf(fetch("/suggest", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        q: typed, explain: "1",
        installed: Object.fromEntries([...installed].map((app) => [app, 8])),
        opened: [...opened].map((app) => [app, 2]),
      }),
    }));
  } catch (error) {
    if (asked === latest[id]) list.replaceChildren(element("li", {}, `No suggestions: ${error.message}`));
    return;
  }
  if (asked !== latest[id]) return;
  list.replaceChildren(...answer[4].suggestions.slice(0, 5).map((suggestion, i) => {
    const moved = suggestion.static_position - i - 1;
    const why = Object.entries(suggestion.app_reasons).slice(0, 2)
      .map(([name, part]) => `${name} ${part > 0 ? "+" : ""}${part.toFixed(2)}`).join(", ");
    return element(
      "li", {}, `${i + 1}. `, element("bdi", {}, suggestion.text),
      moved > 0 ? ` ▲ ${moved}` : moved < 0 ? ` ▼ ${-moved}` : "",
      element("small", {}, why || "no app speaks for or against it"),
    );
  }));
  $("status").textContent = "suggestions changed";
}

if (!shown.length) {
  $("status").classList.remove("hidden");
  $("status").textContent = about.failed ?? "This model knows no apps: fit one with --model appaware, or run telic demo --phone.";
}
for (const id of Object.keys(phones)) draw(id);
input.addEventListener("input", () => Object.keys(phones).forEach(suggest));
if (!about.failed) $("about").textContent = `Trained on ${about.trained_on}, ${about.phrases.toLocaleString("en")} phrases. Where apps act: ${about.feedback}.`;
if (!about.failed) input.value ||= "real";
Object.keys(phones).forEach(suggest);
