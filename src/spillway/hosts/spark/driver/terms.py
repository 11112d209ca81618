"""What the classes of a flow were promised, and how that changes while the flow runs."""

from collections.abc import Mapping

from pydantic import ValidationError

from spillway.classes.control import ClassTerms
from spillway.errors import SpillwayError, unknown_name
from spillway.flow.flow import ServiceClass
from spillway.load import laws
from spillway.model import Target

CHANGEABLE = ("priority", "delay", "lend")


def terms_of(service_class: ServiceClass) -> ClassTerms:
    law, _ = service_class.law
    return ClassTerms(
        priority=service_class.priority,
        target=Target.parse(service_class.delay),
        lend=service_class.lend,
        adapts=laws.find(law).adapts,
    )


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
        raise SpillwayError(f"{key} cannot become '{to}': {problem}") from error
