"""What Figures 4.1 and 4.2 show, in numbers."""

from typing import Any

from telic.report import Table
from telic.study.chapter4.experiment import needed


def saving_table(found: dict[str, Any]) -> Table:
    """Return what optimal sampling saves over uniform on each problem."""
    return Table(
        "Gradients that ASBCD needs with uniform sampling, divided by those with optimal sampling",
        {"data": "", "predicted": ".2f", "measured": ".2f", "at a relative gap of": ".1e"},
        [
            [name, *(each[key] for key in ("predicted_factor", "measured_factor", "measured_at"))]
            for name, each in found.items()
        ],
        note="Predicted: (nμ + L_M)/(nμ + L̄).",
    )


def reach_table(name: str, curves: dict[str, Any]) -> Table:
    """Return what each method needs to reach two gaps."""
    goals = [(gap, axis) for gap in (1e-3, 1e-6) for axis in ("gradients", "seconds")]
    return Table(
        f"{name}: step (times theory), gradients / n and seconds to a relative gap",
        {
            "method": "",
            "step": "g",
            "last gap": ".1e",
            "∇/n to 1e-3": ".3g",
            "s to 1e-3": ".3g",
            "∇/n to 1e-6": ".3g",
            "s to 1e-6": ".3g",
        },
        [
            [method, curve["step"], curve["gap"][-1], *(needed(curve, *goal) for goal in goals)]
            for method, curve in curves.items()
        ],
    )
