"""Signals that end a run, and those that do not."""

import contextlib
import os
import signal

import pytest

from autotune.errors import SignalledError
from autotune.safety.signals import Signals


def test_ctrl_z_does_not_stop_it_and_says_why() -> None:
    told: list[str] = []
    signals = Signals("Not now.")
    with signals.caught(told.append):
        os.kill(os.getpid(), signal.SIGTSTP)
        assert signals.going()
        assert signals.going()
    assert told == ["Not now."]


@pytest.mark.parametrize(("before", "ends"), [(signal.SIG_IGN, False), (signal.SIG_DFL, True)])
def test_who_is_started_by_nohup_outlives_the_terminal(before: signal.Handlers, ends: bool) -> None:
    earlier = signal.signal(signal.SIGHUP, before)
    try:
        signals = Signals()
        with signals.caught(print):
            os.kill(os.getpid(), signal.SIGHUP)
            assert signals.going() is not ends
        assert signal.getsignal(signal.SIGHUP) == before
    finally:
        signal.signal(signal.SIGHUP, earlier)


def test_what_only_computes_is_ended_by_a_signal_at_once() -> None:
    signals, goes_on = Signals(), False
    with signals.caught(print), contextlib.suppress(SignalledError), signals.at_once():
        os.kill(os.getpid(), signal.SIGTERM)
        goes_on = True
    assert not goes_on
    assert signals.name == "SIGTERM"


def test_a_signal_before_it_computes_ends_it_too() -> None:
    signals = Signals()
    with signals.caught(print):
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(SignalledError, match="Stopped by SIGTERM"), signals.at_once():
            pytest.fail("It begins.")


def test_afterwards_a_signal_only_leaves_a_mark() -> None:
    signals = Signals()
    with signals.caught(print):
        with signals.at_once():
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        assert not signals.going()
