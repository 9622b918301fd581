"""Count how often the project's own decisions are wrong, in simulated studies of known effect.

Errors are heavy-tailed and correlated within a seed, their paired log ratios have a standard
deviation of 0.4. The bars: without an effect, a false "better or worse" at most at alpha, also
where one stops at the first pair at which the sequential test rejects; equivalence within 5% at
most at alpha where the effect is 5%; 95% intervals cover 93 to 97%; with an effect of 5%, the
decision's power is within 5 points of the plan. They are asked of log ratios, the scale that
decides; the same is shown of raw differences. False rates may exceed alpha by two Monte Carlo
standard errors, so that of 40 procedures whose rate is alpha one misses its bar by chance. "t
test at every pair" is no procedure of the project, and shows that the count finds what is wrong.
"""

import argparse
import time

import numpy as np
import pandas as pd

from msstab import calibration, calibration_bars


def table(rows: pd.DataFrame) -> str:
    """Return one line for each procedure and number of pairs, a column for each family."""
    percent = (100 * rows[["rate", "standard_error"]]).to_numpy()
    shown = [
        f"{rate:5.1f} ± {error:3.1f}{' ' if holds else '!'}"
        for (rate, error), holds in zip(percent, rows.holds, strict=True)
    ]
    index = pd.MultiIndex.from_frame(rows[["procedure", "pairs", "family"]])
    return pd.Series(shown, index=index).unstack(sort=False).to_string()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--studies", type=int, default=2_000, help="simulated, for each setting")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes; the numbers stay the same")
    arguments = parser.parse_args()
    start = time.perf_counter()
    frame = calibration.simulate(
        np.random.default_rng(arguments.seed), studies=arguments.studies, jobs=arguments.jobs
    )
    seconds = time.perf_counter() - start
    print(f"{arguments.studies} studies a setting, seed {arguments.seed}, {seconds:.0f} s")
    print("percent ± Monte Carlo standard error; ! misses its bar")
    for quantity in frame.quantity.unique():
        rows = frame[frame.quantity == quantity]
        for effect in rows.effect.unique():
            print(f"\n{quantity}, effect {100 * effect:+g}%")
            print(table(rows[rows.effect == effect]))
    print("\nthe bars, on log ratios")
    for row in calibration_bars.bars(frame).to_dict("records"):
        low, high, lowest, highest = (
            f"{100 * row[name]:.1f}" for name in ("low", "high", "lowest", "highest")
        )
        state = "pass" if row["holds"] else f"FAIL, {row['missed']} outside"
        print(
            f"{row['bar']}: {lowest} to {highest}% over {row['rates']} rates, bar {low} to "
            f"{high}%: {state}"
        )
    print("\nrates outside their bars, on either scale")
    for missed in frame[~frame.holds].to_dict("records"):
        rate, low, high = (f"{100 * missed[name]:.1f}" for name in ("rate", "low", "high"))
        setting = f"{missed['family']}, {missed['pairs']} pairs, effect {missed['effect']:+.0%}"
        print(
            f"  {missed['procedure']}, {setting}: {missed['quantity']} {rate}%, bar {low} to "
            f"{high}%"
        )


if __name__ == "__main__":
    main()
