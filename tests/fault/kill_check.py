"""kill_check - what must hold after an operation was killed, after it was repeated, and after two operations that ran at once.
Each check returns what is wrong, or None."""
import json
import re
from typing import NamedTuple

import kill_store as store


class State(NamedTuple):
    nodes: dict
    listed: dict  # as readers find them through consolidated metadata
    files: list
    codes: list
    calls: int  # system calls on a store


REPLACES = re.compile(r"--force|overwrite=True|mode='w'|if_exists='replace'|\bsave|^rm|\bmv\b|\bdel ")
# A fault that verify reports after a kill names unfinished work: its severity is "warning", never "error".
LISTS = "consolidated metadata of "


def command_text(command):
    return command if isinstance(command, str) else " ".join(command)


def is_mix(node, states, step=None):
    """Whether each object of an array has the elements of one of the states. Outside of a state, and without one, all are zero."""
    step, n = step or node.block, len(node.data)
    sources = [(s.data if s else b"")[:n].ljust(n, b"\0") for s in states if not s or s.kind == "array" and s.dtype == node.dtype]
    return all(any(node.data[i:i + step] == s[i:i + step] for s in sources) for i in range(0, n, step))


def describe(node):
    if node is None:
        return "none"
    return f"{node.kind} {node.shape} {node.attributes} crc {hash(node.data) & 0xffff:x}" if node.kind == "array" else f"group {node.attributes}"


def find_wrong_node(folder, operation, name, node, before, after):
    """Why a reader must not find this node."""
    old, new = before.nodes.get(name), after.nodes.get(name)
    if node in (old, new):
        return None
    if name.endswith(store.STAGED):  # named by verify and clean
        return None
    if node.kind == "array":
        if name in operation.mixes and any(s and node.shape == s.shape for s in (old, new)) and is_mix(node, [old, new]):
            return None
        unfinished = not old and new and node.is_like(new) and (folder / name / store.JOB).exists()
        if unfinished and is_mix(node, [new, None]):
            return None
    return f"{name}: {describe(node)} is neither the old node ({describe(old)}) nor the new one ({describe(new)})"


def find_lost(operation, now, before, after):
    """Elements that the old and the new state have, and that are gone."""
    def contents(nodes):
        return {node.data for node in nodes.values() if node.kind == "array" and any(node.data)}
    if contents(before.nodes) & contents(after.nodes) - contents(now):
        return "elements of an array that the operation keeps are gone"
    for name in operation.keeps:
        if not {s.nodes[name].data for s in (before, after)} & contents(now):
            return f"{name}: neither its old nor its new elements are anywhere"
    for name in set(before.nodes) & set(after.nodes) - set(now):
        if before.nodes[name] == after.nodes[name] or not REPLACES.search(command_text(operation.command)):
            return f"{name}: not found"
    return None


def find_wrong_listing(folder, operation, now, before, after):
    """What is wrong with consolidated metadata, as readers use it."""
    listed, different = store.read_consolidated(folder)
    for name, node in listed.items():
        if name not in now:
            return f"consolidated metadata lists {name}, which is gone"
        if problem := find_wrong_node(folder, operation, name, node, before, after):
            return f"through consolidated metadata, {problem}"
    for name in different:
        if not operation.lags:
            return f"consolidated metadata lists another document of {name or 'the root'} than its own"
    return None


def find_wrong_verify(folder, zarrc, lags):
    for name in store.stores(folder):
        done = zarrc("verify", "--json", name)
        if done.returncode == 3 and "interrupted" in done.stderr + done.stdout:
            continue
        if done.returncode == 3 and not any(place[0] == name for place in store.find_nodes(folder)):
            continue
        if done.returncode not in (0, 1):
            return f"verify {name}: exit code {done.returncode}: {done.stderr[-300:]}"
        for fault in json.loads(done.stdout)["faults"]:
            if fault["severity"] == "error" or fault["reason"].startswith(LISTS) and not lags and "missing" not in fault["reason"]:
                return f"verify {name}: {fault['severity']} {fault['code']} {fault['key']}: {fault['reason']}"
    return None


def find_unnamed(folder, zarrc, now, before, after):
    """What remains, and clean does not name."""
    text, no_store = "", set()
    for name in sorted({*store.stores(folder), *before.nodes, *after.nodes}):
        if "/" in name and name.partition("/")[0] not in no_store:
            continue
        done = zarrc("clean", "--age=0", name)
        text += done.stderr + done.stdout
        no_store |= {name} if done.returncode == 3 else set()
        if done.returncode not in (0, 3):
            return f"clean {name}: exit code {done.returncode}: {done.stderr[-300:]}"
    for name in (set(before.nodes) | set(after.nodes)) - set(now):
        above = [name, *(str(p) for p in (folder / name).relative_to(folder).parents)][:-1]
        if store.is_occupied(folder, name) and not any(a.partition("/")[2] in text if "/" in a else a in text for a in above):
            return f"clean does not name what remains at {name}"
    for name in store.files(folder):
        if name.endswith(store.JOB) and name.partition("/")[2] not in text and "interrupted" not in text:
            return f"clean does not name {name}"
        if name.endswith("__lock") and name.partition("/")[0] not in no_store:
            return f"clean leaves {name}"
    return None


def after_kill(folder, operation, before, after, point, zarrc):
    try:
        now = store.read_nodes(folder)
        problem = next(filter(None, (find_wrong_node(folder, operation, name, node, before, after) for name, node in now.items())), None)
        problem = problem or find_lost(operation, now, before, after) or find_wrong_listing(folder, operation, now, before, after)
    except Exception as error:
        return f"a reader fails: {type(error).__name__}: {error}"
    problem = problem or find_wrong_verify(folder, zarrc, operation.lags)
    if not problem and point % 2:
        problem = find_unnamed(folder, zarrc, now, before, after)
    return problem


def find_wrong_growth(folder, operation, zarrc):
    """Elements that come back when the array grows."""
    name, length = operation.grows
    old = store.read_nodes(folder)[name]
    done = zarrc("resize", name, str(length))
    if done.returncode:
        return f"resize after the kill: exit code {done.returncode}: {done.stderr[-300:]}"
    new = store.read_nodes(folder)[name]
    if new.data[:len(old.data)] != old.data or any(new.data[len(old.data):]):
        return f"{name}: removed or unfinished elements come back after a resize"
    return None


def after_repeat(folder, operation, before, after, repeat, zarrc, is_odd):
    if operation.grows and is_odd:
        return find_wrong_growth(folder, operation, zarrc)
    is_done, is_refused = store.read_nodes(folder) == after.nodes, False
    if operation.repeat == "":
        return None
    if not (is_done and "append" in command_text(operation.command)):
        done = repeat()
        is_refused = isinstance(operation.command, str) and done.returncode != 0  # the node exists, or has moved
        if done.returncode and not is_done:
            return f"the repeated command: exit code {done.returncode}: {done.stderr[-300:]}"
    now = store.read_nodes(folder)
    if now != after.nodes:
        names = [name for name in {*now, *after.nodes} if now.get(name) != after.nodes.get(name)]
        return f"the repeated command does not complete it: {[(n, describe(now.get(n)), describe(after.nodes.get(n))) for n in names][:3]}"
    for name in store.stores(folder):
        zarrc("clean", "--age=0", name)
        if is_done and (operation.lags or is_refused) and after.listed:
            zarrc("consolidate", name)
    found, wanted = set(store.files(folder)), {name for name in after.files if not name.endswith("__lock")}
    if found != wanted:
        return f"after the repeated command and clean: more files {sorted(found - wanted)[:5]}, fewer {sorted(wanted - found)[:5]}"
    listed, different = store.read_consolidated(folder)
    if different or listed != after.listed:
        return f"after the repeated command: consolidated metadata differs: {sorted(different) or sorted(set(listed) ^ set(after.listed))}"
    for name in store.stores(folder):
        done = zarrc("verify", "--json", name)
        if done.returncode or operation.uses == "zarrc" and json.loads(done.stdout)["faults"]:
            return f"verify {name} after the repeated command: {done.stdout[:600]}"
    return None


# ---- pairs ----

def find_wrong_in_pair(now, states, base):
    """A node that none of these states has. Elements may be those of any of them: a command that copies or moves reads what
    another one has written in part."""
    arrays = [node for s in states for node in s.nodes.values() if node.kind == "array"]
    for name, node in now.items():
        found = [s.nodes[name] for s in states if name in s.nodes]
        if node in found or name.endswith(store.STAGED):
            continue
        if node.kind == "array" and (node.shape, node.attributes) in {(s.shape, s.attributes) for s in found} and is_mix(
                node, arrays, None if name in base.nodes else 4):  # a copy may have another grid
            continue
        return f"{name}: {describe(node)} is no node of either order ({', '.join(map(describe, found))})"
    return None


def while_stopped(folder, states):
    """After the second has ended, before the first goes on."""
    try:
        return find_wrong_in_pair(store.read_nodes(folder), states, states[0])
    except Exception as error:
        return f"a reader fails: {type(error).__name__}: {error}"


# Exit code 2 of a pair: the file does not fit the array that replaced the one before; the node was moved to where it is copied.
REFUSALS = re.compile("has [0-9]+ bytes, not a multiple of|they are one place|overlap")


def after_pair(folder, base, serial, lines, codes, texts, zarrc):
    for line, code, text in zip(lines, codes, texts):
        if code not in {0, 3, 5, 7} and not (code == 2 and ("import" in line or REFUSALS.search(text))):
            return "exit code"
    if codes == (0, 0):  # one that fails after the other cannot have been the second
        states = [s for s in (serial["ab"], serial["ba"]) if s.codes == [0, 0]] or [serial["ab"], serial["ba"]]
    else:  # one that fails may leave a part of its work
        states = [base, *serial.values()]
    try:
        now = store.read_nodes(folder)
        if now not in [s.nodes for s in states]:
            if problem := find_wrong_in_pair(now, states, base):
                return problem
            for name in set.intersection(*(set(s.nodes) for s in states)) - set(now):
                return f"{name}: not found"
        listed, different = store.read_consolidated(folder)
        if different or not set(listed) <= set(now):
            return f"consolidated metadata lists another document of {sorted(different)}, or gone nodes {sorted(set(listed) - set(now))}"
    except Exception as error:
        return f"a reader fails: {type(error).__name__}: {error}"
    return find_wrong_verify(folder, zarrc, False)
