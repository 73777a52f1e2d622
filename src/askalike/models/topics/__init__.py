"""Topics of questions with their answers: QATM, and SQATM, which weighs answers by their votes."""
