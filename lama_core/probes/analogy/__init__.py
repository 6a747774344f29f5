"""Analogies: solve them, score them, and probe models with them.

    templates         the six templates; parses analogies that a user typed
    solve             "Paris is to France as Rome is to ___", for several models, with vector
                      arithmetic
    score             perplexity or pseudo-perplexity of candidate pairs, token by token
    multiple_choice   the share of multiple-choice questions that models answer right
    instances         probes (random-head, random-tail, reverse, type) made from an analogy dataset
    scorers           score pairs with a language model, word vectors or RelBERT
    vectors           static word vectors from text files
    frequency         Kolmogorov-Smirnov test of pair frequency
    decisions         decides a relation's instances, by scores or with a trained classifier
    spec              specification, parts and stored details of a probe run
    plan              turns a request into specifications
    accuracy_tables   accuracies by relation and by kind of relation

Source: Rezaee and Camacho-Collados, Probing Relational Knowledge in Language Models via Word
Analogies; templates of Ushio et al. 2021, BERT is to NLP what AlexNet is to CV.
"""
