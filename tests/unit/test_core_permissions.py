"""The one decision: reading runs, everything else asks, bypass asks nothing."""

from typing import assert_never

from hypothesis import given
from test_core_effects import EFFECTS

from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.permissions import Allow, Ask, Decision, Deny, Grant, Policy, Request, decide


def request(effects: Effects) -> Request:
    return Request("bash", "0" * 64, effects)


def grant_of(decision: Decision) -> Grant:
    match decision:
        case Allow(grant) | Ask(grant):
            return grant
        case Deny():
            return Grant()
        case _:
            assert_never(decision)


@given(EFFECTS)
def test_in_default_mode_a_call_runs_unasked_exactly_when_it_only_reads(effects: Effects):
    assert isinstance(decide(Policy(), request(effects)), Allow) == effects.is_read_only


@given(EFFECTS)
def test_with_questions_switched_off_every_call_runs(effects: Effects):
    assert isinstance(decide(Policy("bypass"), request(effects)), Allow)


@given(EFFECTS)
def test_every_decision_has_a_reason_and_binds_its_grant_to_the_arguments(effects: Effects):
    for policy in (Policy(), Policy("bypass")):
        decision = decide(policy, request(effects))
        assert decision.reason
        assert grant_of(decision).command_hash == "0" * 64


def test_what_only_reads_is_granted_nothing_to_write_and_no_network():
    assert grant_of(decide(Policy(), request(Effects(reads=("/a",))))) == Grant(command_hash="0" * 64)


def test_a_declared_change_is_granted_where_it_was_declared():
    assert grant_of(decide(Policy(), request(Effects(writes=("/a", "/b"))))).writable == ("/a", "/b")


def test_what_could_not_be_told_asks_for_that_reason():
    unknown, known = (decide(Policy(), request(effects)) for effects in (UNKNOWN, Effects(writes=("/a",))))
    assert unknown.reason != known.reason
