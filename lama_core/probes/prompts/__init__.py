"""Prompts: sets of them, mining, paraphrasing, selection and ensembles (Jiang et al. 2020, LPAQA).

prompt sets -> scored on training and test facts (store) -> selected and weighted (selection)
-> a study of one relation (study) -> table, saved runs, page
"""
