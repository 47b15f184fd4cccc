"""
Guests of a hotel: a table with words and empty cells
=====================================================

Bookings as a hotel exports them: numbers, words, dates, and cells that nobody filled
in. CDSK clusters the table as it is, and says in words what makes a cluster.
"""

import io
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from cdsk import CDSK, plot

# %%
# The export is generated here. Travelers on business, families and couples come on
# other days and stay for other times, and most cells are empty for a reason: agencies
# keep the price to themselves, and who was on business rarely leaves a rating.

rng = np.random.default_rng(0)
n = 450
kind = rng.choice(["business", "family", "couple"], n, p=[0.4, 0.25, 0.35])
is_business, is_family = kind == "business", kind == "family"


def draw(business, family, couple):
    """Return a value for every booking, drawn as its kind of guest does."""
    options = {"business": business, "family": family, "couple": couple}
    return [rng.choice(options[k].split()) for k in kind]


weekday = draw("0 0 1 1 2 3", "5 5 5 6 0", "3 4 4 4 5")
week = rng.integers(1, 52, n)
arrival = [
    pd.Timestamp.fromisocalendar(2025, w, int(d) + 1).date()
    for w, d in zip(week, weekday, strict=True)
]
guests = pd.DataFrame(
    {
        "booking": [f"B{i:05d}" for i in rng.permutation(n)],
        "arrival": arrival,
        "nights": draw("1 1 1 2 2 3", "4 5 7 7 7 10", "1 2 2 2 3 3"),
        "days_ahead": rng.lognormal(
            np.select([is_business, is_family], [2, 4.5], 3.4), 0.6
        ).round(),
        "price": rng.normal(
            np.select([is_business, is_family], [125, 165], 140), 18
        ).round(),
        "children": draw("0", "0 1 1 2 2 3", "0"),
        "channel": draw(
            "company company web phone", "agency agency web", "web web phone"
        ),
        "meals": draw(
            "breakfast breakfast none",
            "half_board half_board breakfast",
            "breakfast breakfast half_board",
        ),
        "parking": draw("yes no", "yes yes yes no", "yes no"),
        "rating": draw("3 4 4 5", "2 3 4 4 5", "4 4 5 5"),
    }
)
is_empty = {
    "price": (guests["channel"] == "agency") & (rng.random(n) < 0.8),
    "rating": rng.random(n) < np.where(is_business, 0.8, 0.4),
    "meals": rng.random(n) < 0.05,
    "parking": rng.random(n) < 0.1,
}
for name, rows in is_empty.items():
    guests[name] = guests[name].mask(rows)
export = guests.to_csv(index=False)
print("\n".join(export.splitlines()[:5]))

# %%
# Two columns need a thought. The booking number names rows and does not group them: it
# becomes the index (or is left out, with a warning). A date is refused, as its meaning
# is not known; of a booking, the weekday and the month say something.

table = pd.read_csv(io.StringIO(export), index_col="booking", parse_dates=["arrival"])
arrival = table.pop("arrival")
table["weekday"] = arrival.dt.day_name().str[:3]
table["month"] = arrival.dt.month
print(table.isna().sum()[lambda count: count > 0].to_string())

# %%
# Everything else is done by the fit. Words are categories, and empty cells say nothing.
# But it looks whether a cluster is that of empty cells, and warns: families book at
# agencies, which do not tell the price.

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    model = CDSK(n_clusters=3, random_state=0).fit(table)
print(*(warning.message for warning in told), sep="\n")

# %%
# What makes a cluster, in words, and as rules.

print(model.profiles(table))
print(model.rules(table))

# %%
# The kinds of guests are known here, as they were drawn:

print(pd.crosstab(kind, model.labels_))
print(f"adjusted Rand index {adjusted_rand_score(kind, model.labels_):.2f}")

# %%
# New bookings may have empty cells, too.

new = pd.DataFrame(
    {
        "nights": [7, None, 2],
        "days_ahead": [90, 5, None],
        "children": [2, None, 0],
        "channel": ["agency", "company", None],
        "weekday": ["Sat", "Tue", "Fri"],
    }
).reindex(columns=table.columns)
print(model.predict_proba(new).round(2))

# %%
# All differences at a glance: means and shares of each cluster. Red is more than
# elsewhere, blue less, gray may be chance. Families book at agencies, so their price is
# missing: the fit did not use that, and the plot shows it.

figure, ax = plt.subplots(figsize=(7, 7), layout="constrained")
plot.profiles(model, table, ax=ax, title="Bookings of a hotel")
plt.show()
