"""Doctor's rules, each with the tests in which its remedy is followed and the finding goes."""

from __future__ import annotations

from collections.abc import Mapping

from tests.planted_state import KNOWN_LOSSES, Held, in_engine, in_tests

_IN_THE_FILE = in_tests("doctor/remedies_in_the_file: the_finding_goes")
_ACKNOWLEDGED = in_tests("durable/loss_kinds: an_acknowledged_loss_makes_nothing_red")
_MOVES = in_engine("group_moves: groups_that_would_skip_or_read_again_or_are_beyond_the_end")
_LAG = (
    *in_engine("remedies_of_lag: the_finding_above_is_followed"),
    *in_tests(
        "doctor/more_tasks: more_tasks_take_load_off_the_busiest",
        "doctor/more_tasks: a_partition_with_a_task_of_its_own_gets_no_faster",
    ),
)

REMEDIES: Mapping[str, Held] = {
    # --- clusters ---
    "wrong-cluster": in_engine(
        "wrong_cluster: a_sources_name_that_leads_to_the_target", "wrong_cluster: a_source_that_was_rebuilt"
    ),
    "certificate-ends": in_engine(
        "alerts_of_a_run: our_certificate_ends_soon", "certificates: our_own_certificate_expires_and_is_renewed"
    ),
    "source-unreachable": in_engine("states_of_a_run: a_source_that_goes_away_in_three_ways"),
    "target-unreachable": in_engine("alerts_of_a_run: a_target_that_hangs"),
    "throttled-source": in_engine("remedies_followed: a_quota_is_raised"),
    "throttled-target": in_engine("remedies_followed: a_quota_is_raised"),
    # --- the lease ---
    "lease-refused": in_engine("takeover: a_real_mirror_maker_that_still_runs_is_named_and_waited_for"),
    "nobody-works": in_engine(
        "takeover: a_real_mirror_maker_that_still_runs_is_named_and_waited_for", "alerts_of_a_run: a_target_that_hangs"
    ),
    "long-joining": in_engine("remedies_of_states: a_killed_process_keeps_the_next_one_from_joining"),
    "other-settings": in_engine("other_settings: a_process_that_stands_by_and_each_verb_tell_what_differs"),
    "no-standby": in_engine("alerts_of_a_run: no_standby"),
    # --- pumps and Spark ---
    "pump-memory": in_engine("remedies_of_memory: batches_are_no_longer_recompressed"),
    "epochs-failing": in_engine("remedies_of_spark: workers_that_lack_a_library"),
    "pumps-silent": in_engine("remedies_of_processes: a_silent_pump_continues_or_is_ended"),
    "long-starting": in_engine("remedies_of_spark: no_worker_has_the_memory_that_is_asked_for"),
    "long-finding-out": in_engine("remedies_of_states: partitions_without_a_leader_at_the_start"),
    "slots-short": _IN_THE_FILE,
    "task-skew": in_engine("remedies_of_load: the_plan_evens_out_what_one_task_carries"),
    "few-partitions-a-task": _IN_THE_FILE,
    "tasks-max-useless": _IN_THE_FILE,
    "hot-partition": in_engine("remedies_of_load: writers_spread_their_keys"),
    "pump-cpu": in_engine("remedies_of_load: recompression_is_taken_out"),
    "slow-fetches": in_engine("remedies_of_load: more_is_fetched_at_once_over_a_long_line"),
    # --- topics ---
    "nothing-to-copy": in_engine("remedies_followed: patterns_are_corrected"),
    "pattern-unmatched": in_engine("remedies_followed: patterns_are_corrected"),
    "topic-refused": (
        *in_engine("alerts_of_a_run: a_topic_that_the_target_refuses"),
        *in_tests("lint/refused_topics: a_refused_property"),
    ),
    "paused": in_engine("alerts_of_a_run: a_forgotten_pause", "doctor_of_a_run: paused_parked_and_well"),
    "late-records": in_engine(
        "alerts_of_a_run: a_writer_that_has_not_moved",
        "end_of_migration: a_writer_that_is_not_stopped_yet_when_its_topic_is_said_to_be_done",
    ),
    "topic-deleted": in_engine("remedies_followed: the_copy_of_a_deleted_topic_is_deleted"),
    # --- parked partitions ---
    "parked-rival": in_engine("remedies_of_partitions: the_other_process_is_stopped_and_the_copy_made_again"),
    "parked-not-authorized": in_engine("rights_of_a_flow: the_doctors_command_gives_the_right_back"),
    "parked-no-leader": in_engine("planted_on_clusters: a_partition_without_a_leader"),
    "parked-not-enough-replicas": in_engine("replicas: too_few_replicas_in_sync"),
    "parked-no-topic": in_engine("losses: target_recreated_is_copied_again"),
    "parked-too-large": in_engine("broker_faults: a_limit_that_the_doctor_has_raised_stays"),
    "parked-timestamp": in_engine("broker_faults: limits_of_a_target_topic"),
    "parked-unreadable": in_engine("remedies_of_damage: the_records_below_the_next_batch_are_deleted"),
    "parked-refused": in_engine("planted_on_clusters: records_without_a_key_and_a_copy_that_is_compacted"),
    "parked-transform": in_engine("transforms_on_the_way: a_record_that_a_transform_can_not_take_parks_its_partition"),
    "parked-expired": in_engine("losses: expired_halts_or_continues"),
    "parked-truncated": in_engine("losses: truncated_halts_or_continues"),
    "parked-target-truncated": in_engine("remedies_of_damage: a_copy_whose_end_nothing_tells_is_deleted"),
    "parked-recreated": in_engine("losses: recreated_halts_or_restarts"),
    "parked-foreign-writer": in_engine("moved_writers: who_says_it_late_is_asked_and_believed"),
    "parked-claims-lost": in_engine("lost_segments: what_nothing_tells_of_stays_where_it_is"),
    "parked-takeover": in_tests("takeover/taking_over: a_refusal_ends_when_this_flow_has_made_the_topic_again"),
    "parked-throttled": in_engine("remedies_followed: a_quota_is_raised"),
    "parked-position": in_engine("remedies_of_partitions: the_segments_topic_takes_claims_again"),
    "parked-broker": in_tests(
        "pump/parked_at_the_end: a_copy_with_an_end_is_parked_until_what_the_reason_names_is_corrected"
    ),
    "parked-other": in_engine("remedies_of_partitions: the_targets_own_records_are_deleted"),
    "open-transaction": in_engine("states_of_a_run: a_transaction_that_nobody_ends"),
    # --- losses ---
    "records-lost": KNOWN_LOSSES,
    "records-taken-back": _ACKNOWLEDGED,
    "records-may-be-lost": KNOWN_LOSSES,
    "foreign-writer": KNOWN_LOSSES,
    "offsets-altered": _ACKNOWLEDGED,
    "records-twice": _ACKNOWLEDGED,
    "copy-healed": KNOWN_LOSSES,
    "copy-expired": in_tests(
        "sync/copy_retention: one_word_counts_for_as_long_as_the_copy_keeps_less",
        "sync/copy_retention: a_copy_that_keeps_as_much_again",
    ),
    "copy-keeps-less": in_tests("sync/copy_retention: a_copy_that_keeps_as_much_again"),
    # --- bandwidth, lag, clocks ---
    "cap-too-low": in_engine("remedies_followed: a_cap_is_removed"),
    "fetched-not-written": in_engine("remedies_of_load: a_quota_that_lets_far_more_be_fetched_than_written"),
    "no-progress": in_engine("remedies_of_processes: nothing_moves_until_the_finding_above_is_followed"),
    "partitions-stuck": in_engine("remedies_of_processes: a_partition_that_stands_still_moves_once_its_task_is_ended"),
    "retention-race": in_engine("alerts_of_a_run: a_retention_that_is_too_short"),
    "lag-growing": _LAG,
    "lag-over-objective": _LAG,
    "clock-ahead": in_engine("planted_on_clusters: a_clock_that_is_ahead_and_seconds_for_milliseconds"),
    "timestamps-absurd": in_engine("planted_on_clusters: a_clock_that_is_ahead_and_seconds_for_milliseconds"),
    "heartbeats-missing": in_engine("remedies_of_duties: the_mirror_that_writes_heartbeats_is_started_again"),
    # --- groups and duties ---
    "many-groups": _IN_THE_FILE,
    "duty-failing": in_tests("engine/duties: what_fails_is_said_once_and_tried_again"),
    "duty-slow": _IN_THE_FILE,
    "duty-late": in_engine("remedies_of_duties: a_process_with_a_turn_that_hangs_is_started_again"),
    "no-group": in_engine("remedies_followed: patterns_are_corrected"),
    "group-not-synced": in_engine("alerts_of_a_run: a_group_that_is_in_use_at_the_target"),
    "group-beyond-end": _MOVES,
    "group-would-skip": _MOVES,
    "group-would-reread": _MOVES,
    "group-sync-late": in_engine("alerts_of_a_run: a_group_that_is_in_use_at_the_target"),
    # --- exactness ---
    "own-topics-unsafe": in_engine("remedies_followed: an_own_topic_gets_its_settings"),
    "exactness-weaker": in_engine("remedies_of_old_brokers: the_upgrade_is_finished"),
}
