"""Which class runs next: weighted deficit round robin over pipeline time (CQC's class level).

The same object drives the gates on Spark (the unit of work is a micro-batch) and the simulator
(the unit is an operator's activation). What a unit of work costs is known only when it has ended,
so a class may overdraw its account; the debt keeps it waiting until its quota has paid it back.
"""

from collections.abc import Collection, Mapping


class ClassScheduler:
    """Deficit round robin that never idles while a class is ready.

    Every class has an account in seconds. In a round each ready class is paid its quota of the
    round's length; a ready class with a positive account may start. An idle class saves nothing
    (its account is cut to zero), so that it cannot come back with a claim on the past; debts stay.
    """

    def __init__(self, quotas: Mapping[str, float], *, round_s: float = 0.1) -> None:
        self._quotas = dict(quotas)
        self._round_s = round_s
        self._account_s = dict.fromkeys(quotas, 0.0)
        self._turn = list(quotas)

    @property
    def quotas(self) -> Mapping[str, float]:
        return self._quotas

    def set_quotas(self, quotas: Mapping[str, float]) -> None:
        """New shares of the machine, from the next round on; accounts and debts stay."""
        self._quotas = dict(quotas)
        for name in quotas:
            self._account_s.setdefault(name, 0.0)
        self._turn = [n for n in self._turn if n in quotas]
        self._turn += [n for n in quotas if n not in self._turn]

    def next(self, ready: Collection[str]) -> str | None:
        """The class that may start now, or None when no class is ready."""
        candidates = [name for name in self._turn if name in ready]
        if not candidates:
            return None
        self._forget_savings(ready)
        self._pay(candidates)
        chosen = next(name for name in candidates if self._account_s[name] > 0.0)
        self._turn.remove(chosen)
        self._turn.append(chosen)
        return chosen

    def charge(self, name: str, seconds: float) -> None:
        """Book the pipeline time that a unit of work took."""
        self._account_s[name] -= seconds

    def _forget_savings(self, ready: Collection[str]) -> None:
        for name, account_s in self._account_s.items():
            if name not in ready and account_s > 0.0:
                self._account_s[name] = 0.0

    def _pay(self, candidates: list[str]) -> None:
        """As many whole rounds as it takes until one candidate can start (in closed form)."""
        if any(self._account_s[name] > 0.0 for name in candidates):
            return
        pay_s = {name: self._quotas[name] * self._round_s for name in candidates}
        paying = [name for name in candidates if pay_s[name] > 0.0]
        if not paying:  # every ready class has a quota of zero: the machine is idle, let one run
            self._account_s[candidates[0]] = self._round_s
            return
        rounds = min(int(-self._account_s[name] // pay_s[name]) + 1 for name in paying)
        for name in candidates:
            self._account_s[name] += rounds * pay_s[name]
        if not any(self._account_s[name] > 0.0 for name in candidates):
            self._pay(candidates)  # rounding left the account at zero: one more round
