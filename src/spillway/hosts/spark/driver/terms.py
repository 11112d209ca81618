"""What a class of a cluster's flow becomes when somebody changes it."""

from collections.abc import Mapping

from pydantic import ValidationError

from spillway.errors import SpillwayError, shown, unknown_name
from spillway.flow.flow import ServiceClass

CHANGEABLE = ("priority", "delay", "lend")


def changed_class(
    key: str, to: str, classes: Mapping[str, ServiceClass]
) -> tuple[str, ServiceClass]:
    """("gold.delay", "1s") -> gold as it is then; raises where that cannot be."""
    name, _, setting = key.partition(".")
    if name not in classes:
        raise unknown_name("class", name, classes)
    if setting not in CHANGEABLE:
        raise unknown_name("setting", setting, CHANGEABLE)
    try:
        return name, ServiceClass.model_validate({**classes[name].model_dump(), setting: to})
    except ValidationError as error:
        problem = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise SpillwayError(f"{key} cannot become '{shown(to)}': {problem}") from error
