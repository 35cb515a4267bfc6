"""Receivers of one's own for the programs of this folder: classes in Java, since PySpark has none.

The Janino that Spark ships compiles a class in the driver's JVM at each start, so that no compiler is needed. The
driver's JVM has to know the class before it reads a checkpoint with such a receiver in it, the executors have it from a
jar.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from pyspark import SparkConf, SparkContext
from pyspark.serializers import UTF8Deserializer
from pyspark.streaming import DStream, StreamingContext

Build = Callable[[StreamingContext, Any], object]


def run(args: argparse.Namespace, java: str, build: Build, *, goes_on: bool = True) -> None:
    """Go on from the checkpoint, or begin: then `build` says what is done, given a receiver of the class in `java`. A
    program that does not go on begins each time, whatever is in the checkpoint."""
    SparkContext._ensure_initialized()
    gateway: Any = SparkContext._gateway
    loader = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    jar = _compiled(gateway.jvm, Path(__file__).with_name(java))
    loader.addURL(gateway.jvm.java.io.File(str(jar)).toURI().toURL())

    def create() -> StreamingContext:
        conf = SparkConf().set("spark.streaming.receiver.writeAheadLog.enable", str(args.log).lower())
        ssc = StreamingContext(SparkContext(conf=conf), args.interval)
        build(ssc, loader.loadClass(jar.stem).newInstance())
        return ssc

    ssc = StreamingContext.getOrCreate(args.checkpoint, create) if goes_on else create()
    if not goes_on:
        ssc.checkpoint(args.checkpoint)
    context: Any = ssc.sparkContext
    context._jsc.addJar(str(jar))
    ssc.start()
    ssc.awaitTermination()


def stream(ssc: StreamingContext, receiver: Any) -> DStream[Any]:
    """The texts that a receiver stores."""
    context: Any = ssc
    return DStream(context._jssc.receiverStream(receiver), ssc, UTF8Deserializer())  # type: ignore[no-untyped-call]


def _compiled(jvm: Any, source: Path) -> Path:
    """A jar with the classes of a file, in a folder of this process's own."""
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cookFile(str(source))
    jar = Path(tempfile.mkdtemp()) / f"{source.stem}.jar"
    with ZipFile(jar, "w") as file:
        for name, code in compiler.getBytecodes().items():
            file.writestr(f"{name.replace('.', '/')}.class", bytes(code))
    return jar
