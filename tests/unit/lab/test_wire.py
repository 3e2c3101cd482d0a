"""Frames between host and guest."""

import os
import socket
from collections.abc import Iterator

import pytest

from autotune.lab.wire import Kind, Wire, WireClosedError


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


Ends = tuple[socket.socket, socket.socket]


def test_frames_arrive_whole_and_in_order(ends: Ends) -> None:
    sender, receiver = Wire(ends[0].fileno()), Wire(ends[1].fileno())
    sent = [(Kind.OUTPUT, bytes(range(256))), (Kind.ERROR, b""), (Kind.EXIT, b"7")]
    for kind, data in sent:
        sender.send(kind, data)
    assert list(receiver.receive()) == sent


def test_a_frame_in_pieces_is_put_together(ends: Ends) -> None:
    read, write = os.pipe()
    Wire(write).send(Kind.OUTPUT, b"hello")
    frame = os.read(read, 100)
    receiver = Wire(ends[1].fileno())
    for byte in frame[:-1]:
        ends[0].send(bytes([byte]))
        assert list(receiver.receive()) == []
    ends[0].send(frame[-1:])
    assert list(receiver.receive()) == [(Kind.OUTPUT, b"hello")]
    os.close(read)
    os.close(write)


def test_a_closed_wire_is_told_to_both_reader_and_writer(ends: Ends) -> None:
    wire = Wire(ends[0].fileno())
    ends[1].close()
    with pytest.raises(WireClosedError):
        list(wire.receive())
    with pytest.raises(WireClosedError):
        wire.send(Kind.INPUT, b"x")
