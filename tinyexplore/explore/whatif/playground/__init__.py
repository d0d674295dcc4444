"""The user's rules, tried on captured kernels, each firing checked.

`explore/playground.py` has the public names.

`written.py`: how rules are written. `equivalence.py`: the check, by values (`meaning.py`, `samples.py`) and by z3
(`proof.py`). `pipeline.py`: pipelines that are not the engine's own. `playground.py`: what an Explorer has of it.
"""
