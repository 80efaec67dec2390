"""A store on another machine that can be made to fail, as fsspec sees one."""

from typing import Any, ClassVar

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

PLACE = "unsteady://bucket/prefix"


class Unsteady(MemoryFileSystem):
    """Files in memory; answers nothing while `gone` has a reason, and notes what is read."""

    protocol = "unsteady"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    reads: ClassVar[list[str]] = []
    gone = ""

    def cat_file(self, path: str, **kwargs: Any) -> bytes:
        if self.gone:
            raise ConnectionError(self.gone)
        self.reads.append(path)
        return bytes(super().cat_file(path, **kwargs))

    def pipe_file(self, path: str, value: bytes, **kwargs: Any) -> Any:
        if self.gone:
            raise ConnectionError(self.gone)
        return super().pipe_file(path, value, **kwargs)


fsspec.register_implementation(Unsteady.protocol, Unsteady, clobber=True)
