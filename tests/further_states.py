"""Planted states of our own choice."""

from __future__ import annotations

from collections.abc import Sequence

from tests.planted_state import (
    ALERTS,
    BROWSER,
    KNOWN_LOSSES,
    LINES,
    VERBS,
    PlantedState,
    Unchanged,
    in_engine,
    in_tests,
    planted,
)

SLOW = "how late it may be is the objective's to say: LagOverObjective fires then"
NOTICE = "worth knowing, and nothing to be done at once"

FURTHER: Sequence[PlantedState] = (
    # --- clusters ---
    planted(
        "the source's name leads to another cluster",
        "the source's name leads to another cluster: no connection is used, partitions wait",
        *in_engine(
            "wrong_cluster: a_sources_name_that_leads_to_the_target", "wrong_cluster: a_source_that_was_rebuilt"
        ),
    ),
    planted(
        "a broker of the target dies",
        "a broker of the target has died: its partitions wait, others continue",
        *in_engine("replicas: the_follower_is_killed_under_load"),
    ),
    planted(
        "all brokers of the target refuse connections",
        "the target's brokers are down: all partitions parked, duties fail, groups late",
        *in_tests("page/page_of_a_run: the_truth_within_five_seconds"),
    ),
    planted(
        "our certificate has ended",
        "the source's certificate has ended: no client is let in",
        *in_engine("certificates: our_own_certificate_expires_and_is_renewed"),
    ),
    planted(
        "our certificate ends soon",
        "a certificate ends in five days",
        more=in_engine("alerts_of_a_run: our_certificate_ends_soon"),
    ),
    PlantedState(
        name="the broker's certificate is not trusted, or of another host",
        number=0,
        scene="",
        arises=in_tests("cluster/tls_stores: brokers_that_do_not_fit"),
        words=in_engine("certificates: a_broker_with_another_certificate"),
        exit_code=in_engine("tls_flows: a_run_that_can_not_begin_ends_with_one_line"),
        alert=ALERTS,
        page=(*LINES, BROWSER),
    ),
    PlantedState(
        name="the password is wrong at the start",
        number=0,
        scene="",
        arises=in_engine("sign_in: a_wrong_password_ends_the_start_with_one_line"),
        words=in_engine("sign_in: a_wrong_password_ends_the_start_with_one_line"),
        exit_code=in_engine("sign_in: a_wrong_password_ends_the_start_with_one_line"),
        alert=in_engine("alerts_of_a_run: sparkmirror_down"),
        page=Unchanged("no process serves one"),
    ),
    PlantedState(
        name="brokers that answer anything",
        number=0,
        scene="",
        arises=in_tests("cluster/hostile_run: a_run_stays_small_whatever_its_brokers_answer"),
        words=in_tests("pump/hostile_broker: a_batch_that_is_damaged_parks_its_partition_alone"),
        exit_code=VERBS,
        alert=ALERTS,
        page=(*LINES, BROWSER),
    ),
    planted(
        "a quota at the source",
        "a quota at the source slows the catch-up down",
        *in_engine("remedies_followed: a_quota_is_raised"),
    ),
    PlantedState(
        name="a quota of topics' creations at the target",
        number=0,
        scene="",
        arises=in_engine("states_of_a_run: a_target_that_limits_creations"),
        words=in_engine("states_of_a_run: a_target_that_limits_creations"),
        exit_code=VERBS,
        alert=in_engine("alerts_of_a_run: a_topic_that_the_target_refuses"),
        page=(*LINES, BROWSER),
    ),
    planted(
        "brokers that are too old to tell of unclean elections",
        "brokers too old to tell of unclean elections",
        *in_tests("versions/ids_appear: a_topic_that_gets_an_id_continues_and_is_told_from_a_new_one"),
        quiet=NOTICE,
    ),
    # --- processes and Spark ---
    planted(
        "a process stands by", "standing by", *in_engine("standby: spark_of_a_standby"), quiet="another process works"
    ),
    planted("no process stands by", "no other process was started", more=in_engine("alerts_of_a_run: no_standby")),
    planted(
        "all wait for the lease",
        "two processes stand by, and none works",
        more=in_engine("alerts_of_a_run: a_target_that_hangs"),
    ),
    planted("a process can't join", "a process joins for ten minutes"),
    planted(
        "two deployments on files that differ",
        "a standby process was started on another file",
        *in_engine("other_settings: a_process_that_stands_by_and_each_verb_tell_what_differs"),
        quiet="the flow is well; doctor warns on the other file",
    ),
    planted(
        "two processes without the lease write as one flow",
        "a second process without the lease writes the same flow",
        *in_engine("kills: rivals_without_a_lease"),
    ),
    planted(
        "Spark gives no executors",
        "Spark gives no executors",
        *in_engine("session: a_spark_whose_tasks_never_begin_is_given_up"),
    ),
    planted("executors die as soon as they begin", "executors die as soon as they begin"),
    planted("positions can't be read", "positions can't be read for long"),
    PlantedState(
        name="the driver has too little memory",
        number=0,
        scene="",
        arises=in_engine("session: too_little_memory_is_refused_at_once"),
        words=in_engine("session: what_spark_says_of_little_memory_gets_the_right_hint"),
        exit_code=in_engine("session: too_little_memory_is_refused_at_once"),
        alert=in_engine("alerts_of_a_run: sparkmirror_down"),
        page=Unchanged("no process serves one"),
    ),
    planted(
        "the executors' host hangs",
        "the executors' host hangs: no reports, no progress",
        *in_engine("takeover: frozen_or_cut_off_for_a_while"),
    ),
    planted("a pump hangs", "a pump hangs: positions stand still"),
    planted("a pump's memory grows", "a pump's memory grows", quiet="Spark's own limit ends it; doctor warns before"),
    planted(
        "fewer slots than tasks",
        "Spark has two slots for eight tasks, and falls behind",
        *in_engine("scaling: a_worker_that_is_killed_takes_its_slot_along"),
    ),
    # --- topics and records ---
    planted(
        "a forgotten writer creates a done topic again",
        "a forgotten writer has created the topic again whose writers have moved",
        *in_engine("end_of_migration: a_done_topic_that_a_forgotten_writer_creates_again"),
    ),
    planted(
        "a source topic was deleted",
        "a source topic was deleted",
        *in_engine("remedies_followed: the_copy_of_a_deleted_topic_is_deleted"),
        quiet="somebody has deleted it, and its copy stays",
    ),
    planted(
        "another flow has the topic's copy",
        "another flow has the topic's copy; its group can't move either",
        *in_tests("sync/other_flows: the_second_leaves_it_to_the_first"),
        more=in_engine("alerts_of_a_run: a_topic_that_the_target_refuses"),
    ),
    planted(
        "a slip in one pattern of several, quotes, blanks, globs",
        "a slip in one pattern of several",
        *in_engine("states_of_a_run: a_flow_that_matches_nothing_says_so", "remedies_followed: patterns_are_corrected"),
        quiet="the others are copied",
    ),
    planted(
        "no group matches",
        "a slip in the pattern of groups",
        *in_engine("states_of_a_run: a_flow_that_matches_nothing_says_so", "remedies_followed: patterns_are_corrected"),
        quiet="records are copied; the cut-over waits",
    ),
    planted("all is level", "caught up", *in_engine("observer: it_tells_what_is_so"), quiet="all is well"),
    planted(
        "paused, and nothing waits",
        "paused, and nothing to copy",
        *in_engine("doctor_of_a_run: paused_parked_and_well"),
        quiet="nothing is late",
    ),
    PlantedState(
        name="compacted topics, tombstones, topics without records",
        number=0,
        scene="",
        arises=in_engine("every_batch: every_kind_of_log_at_once"),
        words=in_engine("every_batch: every_kind_of_log_at_once"),
        exit_code=Unchanged("they are copied as any others"),
        alert=Unchanged("they are copied as any others"),
        page=Unchanged("they are rows as any others"),
    ),
    planted(
        "records that are too old or too new for the target",
        "records of 2001 and a target that takes none",
        *in_engine("broker_faults: limits_of_a_target_topic"),
    ),
    planted(
        "too few replicas in sync at the target",
        "one replica in sync is left, two are wanted",
        *in_engine("replicas: too_few_replicas_in_sync"),
    ),
    planted(
        "partitions of the source have no leader",
        "partitions of the source have no leader, and the promise is broken",
        *in_engine("planted_on_clusters: a_partition_without_a_leader"),
    ),
    planted(
        "the only broker of a partition dies",
        "the only broker of a partition has died: it waits, others continue",
        *in_engine("planted_on_clusters: a_partition_without_a_leader"),
    ),
    planted("the copy can't be created again", "an operator deleted the copy, and auto-creation is off"),
    planted(
        "a batch of the source is damaged",
        "a batch of the source is damaged on disk",
        *in_tests("pump/hostile_broker: a_batch_that_is_damaged_parks_its_partition_alone"),
    ),
    planted(
        "the target refuses records",
        "the target knows no zstd",
        *in_engine("planted_on_clusters: records_without_a_key_and_a_copy_that_is_compacted"),
    ),
    planted(
        "most of what is fetched was aborted",
        "most of what is fetched belongs to aborted transactions",
        *in_engine("every_batch: transactions"),
        quiet=SLOW,
    ),
    # --- losses ---
    planted(
        "retention ate records, and the flow halts",
        "the source deleted records before they were copied",
        *in_engine("losses: expired_halts_or_continues"),
    ),
    planted(
        "retention will win",
        "retention is an hour, the backlog a day",
        *in_engine("losses: expired_while_it_runs"),
        more=in_engine("alerts_of_a_run: a_retention_that_is_too_short"),
    ),
    planted(
        "a paused topic will be deleted",
        "a paused topic will be deleted before it is copied",
        *in_engine("losses: expired_while_it_runs"),
        more=in_engine("alerts_of_a_run: a_retention_that_is_too_short"),
    ),
    planted(
        "an unclean election at the source",
        "an unclean election at the source cut what was copied",
        *in_engine("unclean_elections: truncated_at_the_source", "losses: truncated_halts_or_continues"),
    ),
    planted(
        "the source took back what was copied, and copying continued",
        "the source took back what was copied",
        *in_engine("unclean_elections: truncated_at_the_source_while_it_runs"),
    ),
    planted(
        "an unclean election at the target",
        "an unclean election at the target, and nothing tells where to continue",
        *in_engine("unclean_elections: truncated_at_the_target_between_two_processes_and_somebody_else_wrote_there"),
    ),
    planted(
        "a source topic was created again, and the flow halts",
        "a source topic was deleted and created again",
        *in_engine("losses: recreated_halts_or_restarts"),
    ),
    planted(
        "a copy was deleted, and the source has not all of it",
        "the copy was deleted, and the source has not all of it any more",
        *in_engine("losses: target_recreated_is_copied_again"),
    ),
    planted(
        "a producer has moved to the copy",
        "a producer has moved to the copy",
        *in_engine("moved_writers: writers_that_have_moved_are_no_accident"),
    ),
    planted(
        "offsets were set forward",
        "a connector's offsets were set forward",
        *in_tests("connect/worker: altered_offsets_repeat_and_skip_what_was_asked_for"),
        quiet="an operator wanted it",
    ),
    planted(
        "offsets were set back",
        "a connector's offsets were set back",
        *in_tests("connect/worker: altered_offsets_repeat_and_skip_what_was_asked_for"),
        quiet="an operator wanted it",
    ),
    PlantedState(
        name="a loss is acknowledged",
        number=0,
        scene="",
        arises=KNOWN_LOSSES,
        words=in_tests("cli/losses_verb: the_word_is_about_what_is_chosen"),
        exit_code=in_tests("cli/status_verb: a_loss_is_unhealthy_until_it_is_acknowledged"),
        alert=in_tests("durable/loss_kinds: an_acknowledged_loss_makes_nothing_red"),
        page=in_tests("page/page_in_a_browser: the_loss_ledger_entry_by_entry"),
    ),
    planted(
        "the segments topic lost claims",
        "the segments topic lost its newest claims",
        *in_engine(
            "lost_segments: what_nothing_tells_of_stays_where_it_is", "cut_segments_topic: between_two_processes"
        ),
    ),
    planted(
        "the segments topic may lose records",
        "the segments topic allows unclean elections",
        *in_engine("remedies_followed: an_own_topic_gets_its_settings"),
        quiet="a setting, and no event: doctor and lint warn",
    ),
    planted(
        "where MirrorMaker 2's copy ended can't be told",
        "where MirrorMaker 2's copy ended can't be told",
        *in_engine("mirror_maker_and_back: what_cannot_be_taken_over_is_not_copied_and_the_run_says_why"),
    ),
    # --- groups and duties ---
    planted(
        "a group reads on faster than it is synced",
        "a group reads on faster than its offsets are set",
        *in_engine("group_moves: groups_that_would_skip_or_read_again_or_are_beyond_the_end"),
        more=in_engine("alerts_of_a_run: a_group_that_is_in_use_at_the_target"),
    ),
    planted("a group is synced late", "a group was left out of the last turns"),
    planted(
        "a right is missing for checkpoints",
        "checkpoints may not be written: groups are late",
        *in_engine("rights_of_a_flow: a_run_names_what_is_missing"),
    ),
    planted("12,000 groups", "12,000 groups: a turn takes longer than its interval"),
    PlantedState(
        name="share groups",
        number=0,
        scene="",
        arises=in_tests("sync/share_group_offsets: share_consumers_continue_at_the_target"),
        words=in_tests("sync/share_group_offsets: a_member_at_the_target_wins", "doctor/explain: variants_of_groups"),
        exit_code=Unchanged("as of other groups"),
        alert=Unchanged("as of other groups"),
        page=Unchanged("as of other groups"),
    ),
    PlantedState(
        name="each right that a flow needs is missing, one after the other",
        number=0,
        scene="",
        arises=in_engine(
            "rights_of_a_flow: each_other_right_that_is_missing",
            "rights_of_a_flow: each_right_that_is_missing_when_topics_are_there",
        ),
        words=in_engine("rights_of_a_flow: some_rights_that_are_missing"),
        exit_code=in_engine("mirror: a_target_that_may_not_be_written_is_one_line"),
        alert=ALERTS,
        page=(*LINES, BROWSER),
    ),
    planted(
        "the mirror that beats into the source has stopped",
        "the mirror that beats into the source has stopped",
        quiet="its own alerts fire where it ran",
    ),
    planted(
        "a producer writes seconds for milliseconds",
        "a producer writes seconds for milliseconds",
        *in_engine("planted_on_clusters: a_clock_that_is_ahead_and_seconds_for_milliseconds"),
        quiet=NOTICE,
    ),
    # --- load ---
    planted("more is written than copied", "more is written than copied"),
    planted("one key gets most records", "one key gets most records"),
    planted(
        "the source's disks are slow",
        "the source's disks are slow",
        *in_engine("long_lines: what_is_in_flight_follows_both_lines"),
    ),
    planted(
        "a quota and a deletion at once", "a quota and a deletion at once: nothing moves, and the source will delete it"
    ),
)
