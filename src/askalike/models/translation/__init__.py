"""Translation between questions and answers: IBM's model 1, word translation, TransLM, phrases."""
