"""Hadoop's local files without a process per file.

Hadoop sets the mode of every file it creates by running `chmod`, unless its native library is
there, and PySpark comes without it. A windowed micro-batch creates four such files; forking costs
about 5 ms each. The class below sets the mode through Java's own file API, and is otherwise
Hadoop's. It is compiled by the compiler that Spark uses for its generated code, and takes effect
through Hadoop's cache of file systems, which all parts of a local Spark share.
"""

from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_NAME = "SpillwayLocalFiles"
_SOURCE = f"""
public class {_NAME} extends org.apache.hadoop.fs.RawLocalFileSystem {{
  public void setPermission(
      org.apache.hadoop.fs.Path path, org.apache.hadoop.fs.permission.FsPermission mode)
      throws java.io.IOException {{
    java.nio.file.Files.setAttribute(
        pathToFile(path).toPath(), "unix:mode", Integer.valueOf(mode.toShort()),
        new java.nio.file.LinkOption[0]);
  }}
}}
"""


def use_fast_local_files(session: SparkSession, source: str = _SOURCE) -> bool:
    """For file: paths in this JVM, from now on; done once. Where it cannot be done, Hadoop's stays.

    Only for a session that was made here: it closes the local file system that is shared.
    """
    jvm: Any = session._jvm
    files = jvm.org.apache.hadoop.fs.FileSystem
    root = jvm.java.net.URI("file:///")
    settings = session._jsc.hadoopConfiguration()
    current = files.get(root, settings)
    if current.getClass().getName() == _NAME:
        return True
    try:  # a compiler that is not there is a package that cannot be called
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(current.getClass().getClassLoader())
        compiler.cook(source)
        own = jvm.org.apache.hadoop.conf.Configuration(settings)
        own.setClassLoader(compiler.getClassLoader())
        own.set("fs.file.impl", _NAME)
        files.newInstance(root, own).close()
        current.close()  # leaves the cache: the next one asked for takes its place
        files.get(root, own)
    except (Py4JError, PySparkException, TypeError):  # no compiler, or another Hadoop
        return False
    return True
