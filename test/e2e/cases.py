"""Which cases of a matrix are run, and how many of what is random, by BOA_TEST_SCOPE.

nightly, or no scope: all cases. quick: those that a script names. all: so many that any two values of two axes meet
in one, less the quick ones, which `tools/check` ran before.
"""
import itertools
import os

SCOPE = os.environ.get("BOA_TEST_SCOPE")


def pairwise(cases, must):
    """Some of the cases, in their order: those of `must`, and so many that each pair of values that
    occurs in a case occurs in one of these."""

    def pairs(case):
        return set(itertools.combinations(enumerate(case), 2))

    chosen = list(must)
    missing = set().union(*map(pairs, cases)).difference(*map(pairs, chosen))
    while missing:
        chosen.append(max(cases, key=lambda case: len(pairs(case) & missing)))
        missing -= pairs(chosen[-1])
    return [case for case in cases if case in chosen]


def choose(*axes, quick=(), must=(), holds=lambda *case: True):
    """Of the product of the axes where it `holds`."""
    cases = [case for case in itertools.product(*axes) if holds(*case)]
    if SCOPE == "quick":
        return [case for case in cases if case in quick]
    if SCOPE != "all":
        return cases
    return [case for case in pairwise(cases, [*must, *quick]) if case in must or case not in quick]


def count(name, quick, usual, nightly):
    """What the environment variable `name` says, or else the scope."""
    return int(os.environ.get(name, {"quick": quick, "nightly": nightly}.get(SCOPE, usual)))
