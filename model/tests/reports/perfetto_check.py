"""Parses a Perfetto trace with Perfetto's own definitions and checks what its timeline relies on.

Prints one JSON object: what was counted, and a list of faults.
"""

import collections
import json
import sys

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

trace = Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())

faults, tracks, parents, last, interned = [], {}, {}, {}, collections.defaultdict(set)
open_slices = collections.defaultdict(list)
counts = collections.Counter()
for packet in trace.packet:
    if packet.ByteSize() == 0:
        faults.append("an empty packet")
    sequence = packet.trusted_packet_sequence_id
    if not sequence:
        faults.append("a packet without a sequence")
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        if track.uuid in tracks:
            faults.append(f"track {track.uuid} described twice")
        tracks[track.uuid] = track
        if track.HasField("parent_uuid"):
            parents[track.uuid] = track.parent_uuid
        counts["tracks"] += 1
        counts["processes"] += track.HasField("process")
        counts["threads"] += track.HasField("thread")
    if packet.sequence_flags & 1:
        interned[sequence].clear()
    for kind in ("event_categories", "event_names", "debug_annotation_names"):
        for entry in getattr(packet.interned_data, kind):
            interned[sequence].add((kind, entry.iid))
    if not packet.HasField("track_event"):
        continue
    event = packet.track_event
    if packet.timestamp < last.get(sequence, 0):
        faults.append(f"sequence {sequence} goes back in time")
    last[sequence] = packet.timestamp
    if event.track_uuid not in tracks:
        faults.append(f"no track {event.track_uuid}")
    for iid in event.category_iids:
        if ("event_categories", iid) not in interned[sequence]:
            faults.append(f"category {iid} is not interned")
    for note in event.debug_annotations:
        if ("debug_annotation_names", note.name_iid) not in interned[sequence]:
            faults.append(f"annotation {note.name_iid} is not interned")
        if not note.WhichOneof("value"):
            faults.append("an annotation without a value")
    slices = open_slices[event.track_uuid]
    if event.type == TrackEvent.TYPE_SLICE_BEGIN:
        slices.append(event.name)
        counts["slices"] += 1
        counts["deepest"] = max(counts["deepest"], len(slices))
    elif event.type == TrackEvent.TYPE_SLICE_END:
        if not slices:
            faults.append("an end without a beginning")
        else:
            slices.pop()
    elif event.type == TrackEvent.TYPE_INSTANT:
        counts["instants"] += 1
    else:
        faults.append(f"an event of type {event.type}")
faults += [f"{slices} never end" for slices in open_slices.values() if slices]
faults += [f"no parent {parent}" for parent in parents.values() if parent not in tracks]
print(json.dumps({"counts": counts, "faults": faults}))
