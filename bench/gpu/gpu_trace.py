"""gpu_trace - what the GPU did during a call, by the profiler of torch: which kernels and copies, how long each took, and how long
the GPU was busy with any of them."""
import collections
import json
import tempfile
from pathlib import Path

ON_GPU = {"kernel", "gpu_memcpy", "gpu_memset"}
SHOWN = 12


def union(spans):
    """The length of spans that may overlap."""
    total, end = 0, float("-inf")
    for start, stop in sorted(spans):
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total


def summary(events):
    """Milliseconds, of the events of a file for Chrome's viewer."""
    events = [event for event in events if event.get("ph") == "X"]
    gpu = [event for event in events if event.get("cat") in ON_GPU]
    kinds = collections.defaultdict(list)
    for event in events:
        if event.get("cat") in ON_GPU | {"cuda_driver", "cuda_runtime"}:
            kinds[event["cat"], event["name"]].append(event)

    def row(key):
        those = kinds[key]
        row = {"what": key[1][:60], "on": key[0], "n": len(those), "ms": round(sum(event["dur"] for event in those) / 1e3, 3),
               "busy_ms": round(union((event["ts"], event["ts"] + event["dur"]) for event in those) / 1e3, 3)}
        n_bytes = sum(event.get("args", {}).get("bytes", 0) for event in those)
        return {**row, **({"gib": round(n_bytes / 2**30, 4)} if n_bytes else {})}
    spans = {name: [(event["ts"], event["ts"] + event["dur"]) for event in gpu if event["cat"] in cats]
             for name, cats in {"gpu": ON_GPU, "kernels": {"kernel"}, "copies": {"gpu_memcpy"}}.items()}
    whole = [edge for span in spans["gpu"] for edge in span]
    return {"span_ms": round((max(whole) - min(whole)) / 1e3, 3) if whole else 0,
            **{f"{name}_busy_ms": round(union(span) / 1e3, 3) for name, span in spans.items()},
            "rows": sorted(map(row, kinds), key=lambda row: -row["ms"])[:SHOWN]}


def trace_gpu(what):
    """What the GPU did during what()."""
    import torch
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        what()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory(prefix="zarrc-trace-") as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        return summary(json.loads(path.read_text())["traceEvents"])


def format_trace(trace):
    """Lines for a person; none without a trace."""
    if not trace:
        return
    yield "    span {span_ms} ms; busy: GPU {gpu_busy_ms}, kernels {kernels_busy_ms}, copies {copies_busy_ms}".format(**trace)
    for row in trace["rows"]:
        yield f"    {row['ms']:9.2f} ms {row['n']:6} x {row['what']:60} busy {row['busy_ms']:8.2f}" + (
            f" {row['gib']} GiB" if "gib" in row else "")
