"""The public Python functions, grouped by subject; `lama_core` exports all of them.

Commands and pages call these functions. Each takes the fields of a request (see
`lama_core.requests`) and returns a DataFrame or a small object with `.frame`;
`function.answer(request)` returns the full result. All raise UserError if a request is invalid or
can't be carried out.
"""
