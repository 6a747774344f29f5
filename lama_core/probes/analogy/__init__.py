"""Analogies: solve them, score them, and probe models with them.

    templates     the six templates, and reading what a user typed
    solve         "Paris is to France as Rome is to ___", side by side, with vector arithmetic
    score         pseudo-perplexity or perplexity of candidate pairs, token by token
    probes        random-head, random-tail, reverse and type sets made from any analogy dataset
    judges        who decides between two pairs: models, vectors, a classifier; a table of them
    vectors       static word vectors from text files
    frequency     the Kolmogorov-Smirnov test of tuple frequency
    decisions     a relation's instances decided by a judge, or by a classifier of its numbers
    runs          a probe run's specification, its parts, and what is kept of it
    probing       from a request to the runs' specifications
    tables        accuracies by relation and by kind of relation

Source: Rezaee and Camacho-Collados, Probing Relational Knowledge in Language Models via Word
Analogies; templates of Ushio et al. 2021, BERT is to NLP what AlexNet is to CV.
"""
