// Says in plain words why a suggestion stands where it stands.

// Time and place are told anyway; these causes are told when they weigh most.
const CAUSES = {
  "WordBound": "standing there when a word was finished",
  "SpaceChar": "standing there at a space",
  "OtherChar": "standing there at a punctuation mark",
  "IsPrevQuery": "having been your search before this one",
};
const signed = (x) => (Math.abs(x) < 0.005 ? "±0" : `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(2)}`);

// The learned weight of the relevance belongs to the relevance; the rest is what was fed back.
const base = (s) => s.relevance + (s.reasons.Relevance ?? 0);
const fedBack = (s) => s.feedback - (s.reasons.Relevance ?? 0) + s.signals;
const hasSignals = (suggestions) => suggestions.some((s) => s.signals_said);
const wasShown = (s) => timesIn(s).some((times) => times > 0);
const timesIn = (s) => Array.from({ length: 10 }, (_, i) => s.observed[`Pos@${i + 1}`] ?? 0);

function seen(s) {
  const times = timesIn(s);
  const all = times.reduce((sum, n) => sum + n, 0);
  const places = times.flatMap((n, i) => (n ? [i + 1] : []));
  let where = `in places ${places[0]} to ${places.at(-1)}`;
  if (places.length === 1) where = places[0] === 1 ? "at the top" : `in place ${places[0]}`;
  const seconds = (s.observed.DwellT ?? 0).toFixed(1);
  return `Seen ${all}× ${where} for ${seconds} s and not picked.`;
}

function mainCause(s) {
  const change = fedBack(s);
  const most = Object.entries(s.reasons).find(([name, part]) => name !== "Relevance" && part * change > 0);
  const cause = most && CAUSES[most[0]];
  return cause ? ` ${change < 0 ? "Lowered" : "Raised"} most by ${cause}.` : "";
}

function words(s, position) {
  if (s.signals_said) return `${s.signals_said[0].toUpperCase()}${s.signals_said.slice(1)}.`;
  const up = s.static_position - position;
  if (!wasShown(s)) {
    if (!up) return "Not shown before in this search.";
    return up > 0 ? "New in the list; others were passed over." : "New in the list; others gained more.";
  }
  let others = "";
  if (up > 0 && fedBack(s) < 0) others = " Others lost more.";
  if (up < 0 && fedBack(s) > 0) others = " Others gained more.";
  return seen(s) + others + mainCause(s);
}

/** What to show of one suggestion; `base` and `total` are shares of the longest bar. */
export function explain(suggestion, position, suggestions) {
  const longest = Math.max(1e-9, ...suggestions.map((s) => Math.max(base(s), base(s) + fedBack(s))));
  const share = (x) => Math.min(1, Math.max(0, x / longest));
  const change = fedBack(suggestion);
  return {
    base: share(base(suggestion)),
    total: share(base(suggestion) + change),
    kind: Math.abs(change) < 0.005 ? "none" : change < 0 ? "lowers" : "raises",
    relevance: base(suggestion).toFixed(2),
    feedback: signed(change),
    words: words(suggestion, position),
  };
}

/** What happened to the list as a whole. */
export function summarise(suggestions) {
  const moved = suggestions.filter((s, i) => s.static_position !== i + 1).length;
  const what = hasSignals(suggestions) ? "Signals" : "Feedback";
  if (moved) return `${what} moved ${moved} of ${suggestions.length} suggestions against the static order.`;
  if (hasSignals(suggestions)) return "Signals changed scores, but not the order.";
  if (!suggestions.some(wasShown)) return "The static order: nothing was fed back on these yet.";
  if (suggestions.every((s) => Object.keys(s.reasons).length === 0)) {
    return "The static order: validation showed that feedback does not help here.";
  }
  return "Feedback changed scores, but not the order.";
}
