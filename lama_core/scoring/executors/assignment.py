"""Which part each worker scores next, so that models are opened seldom and all end together.

A worker gets the parts of the model that it has open, the costliest first. When there are none
left, it goes on with the model that has the most left for each worker at it, itself counted in.
"""

from collections.abc import Hashable, Sequence

from lama_core.scoring.executors import Job, Task


class Deal:
    """The parts that nobody has yet. Workers are numbers."""

    def __init__(self, jobs: Sequence[Job], tasks: Sequence[Task]) -> None:
        self._jobs = jobs
        # By whom they ask, the costliest last; and the sums of their costs.
        self._waiting: dict[Hashable, list[Task]] = {self._key(task): [] for task in tasks}
        self._left = dict.fromkeys(self._waiting, 0)
        self._at: dict[int, Hashable] = {}
        for task in sorted(reversed(tasks), key=self.cost):  # of equals the first is dealt first
            self._put(task)

    def cost(self, task: Task) -> int:
        """What a part takes, at least 1."""
        return max(self._jobs[task.job].work.parts[task.part].cost, 1)

    def take(self, worker: int) -> Task | None:
        """The next part of a worker; None when all are dealt."""
        if self.is_empty:
            return None
        key = self._at.get(worker)
        if not self._left.get(key, 0):
            self.leave(worker)
            open_here = list(self._at.values())
            key = max(self._left, key=lambda one: self._left[one] / (1 + open_here.count(one)))
        self._at[worker] = key
        task = self._waiting[key].pop()
        self._left[key] -= self.cost(task)
        return task

    def give_back(self, tasks: Sequence[Task]) -> None:
        """Parts that were lost: they are dealt next."""
        for task in reversed(tasks):
            self._put(task)

    @property
    def is_empty(self) -> bool:
        """Whether all parts are dealt."""
        return not any(self._left.values())

    def leave(self, worker: int) -> None:
        """A worker is no more."""
        self._at.pop(worker, None)

    def _put(self, task: Task) -> None:
        self._waiting[self._key(task)].append(task)
        self._left[self._key(task)] += self.cost(task)

    def _key(self, task: Task) -> Hashable:
        return self._jobs[task.job].key
