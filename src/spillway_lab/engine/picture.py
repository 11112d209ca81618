"""A run as a picture: what came, what went, how late it was."""

from matplotlib.figure import Figure

from spillway_lab.engine.run import Run


def draw(run: Run, title: str) -> Figure:
    figure = Figure(figsize=(9.0, 6.5), layout="constrained")
    delay, rate, keep = figure.subplots(3, 1, sharex=True, height_ratios=(3, 2, 1))
    figure.suptitle(title)
    delay.plot(run.time_s, run.delay_s, color="tab:blue", marker=".", markersize=3)
    delay.plot(run.time_s, run.target_s, color="tab:red", linestyle="--", label="target")
    delay.set_ylabel("mean delay (s)")
    delay.set_ylim(bottom=0.0)
    delay.legend(loc="upper right")
    rate.plot(run.time_s, run.offered / run.period_s, color="tab:gray", label="offered")
    rate.plot(run.time_s, run.completed / run.period_s, color="tab:green", label="completed")
    rate.set_ylabel("tuples/s")
    rate.set_ylim(bottom=0.0)
    rate.legend(loc="upper right")
    keep.step(run.time_s, run.keep_fraction, where="pre", color="tab:orange")
    keep.set_ylabel("kept")
    keep.set_ylim(0.0, 1.05)
    keep.set_xlabel("virtual time (s)")
    return figure
