"""Analogies: solve them, score them, and probe models with them.

    templates     the six templates, and reading what a user typed
    solve         "Paris is to France as Rome is to ___", side by side, with vector arithmetic
    score         pseudo-perplexity or perplexity of candidate pairs, token by token
    probes        random-head, random-tail, reverse and type sets made from any analogy dataset
    judges        who decides between two pairs, and what a classifier is given to read
    vectors       static word vectors from text files
    supervised    the multi-layer perceptron on the words' embeddings
    frequency     the Kolmogorov-Smirnov test of tuple frequency
    records       probe runs: saved, found, loaded
    run           the one path that page and command line share
    published     the paper's tables, and our numbers beside them

Source: Rezaee and Camacho-Collados, Probing Relational Knowledge in Language Models via Word
Analogies; templates of Ushio et al. 2021, BERT is to NLP what AlexNet is to CV.
"""
