"""Know the risk before you publish a network: risk, attack, anonymisers, advice."""

from typing import TYPE_CHECKING

from telic.lazy_names import lazy_names

if TYPE_CHECKING:
    from telic.privacy.adversary import Adversary
    from telic.privacy.advice.advise import Advice, advise, confirm
    from telic.privacy.anonymisers.complete_graph import without_majority_strength
    from telic.privacy.anonymisers.fake_links import detect_fakes
    from telic.privacy.anonymisers.ids import randomise_ids
    from telic.privacy.anonymisers.release_steps import apply_steps
    from telic.privacy.attacks.attribute_inference import Inference, inference
    from telic.privacy.attacks.auxiliary import Auxiliary
    from telic.privacy.attacks.dehin import Attack, attack
    from telic.privacy.attacks.link_errors import LinkErrors
    from telic.privacy.attacks.measured_attack import MeasuredAttack, measured_attack
    from telic.privacy.attacks.score import Score, bootstrap_interval, read_truth, same_ids, scores
    from telic.privacy.attacks.two_releases import TwoReleases, two_releases
    from telic.privacy.report.page import risk_report
    from telic.privacy.risk.limits import Limits
    from telic.privacy.risk.risks import Risk, growth_bounds, risks, tuple_risk
    from telic.privacy.utility.utility_loss import UtilityLoss, utility_loss
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Adversary",
    "Advice",
    "Attack",
    "Auxiliary",
    "Inference",
    "Limits",
    "LinkErrors",
    "MeasuredAttack",
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
    "measured_attack",
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
