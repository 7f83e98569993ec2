"""results - the files bench/results/peers-*.json: facts of the machine, and the samples of each case."""
import json
import pathlib
import time

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "results"
COLUMNS = ("round", "seconds", "cpu", "faults", "peak_kb", "dirty")


def pack(record):
    """With a short list for each sample."""
    rows = {name: [[each[column] for column in COLUMNS] for each in of] for name, of in record["samples"].items()}
    return {**record, "samples": rows}


def unpack(record):
    rows = {name: [dict(zip(COLUMNS, each)) for each in of] for name, of in record["samples"].items()}
    return {**record, "samples": rows}


def write(path, found):
    """A line for each peer of a case."""
    parts = []
    for record in found["cases"]:
        head = {key: value for key, value in record.items() if key != "samples"}
        rows = ",\n  ".join(f"{json.dumps(name)}: {json.dumps(rows)}" for name, rows in record["samples"].items())
        parts.append(json.dumps(head)[:-1] + ', "samples": {\n  ' + rows + "}}")
    text = "{\"facts\": " + json.dumps(found["facts"], indent=1) + ",\n\"columns\": " + json.dumps(COLUMNS) + ",\n\"cases\": [\n" + ",\n".join(parts) + "\n]}\n"
    path.write_text(text)


def read(path):
    found = json.loads(pathlib.Path(path).read_text())
    return {**found, "cases": [unpack(record) for record in found["cases"]]}


def result_path(name):
    """A name is that of a file in bench/results."""
    return pathlib.Path(name) if "/" in name else FOLDER / f"{name}.json"


def names(name):
    """(case, size) of all that a file has."""
    path = result_path(name)
    return {(each["name"], each["size"]) for each in read(path)["cases"]} if path.exists() else set()


def add(name, facts, record):
    """Puts a case into a file, in place of what is there of it."""
    path = result_path(name)
    found = json.loads(path.read_text()) if path.exists() else {"cases": []}
    record = pack({**record, "commit": facts["commit"], "when": time.strftime("%Y-%m-%d %H:%M")})
    kept = [each for each in found["cases"] if (each["name"], each["size"]) != (record["name"], record["size"])]
    path.parent.mkdir(exist_ok=True)
    facts = {key: value for key, value in facts.items() if key != "commit"}
    all_peers = {**found.get("facts", {}).get("peers", {}), **facts["peers"]}
    write(path, {"facts": {**facts, "peers": all_peers}, "cases": [*kept, record]})
