"""An option has the default of the function behind its command, or stands here with a reason."""

import inspect
from pathlib import Path

from telic.auc.compare import compare_rankers
from telic.auc.report import diagnosis_page, measures, page
from telic.auc.table_ranker import fit_measured, read_labelled
from telic.cli import app
from telic.completion import Replay, compare_completers, evaluate, fit_files
from telic.completion.evaluation.appaware_evaluation import evaluate_phones
from telic.completion.evaluation.trial import judge_trial
from telic.completion.fit.from_files import searches_of
from telic.completion.signals import measured
from telic.privacy import Adversary, LinkErrors, randomise_ids
from telic.privacy.advice.advise import advise
from telic.privacy.attacks.measured_attack import measured_attack
from telic.privacy.report.page import risk_report
from telic.privacy.risk.risks import risks
from telic.scale.cluster_check import check_cluster
from telic.serve.callers.tenant_keys import add_key
from telic.serve.operation.settings import Settings
from telic.simulate import read_catalogue, simulate_phones, simulate_typists
from telic.simulate.hospital import simulate_hospital
from telic.simulate.microblog import Community, earlier_snapshot, microblog
from telic.specialty.alarms.access_reasons import find_reasons
from telic.specialty.alarms.patient_log import patient_log
from telic.specialty.discovery.discover import discover
from telic.specialty.recognition.shuffled_control import recognise_found
from telic.specialty.report.page import full_report

BEHIND = {
    "demo": [simulate_typists, Settings],
    "auc fit": [read_labelled, fit_measured, measures, page],
    "auc evaluate": [measures, page],
    "auc compare": [read_labelled, compare_rankers],
    "auc diagnose": [read_labelled, diagnosis_page],
    "cluster check": [check_cluster],
    "completion simulate": [read_catalogue, simulate_typists, simulate_phones],
    "completion evaluate": [Replay, evaluate, evaluate_phones],
    "completion fit": [fit_files],
    "completion serve": [fit_files],
    "completion key": [add_key],
    "completion replay": [compare_completers],
    "completion trial": [judge_trial],
    "completion signals": [searches_of, measured],
    "privacy risk": [Adversary.of, risks],
    "privacy attack": [Adversary.of, LinkErrors, measured_attack],
    "privacy again": [Adversary.of],
    "privacy infer": [Adversary.of],
    "privacy simulate": [microblog, Community, earlier_snapshot],
    "privacy anonymise": [randomise_ids],
    "privacy advise": [Adversary.of, advise],
    "privacy report": [Adversary.of, LinkErrors, risk_report],
    "specialty simulate": [simulate_hospital],
    "specialty discover": [discover],
    "specialty recognise": [discover, recognise_found],
    "specialty explain": [discover, find_reasons],
    "specialty patient": [patient_log, find_reasons],
    "specialty report": [discover, full_report],
}
RENAMED = {
    "candidates": "n",
    "max_distance": "distance",
    "origin": "origins",
    "shown": "show",
    "skip_bad_rows": "on_bad_row",
    "tested": "most",
    "topics": "n_topics",
    "window": "minutes",
}
ALIKE = {False: "raise", None: ()}
"""What functions take for an option that is off, or not given."""
OWN = {
    "demo out": Path("telic-demo"),  # a demo asks for nothing
    "demo serve": True,
    "demo overwrite": True,  # and is run again
    "auc fit beta": "cv",  # None, in words
    "auc fit solver": "auto",
    "auc fit penalty": "l2",
    "auc fit beta1": 1e-4,
    "auc fit threshold": "prior",
    "completion evaluate candidates": None,  # an empty list, which is (10,)
    "completion evaluate model": "adaqac",  # two functions
    "completion evaluate protocol": "careful",  # by name
    "completion fit protocol": "careful",
    "completion signals groups": "all",  # None, in words
    "privacy attack truth": "auto",
    "privacy simulate density": 0.01,  # required of a Community
    "privacy convert duplicates": "raise",
    "privacy advise seconds": 300,  # a person waits; a program need not
    "specialty simulate scale": 0.05,  # a tenth of the time, to try it
    "specialty recognise classifier": "SVM",
    "specialty explain limit": 20,  # lines on a screen
    "specialty explain status": "all",
    "specialty patient pseudonyms": False,  # the function takes them themselves
    "specialty report out": Path("specialties.html"),
    "specialty review add limit": 1000,
    "specialty review add seed": 0,
    "specialty review list limit": 20,
    "specialty review set note": "",
}


def commands(group, words=()):
    for one in group.registered_commands:
        name = one.name or one.callback.__name__.rstrip("_").replace("_", "-")
        yield " ".join([*words, name]), one.callback
    for one in group.registered_groups:
        yield from commands(one.typer_instance, [*words, one.name or one.typer_instance.info.name])


def defaults_of(function):
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


def test_defaults_are_those_of_the_functions_behind_or_have_a_reason():
    left, other = dict(OWN), {}
    for command, callback in commands(app):
        if command.startswith("study"):  # tests/cli/test_study.py
            continue
        behind = [defaults_of(function) for function in BEHIND.get(command, ())]
        for option, default in defaults_of(callback).items():
            name = f"{command} {option}"
            given = [
                each[one] for each in behind for one in (option, RENAMED.get(option)) if one in each
            ]
            same = [default, (default,), ALIKE.get(default, default)]
            if name in OWN:
                assert default == left.pop(name), name
            elif not given and default not in (None, False):  # unless nothing is asked for
                other[name] = default
            elif not all(value in same for value in given):
                other[name] = default, given
    assert not other
    assert not left
