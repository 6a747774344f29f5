"""Prompts: sets, mining, paraphrasing, selection and ensembles (Jiang et al. 2020, LPAQA).

Flow: prompt sets -> scores on training and test facts (`distributions`) -> selection and weights
(`selection`) -> study of one relation (`study`) -> table, saved runs, page
"""
