import warnings

from telic.cli import warn_once


def test_a_warning_of_each_fold_is_shown_once_and_on_one_line(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = warn_once(set())
        for fold in range(3):
            with warnings.catch_warnings():  # makes Python forget what it has warned of
                warnings.simplefilter("ignore", ResourceWarning)
                warnings.warn("all weights are 0", stacklevel=1)
                warnings.warn(f"resorts to lbfgs\nrcond={fold}", stacklevel=1)
    assert capsys.readouterr().err == (
        "telic: warning: all weights are 0\ntelic: warning: resorts to lbfgs\n"
    )
