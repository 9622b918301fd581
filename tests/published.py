"""Published examples and the original report's numbers, for tests of the statistics."""

import json
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
PUBLISHED: dict[str, dict[str, Any]] = {
    check["name"]: check
    for check in json.loads((HERE / "data" / "external_checks.json").read_text())
}
ORIGINAL = json.loads((HERE.parent / "msstab" / "data" / "stage2_report.json").read_text())
BASELINE = np.array(ORIGINAL["bench_report"]["baseline"]["full"]["per_seed"])
IDEA = np.array(ORIGINAL["bench_report"]["idea"]["per_seed"])
DIFFERENCES = IDEA - BASELINE
SD = float(DIFFERENCES.std(ddof=1))
ZEA = PUBLISHED["zea_signflip_exact"]["inputs"]["diffs_eighths_inch"]
