"""
Specialties without a code
==========================

A simulated hospital hides two specialties among users with other codes or none. We find them in
the access log alone, and count the alarms they explain.
"""

# %%
# One year of accesses, at a twentieth of the size the simulator is calibrated to.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from telic.simulate.hospital import simulate_hospital
from telic.specialty.access import read_log
from telic.specialty.discover import discover
from telic.specialty.effect import effect
from telic.specialty.explain import judge

folder = Path(tempfile.mkdtemp()) / "log"
simulate_hospital(folder, scale=0.05)
log = read_log(folder)

# %%
# What users see beyond chance, with chance measured by dealing their patients at random. Users
# without a practice that stands out belong to no specialty.
found = discover(log, restarts=1)
without_code = [one for one in found.specialties if one.listed_code is None]
for one in without_code:
    print(f"{len(one.users)} users: {one.name}")

# %%
# The evidence: what they see more often than everybody else.
figure, axes = plt.subplots(figsize=(7, 3))
codes, lift = zip(*without_code[0].diagnoses, strict=True)
axes.barh(codes[::-1], lift[::-1])
axes.set_xlabel("lift")
figure.tight_layout()

# %%
# Alarms: accesses none of whose diagnoses the declared specialty covers. None is closed; those
# a de facto specialty explains go to the end of the queue.
counted = effect(log, found, judge(log, found))
print(f"{counted.unlisted_explained:,} of {counted.unlisted_alerts:,} alarms explained")
