"""Largest answer to each request, from what the request asks for.

A broker that announces a larger answer is given up before the answer is read. Each bound is several times what Apache
Kafka sends, since a bound that is too small would stop a flow. An answer below its bound takes at most `MEMORY_FACTOR`
times its bytes once it is decoded (`bounded_decoding.py`), and its entries are counted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

KB, MB = 1 << 10, 1 << 20

SMALL = 128 * KB
"""Bound for an answer with a few fields, and the fixed part of many others.

ApiVersions has 6 bytes for each of 90 requests; a Kerberos token has 64 KB at most (Windows' `MaxTokenSize`).
"""

LISTING = 12 * MB
"""Bound for an answer that lists what the cluster has, or a group's offsets.

100,000 groups with names of 60 bytes take 8.6 MB, 100,000 ACLs about 10 MB, committed offsets in 300,000 partitions 10
MB, 200,000 idempotent producers 7.4 MB.
"""

MOST_ENTRIES = 600_000
"""Most entries in all arrays together, in any answer but Metadata.

As many offsets fill a `LISTING`.
"""

ALL_METADATA = 64 * MB
"""Bound for Metadata about all topics.

A partition with three replicas takes 42 bytes in version 12, a topic 26 and its name: 100,000 topics with ten
partitions each take 48 MB.
"""

MOST_PARTITIONS = 1_200_000
"""Most entries in Metadata.

100,000 topics with ten partitions each are 1,100,000.
"""

LARGEST_BATCH = 128 * MB
"""Largest batch, in bytes.

A broker sends a batch that is larger than the fetch asks for, or no record would come (KIP-74). Producers can't send
more than `socket.request.max.bytes`, 100 MB by default.
"""

FETCH_PARTITION = 512
"""Bytes in a Fetch answer for each partition, next to its records.

The fields take 50, and then there is the topic's name. The list of aborted transactions, 17 bytes each, is far smaller
than `LARGEST_BATCH`.
"""

PRODUCE_RECORD_ERRORS = 32
"""Bytes in a Produce answer for each request byte, if records are refused.

The broker may name every record (KIP-467): a record has 7 bytes at least, and a line about it 100 and the topic's name.
"""

LARGEST_PRODUCE = 64 * MB


class _Bound(NamedTuple):
    """Bytes: fixed ones, and more for each entry in the request's field `counted`."""

    fixed: int = SMALL
    each: int = 0
    counted: str = ""
    remedy: str = ""


_FEWER = "give sparkmirror's principal DESCRIBE on fewer {}"
_ECHO = 2
"""Every answer may repeat its request: names, in a longer encoding."""

BOUNDS = {
    "MetadataRequest": _Bound(2 * MB, 64 * KB, "topics"),  # 1,500 partitions a topic, one topic of 45,000
    "ApiVersionsRequest": _Bound(),
    "SaslHandshakeRequest": _Bound(),
    "SaslAuthenticateRequest": _Bound(),
    "InitProducerIdRequest": _Bound(),
    "DescribeClusterRequest": _Bound(MB),  # a thousand brokers of 300 bytes
    "DescribeQuorumRequest": _Bound(MB),
    "FindCoordinatorRequest": _Bound(SMALL, 2 * KB, "coordinator_keys"),
    "ListGroupsRequest": _Bound(LISTING, remedy=_FEWER.format("groups")),
    "DescribeGroupsRequest": _Bound(LISTING),  # a member carries its subscription and assignment
    "OffsetFetchRequest": _Bound(LISTING),
    "OffsetCommitRequest": _Bound(),
    "OffsetForLeaderEpochRequest": _Bound(),
    "DescribeProducersRequest": _Bound(LISTING),
    "ListTransactionsRequest": _Bound(LISTING, remedy=_FEWER.format("transactional ids")),
    "DescribeTransactionsRequest": _Bound(SMALL, 2 * MB, "transactional_ids"),  # with every partition of a transaction
    "DescribeConfigsRequest": _Bound(2 * MB, 64 * KB, "resources"),  # 40 properties of 60 bytes, some of them long
    "IncrementalAlterConfigsRequest": _Bound(SMALL, 4 * KB, "resources"),
    "CreateTopicsRequest": _Bound(SMALL, 16 * KB, "topics"),  # since version 5 with all properties
    "CreatePartitionsRequest": _Bound(SMALL, 4 * KB, "topics"),
    "DeleteTopicsRequest": _Bound(SMALL, 4 * KB, "topics"),
    "DeleteRecordsRequest": _Bound(),
    "DescribeAclsRequest": _Bound(LISTING),
    "CreateAclsRequest": _Bound(SMALL, 4 * KB, "creations"),
    "DeleteAclsRequest": _Bound(SMALL, 4 * KB, "filters"),
    "DescribeClientQuotasRequest": _Bound(LISTING),
    "AlterClientQuotasRequest": _Bound(SMALL, 4 * KB, "entries"),
    "DescribeUserScramCredentialsRequest": _Bound(LISTING),
    "DescribeLogDirsRequest": _Bound(2 * MB),  # and a broker's directories, each with the partitions asked for
}
"""Bounds by kafka-python's name for the request.

A request that is missing here can't be sent.
"""


class AnswerBound(NamedTuple):
    """Most bytes in an answer, with what to do if an honest broker exceeds it."""

    request: str
    """Kafka's name for the request."""
    bytes: int
    remedy: str = ""
    entries: int = MOST_ENTRIES
    """Most entries in all arrays together, if the answer is one of kafka-python's."""

    def excess(self, size: int) -> str | None:
        """Return why an answer of this size is refused; None if it is not."""
        if 0 <= size <= self.bytes:
            return None
        why = f"an answer to {self.request} of {size:,} bytes, and at most {self.bytes:,} are read"
        return f"{why}: {self.remedy or 'check that this is a Kafka broker'}"


def bound_of(request: Any, size: int) -> AnswerBound:
    """Return the bound for the answer to a kafka-python request of `size` bytes."""
    bound = BOUNDS[request.name]
    name = request.name.removesuffix("Request")
    if name == "Metadata" and request.topics is None:
        return AnswerBound(name, ALL_METADATA, _FEWER.format("topics"), MOST_PARTITIONS)
    count = len(getattr(request, bound.counted) or ()) if bound.counted else 0
    most = ALL_METADATA if name == "Metadata" else LISTING
    return AnswerBound(name, min(bound.fixed + bound.each * count + _ECHO * size, most), bound.remedy)


def fetch_bound(max_bytes: int, partitions: int) -> AnswerBound:
    """Return the bound for a Fetch that asks for this many record bytes."""
    size = max_bytes + LARGEST_BATCH + FETCH_PARTITION * partitions
    return AnswerBound("Fetch", size, "check that this is a Kafka broker, and max.message.bytes of its topics")


def produce_bound(sent: int) -> AnswerBound:
    """Return the bound for a Produce with this many batch bytes."""
    return AnswerBound("Produce", min(MB + PRODUCE_RECORD_ERRORS * sent, LARGEST_PRODUCE))


def raw_bound(api_key: int, size: int) -> AnswerBound:
    """Return the bound for the answer to a ready-made request of `size` bytes."""
    match api_key:
        case 0:
            return produce_bound(size)
        case 1:
            return fetch_bound(0, 1)
        case 2:
            return AnswerBound("ListOffsets", SMALL + 4 * size)
        case 69:
            return AnswerBound("ConsumerGroupDescribe", LISTING)
        case 89:
            return AnswerBound("StreamsGroupDescribe", LISTING)
        case 90:
            return AnswerBound("DescribeShareGroupOffsets", LISTING)
        case 91:
            return AnswerBound("AlterShareGroupOffsets", SMALL + 32 * size)  # with a line for each partition
    raise ValueError(f"no bound for the answer to request {api_key}")
