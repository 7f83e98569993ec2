"""Finds the uses between rooms, by names and by symbols, for check-layers.

A door "room/room.h", with the headers of the room that it includes, declares names: macros,
enum constants, functions, types. A name zr_x or ZR_X belongs to the room whose door declares
it. A room can be inside of another one ("pipe/chunk"): rooms outside of that one see only the
outer room, and its door shows them what it includes of inner doors. A room *uses* another if

  * an object file of it needs a symbol that an object file of the other defines, or
  * a file of it contains (comments and strings apart) a name that belongs to the other, or
    the tag of a public type zarr_x that the other's door completes and this file includes,
    also through other headers.
"""
import json
import re
import subprocess
from functools import lru_cache
from pathlib import Path

from csource import ROOT, bare

SRC = ROOT / "src"
WORD = re.compile(r"\b(?:zr_|ZR_|zarr_)\w+")
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
QUOTED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)


def door_of_room(room):
    return SRC / room / f"{room.rpartition('/')[2]}.h"


def room_of_file(path, rooms):
    """The innermost room that has this file of src/."""
    return max((r for r in rooms if SRC / r in path.parents), key=len, default=None)


def seen_from(home, room):
    """What a room is for another one: itself, or the room around it for those outside."""
    outer = room.rpartition("/")[0]
    return outer if outer and home != outer and not home.startswith(outer + "/") else room


def sources(room, rooms):
    return sorted(p for p in (SRC / room).rglob("*")
                  if p.suffix in (".c", ".h") and room_of_file(p, rooms) == room)


def find_door_headers(room, rooms):
    """The door of a room, and the headers of the room that it includes."""
    door = door_of_room(room)
    return [door, *(h for h in find_included(door) if room_of_file(h, rooms) == room)] if door.is_file() else []


@lru_cache(None)
def code(path):
    return bare(path.read_text())


@lru_cache(None)
def words(path):
    return frozenset(WORD.findall(code(path)))


def file_level(text):
    """The text without what is in braces."""
    out, depth = [], 0
    for piece in re.split(r"([{}])", text):
        if piece == "{":
            depth += 1
        elif piece == "}":
            depth -= 1
        elif depth == 0:
            out.append(piece)
    return " ".join(out)


def find_declared(door):
    """(names that the door declares, tags that it only announces: struct x;)"""
    text = DIRECTIVE.sub("", code(door))
    top = file_level(text)
    names = set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", code(door), re.M))
    names.update(re.findall(r"\b(?:struct|union|enum)\s+(\w+)\s*\{", text))
    for constants in re.findall(r"\benum\b[^{};]*\{([^}]*)\}", text):
        names.update(re.findall(r"(?:^|,)\s*(\w+)", constants))
    names.update(re.findall(r"\b(\w+)\s*\((?!\s*\*)", top))        # functions
    names.update(re.findall(r"\(\s*\*\s*(\w+)\s*\)", top))         # pointers to functions
    names.update(re.findall(r"\b(\w+)\s*(?:\[[^\]]*\]\s*)?;", top))  # typedefs, variables
    announced = set(re.findall(r"\b(?:struct|union|enum)\s+(\w+)\s*;", top))
    return names - announced, announced


def owners(rooms):
    """{name: room}; of a tag that doors only announce, the lowest that does."""
    owner, announced = {}, {}
    for room in rooms:
        for header in find_door_headers(room, rooms):
            names, tags = find_declared(header)
            owner.update((n, room) for n in names if WORD.fullmatch(n))
            for tag in tags:
                announced.setdefault(tag, room)
    for tag, room in announced.items():
        owner.setdefault(tag, room)
    return owner


@lru_cache(None)
def find_included(path):
    """All headers of src/ that this file includes, directly or not."""
    found = set()
    for name in QUOTED.findall(bare(path.read_text(), keep_strings=True)):
        for header in (SRC / name, path.parent / name):
            if header.is_file():
                found |= {header.resolve()} | find_included(header.resolve())
                break
    return frozenset(found)


def find_named(path, rooms, owner):
    """{other room: a name of it that this file contains}"""
    home, out = room_of_file(path, rooms), {}
    for name in sorted(words(path)):
        other = seen_from(home, owner.get(name, home))
        if other == home or other in out:
            continue
        if name.startswith("zarr_") and door_of_room(other).resolve() not in find_included(path):
            continue
        out[other] = name
    return out


def objects(build, rooms):
    """{room: the object files of it that this build tree is made of}"""
    out = {room: [] for room in rooms}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        target = re.search(r"-o (\S*/zr_([a-z0-9_]+)\.dir/\S+)", entry["command"])
        room = target and target.group(2).replace("_", "/")
        if room in out:
            out[room].append(Path(entry["directory"]) / target.group(1))
    return out


def symbols(build, rooms):
    """{room: {other room: a symbol of it that an object of the first needs}}"""
    defined, needed = {}, {room: set() for room in rooms}
    for room, files in objects(build, rooms).items():
        if not files:
            continue
        text = subprocess.run(["nm", "-P", "-g", *files], check=True, capture_output=True, text=True).stdout
        for line in text.splitlines():
            name, kind, *_ = line.split() + [""]
            if kind == "U":
                needed[room].add(name)
            elif kind and kind not in "wv":
                defined[name] = room
    out = {room: {} for room in rooms}
    for room in rooms:
        for name in sorted(needed[room]):
            other = seen_from(room, defined.get(name, room))
            if other != room:
                out[room].setdefault(other, name)
    return out
