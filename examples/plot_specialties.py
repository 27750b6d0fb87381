"""
Specialties without a code
==========================

A simulated hospital hides specialties among users with other codes or none. We find them in the
access log alone, and count the alarms they explain.
"""

# %%
# One year of accesses of a small hospital, whose patients are referred from practice to practice.
import matplotlib.pyplot as plt

from telic.simulate.hospital_families import simulate_family
from telic.specialty.alarms.before_and_after import effect
from telic.specialty.alarms.explained_alarms import judge
from telic.specialty.discovery.discover import discover

hospital = simulate_family("referrals", 4)
log = hospital.log
print(f"{len(log.users)} users, {len(log.access_user):,} accesses, {len(hospital.hidden)} hidden")

# %%
# What users see beyond chance, with chance measured by dealing their patients at random. Users
# without a practice that stands out belong to no specialty.
found = discover(log, restarts=1)
without_code = [one for one in found.specialties if one.listed_code is None]
for one in without_code:
    true = max((hospital.practice[one.users] == k).mean() for k in hospital.hidden)
    print(f"{len(one.users)} users, {true:.0%} of them of one hidden practice: {one.name}")

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
