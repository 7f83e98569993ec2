"""recorder - a plug-in of pytest for the parts codecs and suite of scripts/gpu-check: one line of JSON in the file $ZARRC_RECORD when a test
starts and one when it ends, so that what passed is known even if a later test never ends. summary() reads them.

Loaded by `-p recorder` with this folder in PYTHONPATH. With pytest-xdist the process that the workers report to writes all lines. After
the time $ZARRC_RECORD_UNTIL (seconds of the epoch) no test begins; the tests then are in an order of chance, so that those that
ran are from all files.
"""
import json
import os
import random
import re
import time
from collections import Counter

UNTIL = float(os.environ.get("ZARRC_RECORD_UNTIL", "inf"))
SHOWN = 40  # tests that failed


# ---- inside pytest --------------------


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(os.environ["ZARRC_RECORD"]))


def pytest_collection_modifyitems(items):
    if UNTIL != float("inf"):  # each worker must find the same order
        random.Random(int(os.environ["ZARRC_SEED"])).shuffle(items)


def pytest_runtest_setup():
    if time.time() > UNTIL:
        import pytest
        pytest.skip("no time is left")


class Recorder:
    def __init__(self, path):
        self.file = open(path, "w", buffering=1)  # line by line

    def tell(self, **what):
        self.file.write(json.dumps(what) + "\n")

    def tell_report(self, report):
        lines = report.longreprtext.splitlines()
        said = [line[1:].strip() for line in lines if line.startswith("E ")] or lines[-1:]
        why = {} if report.passed else {"why": said[0] if said else ""}
        self.tell(test=report.nodeid, state=report.outcome, **why, **dict(getattr(report, "user_properties", [])))

    def pytest_runtest_logstart(self, nodeid):
        self.tell(test=nodeid, state="started")

    def pytest_runtest_logreport(self, report):
        """One report each of set-up, test and tear-down; a skip or a failure ends the test in any of them."""
        if report.when == "call" or not report.passed:
            self.tell_report(report)

    def pytest_collectreport(self, report):
        if report.failed:
            self.tell_report(report)


# ---- after it --------------------


def summary(path):
    """How many tests passed and so on, what was wrong, and the codecs that scripts/status is told of."""
    lines = [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")] if path.exists() else []
    ends = {line["test"]: line for line in lines}  # by its last line; of a test that did not end it tells "started"
    wrong = [f"{name}: {line.get('why', 'no end')}" for name, line in ends.items() if line["state"] in ("failed", "started")]
    return {**Counter(line["state"] for line in ends.values()), "wrong": wrong[:SHOWN], "codecs": codecs_that_moved(ends)}


def codecs_that_moved(ends):
    """{kind: names of the codecs whose elements were in memory of this kind, and of which no test failed or did not end}"""
    states = {}
    for test, line in ends.items():
        if found := re.search(r"::test_kind\[(.+?)(?: of numbers)?-(\w+)\]$", test):
            states.setdefault(found.groups(), []).append((line["state"], line.get("moved", False)))
    good = [key for key, told in states.items() if {state for state, _ in told} == {"passed"} and any(moved for _, moved in told)]
    return {kind: sorted(name for name, of in good if of == kind) for kind in dict.fromkeys(kind for _, kind in good)}
