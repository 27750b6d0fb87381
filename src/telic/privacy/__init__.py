"""Know the risk before you publish a network: risk, attack, anonymisers, advice."""

from telic.privacy.adversary import Adversary
from telic.privacy.advise import Advice, advise, confirm
from telic.privacy.anonymise import randomise_ids, without_majority_strength
from telic.privacy.auxiliary import Auxiliary
from telic.privacy.dehin import Attack, attack
from telic.privacy.fake_links import detect_fakes
from telic.privacy.inference import Inference, inference
from telic.privacy.limits import Limits
from telic.privacy.release_steps import apply_steps
from telic.privacy.report import risk_report
from telic.privacy.risk import Risk, growth_bounds, risks, tuple_risk
from telic.privacy.score import Score, bootstrap_interval, read_truth, same_ids, scores
from telic.privacy.two_releases import TwoReleases, two_releases
from telic.privacy.utility import UtilityLoss, utility_loss

__all__ = [
    "Adversary",
    "Advice",
    "Attack",
    "Auxiliary",
    "Inference",
    "Limits",
    "Risk",
    "Score",
    "TwoReleases",
    "UtilityLoss",
    "advise",
    "apply_steps",
    "attack",
    "bootstrap_interval",
    "confirm",
    "detect_fakes",
    "growth_bounds",
    "inference",
    "randomise_ids",
    "read_truth",
    "risk_report",
    "risks",
    "same_ids",
    "scores",
    "tuple_risk",
    "two_releases",
    "utility_loss",
    "without_majority_strength",
]
