"""The ADMM family: one file for each method, and the steps that they share."""

from telic.optim.admm.methods import batch, sdca, stochastic, stochastic_average, variance_reduced

METHODS = {
    method.name: method
    for method in (
        variance_reduced.DOUBLING,
        variance_reduced.STEADY,
        stochastic_average.METHOD,
        stochastic.METHOD,
        sdca.METHOD,
        batch.METHOD,
    )
}
