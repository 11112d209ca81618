"""What the leader says of classes, carried out on a node: targets and priorities of all nodes,
shares of this one; and what its gates drop for nodes behind it."""

from collections.abc import Mapping

from spillway.hosts.cluster.duties import Duties
from spillway.hosts.cluster.looking_up import LookingUp
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.driver.terms import CHANGEABLE

RULER = "the coordinator"


class ClassOrders:
    def __init__(self, application: Application) -> None:
        self._application = application
        application.ruled_by = RULER
        self._quotas: Mapping[str, float] = {}
        self._looking_up = LookingUp()

    def follow(self, duties: Duties) -> None:
        application = self._application
        classes = {} if duties.flow is None else duties.flow.flow["classes"]
        for name, given in classes.items():
            if (running := application.classes.get(name)) is None:
                continue  # of an application that has attached with an older file
            for key in CHANGEABLE:
                if key in given and getattr(running, key) != given[key]:
                    application.change(f"{name}.{key}", str(given[key]), by=RULER)
        if (quotas := duties.order.quotas) != self._quotas:
            self._quotas = quotas
            application.dispatcher.change(lambda control: control.own(quotas))
            application.event("owns", shares=dict(quotas))
        self._looking_up.look(duties, application)
