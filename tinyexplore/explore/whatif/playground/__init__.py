"""Tries the user's rules on captured kernels; each firing is checked.

`explore/playground.py` has the public names.

`user_rules.py`: how rules are written. `equivalence.py`: the check, by values (`evaluator.py`, `samples.py`) and by z3
(`proof.py`). `modified_pipeline.py`: modified pipelines. `playground.py`: the Explorer's access to all of these.
"""
