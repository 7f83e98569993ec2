"""A plugin of pytest for scripts/zarr-suite: writes how each test ended, one JSON a line, and how much
of the chunks the library did. Workers of xdist load it, too."""
import json
import logging
import os

import pytest

if examples := os.environ.get("ZARR_SUITE_EXAMPLES"):  # before zarr-python's conftest.py loads the profile
    from hypothesis import HealthCheck, settings
    settings.register_profile("zarr-suite", max_examples=int(examples), deadline=None,
                              suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])

LOG = os.environ["ZARR_SUITE_LOG"]


class Why(logging.Handler):
    """Appends to a file what the package notes about a batch that it leaves to zarr-python, with the test."""

    def emit(self, record):
        if record.module.startswith("_pipeline"):
            with open(os.environ["ZARR_SUITE_WHY"], "a") as file:
                file.write(f"{os.environ.get('PYTEST_CURRENT_TEST', '')}\t{record.getMessage()}\n")


if os.environ.get("ZARR_SUITE_WHY"):
    os.environ.setdefault("ZARRC_LOG_LEVEL", "warn")  # of the library itself: nothing more
    logging.getLogger("zarrc").addHandler(Why())
    logging.getLogger("zarrc").setLevel(logging.DEBUG)
_stats = {"native_chunks": 0, "fallback_chunks": 0, "buffers": 0, "reasons": {}}
_buffers = []  # one for each array that zarrc.ZarrcNDBuffer was asked for


def _is_worker(config):
    return hasattr(config, "workerinput")


def _add(found):
    for name in ("native_chunks", "fallback_chunks", "buffers"):
        _stats[name] += found[name]
    for cause, row in found["reasons"].items():
        _stats["reasons"].setdefault(cause, {**row, "chunks": 0})["chunks"] += row["chunks"]


def _watch_buffers():
    from zarrc import ZarrcNDBuffer
    own = ZarrcNDBuffer.empty.__func__

    def empty(cls, *given, **named):
        _buffers.append(1)
        return own(cls, *given, **named)

    ZarrcNDBuffer.empty = classmethod(empty)


def _own_stats():
    import zarrc
    found = zarrc.pipeline_stats() if os.environ["ZARR_SUITE_STATS"] else {**_stats, "reasons": {}}
    return {**found, "buffers": len(_buffers)}


class Watch:
    def __init__(self):
        self.file = open(LOG, "a")

    def put(self, **row):
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()

    def pytest_runtest_logreport(self, report):
        why = "" if report.outcome != "failed" else str(
            getattr(getattr(report.longrepr, "reprcrash", None), "message", "") or report.longrepr)[-2000:]
        self.put(id=report.nodeid, when=report.when, outcome="xfailed" if hasattr(report, "wasxfail") else report.outcome,
                 why=why)

    def pytest_collectreport(self, report):
        if report.outcome == "failed":
            self.put(id=report.nodeid, when="collect", outcome="failed", why=str(report.longrepr)[-2000:])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    _add((getattr(node, "workeroutput", None) or {}).get("zarr_suite", {**_stats, "native_chunks": 0, "fallback_chunks": 0,
                                                                       "buffers": 0, "reasons": {}}))


def pytest_configure(config):
    if os.environ.get("ZARR_NDBUFFER"):
        _watch_buffers()
    if not _is_worker(config):
        config.pluginmanager.register(Watch(), "zarr-suite")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if _is_worker(session.config):
        session.config.workeroutput["zarr_suite"] = _own_stats()


def pytest_unconfigure(config):
    if not _is_worker(config):
        with open(LOG, "a") as file:
            file.write(json.dumps({"stats": _stats}) + "\n")
