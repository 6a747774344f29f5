"""Work is dealt by its tokens, and a model is opened by as few workers as keep all of them busy."""

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lama_core.scoring.executors import Job, Part, Task
from lama_core.scoring.executors.assignment import Unassigned


@dataclass(frozen=True)
class Costs:
    """Work of which only the parts count."""

    parts: tuple[Part, ...]
    unit: Any = "queries"

    def score(self, *_: Any) -> Any:
        raise AssertionError("nobody scores here")


def make_jobs(*costs: tuple[int, ...]) -> tuple[list[Job], list[Task]]:
    """A job a model, each part of one query and the given cost."""
    jobs = [
        Job(Costs(tuple(Part(str(n), 1, cost) for n, cost in enumerate(of))), name, None, list)
        for name, of in enumerate(costs)
    ]
    return jobs, [Task(job, part) for job, of in enumerate(costs) for part in range(len(of))]


def deal_out(deal: Unassigned, n_workers: int) -> dict[int, list[Task]]:
    """Each worker's parts when all are equally fast: whoever is done first takes the next."""
    busy = dict.fromkeys(range(n_workers), 0)
    had: dict[int, list[Task]] = {number: [] for number in busy}
    while True:
        worker = min(busy, key=lambda number: busy[number])
        task = deal.take(worker)
        if task is None:
            return had
        had[worker].append(task)
        busy[worker] += deal.cost(task)


@given(
    st.lists(st.integers(1, 1000), min_size=1, max_size=60), st.integers(min_value=1, max_value=6)
)
def test_workers_of_one_model_differ_by_no_more_than_a_part(
    costs: list[int], n_workers: int
) -> None:
    jobs, tasks = make_jobs(tuple(costs))
    deal = Unassigned(jobs, tasks)
    had = deal_out(deal, n_workers)
    assert sorted(task.part for of in had.values() for task in of) == list(range(len(costs)))
    took = [sum(map(deal.cost, of)) for of in had.values()]
    assert max(took) - min(took) <= max(costs)


def test_equal_numbers_of_parts_would_not_do() -> None:
    jobs, tasks = make_jobs((100, 100, 100, 100, 25, 25, 25, 25))
    had = deal_out(Unassigned(jobs, tasks), 2)
    assert [[task.part for task in of] for of in had.values()] == [[0, 2, 4, 6], [1, 3, 5, 7]]
    jobs, tasks = make_jobs((300, 100, 100, 100))
    had = deal_out(Unassigned(jobs, tasks), 2)
    assert [[task.part for task in of] for of in had.values()] == [[0], [1, 2, 3]]


def test_each_worker_begins_with_another_model() -> None:
    jobs, tasks = make_jobs((10,) * 6, (10,) * 6, (10,) * 6)
    had = deal_out(Unassigned(jobs, tasks), 3)
    assert [{task.job for task in of} for of in had.values()] == [{0}, {1}, {2}]


def test_the_model_with_twice_the_work_gets_twice_the_workers() -> None:
    jobs, tasks = make_jobs((10,) * 8, (10,) * 4)
    had = deal_out(Unassigned(jobs, tasks), 3)
    assert [{task.job for task in of} for of in had.values()] == [{0}, {1}, {0}]


def test_one_worker_opens_each_model_once() -> None:
    jobs, tasks = make_jobs((10, 20), (10, 20, 30), (5,))
    had = deal_out(Unassigned(jobs, tasks), 1)
    assert [task.job for task in had[0]] == [1, 1, 1, 0, 0, 2]


def test_a_lost_part_is_dealt_next() -> None:
    jobs, tasks = make_jobs((40, 30, 20, 10))
    deal = Unassigned(jobs, tasks)
    lost = [deal.take(0), deal.take(0)]
    assert lost == [Task(0, 0), Task(0, 1)]
    deal.remove_worker(0)
    deal.give_back([task for task in lost if task])
    left = [deal.take(1) for _ in range(5)]
    assert left == [Task(0, 0), Task(0, 1), Task(0, 2), Task(0, 3), None] and deal.is_empty
