"""What users call by name. Modules are imported only when somebody asks."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Generic, Protocol, TypeVar

from spillway.errors import unknown_name


class Named(Protocol):
    @property
    def name(self) -> str: ...


One = TypeVar("One", bound=Named)


@dataclass(frozen=True, kw_only=True)
class ByName(Generic[One]):
    """Everything of one kind: each module holds a tuple of them under `attribute`."""

    kind: str
    package: str
    attribute: str
    modules: tuple[str, ...]

    def all(self) -> Mapping[str, One]:
        found = (import_module(f"{self.package}.{module}") for module in self.modules)
        return {one.name: one for module in found for one in getattr(module, self.attribute)}

    def find(self, name: str) -> One:
        known = self.all()
        if name not in known:
            raise unknown_name(self.kind, name, known)
        return known[name]
