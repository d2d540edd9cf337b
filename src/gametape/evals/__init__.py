"""Evals: what a policy can do, with intervals: pass@k and pass^k, survival over long horizons, mistakes, cost."""
