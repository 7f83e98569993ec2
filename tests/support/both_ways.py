"""both_ways - one document and one array of data, written and read by every implementation, in
every kind of memory and with both pipelines. All results are compared bit for bit. Only what a plug-in
encodes may differ from what the CPU does: the other implementations read what it wrote."""
import json
import shutil

import numpy as np

import cases
import peers
from zarrc_abi import FAKE, PLUGIN, Stats

WAYS = [("host", "waves"), ("fake", "waves"), ("host", "serial"), ("fake", "serial")]
if PLUGIN:  # the others read what the first wrote
    WAYS = [("fake", "waves"), ("host", "waves"), ("fake", "serial"), ("host", "serial")]


def read_every_way(array, data, rng):
    """Reads all of the array into both memories by both pipelines, into odd layouts too."""
    shape, dtype = data.shape, np.dtype(data.dtype)
    for turn, (memory, pipeline) in enumerate(WAYS):
        stats = Stats()
        view = cases.layout(rng, shape, dtype, plain=turn % 2 == 0, swap=False if turn < 2 else None)
        array.read_into(view, memory=memory, pipeline=pipeline, stats=stats)
        cases.same_bits(view, data)
        assert cases.gaps_intact(view), (memory, pipeline)
        check_counters(stats, data, memory, pipeline)


def check_counters(stats, data, memory, pipeline):
    assert stats.chunks_done == stats.chunks_total, stats
    assert stats.elements == data.size, stats
    if memory == "host":
        assert stats.copies_up == stats.copies_down == stats.copies_device == 0, stats
        assert stats.copies_decoded_host == 0, stats
    elif stats.bytes_stored:  # what files hold comes to the device by a copy, always counted
        assert stats.copies_up > 0 and stats.bytes_up > 0, stats
    if pipeline == "serial":
        assert stats.chunks_direct == 0, stats


def write_every_way(context, document, data, rng, folder):
    """The same array from both memories by both pipelines into stores of three kinds; all
    must hold the same keys and bytes. The first is the folder. Returns them."""
    dumps = []
    for turn, (memory, pipeline) in enumerate(WAYS):
        if turn == 0:
            store = context.store(str(folder), create=True)
        else:
            store = context.store("memory:", device_type=FAKE if turn % 2 else 0)
        array = store.create(document=document)
        view = cases.layout(rng, data.shape, data.dtype, plain=turn % 2 == 0,
                            swap=False if turn < 2 else None)
        view[...] = data
        stats = Stats()
        array.write(view, memory=memory, pipeline=pipeline, stats=stats)
        if memory == "host" and turn == 0:
            assert stats.copies_up == stats.copies_down == stats.copies_device == 0, stats
        assert stats.chunks_done == stats.chunks_total, stats
        cases.same_bits(array.read(data.dtype), data)
        dumps.append(store.dump())
    for dump, way in zip(dumps[1:], WAYS[1:]):
        assert dump.keys() == dumps[0].keys(), way
        different = [key for key in dump if dump[key] != dumps[0][key] and not PLUGIN]
        assert not different, (way, different)
    return dumps[0]


def check(context, document, data, rng, folder, compare_keys=True):
    """Peers write, we read; we write, peers read. Returns what we stored."""
    supporting = peers.find_supporting(document)
    peer_keys = {}
    for peer in supporting:
        place = folder / peer
        cases.put_document(place, peers.translate(document))
        peers.write(peer, place, data)
        cases.put_document(place, document)
        store = context.store(str(place))
        read_every_way(store.open(), data, rng)
        assert store.open().verify() == []
        peer_keys[peer] = set(store.keys())
    place = folder / "zarrc"
    dump = write_every_way(context, document, data, rng, place)
    if document["zarr_format"] == 3:
        cases.put_document(place, peers.translate(json.loads(dump["zarr.json"])))
    for peer in supporting:
        cases.same_bits(peers.read(peer, place), data)
    if compare_keys and peers.PYTHON in peer_keys:
        assert chunk_keys(dump) == chunk_keys(peer_keys[peers.PYTHON])
    shutil.rmtree(folder)
    return dump


def chunk_keys(keys):
    return {k for k in keys if k not in ("zarr.json", ".zarray", ".zattrs")}
