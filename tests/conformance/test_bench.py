"""bench/peers: its statistics, its tables, and its workers on small arrays. No time is looked at."""
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["ZARRC_LIBRARY"]).resolve().parent.parent
HERE = ROOT / "bench/peers"


NAMES = ("cases", "pages", "peers", "results", "sample", "samples")  # of modules; other folders of tests have some of these, too


@pytest.fixture(autouse=True, scope="module")
def modules():
    others = {name: sys.modules.pop(name, None) for name in NAMES}
    sys.path.insert(0, str(HERE))
    yield
    sys.path.remove(str(HERE))
    for name, other in others.items():
        sys.modules.pop(name, None)
        if other:
            sys.modules[name] = other


def of(name):
    return importlib.import_module(name)


def make_rounds(*seconds, dirty=()):
    return [{"round": n, "seconds": s, "cpu": s, "faults": 1, "peak_kb": 1024, "dirty": n in dirty} for n, s in enumerate(seconds)]


def test_a_ratio_is_of_the_same_rounds():
    """The machine was slow in round 1, for both: the ratio does not notice."""
    found = of("samples").ratio(make_rounds(2, 20, 2), make_rounds(1, 10, 1))
    assert found == (2, 2, 2)


def test_dirty_samples_count_nowhere():
    samples = of("samples")
    over, under = make_rounds(2, 50, 2, dirty={1}), make_rounds(1, 1, 4, dirty={2})
    assert samples.median(over) == 2
    assert samples.ratio(over, under) == (2, 2, 2)
    assert samples.n_dirty({"a": over, "b": under}) == 2
    assert samples.ratio(over, make_rounds(1, 1, 1, dirty={0, 2})) is None
    assert samples.median(make_rounds(1, dirty={0})) is None


def test_an_interval_holds_the_median_and_is_the_same_each_time():
    samples = of("samples")
    values = [1, 1.1, 1.2, 1.3, 9]
    low, high = samples.interval(values)
    assert 1 <= low <= 1.2 <= high <= 9
    assert samples.interval(values) == (low, high)
    assert samples.interval([3, 1]) == (1, 3)


def test_a_line_finds_what_a_chunk_costs():
    rest, each = of("samples").line([(n, .05 + 2e-6 * n) for n in (64, 1024, 16384)])
    assert (rest, each) == (pytest.approx(.05), pytest.approx(2e-6))


def test_foreign_and_stolen_time_makes_a_sample_dirty():
    sample = of("sample")
    tick = sample.TICK
    assert not sample.is_dirty(2 * tick, 0, 2.0, 1.0, 2)
    assert sample.is_dirty(2 * tick, 0, 1.5, 1.0, 2)
    assert sample.is_dirty(tick, tick // 10, 1.0, 1.0, 2)
    assert not sample.is_dirty(2, 2, 0.0, .01, 2), "less than the clock can tell"


def a_run():
    """One case that reaches its targets and one that does not."""
    case = {"size": 512, "bytes": 2**28, "rounds": 3, "absent": {}, "commit": "0123", "when": "2026-01-01 00:00"}
    good = {"floor": make_rounds(1, 1, 1), "zarrc": make_rounds(1, 1, 1), "zarrs-mimalloc": make_rounds(2, 2, 2), "zarr-python": make_rounds(8, 8, 8)}
    slow = {"floor": make_rounds(1, 1, 1), "zarrc": make_rounds(2, 2, 2), "zarrs-mimalloc": make_rounds(1, 1, 1)}
    facts = {"cpu": "A", "cores": 2, "kernel": "6", "huge_pages": "madvise", "file_system": "ext4", "durability": "none", "outputs": "own",
             "peers": {"zarrs-mimalloc": {"version": "1", "flags": "fast"}, "gdal": {"absent": "no package"}}}
    return {"facts": facts, "cases": [{**case, "name": "read/raw", "samples": good}, {**case, "name": "read/zstd", "samples": slow}]}


def test_the_front_page_has_the_milliseconds_of_each_library():
    table = of("pages").short_table({"peers-a": a_run()})
    good, slow = [line for line in table.split("\n") if line.startswith("| read all")]
    assert good == "| read all, raw, 512^3 | 1000 | 2000 |  | 8000 |  |  |"
    assert slow == "| read all, zstd, 512^3 | 2000 | 1000 |  |  |  |  |"


def test_only_cubes_have_an_edge():
    pages, run = of("pages"), a_run()
    run["cases"] = [{**run["cases"][0], "name": name} for name in ("crops", "tree/list", "strings", "read/inner-raw", "v2")]
    assert [pages.title(row) for row in pages.rows({"peers-a": run})] == [
        "read 8192 chunks of 4 KiB in a shard, raw", "500 random boxes of 32^3, 512^3", "10^7 texts", "list a group of 10^4 arrays"]


def test_times_have_one_unit():
    assert [of("pages").ms(seconds) for seconds in (3.87e-6, .0563, 2.034)] == ["0.00387", "56.3", "2034"]


def test_the_page_names_peers_that_are_absent_and_what_is_short():
    page = of("pages").page({"peers-a": a_run()})
    assert "gdal | not installed: no package" in page
    assert "2.00 of the floor, at most 1.1 wanted" in page
    assert "0.50 of zarrs with mimalloc, at least 1.1 wanted" in page


def test_the_readme_keeps_its_other_text():
    pages = of("pages")
    text = f"before\n{pages.BEGIN}\nold\n{pages.END}\nafter\n"
    assert pages.replace_table(text, "new") == f"before\n{pages.BEGIN}\nnew\n{pages.END}\nafter\n"


def test_a_table_that_is_not_what_the_samples_say_is_stale(tmp_path):
    for folder in ("scripts", "bench/results", "docs"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / "scripts/gen-benchmarks", tmp_path / "scripts")
    shutil.copytree(HERE, tmp_path / "bench/peers")
    pages, run = of("pages"), a_run()
    run["cases"] = [of("results").pack(record) for record in run["cases"]]
    of("results").write(tmp_path / "bench/results/peers-a.json", run)
    (tmp_path / "README.md").write_text(f"before\n{pages.BEGIN}\n{pages.END}\n")
    generate = [sys.executable, "-B", tmp_path / "scripts/gen-benchmarks"]
    assert subprocess.run([*generate, "--check"], capture_output=True, check=False).returncode == 1
    subprocess.run(generate, check=True, capture_output=True)
    assert subprocess.run([*generate, "--check"], capture_output=True, check=False).returncode == 0
    readme = tmp_path / "README.md"
    readme.write_text(readme.read_text().replace("| 2000 |", "| 3000 |", 1))
    told = subprocess.run([*generate, "--check"], capture_output=True, text=True, check=False)
    assert told.returncode == 1 and told.stderr.startswith("README.md: stale")


def test_results_come_back_as_they_were_and_a_case_is_replaced(tmp_path, monkeypatch):
    results = of("results")
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    run = a_run()
    facts = {**run["facts"], "commit": "4567"}
    for record in (*run["cases"], run["cases"][0]):
        results.add("peers-x", facts, record)
    found = results.read(tmp_path / "peers-x.json")
    assert [record["name"] for record in found["cases"]] == ["read/zstd", "read/raw"]
    assert found["cases"][1]["samples"] == run["cases"][0]["samples"]
    assert found["cases"][1]["commit"] == "4567"


def test_every_case_names_an_array_and_a_peer_that_can_do_it():
    cases, peers = of("cases"), of("peers")
    sets = cases.sets(512)
    names = [case.name for case in cases.cases()]
    assert len(names) == len(set(names))
    for case in cases.cases():
        assert not peers.cannot("zarrc", case, sets[case.set]), case.name
        assert any(not peers.cannot(name, case, sets[case.set]) for name in peers.NAMES if name not in peers.OURS), case.name


CASES = "read/noisy,read/big-endian,write/shard,inner-chunks-2,crops,append,delay"


@pytest.mark.long  # it starts some thirty interpreters: 20 s of a core
@pytest.mark.skipif(not (BUILD / "bench/floor").exists(), reason="a build without benchmarks")
def test_workers_agree_on_small_arrays(tmp_path):
    """The floor, zarrc, TensorStore and zarr-python have the same checksums, or the run would say who failed."""
    command = [sys.executable, HERE / "run", "--size", "128", "--rounds", "1", "--retries", "0", "--cases", CASES, "--dir", tmp_path / "disk",
               "--memory", tmp_path / "memory", "--peers", "floor,zarrc,tensorstore,zarr-python", "--save", tmp_path / "found.json"]
    installed = {name: {"program": sys.executable, "version": "", "flags": ""} for name in ("tensorstore", "zarr-python")}
    (tmp_path / "peers.json").write_text(json.dumps(installed))
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHON": sys.executable, "BENCH_BUILD": str(BUILD), "BENCH_PEERS": str(tmp_path / "peers.json")})
    assert done.returncode == 0, done.stderr[-2000:]
    found = of("results").read(tmp_path / "found.json")
    assert len(found["cases"]) == len(CASES.split(","))
    able = ("no bare loop", "takes no store of the program's")
    for record in found["cases"]:
        assert {"zarrc", "zarr-python"} <= set(record["samples"]), record
        assert all(reason in able for reason in record["absent"].values()), record["absent"]
