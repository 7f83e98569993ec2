"""Counts the tests in the reports of build/logs, which scripts/run-tests writes."""
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter

from csource import ROOT

LOGS = ROOT / "build/logs"
CASES = re.compile(r"^\[\s*(PASSED|FAILED|SKIPPED)\s*\] (\d+) test\(s\)", re.M)


def read_ctest(report, tell=print):
    """Cases of a cmocka program are counted one by one, another program as one."""
    numbers = Counter()
    if not report.exists():
        return Counter(failed=1)
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        text = case.findtext("system-out") or ""
        found = Counter()
        for word, n in CASES.findall(text):
            found[word.lower()] += int(n)
        skipped = case.find("skipped")
        if case.get("status") == "run":
            numbers += found if sum(found.values()) else Counter(passed=1)
        elif skipped is not None and "SKIP_RETURN_CODE" in (skipped.get("message") or ""):
            numbers["skipped"] += 1
            reason = text.strip().splitlines()
            tell(f"skipped: {case.get('name')}: {reason[-1] if reason else 'no reason given'}")
        else:
            numbers += found
            numbers["failed"] += not found["failed"]
    return numbers


def read_pytest(report):
    if not report.exists():
        return Counter(failed=1)
    numbers = Counter()
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        failed = int(suite.get("failures")) + int(suite.get("errors"))
        skipped = int(suite.get("skipped"))
        numbers.update(failed=failed, skipped=skipped,
                       passed=int(suite.get("tests")) - failed - skipped)
    return numbers
