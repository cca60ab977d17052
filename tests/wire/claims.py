"""Tests of each statement of docs/security.md about attackers and faults."""

__all__ = ["CLAIMS"]

_INFERENCE, _TRAINING = "tests/wire/test_inference.py", "tests/wire/test_training.py"
_INJECTION = "tests/sim/run/test_injection.py"
_PROGRESS = "tests/sim/cluster/test_progress.py"

CLAIMS: dict[str, dict[str, dict[str, tuple[str, ...]]]] = {
    "stranger": {
        "changes no value, uses no credit": {
            _INFERENCE: ("test_a_stranger_is_refused",),
            _TRAINING: ("test_a_stranger_is_refused",),
            "tests/rtl/network/test_receiver.py": ("test_frames_back_to_back",)},
        "cannot hide a hang": {_PROGRESS: ("test_a_stranger_does_not_put_it_off",)}},
    "broken peer or network": {
        "bad frames, bad lookups": {_INJECTION: (
            "test_bad_frames_are_counted_and_dropped", "test_lookups_of_what_is_not_here",
            "test_more_than_its_credits", "test_vectors_nobody_waits_for")},
        "duplicate vectors": {_INFERENCE: ("test_an_honest_frame_of_vectors_twice",)},
        "a lost frame ends the run and is named": {
            "tests/sim/run/test_frame_faults.py":
                ("test_a_lost_frame_is_named_and_results_are_kept",)}},
    "the same, with `link`": {
        "lost, late and duplicate frames": {
            "tests/sim/run/test_link.py": ("test_values_stay",),
            _INFERENCE: ("test_an_honest_frame_twice_with_a_link",)},
        "samples that need a silent node end with status PEER": {
            "tests/sim/run/test_link.py": ("test_a_silent_node_is_lost",)},
        "frames of another epoch": {
            "tests/rtl/network/link/test_frames.py":
                ("test_frames_that_are_lost_doubled_and_late",)}},
    "hostile peer": {
        "not for rows of another owner": {
            _INFERENCE: ("test_a_peer_does_not_answer_for_another",)},
        "cannot keep the step open": {
            _TRAINING: ("test_partials_beyond_those_announced_are_counted",
                        "test_an_end_of_more_than_may_come_is_refused"),
            "tests/rtl/training/test_step_counter.py":
                ("test_a_dishonest_node_does_not_hold_a_step_open",)},
        "stops a run by silence, and is named": {
            "tests/sim/cluster/test_watchdog.py": ("test_a_peer_that_returns_no_credits",),
            _PROGRESS: ("test_a_peer_whose_lookups_are_answered_does_not_either",)}},
    "sender with a peer's address": {
        "uses up its room": {_INFERENCE: (
            "test_lookups_beyond_a_peers_own_may_end_a_run_but_change_nothing",)},
        "but not with a tag of an earlier lap": {_INFERENCE: (
            "test_who_has_an_owners_addresses_can_guess_places",
            "test_places_of_another_lap_are_not_owed")}},
    "broken host": {
        "malformed messages get a status and change no value": {
            _INJECTION: ("test_bad_messages_from_the_host_are_answered",
                         "test_rows_nobody_asked_the_gpu_for"),
            "tests/sim/training/test_refused_gradients.py":
                ("test_bad_gradients_are_dropped_answered_counted_and_said",)}},
}
"""Tests by attacker, words of the effect on the page, and test file."""
