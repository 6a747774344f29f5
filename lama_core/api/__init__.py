"""The public Python functions, one module a subject; `lama_core` offers all of them by name.

Commands and pages call these functions. Each takes the fields of a request (see `requests`) and
returns a DataFrame or a small object with `.frame`; `function.answer(request)` returns everything
that is known. All raise UserError, with one sentence, for what can't be answered.
"""
