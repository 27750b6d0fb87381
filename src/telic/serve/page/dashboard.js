// The figures of a key's tenant; for an admin's key of any tenant, or all. The key stays in this tab.
const $ = (id) => document.getElementById(id);
const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(1)} %`);
const milliseconds = (seconds) => (1000 * seconds).toFixed(2);
const number = (value) => (value === null ? "–" : value.toFixed(3));

const COLUMNS = {
  tenants: [["Tenant", (row) => row.tenant || "all"], ["Submissions", (row) => row.submissions], ["Users", (row) => row.users],
    ["Acceptance", (row) => percent(row.acceptance)], ["MRR", (row) => number(row.mrr)],
    ["Keystrokes saved", (row) => percent(row.keystrokes_saved)]],
  popular: [["Query", (row) => row.query], ["Submissions", (row) => row.submissions], ["Users", (row) => row.users]],
  no_hit: [["Query", (row) => row.query], ["Submissions", (row) => row.submissions], ["Users", (row) => row.users]],
  gate: [["Characters", (row) => row.characters], ["Re-ranks", (row) => (row.reranks ? "yes" : "no")],
    ["p-value", (row) => number(row.p_value)]],
  latency: [["Address", (row) => row.address], ["Answers", (row) => row.answers], ["Mean ms", (row) => milliseconds(row.mean)],
    ["p50 ms", (row) => milliseconds(row.p50)], ["p99 ms", (row) => milliseconds(row.p99)]],
};

function stored(use) {
  try {
    return use(sessionStorage);
  } catch {
    return null; // storage is blocked: the key is asked for at each visit
  }
}

// Roles are written out: where a narrow screen shows rows as blocks, some browsers forget that they are rows.
function cell(tag, text, isNumber) {
  const made = document.createElement(tag);
  made.textContent = text;
  made.role = tag === "th" ? "columnheader" : "cell";
  if (isNumber) made.className = "number";
  return made;
}

function fill(id, rows, none) {
  const columns = COLUMNS[id];
  const row = (tag, texts) => {
    const made = document.createElement("tr");
    made.role = "row";
    made.append(...texts.map((text, i) => cell(tag, text, i > 0)));
    [...made.children].forEach((each, i) => { each.dataset.name = columns[i][0]; });
    return made;
  };
  const head = row("th", columns.map(([name]) => name));
  for (const each of head.children) each.scope = "col";
  $(id).replaceChildren(head, ...rows.map((each) => row("td", columns.map(([, of]) => of(each)))));
  if (!rows.length) $(id).replaceChildren(row("td", [none]));
}

let latest; // the last question: answers to earlier ones are too late

async function show(question) {
  const key = $("key").value;
  stored((storage) => storage.setItem("telic-key", key));
  const asked = new URLSearchParams({ days: $("days").value, tenant: $("tenant").value.trim() });
  const response = await fetch(`/figures?${asked}`, {
    headers: key ? { Authorization: `Bearer ${key}` } : {},
  });
  const answer = await response.json();
  if (question !== latest) return;
  if (!response.ok) {
    $("status").textContent = `${answer.error.message} ${answer.error.hint}`;
    return;
  }
  $("status").textContent = `The last ${answer.days} days.`;
  fill("tenants", answer.tenants, "Nobody has searched yet.");
  const few = `No query of at least ${answer.min_users} users.`;
  fill("popular", answer.popular, few);
  fill("no_hit", answer.no_hit, few);
  fill("gate", answer.gate, "Nothing was tested.");
  fill("latency", answer.latency, "No answers yet.");
}

function ask() {
  const question = latest = {};
  show(question).catch((error) => {
    if (question === latest) $("status").textContent = `No answer: ${error.message}.`;
  });
}

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
$("key").value = stored((storage) => storage.getItem("telic-key")) ?? "";
ask();
