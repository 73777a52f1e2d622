"""The tables of Zhang and Wu 2018 (AAAI): RAMN on the question pairs of SemEval, its layers one by one."""
