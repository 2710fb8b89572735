"""Leave out of the image what a mirror never loads; run once, while it is built, with the image's kind of machine.

What is listed here is docs/deploy/images.md's table, too.
"""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Files of one kind, by patterns below a directory, but for those of some names."""

    what: str
    why: str
    patterns: tuple[str, ...]
    but: tuple[str, ...] = ()


SPARK = Path("/opt/spark")
JAVA = Path("/opt/java")
PACKAGES = Path("/opt/sparkmirror/lib/python3.11/site-packages")

OTHER_MACHINE = {"x86_64": "aarch_64", "aarch64": "x86_64"}
"""In the names of Netty's jars, by the machine that the image is for."""

OF_SPARK = (
    LeftOut(
        "Hive, its metastore and SQL server, Derby, DataNucleus",
        "no table is kept; the catalogue is in memory",
        (
            "jars/hive-*.jar",
            "jars/spark-hive*.jar",
            "jars/derby*.jar",
            "jars/datanucleus-*.jar",
            "jars/jdo-api-*.jar",
            "jars/javax.jdo-*.jar",
            "jars/HikariCP-*.jar",
            "jars/libthrift-*.jar",
            "jars/libfb303-*.jar",
            "jars/commons-dbcp-*.jar",
            "jars/commons-pool-1*.jar",
            "jars/antlr-runtime-3*.jar",
            "jars/ST4-*.jar",
            "jars/opencsv-*.jar",
            "jars/super-csv-*.jar",
            "jars/javolution-*.jar",
            "jars/jpam-*.jar",
            "jars/jline-2*.jar",
            "jars/transaction-api-*.jar",
            "jars/jta-*.jar",
            "jars/stax-api-*.jar",
            "jars/json-1*.jar",
            "jars/joda-time-*.jar",
            "jars/jdbc-*.jar",
        ),
    ),
    LeftOut(
        "MLlib and GraphX with their linear algebra",
        "no model is trained, no graph walked",
        (
            "jars/spark-mllib*.jar",
            "jars/spark-graphx*.jar",
            "jars/breeze*.jar",
            "jars/spire*.jar",
            "jars/cats-kernel*.jar",
            "jars/algebra_*.jar",
            "jars/lapack-*.jar",
            "jars/blas-*.jar",
            "jars/arpack*.jar",
            "jars/JTransforms-*.jar",
            "jars/JLargeArrays-*.jar",
            "ml",
            "mllib",
        ),
    ),
    LeftOut(
        "RocksDB",
        "the state store of stateful streaming queries; a mirror has none",
        ("jars/rocksdbjni-*.jar",),
    ),
    LeftOut(
        "Spark Connect, pipelines",
        "the driver has its SparkContext in the same container",
        ("jars/spark-connect*.jar", "jars/connect-repl", "jars/spark-pipelines*.jar", "pipelines", "sql/connect"),
    ),
    LeftOut(
        "Parquet, ORC and most of Avro, geometry",
        "no file of records is read or written",
        ("jars/parquet-*.jar", "jars/orc-*.jar", "jars/avro-ipc-*.jar", "jars/avro-mapred-*.jar", "jars/jts-*.jar"),
    ),
    LeftOut(
        "ZooKeeper and its client Curator",
        "a standalone master that is to recover keeps its state in files",
        ("jars/zookeeper-*.jar", "jars/curator-*.jar"),
    ),
    LeftOut(
        "the Scala shell and its compiler",
        "no user types Scala here",
        ("jars/scala-compiler-*.jar", "jars/spark-repl*.jar", "jars/jline-3*.jar", "jars/java-diff-utils-*.jar"),
    ),
    LeftOut("YARN", "not a place where containers run", ("jars/spark-yarn*.jar",)),
    LeftOut(
        "R, examples, data, tests, scripts for a shell, the API of pandas",
        "no part of sparkmirror calls them",
        ("R", "examples", "data", "tests", "*/tests", "*/*/tests", "sbin", "bin/*.cmd", "pandas"),
    ),
    LeftOut("PySpark and Py4J once more, packed", "they are installed", ("python/lib/*.zip",)),
    LeftOut(
        "the other scripts of bin",
        "they need a shell; spark-class and spark-submit are sparkmirror's own",
        ("bin/beeline", "bin/*-shell*", "bin/spark-sql", "bin/sparkR*", "bin/run-example", "bin/pyspark"),
    ),
)

OF_PACKAGES = (
    LeftOut(
        "pip and setuptools",
        "the root file system is read-only",
        ("pip", "pip-*", "setuptools", "setuptools-*", "pkg_resources", "_distutils_hack", "distutils-precedence.pth"),
    ),
    LeftOut(
        "tests, headers, sources and compilers' helpers of pandas, NumPy and Arrow",
        "nothing is compiled or tested here",
        (
            "pandas/tests",
            "numpy/tests",
            "numpy/*/tests",
            "numpy/_core/include",
            "numpy/f2py",
            "numpy/distutils",
            "pyarrow/tests",
            "pyarrow/include",
            "pyarrow/src",
            "pyarrow/includes",
            "pyarrow/*.p[xy][xdi]",
            "pyarrow/*_cpp_tests*",
        ),
    ),
    LeftOut(
        "Arrow Flight, Arrow's clients of S3, Google's and Azure's storage",
        "`verify` and the DataFrames pass Arrow batches through a socket of this machine; no file is read",
        (
            "pyarrow/*flight*",
            "pyarrow/libarrow_s3*",
            "pyarrow/_s3fs*",
            "pyarrow/_gcsfs*",
            "pyarrow/_azurefs*",
        ),
    ),
    LeftOut(
        "Arrow's Parquet, ORC, Substrait and data sets",
        "nothing that stays calls them; drop_needed.py takes them off the lists of what is loaded",
        (
            "pyarrow/libparquet*",
            "pyarrow/libarrow_substrait*",
            "pyarrow/libarrow_dataset*",
            "pyarrow/libarrow_python_parquet_encryption*",
            "pyarrow/_dataset*",
            "pyarrow/_orc*",
            "pyarrow/_parquet*",
            "pyarrow/_substrait*",
            "pyarrow/dataset.py",
            "pyarrow/orc.py",
            "pyarrow/parquet",
            "pyarrow/substrait.py",
        ),
    ),
    LeftOut(
        "two of three copies of Arrow's library for Python",
        "wheels have no links; the one that is loaded stays",
        ("pyarrow/libarrow_python*.so", "pyarrow/libarrow_python*.so.*.*.*"),
    ),
    LeftOut(
        "zstandard's second implementation",
        "CPython takes the first",
        ("zstandard/_cffi*", "zstandard/backend_cffi.py"),
    ),
    LeftOut(
        "botocore's descriptions of AWS services but those that sign in",
        "Amazon MSK's signer asks no others",
        ("botocore/data/*/",),
        but=("sts", "sso", "sso-oidc", "signin"),
    ),
    LeftOut(
        "Pygments' languages but Python",
        "no other is printed",
        ("pygments/lexers/[a-z]*.py",),
        but=("python.py",),
    ),
    LeftOut("type stubs", "nothing is checked here", ("**/*.pyi",)),
)


OF_JAVA = (
    LeftOut(
        "Java's native libraries for windows, fonts, pictures and sound",
        "there is no screen",
        (
            "lib/libawt*.so",
            "lib/libfontmanager.so",
            "lib/libjavajpeg.so",
            "lib/libjawt.so",
            "lib/libjsound.so",
            "lib/liblcms.so",
            "lib/libmlib_image.so",
            "lib/libsplashscreen.so",
        ),
    ),
)

NATIVE = re.compile(r"\.(so|a|dll|dylib|jnilib)$")
"""Names of native libraries inside jars."""
OWN = {
    "x86_64": re.compile(r"linux/?(amd64|x86_64|64)/", re.IGNORECASE),
    "aarch64": re.compile(r"linux/aarch64/", re.IGNORECASE),
}
"""Those of the image's system, by its machine."""
OF_ALL_SYSTEMS = LeftOut(
    "native libraries of other systems inside of the jars of zstd, Snappy, LZ4, LevelDB and Commons Crypto",
    "each image is of one",
    (
        "jars/commons-crypto-*.jar",
        "jars/leveldbjni-all-*.jar",
        "jars/lz4-java-*.jar",
        "jars/snappy-java-*.jar",
        "jars/zstd-jni-*.jar",
    ),
)


def of_other_systems(machine: str) -> LeftOut:
    """What only systems load that the image is not for."""
    others = ("osx-*", "windows-*", "linux-riscv64", f"linux-{OTHER_MACHINE[machine]}")
    return LeftOut(
        "Netty's native libraries of other systems",
        "each image is of one",
        tuple(f"jars/*-{other}.jar" for other in others),
    )


def leave_out(root: Path, kinds: tuple[LeftOut, ...]) -> None:
    """Delete them, and print how much each kind was."""
    for kind in kinds:
        size = 0
        for pattern in kind.patterns:
            for path in sorted(root.glob(pattern)):
                if path.name not in kind.but:
                    size += _delete(path)
        print(f"{size / 1e6:7.1f} MB  {kind.what}", file=sys.stderr)


def thin_out(root: Path, kind: LeftOut, own: re.Pattern[str]) -> None:
    """Write jars again without native libraries but the system's own, and print by how much they shrank."""
    size = 0
    for path in sorted(path for pattern in kind.patterns for path in root.glob(pattern)):
        before, thinner = path.stat().st_size, path.with_suffix(".thinner")
        with zipfile.ZipFile(path) as jar, zipfile.ZipFile(thinner, "w", zipfile.ZIP_DEFLATED) as kept:
            for entry in jar.infolist():
                if own.search(entry.filename) or not NATIVE.search(entry.filename):
                    kept.writestr(entry, jar.read(entry))
        thinner.chmod(path.stat().st_mode)
        thinner.replace(path)
        size += before - path.stat().st_size
    print(f"{size / 1e6:7.1f} MB  {kind.what}", file=sys.stderr)


def _delete(path: Path) -> int:
    """Return how many bytes it had."""
    if path.is_dir() and not path.is_symlink():
        size = sum(each.lstat().st_size for each in path.rglob("*"))
        shutil.rmtree(path)
    else:
        size = path.lstat().st_size
        path.unlink()
    return size


if __name__ == "__main__":
    leave_out(SPARK, (*OF_SPARK, of_other_systems(sys.argv[1])))
    thin_out(SPARK, OF_ALL_SYSTEMS, OWN[sys.argv[1]])
    leave_out(PACKAGES, OF_PACKAGES)
    leave_out(JAVA, OF_JAVA)
