"""What a flow's settings give each of its partitions' copies."""

from __future__ import annotations

import pytest

from sparkmirror.config import ProduceConfig
from sparkmirror.pump.copies import wanted_codec
from sparkmirror.wire.codecs import GZIP, LZ4, SNAPPY, ZSTD, Codec

LEVELS = {"compression_gzip_level": 1, "compression_lz4_level": 2, "compression_zstd_level": -7}


@pytest.mark.parametrize(
    ("word", "codec", "usual"),
    [
        ("none", None, None),
        ("gzip", Codec(GZIP, 1), Codec(GZIP, -1)),
        ("snappy", Codec(SNAPPY), Codec(SNAPPY)),
        ("lz4", Codec(LZ4, 2), Codec(LZ4, 9)),
        ("zstd", Codec(ZSTD, -7), Codec(ZSTD, 3)),
    ],
)
def test_a_codec_has_its_own_level(word: str, codec: Codec | None, usual: Codec | None) -> None:
    assert wanted_codec(ProduceConfig.model_validate({"compression_type": word, **LEVELS})) == codec
    assert wanted_codec(ProduceConfig(compression_type=word)) == usual
