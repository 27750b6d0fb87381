"""Every function of src states its types but numba's kernels, which mypy cannot tell apart."""

import ast

from tests.sources import SOURCE, sources

KERNEL = {"kernel", "overload", "intrinsic", "register_jitable"}


def is_kernel(function):
    calls = [d.func if isinstance(d, ast.Call) else d for d in function.decorator_list]
    return any(getattr(c, "id", getattr(c, "attr", None)) in KERNEL for c in calls)


def unannotated(node, in_class=False):
    """The functions under `node`, kernels and their insides apart, that leave a type out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):  # no function is within one
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            if is_kernel(child):
                continue
            a = child.args
            arguments = [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg]
            static = any(getattr(d, "id", None) == "staticmethod" for d in child.decorator_list)
            if in_class and not static:
                arguments = arguments[1:]
            if child.returns is None or any(x and x.annotation is None for x in arguments):
                yield child
        yield from unannotated(child, isinstance(child, ast.ClassDef))


def test_every_function_is_annotated():
    missing = [
        f"{path.relative_to(SOURCE)}:{function.lineno} {function.name}"
        for path, _, tree, _ in sources()
        for function in unannotated(tree)
    ]
    assert not missing, "\n".join(missing)
