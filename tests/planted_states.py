"""All planted states: those that an operator asked for, and those of our own choice.

A state with a scene is a snapshot of `tests/support/planted.py` or `healthy.py`: `tests/support/told.py` has what
verbs, alerts and page say of it. The tests of `tests/remedies.py` follow the doctor's remedies.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.further_states import FURTHER
from tests.planted_state import BROWSER, KNOWN_LOSSES, LINES, PlantedState, Unchanged, in_engine, in_tests, planted

_ASKED: Sequence[PlantedState] = (
    # --- asked for ---
    planted(
        "just started",
        "starting",
        *in_engine("mirror: a_backlog_is_never_called_caught_up_and_heartbeats_are_no_backlog"),
        number=1,
    ),
    planted(
        "throttled by an operator, and behind",
        "an operator left a throttle in place",
        *in_engine("remedies_followed: a_cap_is_removed", "mirror: pause_and_throttle_take_effect_at_once"),
        number=2,
    ),
    planted(
        "paused",
        "a topic was paused two hours ago and forgotten",
        *in_engine("doctor_of_a_run: paused_parked_and_well", "alerts_of_a_run: a_forgotten_pause"),
        number=3,
        quiet="an operator wants it so; with an objective LagOverObjective fires, and FlowNoProgress if all is paused",
    ),
    planted(
        "a record that is too large",
        "a record is larger than the target takes",
        *in_engine("broker_faults: limits_of_a_target_topic"),
        number=4,
        more=in_engine("alerts_of_a_run: a_record_that_is_too_large"),
    ),
    planted(
        "the right to write is missing",
        "the right to write was taken away",
        *in_engine(
            "sign_in: an_acl_that_is_taken_away_and_given_back", "rights_of_a_flow: a_run_names_what_is_missing"
        ),
        number=5,
    ),
    planted(
        "a stranger writes into a copy",
        "a producer writes into the copy",
        *KNOWN_LOSSES,
        number=6,
        quiet="no record is lost; doctor warns, and the cut-over does not wait for it",
    ),
    planted(
        "a group has members at the target",
        "a live member at the target: its group can't be set",
        *in_engine("group_moves: a_group_that_has_moved_skips_nothing"),
        number=7,
        more=in_engine("alerts_of_a_run: a_group_that_is_in_use_at_the_target"),
    ),
    planted(
        "a group beyond the end",
        "a group was set to an offset that the source does not have",
        *in_engine("group_moves: groups_that_would_skip_or_read_again_or_are_beyond_the_end"),
        number=8,
    ),
    planted(
        "a group that went back",
        "a group was set back at the source after its offsets had been set at the target",
        *in_engine("group_moves: groups_that_would_skip_or_read_again_or_are_beyond_the_end"),
        number=9,
        more=in_engine("alerts_of_a_run: a_group_that_was_set_back"),
    ),
    PlantedState(
        name="a topic gets more partitions",
        number=10,
        scene="",
        arises=in_engine("mirror: new_topics_and_partitions_are_found"),
        words=in_engine("mirror: new_topics_and_partitions_are_found"),
        exit_code=Unchanged("they are copied at once: the flow stays healthy"),
        alert=Unchanged("they are copied at once"),
        page=Unchanged("they are rows as any others"),
    ),
    planted(
        "a source topic was created again",
        "a source topic was created again, and the new one is copied",
        *in_engine("losses: recreated_halts_or_restarts"),
        *KNOWN_LOSSES,
        number=11,
    ),
    planted(
        "a copy was deleted",
        "the target lost acknowledged records",
        *in_engine("losses: target_recreated_is_copied_again"),
        *KNOWN_LOSSES,
        number=12,
        quiet="all of it is copied again; what the source has not any more is another state",
    ),
    PlantedState(
        name="the driver is killed, and a standby takes over",
        number=13,
        scene="",
        arises=in_engine("takeover: killed", "kills: driver_and_all_it_started_killed"),
        words=KNOWN_LOSSES,
        exit_code=KNOWN_LOSSES,
        alert=in_engine("alerts_of_a_run: no_standby") + in_tests("metrics/promtool: deployed_files"),
        page=in_tests("page/page_of_a_run: the_truth_within_five_seconds"),
    ),
    planted(
        "a pump is killed",
        "a round failed once",
        *in_engine("kills: workers_killed_under_load", "standalone: executors_killed_under_load"),
        number=14,
        quiet="the next round copies on within seconds",
    ),
    planted(
        "the source is down",
        "the source is away: what was caught up is not known any more",
        *in_engine("states_of_a_run: a_source_that_goes_away_in_three_ways"),
        number=15,
        more=in_engine("alerts_of_a_run: a_source_that_hangs"),
    ),
    planted(
        "the target is down, or hangs",
        "the target is away, and this process only stands by",
        *in_engine("alerts_of_a_run: a_target_that_hangs"),
        *in_tests("page/page_of_a_run: the_truth_within_five_seconds"),
        number=16,
        more=in_engine("alerts_of_a_run: a_target_that_hangs"),
    ),
    PlantedState(
        name="the target's disk is full",
        number=17,
        scene="",
        arises=in_tests("chaos/replica_faults: a_full_disk_takes_a_directory_out_of_service_and_loses_nothing"),
        words=in_tests("chaos/short_run: twelve_faults_and_not_a_record_is_lost"),
        exit_code=Unchanged("its partitions have another leader, or none: those states have theirs"),
        alert=Unchanged("as of a broker that is away"),
        page=Unchanged("as of a broker that is away"),
    ),
    planted(
        "the password was changed at the source",
        "the source refuses the sign-in: its password is another one now",
        *in_engine(
            "sign_in: a_password_that_is_changed_at_the_broker_and_changed_back",
            "states_of_a_run: a_source_that_goes_away_in_three_ways",
        ),
        number=18,
    ),
    planted(
        "retention ate records",
        "a loss after which copying continued",
        *in_engine("losses: expired_while_it_runs", "losses: expired_halts_or_continues"),
        number=19,
        more=in_engine("alerts_of_a_run: losses_before_and_after_a_restart"),
    ),
    planted(
        "a quota at the target",
        "a quota at the target is so low that nothing moves",
        *in_engine("remedies_followed: a_quota_is_raised", "broker_faults: a_quota_at_the_target"),
        number=20,
        more=in_engine("alerts_of_a_run: a_quota_at_the_target"),
    ),
    planted(
        "a MirrorMaker 2 still runs, and this process stands by",
        "a MirrorMaker 2 still works in the lease's group",
        *in_engine("takeover: a_real_mirror_maker_that_still_runs_is_named_and_waited_for"),
        number=21,
    ),
    PlantedState(
        name="the file is changed while the mirror runs",
        number=22,
        scene="",
        arises=in_engine("another_configuration: flows_come_change_and_go_under_load"),
        words=in_tests("cli/resource_watch: what_has_changed_is_taken_and_named")
        + in_engine("other_settings: a_process_that_stands_by_and_each_verb_tell_what_differs"),
        exit_code=in_tests("cli/resource_watch: what_cannot_be_run_is_refused_in_one_line_and_then_put_right"),
        alert=Unchanged("what runs continues as it is; doctor names what differs"),
        page=(*LINES, BROWSER),
    ),
    planted(
        "a writer of a topic that is done writes on",
        "writers said to have moved still write",
        *in_engine("end_of_migration: a_writer_that_is_not_stopped_yet_when_its_topic_is_said_to_be_done"),
        number=23,
        more=in_engine("alerts_of_a_run: a_writer_that_has_not_moved"),
    ),
    PlantedState(
        name="keys that nobody knows",
        number=24,
        scene="",
        arises=in_tests("lint/file_rules: the_verb"),
        words=in_tests("config/mm2_warnings: key_without_effect", "config/advice_followed: advice_leads_somewhere"),
        exit_code=in_tests("lint/file_rules: the_verb", "cli/wrong_input: a_wrong_file"),
        alert=Unchanged("it is told before the mirror starts"),
        page=Unchanged("it is told before the mirror starts"),
    ),
    planted(
        "a slip in a pattern, all excluded, or no groups",
        "a slip in the pattern of topics: only heartbeats are copied",
        *in_engine("states_of_a_run: a_flow_that_matches_nothing_says_so", "remedies_followed: patterns_are_corrected"),
        number=25,
    ),
    planted(
        "a transaction hangs",
        "a transaction hangs at the source: all that comes after it waits",
        *in_engine("states_of_a_run: a_transaction_that_nobody_ends"),
        number=26,
        more=in_engine("alerts_of_a_run: a_transaction_that_stays_open"),
    ),
    planted(
        "a producer's clock is ahead",
        "a producer's clock is ahead",
        *in_engine("planted_on_clusters: a_clock_that_is_ahead_and_seconds_for_milliseconds"),
        number=27,
        quiet="the records are copied; lag in seconds is wrong for them, and doctor says so",
    ),
)

STATES: Sequence[PlantedState] = (*_ASKED, *FURTHER)
